import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Changes the logs of a broker, a command in a line of standard input after the other.
 *
 * <p>{@code create TOPIC NAME=VALUE...}, {@code delete TOPIC}, {@code write TOPIC FIRST COUNT
 * KEYS} (a batch for each record, with numbers as values and so many different keys), {@code
 * before TOPIC OFFSET} (DeleteRecords), {@code move TOPIC FOLDER}, and {@code consume TOPIC}, which
 * prints the values from the log's start on. Each prints one line.
 */
public final class ChangedLogs {
  static final int IDLE_POLLS = 4;

  public static void main(String[] arguments) throws Exception {
    Properties client = new Properties();
    client.put("bootstrap.servers", arguments[0]);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    try (Admin admin = Admin.create(client)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        System.out.println(answer(admin, client, line.split(" ")));
        System.out.flush();
      }
    }
  }

  static String answer(Admin admin, Properties client, String[] words) throws Exception {
    String topic = words[1];
    TopicPartition partition = new TopicPartition(topic, 0);
    switch (words[0]) {
      case "create" -> {
        Map<String, String> configs = new HashMap<>();
        for (int word = 2; word < words.length; word++) {
          String[] pair = words[word].split("=");
          configs.put(pair[0], pair[1]);
        }
        NewTopic wanted = new NewTopic(topic, Map.of(0, List.of(1))).configs(configs);
        admin.createTopics(List.of(wanted)).all().get();
      }
      case "delete" -> admin.deleteTopics(List.of(topic)).all().get();
      case "write" -> {
        long first = Long.parseLong(words[2]);
        long keys = Long.parseLong(words[4]);
        try (var producer =
            new KafkaProducer<>(client, new StringSerializer(), new StringSerializer())) {
          for (long number = first; number < first + Long.parseLong(words[3]); number++) {
            String key = "k" + number % keys;
            producer.send(new ProducerRecord<>(topic, 0, key, String.valueOf(number))).get();
          }
        }
      }
      case "before" -> {
        RecordsToDelete before = RecordsToDelete.beforeOffset(Long.parseLong(words[2]));
        admin.deleteRecords(Map.of(partition, before)).all().get();
      }
      case "move" -> {
        TopicPartitionReplica replica = new TopicPartitionReplica(topic, 0, 1);
        admin.alterReplicaLogDirs(Map.of(replica, words[2])).all().get();
        while (!words[2].equals(
            admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica)
                .getCurrentReplicaLogDir())) {
          Thread.sleep(50);
        }
      }
      case "consume" -> {
        return consume(client, partition);
      }
      default -> throw new IllegalArgumentException(words[0]);
    }
    return "done";
  }

  static String consume(Properties client, TopicPartition partition) {
    StringBuilder values = new StringBuilder("values");
    try (var consumer =
        new KafkaConsumer<>(client, new StringDeserializer(), new StringDeserializer())) {
      List<TopicPartition> all = List.of(partition);
      consumer.assign(all);
      consumer.seekToBeginning(all);
      long end = consumer.endOffsets(all).get(partition);
      for (int idle = 0; idle < IDLE_POLLS && consumer.position(partition) < end; idle++) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
          values.append(' ').append(record.value());
          idle = 0;
        }
      }
    }
    return values.toString();
  }
}
