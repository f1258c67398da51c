-- signature: kafka_decode_remote_log_metadata(key, value)
-- description: Returns a record of `__remote_log_metadata` as JSON, which `from_json` and
--   `get_json_object` take apart. Kafka's tool prints Java's toString of it instead. Of a type or
--   version that is not known, the bytes are kept, in base64.
-- key: BINARY, the record's key, which is not looked at: what a record says is in its value.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, both the JSON that kafka-dump-log prints; key is
--   NULL. NULL where both are NULL.
-- since: 0.1.0
-- see also: try_kafka_decode_remote_log_metadata, kafka_decode_offsets

-- X'': b"\1\77\0"
SELECT record.* FROM (SELECT kafka_decode_remote_log_metadata(
  NULL,
  X'013F00'
) AS record);

-- What cannot be decoded raises.
-- X'': b"\2"
SELECT kafka_decode_remote_log_metadata(NULL, X'02');

SELECT kafka_decode_remote_log_metadata(NULL, NULL) AS ofNull;
