import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Traffic of message formats v0 and v1, one small topic for each kind.
 *
 * <p>The broker is old enough to write them: it converts every batch of the producer to the format
 * of its topic, and gives it that topic's codec or the producer's.
 */
final class OldTraffic {
  /** What message.format.version has to be for each format. */
  static final Map<String, String> VERSIONS = Map.of("v0", "0.9.0", "v1", "0.10.2", "v2", "2.8");

  static final List<String> FORMATS = List.of("v0", "v1");
  static final String[] SMALL = {
    "segment.bytes=420", "index.interval.bytes=100", "segment.index.bytes=4096",
  };

  /** Milliseconds after which the broker has heard of a changed setting. */
  static final long NOTICED = 1000;

  static void make() throws Exception {
    codecs();
    appendTime();
    recompression();
    largeSets();
    segments();
    upgrades();
    compaction();
  }

  static void codecs() throws Exception {
    for (String format : FORMATS) {
      for (String codec : List.of("none", "gzip", "snappy", "lz4")) {
        String topic = topic(format, codec);
        try (Producer<byte[], byte[]> producer = Traffic.plain(codec)) {
          Traffic.send(producer, Traffic.few(topic, 4));
          Traffic.send(producer, nulls(topic));
          Traffic.send(producer, Traffic.few(topic, 1));
        }
      }
    }
  }

  /** Null and empty keys and values in every pairing; each record is older than the one before. */
  static List<ProducerRecord<byte[], byte[]>> nulls(String topic) {
    byte[][] fields = {null, {}, Traffic.utf8("é")};
    List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
    for (byte[] key : fields) {
      for (byte[] value : fields) {
        records.add(Traffic.record(topic, Traffic.START - records.size(), key, value));
      }
    }
    return records;
  }

  static void appendTime() throws Exception {
    for (String codec : List.of("none", "gzip", "lz4")) {
      String topic = topic("v1", "append-time-" + codec, "message.timestamp.type=LogAppendTime");
      try (Producer<byte[], byte[]> producer = Traffic.plain(codec)) {
        Traffic.send(producer, Traffic.few(topic, 4));
        Traffic.send(producer, Traffic.few(topic, 2));
      }
    }
  }

  static void recompression() throws Exception {
    for (String format : FORMATS) {
      for (String[] kind : new String[][] {
          {"recompressed", "lz4", "gzip"}, {"uncompressed", "uncompressed", "lz4"},
          {"compressed", "gzip", "none"}}) {
        String topic = topic(format, kind[0], "compression.type=" + kind[1]);
        try (Producer<byte[], byte[]> producer = Traffic.plain(kind[2])) {
          Traffic.send(producer, Traffic.few(topic, 5));
          Traffic.send(producer, Traffic.few(topic, 2));
        }
      }
    }
  }

  /** Sets of many messages, and sets over several blocks of their codec, then a stored block. */
  static void largeSets() throws Exception {
    String large = topic("v1", "large-set");
    try (Producer<byte[], byte[]> producer = Traffic.plain("gzip")) {
      List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
      for (int i = 0; i < 2700; i++) {
        // Enough long records to keep every golden as its hash; and they compress well.
        byte[] value = Traffic.utf8(i + " of this set".repeat(9));
        records.add(Traffic.record(large, Traffic.START + i, null, value));
      }
      Traffic.send(producer, records);
    }
    for (String format : FORMATS) {
      for (String codec : List.of("snappy", "lz4")) {
        String topic = topic(format, "blocks-" + codec);
        try (Producer<byte[], byte[]> producer = Traffic.plain(codec)) {
          List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
          for (int i = 0; i < 40; i++) {
            byte[] value = Traffic.utf8(("text " + i + " ").repeat(900));
            records.add(Traffic.record(topic, Traffic.START + i, null, value));
          }
          Traffic.send(producer, records);
          byte[] noise = Traffic.bytes(new Random(5), 200);
          Traffic.send(producer, List.of(Traffic.record(topic, Traffic.START, null, noise)));
        }
      }
    }
  }

