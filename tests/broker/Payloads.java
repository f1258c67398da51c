import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.serialization.AbstractApiMessageSerde;

/**
 * Logs of internal topics with every message in every version, filled at random (but the same every
 * time) and serialised by Kafka's own classes; and the same cut, extended and of unknown kinds.
 */
public class Payloads {
    static final Random RANDOM = new Random(20251121);
    static int fillings = 3;
    static final String[][] COORDINATORS = {
        {"__consumer_offsets", "org.apache.kafka.coordinator.group.generated.CoordinatorRecordType"},
        {"__transaction_state",
            "org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordType"},
        {"__share_group_state",
            "org.apache.kafka.coordinator.share.generated.CoordinatorRecordType"},
    };
    static final String[][] METADATA = {
        {"__cluster_metadata", "org.apache.kafka.common.metadata.MetadataRecordType"},
        {"__remote_log_metadata",
            "org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataRecordType"},
    };
    static final AbstractApiMessageSerde FRAMES = new AbstractApiMessageSerde() {
        @Override
        public ApiMessage apiMessageFor(short apiKey) {
            throw new IllegalStateException();
        }
    };
    static final String[] STRINGS = {
        "", "a", "orders", "consumer", "a \"quoted\" one", "back\\slash/", "tab\tline\nreturn\r",
        "\b\f\u0000\u001f\u007f", "caf\u00e9", "\u20ac", "\ud83d\ude00 non-BMP", "\u2028\ufeff",
    };
    static final double[] DOUBLES = {
        0.0, -0.0, 1.0, 0.5, 1024.0, 1e-3, 1e-4, 1e7, 9999999.5, 1.0E10, -123456.789, 1e300,
        Double.MAX_VALUE, Double.MIN_VALUE, Double.NaN, Double.POSITIVE_INFINITY,
        Double.NEGATIVE_INFINITY,
    };

    static Path target;

    public static void main(String[] args) throws Exception {
        target = Path.of(args[0]);
        if (args.length > 1) { // for a longer comparison than is kept: another seed, more of all
            RANDOM.setSeed(Long.parseLong(args[1]));
            fillings = Integer.parseInt(args[2]);
        }
        for (String[] topic : COORDINATORS) {
            writeCoordinator(topic[0], Class.forName(topic[1]).getEnumConstants());
        }
        for (String[] topic : METADATA) {
            writeMetadata(topic[0], Class.forName(topic[1]).getEnumConstants());
        }
    }

    static void writeCoordinator(String topic, Object[] types) throws Exception {
        List<SimpleRecord> good = new ArrayList<>();
        List<SimpleRecord> bad = new ArrayList<>();
        for (Object type : types) {
            ApiMessage probe = (ApiMessage) call(type, "newRecordValue");
            for (short v = probe.lowestSupportedVersion(); v <= probe.highestSupportedVersion(); v++) {
                for (int i = 0; i < fillings; i++) {
                    ApiMessage key = (ApiMessage) call(type, "newRecordKey");
                    ApiMessage value = (ApiMessage) call(type, "newRecordValue");
                    if (i > 0) {
                        fill(key, (short) 0, i);
                        fill(value, v, i);
                    }
                    byte[] rawKey = MessageUtil.toCoordinatorTypePrefixedBytes(key);
                    byte[] rawValue = MessageUtil.toVersionPrefixedBytes(v, value);
                    good.add(new SimpleRecord(rawKey, rawValue));
                    if (i % 8 == 1) {
                        spoilValue(bad, rawKey, rawValue);
                    }
                    if (i % 8 == 1 && v == probe.highestSupportedVersion()) {
                        spoilKey(bad, rawKey, rawValue);
                    }
                }
            }
        }
        for (int type : new int[] {99, -1, 9, 18, 24, 32767}) {
            bad.add(new SimpleRecord(new byte[] {(byte) (type >> 8), (byte) type, 0}, new byte[2]));
        }
        write(topic + "-0", good);
        write(topic + "-1", bad);
        write(topic + "-2", List.of(good.get(0), new SimpleRecord(0, null, good.get(0).value() == null
            ? null : bytes(good.get(0).value())), good.get(1)));
    }

