import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/**
 * Traffic of every kind that message format v2 knows, one small topic for each.
 *
 * <p>{@code Traffic make BOOTSTRAP} creates the topics, writes them and halts in the middle of a
 * transaction. {@code Traffic epoch BOOTSTRAP} writes to the topic epochs, which it creates the first
 * time. {@code Traffic flood BOOTSTRAP TOPIC...} writes small batches until it is killed.
 * {@code Traffic tiered BOOTSTRAP} is {@link TieredTraffic}'s, {@code Traffic objects BOOTSTRAP
 * LOG_DIR COMMAND...} is {@link ObjectsTraffic}'s,
 * {@code Traffic old BOOTSTRAP} and {@code Traffic old-crash BOOTSTRAP} are {@link OldTraffic}'s.
 * Record timestamps and random seeds are fixed wherever the broker lets them be.
 */
public final class Traffic {
  static final long START = 1_700_000_000_000L;
  static final Duration SECOND = Duration.ofSeconds(1);
  static final String[] COMPACT = {
    "cleanup.policy=compact", "segment.ms=1500", "min.cleanable.dirty.ratio=0.01",
    "max.compaction.lag.ms=2000", "delete.retention.ms=86400000",
  };

  static String bootstrap;
  static Admin admin;

  public static void main(String[] arguments) throws Exception {
    bootstrap = arguments[1];
    admin = Admin.create(client());
    switch (arguments[0]) {
      case "make" -> make();
      case "epoch" -> epoch();
      case "flood" -> flood(Arrays.copyOfRange(arguments, 2, arguments.length));
      case "tiered" -> TieredTraffic.make();
      case "objects" -> ObjectsTraffic.make(
          Path.of(arguments[2]), Arrays.copyOfRange(arguments, 3, arguments.length));
      case "old" -> OldTraffic.make();
      case "old-crash" -> OldTraffic.crash();
      default -> throw new IllegalArgumentException(arguments[0]);
    }
    admin.close();
  }

  static void make() throws Exception {
    codecs();
    blocks();
    headers();
    nulls();
    binary();
    numbers();
    sizes();
    timestamps();
    appendTime();
    recompression();
    batchSizes();
    partitions();
    segments();
    largeValues();
    idempotence();
    transactions();
    compaction();
    groups();
    // Kafka closes what it can on exit: only a halt leaves the open transaction hanging.
    Runtime.getRuntime().halt(0);
  }

  // ---- the kinds -------------------------------------------------------------------------

