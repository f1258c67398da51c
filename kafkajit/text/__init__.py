"""Logs and the files beside them → the lines of kafka-dump-log.sh, or objects of JSON."""

# Kafka's decoder classes for keys and values, in the order of `line_codes.STRING` and so on.
DECODER_PACKAGE = "org.apache.kafka.tools.api"
DECODER_CLASSES = tuple(
    f"{DECODER_PACKAGE}.{name}Decoder" for name in ("String", "Long", "Integer", "Default")
)
# Our decoders for values with a schema, by the names that options have for them.
VALUE_DECODERS = ("avro", "protobuf", "json")