    static void spoilValue(List<SimpleRecord> bad, byte[] key, byte[] value) {
        bad.add(new SimpleRecord(key, null));
        bad.add(new SimpleRecord(key, new byte[0]));
        bad.add(new SimpleRecord(key, new byte[1]));
        bad.add(new SimpleRecord(key, Arrays.copyOf(value, value.length + 3)));
        for (int i = 0; i < 3; i++) {
            bad.add(new SimpleRecord(key, Arrays.copyOf(value, 2 + RANDOM.nextInt(value.length - 1))));
            bad.add(new SimpleRecord(key, mutated(value, 2)));
        }
        for (int version : new int[] {99, -1}) {
            byte[] other = value.clone();
            other[0] = (byte) (version >> 8);
            other[1] = (byte) version;
            bad.add(new SimpleRecord(key, other));
        }
    }

    static void spoilKey(List<SimpleRecord> bad, byte[] key, byte[] value) {
        bad.add(new SimpleRecord(new byte[0], value));
        bad.add(new SimpleRecord(new byte[1], value));
        bad.add(new SimpleRecord(Arrays.copyOf(key, key.length + 2), value));
        for (int i = 0; i < 3; i++) {
            bad.add(new SimpleRecord(Arrays.copyOf(key, 2 + RANDOM.nextInt(key.length - 2)), value));
            bad.add(new SimpleRecord(mutated(key, 2), value));
        }
    }

    static void writeMetadata(String topic, Object[] types) throws Exception {
        List<SimpleRecord> good = new ArrayList<>();
        List<SimpleRecord> bad = new ArrayList<>();
        for (Object type : types) {
            ApiMessage probe = (ApiMessage) call(type, "newMetadataRecord");
            for (short v = probe.lowestSupportedVersion(); v <= probe.highestSupportedVersion(); v++) {
                for (int i = 0; i < fillings + (topic.startsWith("__remote") ? 6 : 0); i++) {
                    ApiMessage value = (ApiMessage) call(type, "newMetadataRecord");
                    if (i > 0) {
                        fill(value, v, i);
                    }
                    if (i % 2 == 0 && i > 0) {
                        makeSensible(value);
                    }
                    byte[] raw = framed(value, v);
                    good.add(new SimpleRecord(raw));
                    if (i % 8 == 1) {
                        spoilMetadata(bad, raw);
                    }
                }
            }
        }
        bad.add(new SimpleRecord((byte[]) null));
        int[][] frames = {
            {}, {0}, {2}, {200, 1}, {0x80}, {1}, {1, 0x80}, {1, 2}, {1, 2, 0x80}, {1, 99, 0},
            {1, 0x80, 0x80, 4, 0}, {1, 2, 0x80, 0x80, 4}, {0x80, 0x80, 0x80, 0x80, 0x80},
            {1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0}, {1, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 2, 65},
            {0xff, 0xff, 0xff, 0xff, 0x0f}, {0x81, 0x80, 0x80, 0x80, 0x08, 2, 0},
        };
        for (int[] frame : frames) {
            byte[] raw = new byte[frame.length];
            for (int i = 0; i < raw.length; i++) {
                raw[i] = (byte) frame[i];
            }
            bad.add(new SimpleRecord(raw));
        }
        write(topic + "-0", good);
        write(topic + "-1", bad);
    }

    static void spoilMetadata(List<SimpleRecord> bad, byte[] value) {
        bad.add(new SimpleRecord(Arrays.copyOf(value, value.length + 3)));
        bad.add(new SimpleRecord(Arrays.copyOf(value, 3 + RANDOM.nextInt(value.length - 3))));
        for (int i = 0; i < 3; i++) {
            bad.add(new SimpleRecord(mutated(value, 3)));
        }
        byte[] newer = value.clone();
        newer[2] = 99;
        bad.add(new SimpleRecord(newer));
    }

