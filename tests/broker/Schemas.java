import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.Collection;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.Schema;

/**
 * Kafka's generated messages of the internal topics as JSON, read off their classes: names, versions,
 * and of each field the type, versions, tag and default. make_schemas.py writes our table of it.
 */
public class Schemas {
    static final ObjectMapper MAPPER = new ObjectMapper();
    static final ArrayNode MESSAGES = MAPPER.createArrayNode();
    static final String[][] COORDINATORS = {
        {"offsets", "org.apache.kafka.coordinator.group.generated.CoordinatorRecordType"},
        {"transaction_state", "org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordType"},
        {"share_group_state", "org.apache.kafka.coordinator.share.generated.CoordinatorRecordType"},
    };
    static final String[][] API_MESSAGES = {
        {"cluster_metadata", "org.apache.kafka.common.metadata.MetadataRecordType"},
        {"remote_log_metadata",
            "org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataRecordType"},
    };

    public static void main(String[] args) throws Exception {
        for (String[] topic : COORDINATORS) {
            for (Object type : Class.forName(topic[1]).getEnumConstants()) {
                add(topic[0], type, "key", call(type, "newRecordKey"));
                add(topic[0], type, "value", call(type, "newRecordValue"));
            }
        }
        for (String[] topic : API_MESSAGES) {
            for (Object type : Class.forName(topic[1]).getEnumConstants()) {
                add(topic[0], type, "value", call(type, "newMetadataRecord"));
            }
        }
        add("consumer_protocol", 0, "SUBSCRIPTION", "value", new ConsumerProtocolSubscription());
        add("consumer_protocol", 1, "ASSIGNMENT", "value", new ConsumerProtocolAssignment());
        add("control_record", 2, "LEADER_CHANGE", "value", new LeaderChangeMessage());
        add("control_record", 3, "SNAPSHOT_HEADER", "value", new SnapshotHeaderRecord());
        add("control_record", 4, "SNAPSHOT_FOOTER", "value", new SnapshotFooterRecord());
        add("control_record", 5, "KRAFT_VERSION", "value", new KRaftVersionRecord());
        add("control_record", 6, "KRAFT_VOTERS", "value", new VotersRecord());
        System.out.println(MAPPER.writerWithDefaultPrettyPrinter().writeValueAsString(MESSAGES));
    }

    static Object call(Object target, String method) throws Exception {
        Method found = target.getClass().getMethod(method);
        found.setAccessible(true);
        return found.invoke(target);
    }

    static void add(String topic, Object type, String role, Object message) throws Exception {
        add(topic, (short) call(type, "id"), ((Enum<?>) type).name(), role, (Message) message);
    }

    static void add(String topic, int id, String name, String role, Message message) throws Exception {
        ObjectNode node = MESSAGES.addObject();
        node.put("topic", topic).put("id", id).put("name", name).put("role", role);
        node.put("message", message.getClass().getSimpleName());
        node.put("lowest", message.lowestSupportedVersion());
        node.put("highest", message.highestSupportedVersion());
        TreeMap<Integer, Schema> schemas = new TreeMap<>();
        Schema[] all = (Schema[]) message.getClass().getField("SCHEMAS").get(null);
        for (int v = message.lowestSupportedVersion(); v <= message.highestSupportedVersion(); v++) {
            schemas.put(v, all[v]);
        }
        describe(node, message.getClass(), schemas);
    }

    /** A struct: its versions and its fields, in the order in which they were declared. */
    static void describe(ObjectNode node, Class<?> struct, TreeMap<Integer, Schema> schemas)
            throws Exception {
        ArrayNode flexible = node.putArray("flexible");
        for (int version : schemas.keySet()) {
            if (taggedFields(schemas.get(version)) != null) {
                flexible.add(version);
            }
        }
        ArrayNode fields = node.putArray("fields");
        Object defaults = instance(struct);
        for (Field field : struct.getDeclaredFields()) {
            String name = field.getName();
            if (Modifier.isStatic(field.getModifiers()) || name.equals("_unknownTaggedFields")
                    || name.equals("next") || name.equals("prev")) {
                continue;
            }
            field.setAccessible(true);
            ObjectNode described = fields.addObject();
            described.put("name", name);
            ObjectNode versions = described.putObject("versions");
            TreeMap<Integer, Schema> inner = new TreeMap<>();
            for (int version : schemas.keySet()) {
                describeType(versions, version, field, struct, schemas.get(version), inner);
            }
            Class<?> element = elementOf(field);
            if (!inner.isEmpty()) {
                describe(described.putObject("struct"), element, inner);
            }
            putDefault(described, field.get(defaults));
            described.put("java", field.getType().getSimpleName());
        }
    }

