import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Traffic while a broker is killed and started again, and what its consumers read.
 *
 * <p>{@code LiveTraffic produce BOOTSTRAP SECONDS SEED} makes the topics and writes to them. It prints a
 * line {@code ack TOPIC PARTITION OFFSET KEY VALUE} for each acknowledged record, and the lines
 * {@code commit ID} and {@code abort ID} for each transaction; a value begins with its transaction.
 * {@code LiveTraffic consume BOOTSTRAP ISOLATION} prints {@code TOPIC PARTITION OFFSET KEY VALUE} of each
 * record that there is, and {@code starts TOPIC PARTITION OFFSET} for each partition. All are separated
 * by tabs.
 */
public final class LiveTraffic {
  static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
  // Segments are rolled by the first record that comes a second after their own first.
  static final Map<String, String> SMALL = Map.of("segment.ms", "1000", "file.delete.delay.ms", "1500");
  static final Map<String, Map<String, String>> TOPICS =
      Map.of(
          "plain", SMALL,
          "ledger", SMALL,
          "growing", SMALL,
          "retained", with("retention.ms", "6000"),
          "compacted", with("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01"),
          "steady", Map.of());

  public static void main(String[] arguments) throws Exception {
    Properties client = new Properties();
    client.put("bootstrap.servers", arguments[1]);
    if (arguments[0].equals("consume")) {
      consume(client, arguments[2]);
    } else {
      produce(client, Integer.parseInt(arguments[2]), Long.parseLong(arguments[3]));
    }
    OUT.flush();
  }

  static Map<String, String> with(String... more) {
    Map<String, String> config = new HashMap<>(SMALL);
    for (int i = 0; i < more.length; i += 2) {
      config.put(more[i], more[i + 1]);
    }
    return config;
  }