    /** A field of random bytes, at random, from a place on. */
    static byte[] mutated(byte[] raw, int from) {
        byte[] changed = raw.clone();
        for (int i = 0; i <= RANDOM.nextInt(2); i++) {
            if (changed.length > from) {
                int[] values = {0, 0xff, 0x80, 1, 0x7f, RANDOM.nextInt(256)};
                changed[from + RANDOM.nextInt(changed.length - from)] =
                    (byte) values[RANDOM.nextInt(values.length)];
            }
        }
        return changed;
    }

    static byte[] framed(ApiMessage value, short version) {
        ApiMessageAndVersion message = new ApiMessageAndVersion(value, version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(FRAMES.recordSize(message, cache));
        FRAMES.write(message, cache, new ByteBufferAccessor(buffer));
        return buffer.array();
    }

    /** What Kafka's own classes of remote log metadata take: states, and offsets in order. */
    static void makeSensible(ApiMessage message) throws Exception {
        for (Field field : message.getClass().getDeclaredFields()) {
            field.setAccessible(true);
            if (field.getName().endsWith("State") && message.getClass().getName().contains("Remote")) {
                field.set(message, (byte) RANDOM.nextInt(3));
            } else if (field.getName().equals("startOffset")) {
                field.set(message, (long) RANDOM.nextInt(1000));
            } else if (field.getName().equals("endOffset")) {
                field.set(message, 1000L + RANDOM.nextInt(1000));
            }
        }
    }

    /** Set every field of a message, and of the structs in it, that this version can hold. */
    static void fill(Message message, short version, int round) throws Exception {
        fill(message, message, version, round);
    }

    static void fill(Message root, Message struct, short version, int round) throws Exception {
        for (Field field : struct.getClass().getDeclaredFields()) {
            String name = field.getName();
            if (Modifier.isStatic(field.getModifiers()) || name.equals("_unknownTaggedFields")
                    || name.equals("next") || name.equals("prev")) {
                continue;
            }
            field.setAccessible(true);
            if (RANDOM.nextInt(8) == 0) {
                continue;
            }
            Object before = field.get(struct);
            field.set(struct, value(field, round));
            if (RANDOM.nextInt(6) == 0 && !field.getType().isPrimitive()) {
                field.set(struct, null);
            }
            if (name.equals("protocolType")) {
                field.set(struct, "consumer");
            }
            if (!fits(root, version)) {
                field.set(struct, before);
            } else if (Collection.class.isAssignableFrom(field.getType())) {
                fillElements(root, field, struct, version, round, before);
            } else if (field.get(struct) instanceof Message inner) {
                fill(root, inner, version, round);
            }
        }
        if (RANDOM.nextInt(4) == 0) {
            List<RawTaggedField> unknown = struct.unknownTaggedFields();
            unknown.add(new RawTaggedField(100 + RANDOM.nextInt(1000), new byte[RANDOM.nextInt(4)]));
            if (!fits(root, version)) {
                unknown.clear();
            }
        }
    }

    @SuppressWarnings("unchecked")
    static void fillElements(Message root, Field field, Message struct, short version, int round,
            Object before) throws Exception {
        Collection<Object> elements = (Collection<Object>) field.get(struct);
        if (elements == null) {
            return;
        }
        int many = struct == root && RANDOM.nextInt(12) == 0 ? 130 : RANDOM.nextInt(4);
        Class<?> type = elementOf(field);
        if (Message.class.isAssignableFrom(type)) {
            many = Math.min(many, 3);
        }
        for (int i = 0; i < many; i++) {
            if (Message.class.isAssignableFrom(type)) {
                Message element = (Message) instance(type);
                elements.add(element);
                if (!fits(root, version)) {
                    field.set(struct, before);
                    return;
                }
                fill(root, element, version, round);
            } else {
                elements.add(value(type, field.getName()));
                if (!fits(root, version)) {
                    field.set(struct, before);
                    return;
                }
            }
        }
    }

    static Object value(Field field, int round) throws Exception {
        Class<?> type = field.getType();
        if (Collection.class.isAssignableFrom(type)) {
            return type == List.class ? new ArrayList<>() : instance(type);
        }
        if (Message.class.isAssignableFrom(type)) {
            return instance(type);
        }
        return value(type, field.getName());
    }

    static Object value(Class<?> type, String name) throws Exception {
        if (type == boolean.class) {
            return RANDOM.nextBoolean();
        }
        long[] numbers = {0, 1, -1, 42, Long.MAX_VALUE, Long.MIN_VALUE, 1700000000000L,
            Integer.MAX_VALUE, Integer.MIN_VALUE, 32767, -32768, 127, -128, RANDOM.nextLong()};
        long number = numbers[RANDOM.nextInt(numbers.length)];
        if (type == byte.class || type == Byte.class) {
            return (byte) number;
        }
        if (type == short.class || type == Short.class) {
            return (short) number;
        }
        if (type == int.class || type == Integer.class) {
            return name.equals("port") ? (int) (number & 0xffff) : (int) number;
        }
        if (type == long.class || type == Long.class) {
            return number;
        }
        if (type == double.class) {
            return DOUBLES[RANDOM.nextInt(DOUBLES.length)];
        }
        if (type == String.class) {
            return STRINGS[RANDOM.nextInt(STRINGS.length)];
        }
        if (type == Uuid.class) {
            return RANDOM.nextInt(4) == 0 ? Uuid.ZERO_UUID
                : new Uuid(RANDOM.nextLong(), RANDOM.nextLong());
        }
        if (type == byte[].class && name.equals("subscription")) {
            return protocol(new ConsumerProtocolSubscription());
        }
        if (type == byte[].class && name.equals("assignment")) {
            return protocol(new ConsumerProtocolAssignment());
        }
        byte[] bytes = new byte[RANDOM.nextInt(9)];
        RANDOM.nextBytes(bytes);
        return type == ByteBuffer.class ? (Object) ByteBuffer.wrap(bytes) : bytes;
    }

    /** A consumer's subscription or assignment, or something that only begins like one. */
    static byte[] protocol(Message message) throws Exception {
        short version = (short) RANDOM.nextInt(message.highestSupportedVersion() + 1);
        fill(message, version, 1);
        byte[] raw = bytes(MessageUtil.toVersionPrefixedByteBuffer(version, message));
        switch (RANDOM.nextInt(6)) {
            case 0:
                return Arrays.copyOf(raw, RANDOM.nextInt(raw.length));
            case 1:
                return Arrays.copyOf(raw, raw.length + 5);
            case 2:
                raw[1] = (byte) (RANDOM.nextBoolean() ? 9 : version);
                return raw;
            default:
                return raw;
        }
    }

    static boolean fits(Message message, short version) {
        try {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(buffer), cache, version);
            return true;
        } catch (RuntimeException e) {
            return false;
        }
    }

