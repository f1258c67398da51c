import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.zip.CRC32;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.utils.BufferSupplier;

/**
 * Prints what Kafka's own classes read in logs: a line for each batch and for each record, after
 * they have said that it is valid. In hexadecimal, so that every byte is seen, or as size and CRC-32
 * where that is long; - is null.
 */
public class ReadLogs {
    static final HexFormat HEX = HexFormat.of();
    static final int MOST_BYTES = 70;

    public static void main(String[] folders) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String folder : folders) {
            out.println("log " + Path.of(folder).getFileName());
            Path log = Path.of(folder, "00000000000000000000.log");
            ByteBuffer content = ByteBuffer.wrap(Files.readAllBytes(log));
            MemoryRecords records = MemoryRecords.readableRecords(content);
            if (records.validBytes() != records.sizeInBytes()) {
                throw new IllegalStateException(log + " does not end with a batch");
            }
            for (MutableRecordBatch batch : records.batches()) {
                batch.ensureValid();
                out.println(String.join(" ", "batch", text(batch.magic()),
                    batch.compressionType().name, batch.timestampType().name,
                    text(batch.baseOffset()), text(batch.lastOffset()), text(batch.maxTimestamp()),
                    text(batch.producerId()), text(batch.producerEpoch()),
                    text(batch.baseSequence()), text(batch.lastSequence()),
                    text(batch.partitionLeaderEpoch()), text(batch.isTransactional()),
                    text(batch.isControlBatch()),
                    batch.deleteHorizonMs().isPresent()
                        ? text(batch.deleteHorizonMs().getAsLong()) : "-",
                    batch.countOrNull() == null ? "-" : text(batch.countOrNull())));
                Iterator<Record> again = batch.streamingIterator(BufferSupplier.NO_CACHING);
                for (Record record : batch) {
                    record.ensureValid();
                    String line = line(record);
                    if (!line.equals(line(again.next()))) {
                        throw new IllegalStateException("read in another way: " + line);
                    }
                    out.println(line);
                }
            }
        }
        out.flush();
    }

    static String line(Record record) {
        StringBuilder line = new StringBuilder(String.join(" ", "record", text(record.offset()),
            text(record.timestamp()), text(record.sequence()), hex(record.key()), hex(record.value())));
        for (Header header : record.headers()) {
            line.append(' ').append(HEX.formatHex(header.key().getBytes(StandardCharsets.UTF_8)));
            line.append('=').append(header.value() == null ? "-" : HEX.formatHex(header.value()));
        }
        return line.toString();
    }

    static String text(Object value) {
        return String.valueOf(value);
    }

    static String hex(ByteBuffer value) {
        if (value == null) {
            return "-";
        }
        byte[] bytes = new byte[value.remaining()];
        value.get(bytes);
        if (bytes.length > MOST_BYTES) {
            CRC32 crc = new CRC32();
            crc.update(bytes);
            return bytes.length + ":" + crc.getValue();
        }
        return "x" + HEX.formatHex(bytes);
    }
}
