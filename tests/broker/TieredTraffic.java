import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.consumer.internals.AsyncKafkaConsumer;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceListener;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Topics whose segments are copied to remote storage, and groups that {@link Traffic} does not have.
 *
 * <p>It is run twice, before and after a restart: the second time a segment with two leader epochs
 * is copied, others expire, and a topic is deleted.
 */
final class TieredTraffic {
  static final Duration PATIENCE = Duration.ofSeconds(60);
  static final List<AcknowledgeType> BY_TURNS =
      List.of(AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT);
  static final String[] TOPICS = {"tiered", "tiered-expired", "tiered-deleted"};

  static void make() throws Exception {
    boolean isFirst = !Traffic.admin.listTopics().names().get().contains("tiered");
    if (isFirst) {
      for (String topic : TOPICS) {
        // Records of years ago leave the local log as soon as they are copied, those of now stay.
        Traffic.topic(
            topic, "remote.storage.enable=true", "local.retention.ms=86400000",
            "segment.ms=3600000", "message.timestamp.after.max.ms=" + Long.MAX_VALUE,
            "index.interval.bytes=256");
        hours(topic, topic.equals("tiered-deleted") ? 1 : 3);
      }
      regularExpressions();
      shares();
      streams();
      access();
      return;
    }
    for (String topic : TOPICS) {
      now(topic);
    }
    readRemote("tiered");
    set(ConfigResource.Type.TOPIC, "tiered-expired", "retention.ms", "86400001");
    until(() -> offset("tiered-expired", OffsetSpec.earliest()) >= 18);
    Traffic.admin.deleteTopics(List.of("tiered-deleted")).all().get();
  }

  /** An hour of record time each: segment.ms rolls, and inactive segments are copied. */
  static void hours(String topic, int count) throws Exception {
    try (Producer<byte[], byte[]> producer = Traffic.plain("none")) {
      for (int hour = 0; hour < count; hour++) {
        for (int batch = 0; batch < 6; batch++) {
          Traffic.send(producer, List.of(Traffic.record(
              topic, Traffic.START + 4_000_000L * hour + batch, Traffic.utf8("hour-" + hour),
              Traffic.utf8("batch " + batch))));
        }
      }
      Traffic.send(producer, Traffic.keyed(topic, "before", "the restart"));
    }
    until(() -> offset(topic, OffsetSpec.earliestLocal()) == 6 * count);
  }

  /** The segment that was active at the restart gets a second epoch and an aborted transaction. */
  static void now(String topic) throws Exception {
    long end = offset(topic, OffsetSpec.latest()) + 3;
    try (Producer<byte[], byte[]> plain = Traffic.plain("none");
        Producer<byte[], byte[]> aborts = Traffic.transactional(topic, "lz4")) {
      Traffic.send(plain, Traffic.keyed(topic, "after", "the restart"));
      Traffic.transaction(aborts, false, Traffic.keyed(topic, "aborted", "lost"));
      // The broker answers before it writes the marker.
      until(() -> offset(topic, OffsetSpec.latest()) == end);
      Traffic.send(plain, List.of(Traffic.record(
          topic, Traffic.now() + 4_000_000L, null, Traffic.utf8("of the active segment"))));
    }
    until(() -> offset(topic, OffsetSpec.latestTiered()) == end - 1);
  }