    static void write(String folder, List<SimpleRecord> records) throws Exception {
        File file = target.resolve(folder).resolve("00000000000000000000.log").toFile();
        Files.createDirectories(file.toPath().getParent());
        try (FileRecords log = FileRecords.open(file)) {
            int size = 64;
            for (int first = 0; first < records.size(); first += size) {
                SimpleRecord[] some = records.subList(first, Math.min(first + size, records.size()))
                    .stream().map(r -> new SimpleRecord(1700000000000L, r.key() == null ? null
                        : bytes(r.key()), r.value() == null ? null : bytes(r.value())))
                    .toArray(SimpleRecord[]::new);
                log.append(MemoryRecords.withRecords((byte) 2, first,
                    first % 128 == 0 ? Compression.NONE : Compression.lz4().build(),
                    TimestampType.CREATE_TIME, some));
            }
        }
    }

    static byte[] bytes(ByteBuffer buffer) {
        byte[] raw = new byte[buffer.remaining()];
        buffer.duplicate().get(raw);
        return raw;
    }

    static Object call(Object target, String method) throws Exception {
        return target.getClass().getMethod(method).invoke(target);
    }

    static Object instance(Class<?> type) throws Exception {
        var constructor = type.getDeclaredConstructor();
        constructor.setAccessible(true);
        return constructor.newInstance();
    }

    static Class<?> elementOf(Field field) {
        Type type = field.getGenericType();
        if (!(type instanceof ParameterizedType)) {
            type = field.getType().getGenericSuperclass();
        }
        return (Class<?>) ((ParameterizedType) type).getActualTypeArguments()[0];
    }
}
