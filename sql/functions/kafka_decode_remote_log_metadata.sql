-- signature: kafka_decode_remote_log_metadata(key, value)
-- group: Internal topics
-- description: Returns a record of `__remote_log_metadata` as JSON. Read the JSON with `from_json`
--   or `get_json_object`. Kafka's own tool prints such a record as Java's toString instead. If a
--   type or a version is unknown, the result has the bytes in base64.
-- key: BINARY, the record's key, which is ignored: the value holds everything.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, value as JSON in the form of the other internal
--   topics; key is always NULL. NULL if both arguments are NULL.
-- since: 1.0.0
-- see also: kafka_decode_offsets

-- X'': b"\1\77\0"
SELECT record.* FROM (SELECT kafka_decode_remote_log_metadata(
  NULL,
  X'013F00'
) AS record);

-- A record that cannot be decoded raises an error.
-- X'': b"\2"
SELECT kafka_decode_remote_log_metadata(NULL, X'02');

SELECT kafka_decode_remote_log_metadata(NULL, NULL) AS ofNull;

-- `try_kafka_decode_remote_log_metadata` returns NULL instead of the error.
-- X'': b"\2"
SELECT try_kafka_decode_remote_log_metadata(NULL, X'02') AS damaged;
