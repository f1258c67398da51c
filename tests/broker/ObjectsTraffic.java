import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Small segments that a broker copies to remote storage, whichever its plugin is.
 *
 * <p>{@code Traffic objects BOOTSTRAP LOG_DIR write RUN PARTITION...} creates the topics the first
 * time, writes to each partition and returns when all but its active segment is copied.
 * {@code ... expire BYTES PARTITION...} has the broker delete local segments that are copied.
 * {@code ... start OFFSET PARTITION} deletes what is before an offset. {@code ... read PARTITION...}
 * prints partition, offset and timestamp of all that a consumer of committed records gets.
 */
final class ObjectsTraffic {
  static final String SEGMENT_BYTES = "4000";
  static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd", "none", "none", "none"};
  static final int BATCH = 5;

  static void make(Path logDir, String[] arguments) throws Exception {
    String[] rest = Arrays.copyOfRange(arguments, 1, arguments.length);
    List<TopicPartition> partitions =
        Stream.of(rest).skip(arguments[0].equals("read") ? 0 : 1).map(ObjectsTraffic::partition)
            .toList();
    switch (arguments[0]) {
      case "write" -> write(logDir, Integer.parseInt(rest[0]), partitions);
      case "expire" -> expire(logDir, Long.parseLong(rest[0]), partitions);
      case "start" -> Traffic.admin.deleteRecords(Map.of(
          partitions.get(0), RecordsToDelete.beforeOffset(Long.parseLong(rest[0])))).all().get();
      case "read" -> read(partitions);
      default -> throw new IllegalArgumentException(arguments[0]);
    }
  }

  /** What its folder is called. */
  static TopicPartition partition(String folder) {
    int dash = folder.lastIndexOf('-');
    return new TopicPartition(
        folder.substring(0, dash), Integer.parseInt(folder.substring(dash + 1)));
  }

  static void write(Path logDir, int run, List<TopicPartition> partitions) throws Exception {
    Map<String, Integer> counts = new TreeMap<>();
    partitions.forEach(one -> counts.merge(one.topic(), one.partition() + 1, Math::max));
    Set<String> known = Traffic.admin.listTopics().names().get();
    for (Map.Entry<String, Integer> topic : counts.entrySet()) {
      if (!known.contains(topic.getKey())) {
        // segment.bytes is at least 1 MiB.
        Traffic.create(
            topic.getKey(), topic.getValue(), "remote.storage.enable=true",
            "internal.segment.bytes=" + SEGMENT_BYTES, "index.interval.bytes=500");
      }
    }
    for (TopicPartition partition : partitions) {
      fill(partition, run);
      TieredTraffic.until(() -> {
        List<Path> logs = logs(logDir, partition);
        return offset(partition, OffsetSpec.latestTiered()) == base(logs.get(logs.size() - 1)) - 1;
      });
    }
  }

  /** Every codec, nulls and headers, transactions over a border of segments, a long value. */
  static void fill(TopicPartition partition, int run) throws Exception {
    Random random = new Random(100L * run + partition.toString().hashCode());
    for (String codec : CODECS) {
      try (Producer<byte[], byte[]> producer =
          codec.equals("zstd") ? Traffic.idempotent(codec) : Traffic.plain(codec)) {
        Traffic.send(producer, batch(partition, run, random, BATCH));
        Traffic.send(producer, batch(partition, run, random, BATCH + random.nextInt(4)));
      }
    }
    String id = partition + "-" + run;
    try (Producer<byte[], byte[]> commits = Traffic.transactional(id + "-commits", "none");
        Producer<byte[], byte[]> aborts = Traffic.transactional(id + "-aborts", "lz4");
        Producer<byte[], byte[]> plain = Traffic.plain("none")) {
      commits.beginTransaction();
      Traffic.send(commits, batch(partition, run, random, BATCH));
      end(partition, () -> commits.commitTransaction());
      aborts.beginTransaction();
      Traffic.send(aborts, batch(partition, run, random, BATCH));
      for (int i = 0; i < 3; i++) {
        Traffic.send(plain, batch(partition, run, random, 2 * BATCH));
      }
      Traffic.send(aborts, batch(partition, run, random, BATCH));
      end(partition, () -> aborts.abortTransaction());
      // A segment of its own: nothing else fits, and its index has no entry.
      Traffic.send(plain, List.of(
          record(partition, run, Traffic.utf8("noise"), Traffic.bytes(random, 3850))));
      for (int i = 0; i < 3; i++) {
        Traffic.send(plain, batch(partition, run, random, BATCH));
      }
    }
  }

