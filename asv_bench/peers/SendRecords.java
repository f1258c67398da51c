import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Utils;

/**
 * Sends the records of a segment to partition 0 of a topic, in order, in batches of 64 KiB: SERVERS
 * TOPIC CODEC SEGMENT.
 */
public final class SendRecords {
    private SendRecords() { }

    public static void main(String[] args) throws Exception {
        ByteBuffer segment = ByteBuffer.wrap(Files.readAllBytes(Path.of(args[3])));
        Map<String, Object> config = Map.of(
            "bootstrap.servers", args[0],
            "compression.type", args[2],
            "batch.size", 65536,
            "linger.ms", 100,
            "buffer.memory", 256L << 20,
            "enable.idempotence", false,
            "max.in.flight.requests.per.connection", 1);
        AtomicReference<Exception> failure = new AtomicReference<>();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (Record record : MemoryRecords.readableRecords(segment).records()) {
                ProducerRecord<byte[], byte[]> sent = new ProducerRecord<>(args[1], 0,
                    record.timestamp(), Utils.toNullableArray(record.key()),
                    Utils.toNullableArray(record.value()), java.util.List.of(record.headers()));
                producer.send(sent, (metadata, error) -> {
                    if (error != null) {
                        failure.set(error);
                    }
                });
            }
        }
        if (failure.get() != null) {
            throw failure.get();
        }
    }
}
