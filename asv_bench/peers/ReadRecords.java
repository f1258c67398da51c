import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;
import org.apache.kafka.common.utils.Utils;

/**
 * Reads a segment that is already in memory, once for each line on stdin, and answers with
 * nanoseconds and records. As the consumer does: ensureValid checks the CRC, records come from
 * streamingIterator with recycled buffers. "copy" takes keys and values out into byte arrays, as
 * ByteArrayDeserializer does; "touch" looks at their sizes only.
 */
public final class ReadRecords {
    // What happens to be kept of each pass, lest the JIT compiler leave the work out.
    static long sink;
    static final byte[][] FIELDS = new byte[1024][];

    private ReadRecords() { }

    public static void main(String[] args) throws Exception {
        boolean copy = args[0].equals("copy");
        ByteBuffer segment = ByteBuffer.wrap(Files.readAllBytes(Path.of(args[1])));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        while (in.readLine() != null) {
            long start = System.nanoTime();
            long records = read(segment, copy);
            System.out.println((System.nanoTime() - start) + " " + records);
        }
    }

    private static long read(ByteBuffer segment, boolean copy) {
        BufferSupplier buffers = BufferSupplier.create();
        long count = 0;
        for (RecordBatch batch : MemoryRecords.readableRecords(segment.duplicate()).batches()) {
            batch.ensureValid();
            try (CloseableIterator<Record> records = batch.streamingIterator(buffers)) {
                while (records.hasNext()) {
                    Record record = records.next();
                    sink += record.offset() + record.timestamp();
                    if (copy) {
                        int at = (int) count & 511;
                        FIELDS[at] = Utils.toNullableArray(record.key());
                        FIELDS[512 + at] = Utils.toNullableArray(record.value());
                    } else {
                        sink += record.keySize() + record.valueSize();
                    }
                    count++;
                }
            }
        }
        buffers.close();
        return count;
    }
}
