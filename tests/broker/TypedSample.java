import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The topics of kafkajit/sample/typed, for make_typed_sample.py.
 *
 * <p>{@code TypedSample BOOTSTRAP} creates shipments, whose values are Avro as a registry's serializer
 * writes it, and _schemas with the records of that registry.
 */
public final class TypedSample {
  static final long START = 1_762_300_800_000L; // 2025-11-05 00:00:00 UTC
  static final long MINUTE = 60_000;
  static final String TOPIC = "shipments";
  static final String SUBJECT = TOPIC + "-value";
  static final String REGISTRY = "_schemas";
  static final ObjectMapper MAPPER = new ObjectMapper();
  static final GenericData AVRO = new GenericData();

  /** The second version makes `id` a long, and adds `insured`. */
  static final Schema[] VERSIONS = {version("int", ""), version("long", """
      , {"name": "insured", "type": "boolean", "default": false}""")};

  static Map<String, Object> client;

  public static void main(String[] arguments) throws Exception {
    client = Map.of("bootstrap.servers", arguments[0]);
    AVRO.addLogicalTypeConversion(new Conversions.DecimalConversion());
    createTopics();
    registry();
    shipments();
  }

  static Schema version(String id, String added) {
    return new Schema.Parser().parse("""
        {"type": "record", "name": "Shipment", "namespace": "com.example", "fields": [
          {"name": "id", "type": "%s"},
          {"name": "orderId", "type": "string"},
          {"name": "carrier", "type": {"type": "enum", "name": "Carrier", "symbols": [
            "BIKE", "TRAIN", "TRUCK"]}},
          {"name": "weight", "type": "double"},
          {"name": "note", "type": ["null", "string"], "default": null},
          {"name": "created", "type": {"type": "long", "logicalType": "timestamp-millis"}},
          {"name": "parcels", "type": {"type": "array", "items": {
            "type": "record", "name": "Parcel", "fields": [
              {"name": "sku", "type": "string"},
              {"name": "price", "type": {
                "type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}]}}}%s]}
        """.formatted(id, added));
  }

  static void createTopics() throws Exception {
    try (Admin admin = Admin.create(client)) {
      Map<String, String> kept = Map.of("retention.ms", "-1");
      Map<String, String> compacted = Map.of("cleanup.policy", "compact");
      admin.createTopics(List.of(
          new NewTopic(TOPIC, 1, (short) 1).configs(kept),
          new NewTopic(REGISTRY, 1, (short) 1).configs(compacted))).all().get();
    }
  }

  /** A registry starts, is configured, and gets two versions; each record is a batch. */
  static void registry() {
    ObjectNode noop = key("NOOP").put("magic", 0);
    ObjectNode config = key("CONFIG").putNull("subject").put("magic", 0);
    ObjectNode backward = MAPPER.createObjectNode().put("compatibilityLevel", "BACKWARD");
    ObjectNode ofSubject = key("CONFIG").put("subject", SUBJECT).put("magic", 0);
    ObjectNode full = MAPPER.createObjectNode().put("compatibilityLevel", "FULL_TRANSITIVE");
    register(-90, noop, null);
    register(-60, config, backward);
    register(-30, key(1), value(1));
    register(40, ofSubject, full);
    register(45, ofSubject, backward);
    register(50, noop, null);
    register(55, key(2), value(2));
  }

  static ObjectNode key(String type) {
    return MAPPER.createObjectNode().put("keytype", type);
  }

  static ObjectNode key(int version) {
    return key("SCHEMA").put("subject", SUBJECT).put("version", version).put("magic", 1);
  }

  static ObjectNode value(int version) {
    return MAPPER.createObjectNode().put("subject", SUBJECT).put("version", version)
        .put("id", version).put("schema", VERSIONS[version - 1].toString()).put("deleted", false);
  }

