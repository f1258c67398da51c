-- signature: try_kafka_decode_share_group_state(key, value)
-- description: Returns a record of `__share_group_state` as JSON, or NULL where it cannot be
--   decoded.
-- key: BINARY, the record's key.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, as `kafka_decode_share_group_state`. NULL for
--   damage, and where both are NULL.
-- since: 0.1.0
-- see also: kafka_decode_share_group_state

-- X'': b"\0\0" + b"\0\5group" + bytes(15) + b"\1" + bytes(4)
-- X'': b"\0\0" + bytes(20)
SELECT record.* FROM (SELECT try_kafka_decode_share_group_state(
  X'0000000567726F75700000000000000000000000000000000100000000',
  X'00000000000000000000000000000000000000000000'
) AS record);

-- What cannot be decoded.
-- X'': b"\0"
-- X'': b"\0\0"
SELECT try_kafka_decode_share_group_state(X'00', X'0000') AS damaged;

SELECT try_kafka_decode_share_group_state(NULL, NULL) AS ofNull;
