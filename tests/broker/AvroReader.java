import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.util.Utf8;

/**
 * Avro's own reader, for avro_differential.py.
 *
 * <p>In: lines of JSON {"writer": schema, "reader": schema or null, "values": [hex]}. Out: for each
 * line an array with the datum of each value or {"error": why}; or one {"error": why} if a schema
 * cannot be parsed. A datum of a union is [name of the branch, datum]; text, bytes and fixed are hex,
 * floats and doubles the hex of their bits, longs and enums text, maps objects whose keys are hex.
 */
public class AvroReader {
    static final ObjectMapper MAPPER = new ObjectMapper();
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(MAPPER.writeValueAsString(answer(MAPPER.readTree(line))));
            out.flush();
        }
    }

    static JsonNode answer(JsonNode asked) {
        GenericDatumReader<Object> reader;
        Schema schema;
        try {
            Schema writer = parsed(asked.get("writer"));
            schema = asked.get("reader").isNull() ? writer : parsed(asked.get("reader"));
            reader = new GenericDatumReader<>(writer, schema);
        } catch (Exception e) {
            return error(e);
        }
        ArrayNode data = MAPPER.createArrayNode();
        for (JsonNode value : asked.get("values")) {
            try {
                BinaryDecoder decoder =
                    DecoderFactory.get().binaryDecoder(HEX.parseHex(value.textValue()), null);
                Object datum = reader.read(null, decoder);
                data.add(decoder.isEnd() ? json(datum, schema) : text("bytes are left"));
            } catch (Exception | StackOverflowError e) {
                data.add(error(e));
                // After an error its decoder is in the middle of a value.
                reader = new GenericDatumReader<>(parsed(asked.get("writer")), schema);
            }
        }
        return data;
    }

    static Schema parsed(JsonNode schema) {
        return new Schema.Parser().parse(schema.toString());
    }

    static ObjectNode text(String why) {
        return MAPPER.createObjectNode().put("error", why);
    }

    static ObjectNode error(Throwable why) {
        return text(why.getClass().getSimpleName() + ": " + why.getMessage());
    }

    static JsonNode json(Object datum, Schema schema) {
        switch (schema.getType()) {
            case UNION:
                Schema branch =
                    schema.getTypes().get(GenericData.get().resolveUnion(schema, datum));
                return MAPPER.createArrayNode().add(branch.getFullName()).add(json(datum, branch));
            case RECORD:
                ObjectNode record = MAPPER.createObjectNode();
                for (Schema.Field field : schema.getFields()) {
                    Object inside = ((IndexedRecord) datum).get(field.pos());
                    record.set(field.name(), json(inside, field.schema()));
                }
                return record;
            case ARRAY:
                ArrayNode array = MAPPER.createArrayNode();
                for (Object item : (Collection<?>) datum) {
                    array.add(json(item, schema.getElementType()));
                }
                return array;
            case MAP:
                ObjectNode map = MAPPER.createObjectNode();
                for (Map.Entry<?, ?> entry : ((Map<?, ?>) datum).entrySet()) {
                    map.set(hex((Utf8) entry.getKey()), json(entry.getValue(), schema.getValueType()));
                }
                return map;
            case STRING:
                return MAPPER.valueToTree(hex((Utf8) datum));
            case BYTES:
                ByteBuffer bytes = ((ByteBuffer) datum).duplicate();
                byte[] content = new byte[bytes.remaining()];
                bytes.get(content);
                return MAPPER.valueToTree(HEX.formatHex(content));
            case FIXED:
                return MAPPER.valueToTree(HEX.formatHex(((GenericFixed) datum).bytes()));
            case FLOAT:
                return MAPPER.valueToTree(
                    HEX.toHexDigits(Float.floatToRawIntBits((Float) datum)));
            case DOUBLE:
                return MAPPER.valueToTree(
                    HEX.toHexDigits(Double.doubleToRawLongBits((Double) datum)));
            case LONG:
            case ENUM:
                return MAPPER.valueToTree(datum.toString());
            default:
                return MAPPER.valueToTree(datum);
        }
    }

    static String hex(Utf8 text) {
        return HEX.formatHex(Arrays.copyOf(text.getBytes(), text.getByteLength()));
    }
}
