"""What kafka-dump-log.sh prints: logs and the files beside them → lines, or objects of JSON."""

# Kafka's classes that keys and values are decoded with, in the order of `lines.STRING` and so on.
DECODER_PACKAGE = "org.apache.kafka.tools.api"
DECODER_CLASSES = tuple(
    f"{DECODER_PACKAGE}.{name}Decoder" for name in ("String", "Long", "Integer", "Default")
)
