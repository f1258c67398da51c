import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A broker with everything that a report shows, and the broker's own figures of it.
 *
 * <p>{@code ReportTraffic write BOOTSTRAP} makes topics, producers, transactions and groups, prints
 * {@code ready}, and goes on writing until its standard input ends. Then it halts: one transaction stays
 * open. {@code ReportTraffic figures BOOTSTRAP} prints, separated by tabs, {@code offsets TOPIC PARTITION
 * EARLIEST LATEST STABLE}, {@code group GROUP TOPIC PARTITION OFFSET MEMBERS}, {@code share GROUP TOPIC
 * PARTITION START}, {@code size TOPIC PARTITION BYTES} and {@code open TOPIC PARTITION PRODUCER
 * FIRST_OFFSET}: what kafka-get-offsets.sh, kafka-consumer-groups.sh, kafka-share-groups.sh,
 * kafka-log-dirs.sh and kafka-transactions.sh print.
 */
public final class ReportTraffic {
  static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
  static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
  static final Map<String, String> SMALL =
      Map.of("segment.ms", "1000", "segment.bytes", "1048576", "file.delete.delay.ms", "1000");
  static final List<NewTopic> TOPICS =
      List.of(
          topic("codecs", CODECS.length, Map.of()),
          topic("plain", 1, Map.of()),
          topic("busy", 2, SMALL),
          topic("ledger", 2, Map.of()),
          topic("appended", 1, Map.of("message.timestamp.type", "LogAppendTime")),
          topic("deleted", 1, Map.of("segment.bytes", "1048576")),
          topic("empty", 2, Map.of()),
          topic(
              "users",
              1,
              with("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01",
                  "max.compaction.lag.ms", "1500", "delete.retention.ms", "1000")));

  public static void main(String[] arguments) throws Exception {
    Properties client = new Properties();
    client.put("bootstrap.servers", arguments[1]);
    if (arguments[0].equals("figures")) {
      figures(client);
    } else {
      write(client);
    }
    OUT.flush();
    Runtime.getRuntime().halt(0);
  }

  static NewTopic topic(String name, int partitions, Map<String, String> config) {
    return new NewTopic(name, partitions, (short) 1).configs(config);
  }

  static Map<String, String> with(String... more) {
    Map<String, String> config = new HashMap<>(SMALL);
    for (int i = 0; i < more.length; i += 2) {
      config.put(more[i], more[i + 1]);
    }
    return config;
  }

  static KafkaProducer<String, String> producer(Properties client, String... settings) {
    Properties own = new Properties();
    own.putAll(client);
    for (int i = 0; i < settings.length; i += 2) {
      own.put(settings[i], settings[i + 1]);
    }
    return new KafkaProducer<>(own, new StringSerializer(), new StringSerializer());
  }

  static void write(Properties client) throws Exception {
    Random random = new Random(4711);
    try (Admin admin = Admin.create(client)) {
      admin.createTopics(TOPICS).all().get();
      codecs(client, random);
      fill(client, "plain", 500, random, "enable.idempotence", "false");
      fill(client, "appended", 500, random, "compression.type", "lz4");
      fill(client, "deleted", 20000, random);
      admin
          .deleteRecords(Map.of(new TopicPartition("deleted", 0), RecordsToDelete.beforeOffset(12345)))
          .all()
          .get();
    }
    transactions(client, random);
    groups(client);
    shared(client);
    Thread busy = new Thread(() -> busy(client, random));
    busy.setDaemon(true);
    busy.start();
    OUT.println("ready");
    while (System.in.read() != -1) {
      continue;
    }
  }

  static void codecs(Properties client, Random random) throws Exception {
    for (int partition = 0; partition < CODECS.length; partition++) {
      try (KafkaProducer<String, String> producer =
          producer(client, "compression.type", CODECS[partition], "linger.ms", "5")) {
        for (int i = 0; i < 2000; i++) {
          String key = i % 7 == 0 ? null : "k" + random.nextInt(300);
          ProducerRecord<String, String> record =
              new ProducerRecord<>("codecs", partition, key, i % 11 == 0 ? null : value(random));
          if (i % 5 == 0) {
            record.headers().add("h", ("" + i).getBytes(StandardCharsets.UTF_8));
          }
          producer.send(record);
        }
      }
    }
  }

