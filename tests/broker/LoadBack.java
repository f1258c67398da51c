import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What a broker makes of partition folders that were written without one.
 *
 * <p>{@code LoadBack create BOOTSTRAP TOPIC PARTITIONS [CONFIG=VALUE...]} creates a topic.
 * {@code LoadBack consume BOOTSTRAP TOPIC ISOLATION} reads all of it and prints, for each partition,
 * how many records there were, the first and the last offset and a SHA-256 of them all.
 * {@code LoadBack produce BOOTSTRAP TOPIC RECORDS} appends this many records to each partition.
 */
public final class LoadBack {
  public static void main(String[] arguments) throws Exception {
    String topic = arguments[2];
    Properties client = new Properties();
    client.put("bootstrap.servers", arguments[1]);
    switch (arguments[0]) {
      case "create" -> create(client, topic, Arrays.copyOfRange(arguments, 3, arguments.length));
      case "consume" -> consume(client, topic, arguments[3]);
      case "produce" -> produce(client, topic, Integer.parseInt(arguments[3]));
      default -> throw new IllegalArgumentException(arguments[0]);
    }
  }

  static void create(Properties client, String topic, String[] rest) throws Exception {
    Map<String, String> config = new TreeMap<>();
    for (String setting : Arrays.copyOfRange(rest, 1, rest.length)) {
      String[] parts = setting.split("=", 2);
      config.put(parts[0], parts[1]);
    }
    try (Admin admin = Admin.create(client)) {
      NewTopic wanted = new NewTopic(topic, Integer.parseInt(rest[0]), (short) 1).configs(config);
      admin.createTopics(List.of(wanted)).all().get();
    }
  }

  static void consume(Properties client, String topic, String isolation) throws Exception {
    client.put("isolation.level", isolation);
    client.put("check.crcs", "true");
    client.put("max.poll.records", "20000");
    client.put("key.deserializer", ByteArrayDeserializer.class.getName());
    client.put("value.deserializer", ByteArrayDeserializer.class.getName());
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(client)) {
      List<TopicPartition> partitions = new ArrayList<>();
      consumer.partitionsFor(topic).forEach(
          info -> partitions.add(new TopicPartition(topic, info.partition())));
      partitions.sort((a, b) -> Integer.compare(a.partition(), b.partition()));
      Map<TopicPartition, Long> starts = consumer.beginningOffsets(partitions);
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      for (TopicPartition partition : partitions) {
        consumer.assign(List.of(partition));
        consumer.seekToBeginning(List.of(partition));
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        long records = 0;
        long first = -1;
        long last = -1;
        while (consumer.position(partition) < ends.get(partition)) {
          for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(10))) {
            digest.update(bytesOf(record));
            first = records++ == 0 ? record.offset() : first;
            last = record.offset();
          }
        }
        System.out.printf(
            "{\"partition\": %d, \"start\": %d, \"end\": %d, \"records\": %d, \"first\": %d, "
                + "\"last\": %d, \"sha256\": \"%s\"}%n",
            partition.partition(), starts.get(partition), ends.get(partition), records, first,
            last, HexFormat.of().formatHex(digest.digest()));
      }
    }
  }

  static byte[] bytesOf(ConsumerRecord<byte[], byte[]> record) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeLong(record.offset());
    out.writeLong(record.timestamp());
    write(out, record.key());
    write(out, record.value());
    for (Header header : record.headers()) {
      out.writeUTF(header.key());
      write(out, header.value());
    }
    return bytes.toByteArray();
  }

  static void write(DataOutputStream out, byte[] field) throws IOException {
    out.writeInt(field == null ? -1 : field.length);
    if (field != null) {
      out.write(field);
    }
  }

  static void produce(Properties client, String topic, int count) throws Exception {
    client.put("key.serializer", ByteArraySerializer.class.getName());
    client.put("value.serializer", ByteArraySerializer.class.getName());
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(client)) {
      int partitions = producer.partitionsFor(topic).size();
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        byte[] value = ("by the broker " + i).getBytes("UTF-8");
        for (int partition = 0; partition < partitions; partition++) {
          sent.add(producer.send(new ProducerRecord<>(topic, partition, value, value)));
        }
      }
      for (Future<RecordMetadata> one : sent) {
        one.get();
      }
    }
  }

  private LoadBack() { }
}