  static void segments() throws Exception {
    for (String format : FORMATS) {
      for (String codec : List.of("none", "gzip")) {
        String suffix = codec.equals("none") ? "" : "-" + codec;
        fill(topic(format, "segments" + suffix, SMALL), codec);
      }
    }
  }

  /** For a broker to be killed: its last indexes, and the zeros behind a preallocated segment. */
  static void crash() throws Exception {
    fill(topic("v1", "crashed", SMALL), "none");
    fill(topic("v1", "preallocated", with(SMALL, "preallocate=true")), "gzip");
  }

  /** One topic whose format was raised while it lived, with and without a codec. */
  static void upgrades() throws Exception {
    List<String> topics = List.of("mixed", "mixed-snappy");
    for (String topic : topics) {
      Traffic.topic(topic);
    }
    for (String format : List.of("v0", "v1", "v2", "v1")) {
      for (String topic : topics) {
        setFormat(topic, format);
      }
      Thread.sleep(NOTICED);
      for (String topic : topics) {
        String codec = topic.equals("mixed") ? "none" : "snappy";
        try (Producer<byte[], byte[]> producer = Traffic.plain(codec)) {
          Traffic.send(producer, Traffic.few(topic, 3));
          Traffic.send(producer, Traffic.few(topic, 2));
        }
      }
    }
  }

  /** In waves further apart than segment.ms: the cleaner never touches the last segment. */
  static void compaction() throws Exception {
    Map<String, String> codecs = Map.of(
        "v0-compacted", "none", "v0-compacted-lz4", "lz4", "v1-compacted", "none",
        "v1-compacted-gzip", "gzip", "mixed-compacted", "none", "mixed-compacted-gzip", "gzip");
    for (String topic : codecs.keySet()) {
      Traffic.topic(topic, Traffic.COMPACT);
    }
    List<String> formats = List.of("v0", "v0", "v1", "v2", "v2");
    for (int wave = 0; wave < formats.size(); wave++) {
      for (String topic : codecs.keySet()) {
        String prefix = topic.substring(0, 2);
        setFormat(topic, FORMATS.contains(prefix) ? prefix : formats.get(wave));
      }
      Thread.sleep(NOTICED);
      for (String topic : codecs.keySet()) {
        Random random = new Random(wave);
        try (Producer<byte[], byte[]> producer = Traffic.plain(codecs.get(topic))) {
          for (int batch = 0; batch < 2; batch++) {
            List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
              byte[] key = Traffic.utf8("key-" + random.nextInt(16));
              byte[] value = i == 3 ? null : Traffic.utf8("wave " + wave + " batch " + batch);
              records.add(Traffic.record(topic, Traffic.now(), key, value));
            }
            Traffic.send(producer, records);
          }
        }
      }
      Thread.sleep(1500);
    }
  }

  // ---- topics -----------------------------------------------------------------------------

  /** Creates FORMAT-KIND and returns its name. */
  static String topic(String format, String kind, String... settings) throws Exception {
    String name = format + "-" + kind;
    Traffic.topic(name, with(settings, "message.format.version=" + VERSIONS.get(format)));
    return name;
  }

  static String[] with(String[] settings, String more) {
    List<String> all = new ArrayList<>(List.of(settings));
    all.add(more);
    return all.toArray(new String[0]);
  }

  static void setFormat(String topic, String format) throws Exception {
    ConfigEntry entry = new ConfigEntry("message.format.version", VERSIONS.get(format));
    Traffic.admin.incrementalAlterConfigs(Map.of(
        new ConfigResource(ConfigResource.Type.TOPIC, topic),
        List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET))))
        .all().get();
  }

  /** Writes batches of two records until there are a few segments. */
  static void fill(String topic, String codec) throws Exception {
    try (Producer<byte[], byte[]> producer = Traffic.plain(codec)) {
      for (int batch = 0; batch < 12; batch++) {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
          long timestamp = Traffic.START + 1000L * batch - 100L * i;
          byte[] value = Traffic.utf8("batch " + batch);
          records.add(Traffic.record(topic, timestamp, Traffic.utf8("key-" + i), value));
        }
        Traffic.send(producer, records);
      }
    }
  }

  private OldTraffic() {}
}