  static void fill(
      Properties client, String topic, int records, Random random, String... settings)
      throws Exception {
    try (KafkaProducer<String, String> producer = producer(client, settings)) {
      for (int i = 0; i < records; i++) {
        producer.send(new ProducerRecord<>(topic, "k" + random.nextInt(100), value(random)));
      }
    }
  }

  /** Committed and aborted transactions, and one that stays open. */
  static void transactions(Properties client, Random random) throws Exception {
    for (String end : List.of("commit", "abort", "open")) {
      KafkaProducer<String, String> producer =
          producer(client, "transactional.id", end, "transaction.timeout.ms", "600000");
      producer.initTransactions();
      for (int turn = 0; turn < (end.equals("open") ? 1 : 3); turn++) {
        producer.beginTransaction();
        for (int i = 0; i < 50; i++) {
          producer.send(new ProducerRecord<>("ledger", i % 2, end, value(random)));
        }
        producer.flush();
        if (end.equals("commit")) {
          producer.commitTransaction();
        } else if (end.equals("abort")) {
          producer.abortTransaction();
        }
      }
    }
  }

  /** Groups of both protocols whose members stay, and one whose member has left. */
  static void groups(Properties client) throws Exception {
    member(client, "classic", 1000, true);
    member(client, "consumer", 700, true);
    member(client, "left", 400, false);
  }

  static void member(Properties client, String group, long offset, boolean stays) throws Exception {
    Properties own = new Properties();
    own.putAll(client);
    own.put("group.id", group);
    own.put("group.protocol", group.equals("consumer") ? "consumer" : "classic");
    own.put("enable.auto.commit", "false");
    KafkaConsumer<String, String> consumer =
        new KafkaConsumer<>(own, new StringDeserializer(), new StringDeserializer());
    consumer.subscribe(List.of("codecs"));
    while (consumer.assignment().size() < CODECS.length) {
      consumer.poll(Duration.ofMillis(100));
    }
    consumer.pause(consumer.assignment());
    for (TopicPartition partition : consumer.assignment()) {
      consumer.commitSync(Map.of(partition, new OffsetAndMetadata(offset + partition.partition())));
    }
    if (!stays) {
      consumer.close();
      return;
    }
    Thread thread =
        new Thread(
            () -> {
              while (true) {
                consumer.poll(Duration.ofMillis(200));
              }
            });
    thread.setDaemon(true);
    thread.start();
  }

  /** A share group that has read a part of a topic, and left. */
  static void shared(Properties client) throws Exception {
    try (Admin admin = Admin.create(client)) {
      admin
          .incrementalAlterConfigs(
              Map.of(
                  new ConfigResource(ConfigResource.Type.GROUP, "shared"),
                  List.of(
                      new AlterConfigOp(
                          new ConfigEntry("share.auto.offset.reset", "earliest"),
                          AlterConfigOp.OpType.SET))))
          .all()
          .get();
    }
    Properties own = new Properties();
    own.putAll(client);
    own.put("group.id", "shared");
    own.put("max.poll.records", "50");
    try (KafkaShareConsumer<String, String> consumer =
        new KafkaShareConsumer<>(own, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("codecs"));
      for (int read = 0; read < 3000; ) {
        read += consumer.poll(Duration.ofMillis(200)).count();
      }
      consumer.commitSync();
    }
  }