  /** What is read comes from the remote storage, and its indexes into a cache beside the logs. */
  static void readRemote(String topic) throws Exception {
    TopicPartition partition = new TopicPartition(topic, 0);
    Map<String, Object> settings = Traffic.consumer("remote");
    settings.put("isolation.level", "read_committed");
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
      consumer.assign(List.of(partition));
      consumer.seekToBeginning(List.of(partition));
      until(() -> {
        consumer.poll(Traffic.SECOND);
        return consumer.position(partition) == offset(topic, OffsetSpec.latest());
      });
    }
  }

  /** Two members of the new protocol, one of them static, that subscribe to what matches. */
  static void regularExpressions() throws Exception {
    Traffic.create("matched-a", 2);
    Traffic.topic("matched-b");
    Map<String, Object> settings = Traffic.consumer("group-regex");
    settings.put("group.protocol", "consumer");
    settings.put("client.rack", "rack-a");
    settings.put("group.remote.assignor", "range");
    Map<String, Object> constant = new HashMap<>(settings);
    constant.put("group.instance.id", "instance-1");
    try (KafkaConsumer<byte[], byte[]> first = new KafkaConsumer<>(settings);
        KafkaConsumer<byte[], byte[]> second = new KafkaConsumer<>(constant)) {
      first.subscribe(new SubscriptionPattern("matched-.*"));
      second.subscribe(new SubscriptionPattern("(matched|nothing)-[ab]"));
      untilAssigned(first, second);
      first.commitSync();
    }
  }

  /** One that accepts, releases and rejects by turns; what is released comes again, twice. */
  static void shares() throws Exception {
    Traffic.create("shared", 2);
    try (Producer<byte[], byte[]> producer = Traffic.plain("none")) {
      Traffic.send(producer, Traffic.few("shared", 24));
    }
    for (String group : List.of("shares", "shares-deleted")) {
      set(ConfigResource.Type.GROUP, group, "share.auto.offset.reset", "earliest");
      Map<String, Object> settings = Traffic.consumer(group);
      settings.remove("enable.auto.commit");
      settings.put("share.acknowledgement.mode", "explicit");
      settings.put("client.rack", "rack-b");
      Set<String> seen = new HashSet<>();
      Set<String> released = new HashSet<>();
      try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings)) {
        consumer.subscribe(List.of("shared"));
        while (seen.size() < 24 || !released.isEmpty()) {
          for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Traffic.SECOND)) {
            String place = record.partition() + "-" + record.offset();
            AcknowledgeType again = record.deliveryCount().orElse((short) 1) < 3
                ? AcknowledgeType.RELEASE
                : AcknowledgeType.ACCEPT;
            AcknowledgeType type =
                seen.add(place) ? BY_TURNS.get((int) record.offset() / 2 % 3) : again;
            if (type == AcknowledgeType.RELEASE) {
              released.add(place);
            } else {
              released.remove(place);
            }
            consumer.acknowledge(record, type);
          }
          consumer.commitSync();
        }
      }
    }
    Traffic.admin.deleteShareGroups(List.of("shares-deleted")).all().get();
  }

  /** Two members of a topology with a repartition topic and a store, as Kafka Streams joins. */
  static void streams() throws Exception {
    Traffic.create("streamed", 2);
    set(ConfigResource.Type.GROUP, "group-streams", "streams.num.standby.replicas", "1");
    try (AsyncKafkaConsumer<byte[], byte[]> first = streamsMember("host-1");
        AsyncKafkaConsumer<byte[], byte[]> second = streamsMember("host-2")) {
      untilAssigned(first, second);
      // Tasks that wait for the other member to give them up come with later heartbeats.
      for (int i = 0; i < 60; i++) {
        first.poll(Duration.ofMillis(50));
        second.poll(Duration.ofMillis(50));
      }
    }
  }

  static AsyncKafkaConsumer<byte[], byte[]> streamsMember(String host) {
    StreamsRebalanceData.TopicInfo repartition = new StreamsRebalanceData.TopicInfo(
        Optional.of(2), Optional.of((short) 1), Map.of("cleanup.policy", "delete"));
    StreamsRebalanceData.TopicInfo changelog = new StreamsRebalanceData.TopicInfo(
        Optional.empty(), Optional.empty(), Map.of("cleanup.policy", "compact"));
    Map<String, StreamsRebalanceData.Subtopology> topology = Map.of(
        "0", new StreamsRebalanceData.Subtopology(
            Set.of("streamed"), Set.of("group-streams-repartition"), Map.of(), Map.of(), List.of()),
        "1", new StreamsRebalanceData.Subtopology(
            Set.of(), Set.of(), Map.of("group-streams-repartition", repartition),
            Map.of("group-streams-changelog", changelog), List.of()));
    StreamsRebalanceData data = new StreamsRebalanceData(
        UUID.randomUUID(), Optional.of(new StreamsRebalanceData.HostInfo(host, 8080)), topology,
        Map.of("zone", host));
    Map<String, Object> settings = Traffic.consumer("group-streams");
    settings.put("group.protocol", "consumer");
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    AsyncKafkaConsumer<byte[], byte[]> consumer = new AsyncKafkaConsumer<>(
        new ConsumerConfig(ConsumerConfig.appendDeserializerToConfig(settings, bytes, bytes)),
        bytes, bytes, Optional.of(data));
    StreamsRebalanceListener listener = new StreamsRebalanceListener() {
      @Override
      public void onTasksRevoked(Set<StreamsRebalanceData.TaskId> tasks) {}

      @Override
      public void onTasksAssigned(StreamsRebalanceData.Assignment assignment) {
        data.setReconciledAssignment(assignment);
      }

      @Override
      public void onAllTasksLost() {}
    };
    consumer.subscribe(Set.of("streamed", "group-streams-repartition"), listener);
    return consumer;
  }

  /** What the metadata has of users: their credentials, quotas and rights; some are taken back. */
  static void access() throws Exception {
    ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
    Traffic.admin.alterUserScramCredentials(List.of(
        new UserScramCredentialUpsertion("alice", info, "secret"),
        new UserScramCredentialUpsertion("bob", info, "secret"))).all().get();
    Traffic.admin.alterUserScramCredentials(List.of(
        new UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256))).all().get();
    Map<String, String> anyClient = new HashMap<>(Map.of("user", "alice"));
    anyClient.put("client-id", null);
    Traffic.admin.alterClientQuotas(List.of(
        new ClientQuotaAlteration(
            new ClientQuotaEntity(anyClient),
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1048576.0))),
        new ClientQuotaAlteration(
            new ClientQuotaEntity(Map.of("ip", "127.0.0.2")),
            List.of(new ClientQuotaAlteration.Op("connection_creation_rate", 1000.0))))).all().get();
    AclBinding allow = new AclBinding(
        new ResourcePattern(ResourceType.TOPIC, "tiered", PatternType.PREFIXED),
        new AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW));
    AclBinding deny = new AclBinding(
        new ResourcePattern(ResourceType.GROUP, "*", PatternType.LITERAL),
        new AccessControlEntry(
            "User:bob", "127.0.0.2", AclOperation.DESCRIBE, AclPermissionType.DENY));
    Traffic.admin.createAcls(List.of(allow, deny)).all().get();
    Traffic.admin.deleteAcls(List.of(deny.toFilter())).all().get();
  }

  static void untilAssigned(Consumer<?, ?> first, Consumer<?, ?> second) throws Exception {
    until(() -> {
      first.poll(Duration.ofMillis(100));
      second.poll(Duration.ofMillis(100));
      return !first.assignment().isEmpty() && !second.assignment().isEmpty();
    });
  }

  static long offset(String topic, OffsetSpec which) throws Exception {
    TopicPartition partition = new TopicPartition(topic, 0);
    return Traffic.admin.listOffsets(Map.of(partition, which)).partitionResult(partition).get()
        .offset();
  }

  static void set(ConfigResource.Type type, String name, String key, String value)
      throws Exception {
    Traffic.admin.incrementalAlterConfigs(Map.of(
        new ConfigResource(type, name),
        List.of(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET))))
        .all().get();
  }

  static void until(Callable<Boolean> condition) throws Exception {
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.call()) {
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException("it did not happen in " + PATIENCE);
      }
      Thread.sleep(100);
    }
  }
}
