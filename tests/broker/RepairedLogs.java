import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * What consumers of a broker get of partition folders that were put into its log.dirs.
 *
 * <p>{@code RepairedLogs create BOOTSTRAP TOPIC...} creates topics of one partition.
 * {@code RepairedLogs consume BOOTSTRAP ISOLATION TOPIC...} reads each from its start, up to the
 * last stable offset if the isolation is read_committed, and prints a line for each record: topic,
 * offset and value in hexadecimal.
 */
public final class RepairedLogs {
  static final int IDLE_POLLS = 4;

  public static void main(String[] arguments) throws Exception {
    Properties client = new Properties();
    client.put("bootstrap.servers", arguments[1]);
    if (arguments[0].equals("create")) {
      create(client, Arrays.copyOfRange(arguments, 2, arguments.length));
    } else {
      consume(client, arguments[2], Arrays.copyOfRange(arguments, 3, arguments.length));
    }
  }

  static void create(Properties client, String[] topics)
      throws ExecutionException, InterruptedException {
    List<NewTopic> wanted = new ArrayList<>();
    for (String topic : topics) {
      wanted.add(new NewTopic(topic, 1, (short) 1).configs(Map.of("retention.ms", "-1")));
    }
    try (Admin admin = Admin.create(client)) {
      admin.createTopics(wanted).all().get();
    }
  }

  static void consume(Properties client, String isolation, String[] topics) {
    client.put("isolation.level", isolation);
    client.put("auto.offset.reset", "none");
    StringBuilder lines = new StringBuilder();
    try (var consumer =
        new KafkaConsumer<>(client, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      for (String topic : topics) {
        TopicPartition partition = new TopicPartition(topic, 0);
        List<TopicPartition> all = List.of(partition);
        consumer.assign(all);
        long end = consumer.endOffsets(all).get(partition);
        consumer.seek(partition, consumer.beginningOffsets(all).get(partition));
        lines.append(topic).append(" end ").append(end).append('\n');
        int idle = 0;
        while (consumer.position(partition) < end && idle < IDLE_POLLS) {
          var records = consumer.poll(Duration.ofMillis(500));
          idle = records.isEmpty() ? idle + 1 : 0;
          for (ConsumerRecord<byte[], byte[]> record : records) {
            lines.append(topic).append(' ').append(record.offset()).append(' ');
            lines.append(HexFormat.of().formatHex(record.value())).append('\n');
          }
        }
      }
    }
    System.out.print(lines);
  }
}