  /** The start offsets of a share group: 4.2 has another class for them. */
  static void shareOffsets(Admin admin, String group) throws Exception {
    Object result = admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()));
    for (Method method : result.getClass().getMethods()) {
      if (method.getName().startsWith("partitionsTo")) {
        Map<?, ?> offsets = (Map<?, ?>) ((KafkaFuture<?>) method.invoke(result, group)).get();
        for (Map.Entry<?, ?> entry : offsets.entrySet()) {
          TopicPartition one = (TopicPartition) entry.getKey();
          Object start = entry.getValue();
          String name = start instanceof OffsetAndMetadata ? "offset" : "startOffset";
          Object offset = start.getClass().getMethod(name).invoke(start);
          print("share", group, one.topic(), one.partition(), offset);
        }
      }
    }
  }

  /** Records of all codecs and transactions, so that a report meets half-written batches. */
  static void busy(Properties client, Random random) {
    List<KafkaProducer<String, String>> producers = new ArrayList<>();
    for (String codec : CODECS) {
      producers.add(producer(client, "compression.type", codec));
    }
    KafkaProducer<String, String> transactional =
        producer(client, "transactional.id", "busy", "compression.type", "zstd");
    transactional.initTransactions();
    for (long turn = 0; ; turn++) {
      for (KafkaProducer<String, String> producer : producers) {
        for (int i = 0; i < 40; i++) {
          producer.send(new ProducerRecord<>("busy", "k" + random.nextInt(5000), value(random)));
          String text = random.nextInt(5) == 0 ? null : value(random);
          producer.send(new ProducerRecord<>("users", "user-" + random.nextInt(50), text));
        }
      }
      transactional.beginTransaction();
      for (int i = 0; i < 20; i++) {
        transactional.send(new ProducerRecord<>("busy", "t" + random.nextInt(5000), value(random)));
        transactional.send(new ProducerRecord<>("users", "user-" + random.nextInt(60), "t" + i));
      }
      try {
        Thread.sleep(20);
      } catch (InterruptedException error) {
        return;
      }
      if (turn % 3 == 0) {
        transactional.abortTransaction();
      } else {
        transactional.commitTransaction();
      }
    }
  }

  static String value(Random random) {
    return "value " + "x".repeat(random.nextInt(random.nextInt(400) + 1)) + random.nextLong();
  }

  static void figures(Properties client) throws Exception {
    try (Admin admin = Admin.create(client)) {
      List<TopicPartition> partitions = new ArrayList<>();
      Map<String, TopicDescription> topics =
          admin.describeTopics(admin.listTopics().names().get()).allTopicNames().get();
      new TreeMap<>(topics).forEach(
          (name, topic) ->
              topic.partitions().forEach(
                  info -> partitions.add(new TopicPartition(name, info.partition()))));
      Properties stable = new Properties();
      stable.putAll(client);
      stable.put("isolation.level", "read_committed");
      Map<TopicPartition, Long> ends = new HashMap<>();
      try (KafkaConsumer<String, String> consumer =
          new KafkaConsumer<>(stable, new StringDeserializer(), new StringDeserializer())) {
        ends.putAll(consumer.endOffsets(partitions));
      }
      for (TopicPartition one : partitions) {
        long earliest =
            admin.listOffsets(Map.of(one, OffsetSpec.earliest())).partitionResult(one).get().offset();
        long latest =
            admin.listOffsets(Map.of(one, OffsetSpec.latest())).partitionResult(one).get().offset();
        print("offsets", one.topic(), one.partition(), earliest, latest, ends.get(one));
      }
      for (String group : List.of("classic", "consumer", "left")) {
        ConsumerGroupDescription description =
            admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach(
            (one, commit) ->
                print("group", group, one.topic(), one.partition(), commit.offset(),
                    description.members().size()));
      }
      shareOffsets(admin, "shared");
      admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).values().forEach(
          folder ->
              folder.replicaInfos().forEach(
                  (one, replica) -> print("size", one.topic(), one.partition(), replica.size())));
      partitions.removeIf(one -> one.topic().equals("busy") || one.topic().equals("users"));
      admin.describeProducers(partitions).all().get().forEach(
          (one, states) -> {
            for (ProducerState state : states.activeProducers()) {
              state.currentTransactionStartOffset().ifPresent(
                  first ->
                      print("open", one.topic(), one.partition(), state.producerId(), first));
            }
          });
    }
  }

  static void print(Object... words) {
    StringBuilder line = new StringBuilder();
    for (Object word : words) {
      line.append(line.length() == 0 ? "" : "\t").append(word);
    }
    OUT.println(line);
  }

  private ReportTraffic() { }
}
