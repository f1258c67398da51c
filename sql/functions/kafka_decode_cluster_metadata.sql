-- signature: kafka_decode_cluster_metadata(key, value)
-- description: Returns a record of `__cluster_metadata` as JSON, which `from_json` and
--   `get_json_object` take apart.  Of a type or version that is not known, the bytes are kept, in
--   base64.
-- key: BINARY, the record's key, which is not looked at: what a record says is in its value.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, both the JSON that kafka-dump-log prints; key is
--   NULL. NULL where both are NULL.
-- since: 0.1.0
-- see also: try_kafka_decode_cluster_metadata, kafka_decode_offsets

-- X'': b"\1\2\0\7orders" + bytes(15) + b"\1\0"
SELECT record.* FROM (SELECT kafka_decode_cluster_metadata(
  NULL,
  X'010200076F72646572730000000000000000000000000000000100'
) AS record);

-- What cannot be decoded raises.
-- X'': b"\1\2\0\7ord"
SELECT kafka_decode_cluster_metadata(NULL, X'010200076F7264');

SELECT kafka_decode_cluster_metadata(NULL, NULL) AS ofNull;
