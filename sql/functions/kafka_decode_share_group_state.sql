-- signature: kafka_decode_share_group_state(key, value)
-- group: Internal topics
-- description: Returns a record of `__share_group_state` as JSON. Read the JSON with `from_json` or
--   `get_json_object`. If a type or a version is unknown, the result has the bytes in base64.
-- key: BINARY, the record's key.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, each the JSON that kafka-dump-log prints. NULL if
--   both arguments are NULL.
-- since: 1.0.0
-- see also: kafka_decode_offsets

-- X'': b"\0\0" + b"\0\5group" + bytes(15) + b"\1" + bytes(4)
-- X'': b"\0\0" + bytes(20)
SELECT record.* FROM (SELECT kafka_decode_share_group_state(
  X'0000000567726F75700000000000000000000000000000000100000000',
  X'00000000000000000000000000000000000000000000'
) AS record);

-- A tombstone.
-- X'': b"\0\0" + b"\0\5group" + bytes(15) + b"\1" + bytes(4)
SELECT record.* FROM (SELECT kafka_decode_share_group_state(X'0000000567726F75700000000000000000000000000000000100000000', NULL) AS record);

-- A record that cannot be decoded raises an error.
-- X'': b"\0"
-- X'': b"\0\0"
SELECT kafka_decode_share_group_state(X'00', X'0000');

SELECT kafka_decode_share_group_state(NULL, NULL) AS ofNull;

-- `try_kafka_decode_share_group_state` returns NULL instead of the error.
-- X'': b"\0"
-- X'': b"\0\0"
SELECT try_kafka_decode_share_group_state(X'00', X'0000') AS damaged;
