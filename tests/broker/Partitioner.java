import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.Utils;

/** Reads keys in hexadecimal, one per line; prints each with its hash and its partition. */
public class Partitioner {
    public static void main(String[] partitions) throws Exception {
        BufferedReader keys = new BufferedReader(new InputStreamReader(System.in));
        for (String line = keys.readLine(); line != null; line = keys.readLine()) {
            byte[] key = HexFormat.of().parseHex(line);
            StringBuilder row = new StringBuilder(line + "\t" + Utils.murmur2(key));
            for (String count : partitions) {
                row.append('\t').append(
                    BuiltInPartitioner.partitionForKey(key, Integer.parseInt(count)));
            }
            System.out.println(row);
        }
    }
}
