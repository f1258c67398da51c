-- signature: try_kafka_decode_remote_log_metadata(key, value)
-- description: Returns a record of `__remote_log_metadata` as JSON, or NULL where it cannot be
--   decoded.
-- key: BINARY, the record's key, which is not looked at: what a record says is in its value.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, as `kafka_decode_remote_log_metadata`. NULL for
--   damage, and where both are NULL.
-- since: 0.1.0
-- see also: kafka_decode_remote_log_metadata

-- X'': b"\1\77\0"
SELECT record.* FROM (SELECT try_kafka_decode_remote_log_metadata(
  NULL,
  X'013F00'
) AS record);

-- What cannot be decoded.
-- X'': b"\2"
SELECT try_kafka_decode_remote_log_metadata(NULL, X'02') AS damaged;

SELECT try_kafka_decode_remote_log_metadata(NULL, NULL) AS ofNull;