  static void end(TopicPartition partition, Runnable transaction) throws Exception {
    // The broker answers before it writes the marker.
    long end = offset(partition, OffsetSpec.latest()) + 1;
    transaction.run();
    TieredTraffic.until(() -> offset(partition, OffsetSpec.latest()) == end);
  }

  static List<ProducerRecord<byte[], byte[]>> batch(
      TopicPartition partition, int run, Random random, int count) {
    List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      byte[] key = random.nextInt(8) == 0 ? null : Traffic.utf8("order-" + random.nextInt(40));
      byte[] value =
          random.nextInt(12) == 0
              ? null
              : Traffic.utf8(Traffic.words(random, 4 + random.nextInt(16)));
      ProducerRecord<byte[], byte[]> record = record(partition, run, key, value);
      if (random.nextInt(6) == 0) {
        record.headers().add("run", Traffic.utf8("" + run));
      }
      records.add(record);
    }
    return records;
  }

  static long time = 0;

  /** Records are a second apart, runs a day. */
  static ProducerRecord<byte[], byte[]> record(
      TopicPartition partition, int run, byte[] key, byte[] value) {
    time += 1000;
    return new ProducerRecord<>(
        partition.topic(), partition.partition(), Traffic.START + 86_400_000L * run + time, key,
        value);
  }

  static void expire(Path logDir, long bytes, List<TopicPartition> partitions) throws Exception {
    for (TopicPartition partition : partitions) {
      TieredTraffic.set(
          ConfigResource.Type.TOPIC, partition.topic(), "local.retention.bytes", "" + bytes);
    }
    for (TopicPartition partition : partitions) {
      TieredTraffic.until(() -> {
        List<Path> logs = logs(logDir, partition);
        long size = 0;
        for (Path log : logs) {
          size += Files.size(log);
        }
        boolean isDone = logs.size() == 1 || size - bytes < Files.size(logs.get(0));
        return isDone && list(logDir, partition, ".deleted").isEmpty();
      });
    }
  }

  static void read(List<TopicPartition> partitions) throws Exception {
    Map<String, Object> settings = Traffic.consumer("objects");
    settings.put("isolation.level", "read_committed");
    settings.put("enable.auto.commit", "false");
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
      for (TopicPartition partition : partitions) {
        consumer.assign(List.of(partition));
        consumer.seekToBeginning(List.of(partition));
        long end = offset(partition, OffsetSpec.latest());
        while (consumer.position(partition) < end) {
          for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
            System.out.println(partition + "\t" + record.offset() + "\t" + record.timestamp());
          }
        }
      }
    }
  }

  static List<Path> logs(Path logDir, TopicPartition partition) throws Exception {
    return list(logDir, partition, ".log");
  }

  static List<Path> list(Path logDir, TopicPartition partition, String suffix) throws Exception {
    try (Stream<Path> files = Files.list(logDir.resolve(partition.toString()))) {
      return files.filter(file -> file.toString().endsWith(suffix)).sorted().toList();
    }
  }

  static long base(Path log) {
    String name = log.getFileName().toString();
    return Long.parseLong(name.substring(0, name.indexOf('.')));
  }

  static long offset(TopicPartition partition, OffsetSpec which) throws Exception {
    return Traffic.admin.listOffsets(Map.of(partition, which)).partitionResult(partition).get()
        .offset();
  }
}