  static void produce(Properties client, int seconds, long seed) throws Exception {
    client.put("acks", "all");
    client.put("linger.ms", "5");
    client.put("delivery.timeout.ms", "240000");
    client.put("max.block.ms", "240000");
    client.put("request.timeout.ms", "5000");
    client.put("reconnect.backoff.max.ms", "500");
    try (Admin admin = Admin.create(client)) {
      List<NewTopic> topics = new ArrayList<>();
      TOPICS.forEach(
          (name, config) ->
              topics.add(new NewTopic(name, name.equals("growing") ? 1 : 2, (short) 1).configs(config)));
      admin.createTopics(topics).all().get();
    }
    long end = System.currentTimeMillis() + seconds * 1000L;
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      Random random = new Random(seed + i);
      String id = "t" + i;
      threads.add(new Thread(() -> transactions(client, id, random, end)));
    }
    threads.add(new Thread(() -> plain(client, new Random(seed + 2), end)));
    threads.add(new Thread(() -> grow(client, end)));
    for (Thread thread : threads) {
      thread.setUncaughtExceptionHandler(
          (failed, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
          });
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  static synchronized void print(Object... words) {
    StringBuilder line = new StringBuilder();
    for (Object word : words) {
      line.append(line.length() == 0 ? "" : "\t").append(word);
    }
    OUT.println(line);
    OUT.flush();
  }

  static Callback acknowledged(ProducerRecord<String, String> sent) {
    return (at, error) -> {
      if (error == null) {
        print("ack", at.topic(), at.partition(), at.offset(), sent.key(), sent.value());
      }
    };
  }

  static String value(String transaction, long serial, Random random) {
    return transaction + " " + serial + " " + "x".repeat(random.nextInt(random.nextInt(400) + 1));
  }

  /** Records of no transaction, to all topics, in a codec after the other. */
  static void plain(Properties client, Random random, long end) {
    Properties own = new Properties();
    own.putAll(client);
    String[] codecs = {"none", "lz4", "gzip", "zstd", "snappy"};
    String[] topics = {"plain", "retained", "compacted", "growing", "steady", "new-0", "new-1", "new-2"};
    long serial = 0;
    for (int turn = 0; System.currentTimeMillis() < end; turn++) {
      own.put("compression.type", codecs[turn % codecs.length]);
      try (KafkaProducer<String, String> producer =
          new KafkaProducer<>(own, new StringSerializer(), new StringSerializer())) {
        long until = Math.min(end, System.currentTimeMillis() + 4000);
        while (System.currentTimeMillis() < until) {
          String topic = topics[random.nextInt(topics.length)];
          if (topic.startsWith("new-") && !made(topic)) {
            continue;
          }
          String key = "k" + random.nextInt(topic.equals("compacted") ? 40 : 100000);
          ProducerRecord<String, String> record =
              new ProducerRecord<>(topic, key, value("-", serial++, random));
          producer.send(record, acknowledged(record));
          if (serial % 20 == 0) {
            pause(random.nextInt(30));
          }
        }
      }
    }
  }

  /** Transactions over several topics, of which a third is aborted. */
  static void transactions(Properties client, String id, Random random, long end) {
    Properties own = new Properties();
    own.putAll(client);
    own.put("transactional.id", id);
    own.put("transaction.timeout.ms", "20000");
    long serial = 0;
    int number = 0;
    while (System.currentTimeMillis() < end) {
      try (KafkaProducer<String, String> producer =
          new KafkaProducer<>(own, new StringSerializer(), new StringSerializer())) {
        producer.initTransactions();
        while (System.currentTimeMillis() < end) {
          String transaction = id + "-" + number++;
          boolean isAborted = random.nextInt(3) == 0;
          try {
            producer.beginTransaction();
            for (int left = random.nextInt(60); left > 0; left--) {
              String topic = random.nextInt(4) == 0 ? "plain" : "ledger";
              String key = "k" + random.nextInt(1000);
              ProducerRecord<String, String> record =
                  new ProducerRecord<>(topic, key, value(transaction, serial++, random));
              producer.send(record, acknowledged(record));
              if (random.nextInt(20) == 0) {
                producer.flush();
                pause(random.nextInt(200));
              }
            }
            if (isAborted) {
              producer.abortTransaction();
            } else {
              producer.commitTransaction();
            }
            print(isAborted ? "abort" : "commit", transaction);
          } catch (KafkaException error) {
            // The broker has ended the transaction, or the next initTransactions does.
            System.err.println(transaction + ": " + error);
            print("unknown", transaction);
            break;
          }
        }
      }
    }
  }

  static final java.util.Set<String> MADE = java.util.concurrent.ConcurrentHashMap.newKeySet();

  static boolean made(String topic) {
    return MADE.contains(topic);
  }

  /** New topics, and new partitions of one. */
  static void grow(Properties client, long end) {
    long step = (end - System.currentTimeMillis()) / 4;
    for (int number = 0; number < 3; number++) {
      pause(step);
      Properties own = new Properties();
      own.putAll(client);
      own.put("default.api.timeout.ms", "120000");
      try (Admin admin = Admin.create(own)) {
        String name = "new-" + number;
        admin.createTopics(List.of(new NewTopic(name, 1, (short) 1).configs(SMALL))).all().get();
        MADE.add(name);
        admin.createPartitions(Map.of("growing", NewPartitions.increaseTo(number + 2))).all().get();
      } catch (Exception error) {
        System.err.println("new-" + number + ": " + error);
      }
    }
  }

  static void pause(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  static void consume(Properties client, String isolation) {
    client.put("isolation.level", isolation);
    client.put("auto.offset.reset", "earliest");
    StringDeserializer text = new StringDeserializer();
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(client, text, text)) {
      List<TopicPartition> places = new ArrayList<>();
      Pattern ours = Pattern.compile("[^_].*");
      consumer
          .listTopics()
          .forEach(
              (topic, partitions) -> {
                for (PartitionInfo partition : partitions) {
                  if (ours.matcher(topic).matches()) {
                    places.add(new TopicPartition(topic, partition.partition()));
                  }
                }
              });
      consumer.assign(places);
      Map<TopicPartition, Long> ends = consumer.endOffsets(places);
      consumer
          .beginningOffsets(places)
          .forEach((at, offset) -> print("starts", at.topic(), at.partition(), offset));
      consumer.seekToBeginning(places);
      while (places.stream().anyMatch(at -> consumer.position(at) < ends.get(at))) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
          print(record.topic(), record.partition(), record.offset(), record.key(), record.value());
        }
      }
    }
  }
}
