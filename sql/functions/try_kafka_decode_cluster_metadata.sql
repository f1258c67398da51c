-- signature: try_kafka_decode_cluster_metadata(key, value)
-- description: Returns a record of `__cluster_metadata` as JSON, or NULL where it cannot be
--   decoded.
-- key: BINARY, the record's key, which is not looked at: what a record says is in its value.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, as `kafka_decode_cluster_metadata`. NULL for
--   damage, and where both are NULL.
-- since: 0.1.0
-- see also: kafka_decode_cluster_metadata

-- X'': b"\1\2\0\7orders" + bytes(15) + b"\1\0"
SELECT record.* FROM (SELECT try_kafka_decode_cluster_metadata(
  NULL,
  X'010200076F72646572730000000000000000000000000000000100'
) AS record);

-- What cannot be decoded.
-- X'': b"\1\2\0\7ord"
SELECT try_kafka_decode_cluster_metadata(NULL, X'010200076F7264') AS damaged;

SELECT try_kafka_decode_cluster_metadata(NULL, NULL) AS ofNull;