  static void register(int minute, ObjectNode key, ObjectNode value) {
    byte[] content = value == null ? null : bytes(value.toString());
    produce("none", List.of(record(REGISTRY, minute, key.toString(), content)));
  }

  static ProducerRecord<byte[], byte[]> record(String topic, int minute, String key, byte[] value) {
    return new ProducerRecord<>(topic, 0, START + minute * MINUTE, bytes(key), value);
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Two producers: one stays with the first version for a while after the second came. */
  static void shipments() {
    produce("none", List.of(
        shipment(1, 10, 1, "order-0", "TRUCK", 12.5, null, "A-1 19.90", "B-7 129.00"),
        shipment(1, 15, 2, "order-1", "BIKE", 0.8, "leave at the door", "C-3 7.45"),
        shipment(1, 20, 3, "order-2", "TRAIN", 30.25, null, "B-7 129.00"),
        shipment(1, 25, 4, "order-3", "BIKE", 1.1, null, "A-1 19.90")));
    produce("zstd", List.of(
        shipment(2, 60, 3_000_000_005L, "order-4", "TRUCK", 8.0, "über Zürich", "D-2 1049.99"),
        shipment(2, 61, 3_000_000_006L, "order-5", "BIKE", 0.4, null)));
    produce("none", List.of(
        shipment(1, 65, 7, "order-6", "BIKE", 2.6, null, "C-3 7.45", "C-3 7.45", "A-1 19.90"),
        record(TOPIC, 66, "order-3", null)));
    produce("zstd", List.of(
        shipment(2, 70, 3_000_000_008L, "order-7", "TRAIN", 22.0, null, "B-7 119.00"),
        shipment(2, 75, 3_000_000_009L, "order-8", "TRUCK", 16.75, "fragile", "D-2 1049.99",
            "A-1 18.50")));
  }

  /** The record of a shipment; a parcel is an sku and a price. */
  static ProducerRecord<byte[], byte[]> shipment(int version, int minute, long id, String order,
      String carrier, double weight, String note, String... parcels) {
    Schema schema = VERSIONS[version - 1];
    Schema ofParcels = schema.getField("parcels").schema();
    List<GenericRecord> packed = new ArrayList<>();
    for (String parcel : parcels) {
      String[] parts = parcel.split(" ");
      packed.add(new GenericRecordBuilder(ofParcels.getElementType())
          .set("sku", parts[0]).set("price", new BigDecimal(parts[1])).build());
    }
    GenericRecordBuilder builder = new GenericRecordBuilder(schema)
        .set("orderId", order)
        .set("carrier", new GenericData.EnumSymbol(schema.getField("carrier").schema(), carrier))
        .set("weight", weight).set("note", note).set("created", START + minute * MINUTE)
        .set("parcels", packed);
    if (version == 1) {
      builder.set("id", (int) id);
    } else {
      builder.set("id", id).set("insured", weight > 10);
    }
    return record(TOPIC, minute, order, framed(version, builder.build()));
  }

  /** As Confluent's serializer writes a value: 00, the schema's id in four bytes, Avro. */
  static byte[] framed(int id, GenericRecord shipment) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      new DataOutputStream(bytes).writeByte(0);
      new DataOutputStream(bytes).writeInt(id);
      BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
      new GenericDatumWriter<GenericRecord>(shipment.getSchema(), AVRO).write(shipment, encoder);
      encoder.flush();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    return bytes.toByteArray();
  }

  /** Send one batch. Without idempotence it has the same bytes every time. */
  static void produce(String codec, List<ProducerRecord<byte[], byte[]>> records) {
    Map<String, Object> config = Map.of(
        "bootstrap.servers", client.get("bootstrap.servers"),
        "enable.idempotence", "false",
        "compression.type", codec,
        "linger.ms", "60000");
    ByteArraySerializer serializer = new ByteArraySerializer();
    try (var producer = new KafkaProducer<>(config, serializer, serializer)) {
      records.forEach(producer::send);
      producer.flush();
    }
  }
}
