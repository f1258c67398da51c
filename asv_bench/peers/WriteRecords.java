import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Utils;

/**
 * Builds batches of 16,384 bytes out of a segment's records, which are in memory as byte arrays,
 * once for each line on stdin, and answers with nanoseconds and records. As the producer does: a
 * builder is appended to while it has room, then built, into a buffer that is used again.
 */
public final class WriteRecords {
    private static final int BATCH_SIZE = 16384;

    // What happens to be kept of each pass, lest the JIT compiler leave the work out.
    static long sink;

    private WriteRecords() { }

    public static void main(String[] args) throws Exception {
        Compression codec = Compression.of(CompressionType.forName(args[0])).build();
        ByteBuffer segment = ByteBuffer.wrap(Files.readAllBytes(Path.of(args[1])));
        int count = 0;
        for (RecordBatch batch : MemoryRecords.readableRecords(segment.duplicate()).batches()) {
            count += batch.countOrNull();
        }
        byte[][] keys = new byte[count][];
        byte[][] values = new byte[count][];
        long[] timestamps = new long[count];
        int at = 0;
        for (Record record : MemoryRecords.readableRecords(segment).records()) {
            keys[at] = Utils.toNullableArray(record.key());
            values[at] = Utils.toNullableArray(record.value());
            timestamps[at++] = record.timestamp();
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        ByteBuffer buffer = ByteBuffer.allocate(2 * BATCH_SIZE);
        while (in.readLine() != null) {
            long start = System.nanoTime();
            for (int record = 0; record < count;) {
                buffer.clear();
                MemoryRecordsBuilder builder = new MemoryRecordsBuilder(buffer,
                    RecordBatch.MAGIC_VALUE_V2, codec, TimestampType.CREATE_TIME, record, -1L,
                    RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH,
                    RecordBatch.NO_SEQUENCE, false, false, 0, BATCH_SIZE);
                while (record < count && builder.hasRoomFor(
                        timestamps[record], keys[record], values[record], Record.EMPTY_HEADERS)) {
                    builder.append(timestamps[record], keys[record], values[record]);
                    record++;
                }
                sink += builder.build().sizeInBytes();
            }
            System.out.println((System.nanoTime() - start) + " " + count);
        }
    }
}
