-- signature: kafka_decode_share_group_state(key, value)
-- description: Returns a record of `__share_group_state` as JSON, which `from_json` and
--   `get_json_object` take apart.  Of a type or version that is not known, the bytes are kept, in
--   base64.
-- key: BINARY, the record's key.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, both the JSON that kafka-dump-log prints. NULL
--   where both are NULL.
-- since: 0.1.0
-- see also: try_kafka_decode_share_group_state, kafka_decode_offsets

-- X'': b"\0\0" + b"\0\5group" + bytes(15) + b"\1" + bytes(4)
-- X'': b"\0\0" + bytes(20)
SELECT record.* FROM (SELECT kafka_decode_share_group_state(
  X'0000000567726F75700000000000000000000000000000000100000000',
  X'00000000000000000000000000000000000000000000'
) AS record);

-- A tombstone.
-- X'': b"\0\0" + b"\0\5group" + bytes(15) + b"\1" + bytes(4)
SELECT record.* FROM (SELECT kafka_decode_share_group_state(X'0000000567726F75700000000000000000000000000000000100000000', NULL) AS record);

-- What cannot be decoded raises.
-- X'': b"\0"
-- X'': b"\0\0"
SELECT kafka_decode_share_group_state(X'00', X'0000');

SELECT kafka_decode_share_group_state(NULL, NULL) AS ofNull;