  static void codecs() throws Exception {
    for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
      topic(codec);
      try (Producer<byte[], byte[]> producer = plain(codec)) {
        Random random = new Random(1);
        for (int batch = 0; batch < 4; batch++) {
          List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
          for (int i = 0; i < 20 + batch; i++) {
            byte[] key = i % 7 == 3 ? null : utf8("key-" + random.nextInt(50));
            byte[] value = i % 11 == 5 ? null : utf8(words(random, random.nextInt(25)));
            records.add(record(codec, START + 10L * (100 * batch + i), key, value));
          }
          send(producer, records);
        }
      }
    }
  }

  /** Batches over several blocks of the codec (snappy 32 KiB, lz4 64 KiB), then stored ones. */
  static void blocks() throws Exception {
    for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) {
      String topic = "blocks-" + codec;
      topic(topic);
      try (Producer<byte[], byte[]> producer = plain(codec)) {
        Random random = new Random(2);
        List<ProducerRecord<byte[], byte[]>> text = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
          byte[] value = utf8(words(random, 60).repeat(12));
          text.add(record(topic, START + i, utf8("text-" + i), value));
        }
        send(producer, text);
        List<ProducerRecord<byte[], byte[]>> noise = new ArrayList<>();
        for (int i = 0; i < 9; i++) {
          noise.add(record(topic, START + i, utf8("noise-" + i), bytes(random, 8192)));
        }
        send(producer, noise);
      }
    }
  }

  static void headers() throws Exception {
    topic("headers");
    List<ProducerRecord<byte[], byte[]>> records = List.of(
        headed("headers", 0),
        headed("headers", 1, "one", "1"),
        headed("headers", 2, "first", "1", "second", "2", "third", "3"),
        headed("headers", 3, "same", "1", "other", "2", "same", "3", "same", "1"),
        headed("headers", 4, "", "empty key"),
        headed("headers", 5, "null value", null),
        headed("headers", 6, "empty value", ""),
        headed("headers", 7, "clé", "é", "ключ", "я", "鍵", "日本", "🔑", "🗝", "e\u0301", "x"),
        headed("headers", 8, "comma,inside", "x", "[bracket]", "y", " space ", "z", "\n", "\t"),
        headed("headers", 9, "", null, "", ""),
        headed("headers", 10, "k".repeat(200), "v".repeat(300)));
    try (Producer<byte[], byte[]> producer = plain("none")) {
      send(producer, records);
      List<ProducerRecord<byte[], byte[]>> many = new ArrayList<>();
      for (int count = 62; count <= 66; count++) {
        String[] pairs = new String[2 * count];
        for (int i = 0; i < count; i++) {
          pairs[2 * i] = "h" + i;
          pairs[2 * i + 1] = Integer.toString(i);
        }
        many.add(headed("headers", count, pairs));
      }
      send(producer, many);
    }
    topic("headers-zstd");
    try (Producer<byte[], byte[]> producer = plain("zstd")) {
      List<ProducerRecord<byte[], byte[]>> copies = new ArrayList<>();
      for (ProducerRecord<byte[], byte[]> record : records) {
        copies.add(new ProducerRecord<>(
            "headers-zstd", null, record.timestamp(), record.key(), record.value(),
            record.headers()));
      }
      send(producer, copies);
    }
  }

  static void nulls() throws Exception {
    topic("nulls");
    byte[] empty = {};
    byte[][][] pairs = {
      {null, utf8("null key")}, {utf8("null value"), null}, {null, null},
      {empty, utf8("empty key")}, {utf8("empty value"), empty}, {empty, empty},
      {null, empty}, {empty, null}, {utf8("ключ"), utf8("значение")}, {utf8("鍵"), utf8("値")},
      {utf8("🔑"), utf8("naïve café – “quoted”")}, {utf8("zero"), new byte[] {0, 0}},
      {utf8("lines"), utf8("a\nb\r\nc\td\u2028e\u0085f")}, {utf8("bom"), utf8("\uFEFFx")},
      {utf8("payload: x"), utf8("key: y payload: z")},
    };
    try (Producer<byte[], byte[]> producer = plain("none")) {
      List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
      for (byte[][] pair : pairs) {
        records.add(record("nulls", START + records.size(), pair[0], pair[1]));
      }
      send(producer, records);
    }
  }

  static final String[] FRAGMENTS = {
    // valid, one to four bytes, at the edges of each length
    "41", "00", "0A", "0D", "7F", "C280", "C3A9", "DFBF", "E0A080", "E282AC", "ED9FBF", "EE8080",
    "EFBBBF", "EFBFBD", "EFBFBE", "EFBFBF", "F0908080", "F09F9880", "F48FBFBF",
    // lone continuation bytes
    "80", "BF", "8080", "80BF80", "9F9880",
    // overlong
    "C080", "C1BF", "C0AF", "E08080", "E09FBF", "E080AF", "F0808080", "F08FBFBF", "F08080AF",
    "F8808080AF", "FC80808080AF",
    // surrogates, alone and in pairs
    "EDA080", "EDAFBF", "EDB080", "EDBFBF", "EDA080EDB080", "EDADBFEDBFBF",
    // cut short, at the end and before another character
    "C2", "DF", "E0", "E0A0", "E2", "E282", "ED", "ED9F", "EDA0", "EF", "EFBF", "F0", "F090",
    "F09F98", "F4", "F48F", "F48FBF", "C241", "E24182", "E28241", "EDA041", "F04190", "F09041",
    "F09F9841", "F48F41", "C2C3A9", "E282C3A9", "F09F98C3A9", "E0A0E282AC", "F09FE282AC",
    // past U+10FFFF, and bytes that never occur
    "F4908080", "F4BFBFBF", "F5808080", "F6", "F7BFBFBF", "F8888080", "F888808080", "F9", "FA",
    "FB", "FC8480808080", "FD", "FE", "FF", "FFFE", "FEFF", "FEFEFFFF",
  };

  /** Keys and values that are not UTF-8, since Java's replacement rules have to be matched. */
  static void binary() throws Exception {
    topic("binary");
    Random random = new Random(3);
    List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
    for (String fragment : FRAGMENTS) {
      byte[] key = HexFormat.of().parseHex(fragment);
      byte[] value = HexFormat.of().parseHex("5B" + fragment + "5D");
      records.add(record("binary", START + records.size(), key, value));
    }
    while (records.size() < 320) {
      byte[] value = switch (records.size() % 4) {
        case 0 -> fragments(random);
        case 1 -> bytes(random, random.nextInt(24));
        case 2 -> leads(random);
        default -> continuations(random);
      };
      records.add(record("binary", START + records.size(), fragments(random), value));
    }
    try (Producer<byte[], byte[]> producer = plain("none")) {
      for (int from = 0; from < records.size(); from += 64) {
        send(producer, records.subList(from, Math.min(from + 64, records.size())));
      }
    }
  }

  static byte[] fragments(Random random) {
    StringBuilder hex = new StringBuilder();
    for (int i = random.nextInt(8); i >= 0; i--) {
      hex.append(FRAGMENTS[random.nextInt(FRAGMENTS.length)]);
    }
    return HexFormat.of().parseHex(hex);
  }

  /** Any lead byte with any number of continuation bytes, mostly near the right one. */
  static byte[] leads(Random random) {
    ByteBuffer buffer = ByteBuffer.allocate(64);
    while (buffer.position() < 32) {
      buffer.put((byte) (0xC0 + random.nextInt(0x40)));
      for (int i = random.nextInt(5); i > 0; i--) {
        int range = random.nextInt(5);
        buffer.put((byte) (range == 0 ? 0x20 + random.nextInt(0x5F) : 0x80 + random.nextInt(0x40)));
      }
    }
    return Arrays.copyOf(buffer.array(), buffer.position());
  }

  /** Bytes from 0x80 on only. */
  static byte[] continuations(Random random) {
    byte[] bytes = bytes(random, 1 + random.nextInt(20));
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] |= (byte) 0x80;
    }
    return bytes;
  }

  static void numbers() throws Exception {
    long[] values = {
      0, 1, -1, 42, Integer.MAX_VALUE, Integer.MIN_VALUE, 1L << 32, START, Long.MAX_VALUE,
      Long.MIN_VALUE,
    };
    topic("numbers");
    topic("numbers-4");
    topic("numbers-short");
    try (Producer<byte[], byte[]> producer = plain("none")) {
      List<ProducerRecord<byte[], byte[]>> eights = new ArrayList<>();
      List<ProducerRecord<byte[], byte[]>> fours = new ArrayList<>();
      for (int i = 0; i < values.length; i++) {
        eights.add(record("numbers", START + i, eight(values[i]), eight(values[i] ^ 7)));
        fours.add(record("numbers-4", START + i, four((int) values[i]), four(~(int) values[i])));
      }
      eights.add(record("numbers", START + 10, null, eight(1)));
      eights.add(record("numbers", START + 11, eight(2), null));
      eights.add(record("numbers", START + 12, Arrays.copyOf(eight(3), 12), eight(3)));
      send(producer, eights);
      send(producer, fours);
      send(
          producer,
          List.of(
              record("numbers-short", START, eight(1), eight(2)),
              record("numbers-short", START + 1, eight(3), new byte[] {1, 2, 3}),
              record("numbers-short", START + 2, eight(4), eight(5))));
    }
  }

  /** Keys and values around the lengths where a varint grows by a byte. */
  static void sizes() throws Exception {
    topic("sizes");
    try (Producer<byte[], byte[]> producer = plain("none")) {
      List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
      for (int size : new int[] {0, 1, 62, 63, 64, 65, 127, 128, 129, 8190, 8191, 8192, 8193}) {
        byte[] key = utf8("k".repeat(Math.min(size, 200)));
        records.add(record("sizes", START + size, key, utf8("v".repeat(size))));
      }
      send(producer, records);
    }
  }

  static void timestamps() throws Exception {
    topic("timestamps");
    long[][] batches = {
      {START, START - 5000, START - 1, START + 3, START - 1},
      {0, START, 1},
      {START, 0},
      {0, 0, 0},
      {START + 63, START + 62, START, START - 1, START - 2},
      {
        START, START + 63, START + 64, START - 64, START - 65, START + 8191, START + 8192,
        START - 8192, START - 8193, START - (1L << 31), START - (1L << 31) - 1, START - (1L << 35),
      },
    };
    try (Producer<byte[], byte[]> producer = plain("none")) {
      for (long[] batch : batches) {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (long timestamp : batch) {
          records.add(record("timestamps", timestamp, utf8("at"), utf8("" + timestamp)));
        }
        send(producer, records);
      }
    }
  }

  static void appendTime() throws Exception {
    for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
      String topic = codec.equals("none") ? "append-time" : "append-time-" + codec;
      topic(topic, "message.timestamp.type=LogAppendTime");
      try (Producer<byte[], byte[]> producer = plain(codec)) {
        send(producer, few(topic, 5));
        send(producer, few(topic, 3));
      }
    }
  }

  static void recompression() throws Exception {
    for (String[] kind : new String[][] {
        {"recompressed", "zstd", "gzip"}, {"uncompressed", "uncompressed", "lz4"},
        {"compressed", "gzip", "none"}}) {
      topic(kind[0], "compression.type=" + kind[1]);
      try (Producer<byte[], byte[]> producer = plain(kind[2])) {
        send(producer, few(kind[0], 12));
        send(producer, few(kind[0], 6));
      }
    }
  }

  static void batchSizes() throws Exception {
    topic("large-batch");
    try (Producer<byte[], byte[]> producer = idempotent("none")) {
      List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
      for (int i = 0; i < 2000; i++) {
        records.add(record("large-batch", START + i, null, utf8("" + i)));
      }
      send(producer, records);
    }
    topic("single-record");
    try (Producer<byte[], byte[]> producer = idempotent("none")) {
      for (ProducerRecord<byte[], byte[]> record : few("single-record", 30)) {
        send(producer, List.of(record));
      }
    }
    topic("empty");
  }

  static void partitions() throws Exception {
    create("partitions", 3);
    try (Producer<byte[], byte[]> producer = plain("none")) {
      send(producer, few("partitions", 30));
    }
  }

  /** Segments roll by the records' own timestamps, so that they roll alike every time. */
  static void segments() throws Exception {
    String[] settings = {"segment.ms=3600000", "index.interval.bytes=256"};
    for (String topic : List.of("segments", "segments-lz4", "segments-idempotent")) {
      topic(topic, settings);
      try (Producer<byte[], byte[]> producer =
          topic.endsWith("idempotent")
              ? idempotent("none")
              : plain(topic.endsWith("lz4") ? "lz4" : "none")) {
        for (int hour = 0; hour < 4; hour++) {
          for (int batch = 0; batch < 12; batch++) {
            long timestamp = START + 4_000_000L * hour + 1000L * batch;
            List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
              byte[] key = utf8("hour-" + hour);
              records.add(record(topic, timestamp - 100L * i, key, utf8("batch " + batch)));
            }
            send(producer, records);
          }
        }
      }
    }
  }

  static void largeValues() throws Exception {
    for (String codec : List.of("gzip", "zstd")) {
      String topic = "large-value-" + codec;
      topic(topic, "max.message.bytes=20000000");
      try (Producer<byte[], byte[]> producer = plain(codec)) {
        byte[] value = utf8("0123456789".repeat(1 << 20));
        send(producer, List.of(
            record(topic, START, utf8("large"), value),
            record(topic, START + 1, utf8("small"), utf8("after"))));
        send(producer, List.of(record(topic, START + 2, utf8("large"), value)));
      }
    }
  }

  static void idempotence() throws Exception {
    topic("idempotent");
    try (Producer<byte[], byte[]> first = idempotent("none");
        Producer<byte[], byte[]> second = idempotent("lz4")) {
      send(first, few("idempotent", 5));
      send(second, few("idempotent", 4));
      send(first, few("idempotent", 3));
      send(first, few("idempotent", 1));
      send(second, few("idempotent", 2));
    }
  }

  /** Commits, aborts, two interleaved transactions, and one that stays open. */
  static void transactions() throws Exception {
    topic("transactions");
    topic("transactions-zstd");
    for (String topic : List.of("transactions", "transactions-zstd")) {
      String codec = topic.endsWith("zstd") ? "zstd" : "none";
      try (Producer<byte[], byte[]> first = transactional(topic + "-first", codec);
          Producer<byte[], byte[]> second = transactional(topic + "-second", codec);
          Producer<byte[], byte[]> outside = plain(codec)) {
        transaction(first, true, few(topic, 3));
        transaction(first, false, few(topic, 2));
        send(outside, few(topic, 2));
        first.beginTransaction();
        second.beginTransaction();
        send(first, few(topic, 2));
        send(second, few(topic, 3));
        send(first, few(topic, 1));
        first.commitTransaction();
        send(second, few(topic, 1));
        second.abortTransaction();
        second.beginTransaction();
        send(second, few(topic, 1));
        transaction(first, false, few(topic, 4));
        second.commitTransaction();
      }
    }
    topic("transactions-open");
    Producer<byte[], byte[]> open = transactional("open", "none");
    try (Producer<byte[], byte[]> other = transactional("beside-open", "none")) {
      transaction(other, true, few("transactions-open", 2));
      open.beginTransaction();
      send(open, few("transactions-open", 3));
      transaction(other, true, few("transactions-open", 2));
      transaction(other, false, few("transactions-open", 2));
      send(open, few("transactions-open", 1));
    }
  }

  /**
   * Topics for the cleaner, and a transaction that lasts over several segments. Their records are
   * stamped now, in waves further apart than segment.ms: the cleaner never touches the last one.
   */
  static void compaction() throws Exception {
    topic("compacted", COMPACT);
    topic("compacted-zstd", COMPACT);
    topic("tombstones", COMPACT);
    topic("emptied", COMPACT);
    topic("compacted-transactions", COMPACT);
    topic("transactions-segments", "segment.ms=1500");
    Random random = new Random(4);
    try (Producer<byte[], byte[]> plain = plain("none");
        Producer<byte[], byte[]> zstd = plain("zstd");
        Producer<byte[], byte[]> commits = transactional("compacted-commits", "none");
        Producer<byte[], byte[]> aborts = transactional("compacted-aborts", "none");
        Producer<byte[], byte[]> longCommit = transactional("long-commit", "none");
        Producer<byte[], byte[]> longAbort = transactional("long-abort", "none")) {
      for (int wave = 0; wave < 6; wave++) {
        for (int batch = 0; batch < 3; batch++) {
          List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
          List<ProducerRecord<byte[], byte[]>> compressed = new ArrayList<>();
          for (int i = 0; i < 5; i++) {
            byte[] key = utf8("key-" + random.nextInt(24));
            byte[] value = utf8("wave " + wave + " batch " + batch + " record " + i);
            records.add(record("compacted", now(), key, value));
            compressed.add(record("compacted-zstd", now(), key, value));
          }
          send(plain, records);
          send(zstd, compressed);
        }
        send(plain, keyed("tombstones", "kept-" + wave, "value", "dead", wave == 1 ? null : "x"));
        send(plain, keyed("tombstones", "gone-" + wave, null, "key-" + wave % 2, "value"));
        // Each producer's last batch stays for its sequence numbers, even without its records.
        try (Producer<byte[], byte[]> once = idempotent("none")) {
          send(once, keyed("emptied", "a", "wave " + wave, "b", "wave " + wave));
        }
        transaction(commits, true, keyed("compacted-transactions", "a", "" + wave, "b", "x"));
        transaction(aborts, false, keyed("compacted-transactions", "a", "lost", "c", "lost"));
        transaction(commits, true, keyed("compacted-transactions", "only-" + wave, "kept"));
        if (wave == 0) {
          longCommit.beginTransaction();
          longAbort.beginTransaction();
        }
        send(plain, keyed("transactions-segments", "outside", "wave " + wave));
        if (wave < 4) {
          send(longCommit, keyed("transactions-segments", "commit", "wave " + wave));
          send(longAbort, keyed("transactions-segments", "abort", "wave " + wave));
        }
        if (wave == 2) {
          longAbort.abortTransaction();
          longAbort.beginTransaction();
        }
        if (wave == 3) {
          longCommit.commitTransaction();
        }
        if (wave == 5) {
          longAbort.abortTransaction();
        }
        Thread.sleep(2000);
      }
      for (String topic : List.of(
          "compacted", "compacted-zstd", "tombstones", "emptied", "compacted-transactions")) {
        send(plain, keyed(topic, "last", "of the active segment"));
      }
    }
  }

  /** Groups of both consumer protocols and a share group, for the coordinators' topics. */
  static void groups() throws Exception {
    for (String protocol : List.of("classic", "consumer")) {
      Map<String, Object> settings = consumer("group-" + protocol);
      settings.put("group.protocol", protocol);
      settings.put("auto.offset.reset", "earliest");
      settings.put("client.id", "client-" + protocol);
      try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
        consumer.subscribe(List.of("none", "partitions"));
        for (int seen = 0; seen < 60; ) {
          seen += consumer.poll(SECOND).count();
        }
        consumer.commitSync();
        consumer.commitSync(Map.of(
            new TopicPartition("none", 0),
            new OffsetAndMetadata(7, Optional.of(0), "metadata – ünïcode")));
      }
    }
    try (Producer<byte[], byte[]> producer = transactional("offsets", "none");
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(consumer("group-tx"))) {
      TopicPartition partition = new TopicPartition("none", 0);
      consumer.assign(List.of(partition));
      for (boolean commit : new boolean[] {true, false}) {
        producer.beginTransaction();
        producer.sendOffsetsToTransaction(
            Map.of(partition, new OffsetAndMetadata(commit ? 5 : 6)), consumer.groupMetadata());
        if (commit) {
          producer.commitTransaction();
        } else {
          producer.abortTransaction();
        }
      }
    }
    admin.deleteConsumerGroupOffsets("group-classic", Set.of(new TopicPartition("none", 0)))
        .all().get();
    admin.incrementalAlterConfigs(Map.of(
        new ConfigResource(ConfigResource.Type.GROUP, "group-share"),
        List.of(new AlterConfigOp(
            new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET))))
        .all().get();
    Map<String, Object> settings = consumer("group-share");
    settings.remove("enable.auto.commit");
    try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings)) {
      consumer.subscribe(List.of("none"));
      for (int seen = 0; seen < 20; ) {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(SECOND);
        seen += records.count();
      }
      consumer.commitSync();
    }
  }

  /** Each start of the broker begins a leader epoch of its partitions. */
  static void epoch() throws Exception {
    if (!admin.listTopics().names().get().contains("epochs")) {
      topic("epochs", "segment.index.bytes=4096");
    }
    try (Producer<byte[], byte[]> producer = idempotent("none")) {
      send(producer, few("epochs", 3));
      send(producer, few("epochs", 2));
    }
  }

  /** Writes until killed. A second of record time passes with each batch: segment.ms rolls. */
  static void flood(String[] topics) throws Exception {
    for (String topic : topics) {
      // Small indexes, since the last ones stay as large as they were preallocated.
      topic(
          topic, "segment.ms=15000", "segment.index.bytes=4096", "index.interval.bytes=256",
          "segment.bytes=1048576", "preallocate=" + topic.startsWith("preallocated"));
    }
    try (Producer<byte[], byte[]> producer = idempotent("none")) {
      for (long second = 0; ; second++) {
        for (String topic : topics) {
          List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
          for (int i = 0; i < 3; i++) {
            byte[] value = utf8("second " + second);
            records.add(record(topic, START + 1000 * second + i, utf8("key-" + i), value));
          }
          send(producer, records);
        }
        Thread.sleep(20);
      }
    }
  }

  // ---- topics, producers, records -----------------------------------------------------------

  static void topic(String name, String... settings) throws Exception {
    create(name, 1, settings);
  }

  static void create(String name, int partitions, String... settings) throws Exception {
    Map<String, String> configs = new HashMap<>();
    // The timestamps are years old: retention would delete them at once.
    configs.put("retention.ms", "-1");
    // They would also roll a segment at a transaction marker, which is stamped now.
    configs.put("segment.ms", Long.toString(Long.MAX_VALUE));
    for (String setting : settings) {
      String[] pair = setting.split("=", 2);
      configs.put(pair[0], pair[1]);
    }
    admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(configs)))
        .all().get();
    System.err.println(name);
  }

  static Map<String, Object> client() {
    return new HashMap<>(Map.of("bootstrap.servers", bootstrap));
  }

  static Map<String, Object> consumer(String group) {
    Map<String, Object> settings = client();
    settings.put("group.id", group);
    settings.put("enable.auto.commit", "false");
    String deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
    settings.put("key.deserializer", deserializer);
    settings.put("value.deserializer", deserializer);
    return settings;
  }

  /** Without idempotence no producer id is spent, and the bytes are alike every time. */
  static Producer<byte[], byte[]> plain(String codec) {
    return producer(codec, Map.of("enable.idempotence", "false"));
  }

  static Producer<byte[], byte[]> idempotent(String codec) {
    return producer(codec, Map.of("enable.idempotence", "true"));
  }

  static Producer<byte[], byte[]> transactional(String id, String codec) {
    Producer<byte[], byte[]> producer =
        producer(codec, Map.of("transactional.id", id, "transaction.timeout.ms", "900000"));
    producer.initTransactions();
    return producer;
  }

  static Producer<byte[], byte[]> producer(String codec, Map<String, Object> more) {
    Map<String, Object> settings = client();
    String serializer = "org.apache.kafka.common.serialization.ByteArraySerializer";
    settings.put("key.serializer", serializer);
    settings.put("value.serializer", serializer);
    settings.put("compression.type", codec);
    // Only a flush ends a batch: one call of send(), one batch.
    settings.put("linger.ms", "60000");
    settings.put("batch.size", "1000000");
    settings.put("max.request.size", "20000000");
    settings.putAll(more);
    return new KafkaProducer<>(settings);
  }

  static void send(
      Producer<byte[], byte[]> producer, List<ProducerRecord<byte[], byte[]>> records)
      throws Exception {
    List<Future<?>> futures = new ArrayList<>();
    for (ProducerRecord<byte[], byte[]> record : records) {
      futures.add(producer.send(record));
    }
    producer.flush();
    for (Future<?> future : futures) {
      future.get();
    }
  }

  static void transaction(
      Producer<byte[], byte[]> producer, boolean commit,
      List<ProducerRecord<byte[], byte[]>> records)
      throws Exception {
    producer.beginTransaction();
    send(producer, records);
    if (commit) {
      producer.commitTransaction();
    } else {
      producer.abortTransaction();
    }
  }

  static ProducerRecord<byte[], byte[]> record(
      String topic, long timestamp, byte[] key, byte[] value) {
    return new ProducerRecord<>(topic, null, timestamp, key, value);
  }

  static ProducerRecord<byte[], byte[]> headed(String topic, int number, String... pairs) {
    List<Header> headers = new ArrayList<>();
    for (int i = 0; i < pairs.length; i += 2) {
      headers.add(new RecordHeader(pairs[i], pairs[i + 1] == null ? null : utf8(pairs[i + 1])));
    }
    return new ProducerRecord<>(
        topic, null, START + number, utf8("headers-" + number), utf8("value"), headers);
  }

  static List<ProducerRecord<byte[], byte[]>> few(String topic, int count) {
    List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      records.add(record(topic, START + i, utf8("key-" + i), utf8(topic + " value " + i)));
    }
    return records;
  }

  static List<ProducerRecord<byte[], byte[]>> keyed(String topic, String... pairs) {
    List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
    for (int i = 0; i < pairs.length; i += 2) {
      byte[] value = pairs[i + 1] == null ? null : utf8(pairs[i + 1]);
      records.add(record(topic, now(), utf8(pairs[i]), value));
    }
    return records;
  }

  static long now() {
    return System.currentTimeMillis();
  }

  static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static byte[] four(int number) {
    return ByteBuffer.allocate(4).putInt(number).array();
  }

  static byte[] eight(long number) {
    return ByteBuffer.allocate(8).putLong(number).array();
  }

  static byte[] bytes(Random random, int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return bytes;
  }

  static String words(Random random, int count) {
    String[] words = {"log", "segment", "batch", "record", "offset", "epoch", "naïve", "index"};
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < count; i++) {
      text.append(words[random.nextInt(words.length)]).append(' ');
    }
    return text.toString();
  }
}
