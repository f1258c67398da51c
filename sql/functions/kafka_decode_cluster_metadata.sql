-- signature: kafka_decode_cluster_metadata(key, value)
-- group: Internal topics
-- description: Returns a record of `__cluster_metadata` as JSON. Read the JSON with `from_json` or
--   `get_json_object`. If a type or a version is unknown, the result has the bytes in base64.
-- key: BINARY, the record's key, which is ignored: the value holds everything.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, each the JSON that kafka-dump-log prints; key is
--   always NULL. NULL if both arguments are NULL.
-- since: 1.0.0
-- see also: kafka_decode_offsets, kafka_quorum_state

-- X'': b"\1\2\0\7orders" + bytes(15) + b"\1\0"
SELECT record.* FROM (SELECT kafka_decode_cluster_metadata(
  NULL,
  X'010200076F72646572730000000000000000000000000000000100'
) AS record);

-- A record that cannot be decoded raises an error.
-- X'': b"\1\2\0\7ord"
SELECT kafka_decode_cluster_metadata(NULL, X'010200076F7264');

SELECT kafka_decode_cluster_metadata(NULL, NULL) AS ofNull;

-- `try_kafka_decode_cluster_metadata` returns NULL instead of the error.
-- X'': b"\1\2\0\7ord"
SELECT try_kafka_decode_cluster_metadata(NULL, X'010200076F7264') AS damaged;