    /** What the schema of one version says of a field, if it is in that version. */
    static void describeType(ObjectNode versions, int version, Field field, Class<?> struct,
            Schema schema, TreeMap<Integer, Schema> inner) throws Exception {
        org.apache.kafka.common.protocol.types.Field found = null;
        Integer tag = null;
        for (var bound : schema.fields()) {
            if (bound.def instanceof org.apache.kafka.common.protocol.types.Field.TaggedFieldsSection) {
                continue;
            }
            if (same(bound.def.name, field.getName())) {
                found = bound.def;
            }
        }
        var tagged = taggedFields(schema);
        if (tagged != null) {
            for (var entry : tagged.entrySet()) {
                if (same(entry.getValue().name, field.getName())) {
                    found = entry.getValue();
                    tag = entry.getKey();
                }
            }
        }
        if (found == null) {
            return;
        }
        ObjectNode node = versions.putObject(Integer.toString(version));
        var type = found.type;
        boolean isArray = type.isArray();
        boolean nullable = type.isNullable();
        var element = isArray ? type.arrayElementType().get() : type;
        node.put("array", isArray);
        if (element instanceof Schema) {
            inner.put(version, (Schema) element);
            node.put("type", "struct");
            if (!isArray) {
                nullable = takesNull(struct, field, version);
            }
        } else {
            node.put("type", element.toString());
        }
        node.put("nullable", nullable);
        if (tag != null) {
            node.put("tag", tag);
        }
    }

    /** Whether a struct may be null, which schemas do not define: tries to write the message so. */
    static boolean takesNull(Class<?> struct, Field field, int version) throws Exception {
        Message message = (Message) instance(struct);
        field.set(message, null);
        try {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            int size = message.size(cache, (short) version);
            var writable = new ByteBufferAccessor(java.nio.ByteBuffer.allocate(size));
            message.write(writable, cache, (short) version);
            return true;
        } catch (NullPointerException e) {
            return false;
        }
    }

    static java.util.Map<Integer, org.apache.kafka.common.protocol.types.Field> taggedFields(
            Schema schema) {
        for (var bound : schema.fields()) {
            if (bound.def.type instanceof org.apache.kafka.common.protocol.types.TaggedFields tagged) {
                return tagged.fields();
            }
        }
        return null;
    }

    static void putDefault(ObjectNode node, Object value) {
        if (value == null) {
            node.putNull("default");
        } else if (value instanceof Boolean bool) {
            node.put("default", bool);
        } else if (value instanceof Number number) {
            node.put("default", number.toString());
        } else if (value instanceof String || value instanceof Uuid) {
            node.put("default", value.toString());
        } else if (value instanceof Collection<?> collection) {
            if (!collection.isEmpty()) {
                throw new IllegalStateException("an array with a default");
            }
            node.put("default", "[]");
        } else if (value instanceof byte[] bytes && bytes.length == 0) {
            node.put("default", "");
        } else if (value instanceof java.nio.ByteBuffer bytes && bytes.remaining() == 0) {
            node.put("default", "");
        } else {
            node.put("default", "{}");
        }
    }

    static Object instance(Class<?> type) throws Exception {
        var constructor = type.getDeclaredConstructor();
        constructor.setAccessible(true);
        return constructor.newInstance();
    }

    static Class<?> elementOf(Field field) {
        Type type = field.getGenericType();
        if (Collection.class.isAssignableFrom(field.getType()) && !(type instanceof ParameterizedType)) {
            type = field.getType().getGenericSuperclass();
        }
        if (type instanceof ParameterizedType parameterized) {
            Type argument = parameterized.getActualTypeArguments()[0];
            return argument instanceof Class<?> found ? found : null;
        }
        return field.getType();
    }

    static boolean same(String snake, String camel) {
        return snake.replace("_", "").equalsIgnoreCase(camel);
    }
}
