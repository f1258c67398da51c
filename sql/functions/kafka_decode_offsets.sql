-- signature: kafka_decode_offsets(key, value)
-- group: Internal topics
-- description: Returns a record of `__consumer_offsets` as JSON. Read the JSON with `from_json` or
--   `get_json_object`. The type in the key identifies the message: a commit (0, 1), a group's
--   metadata (2) and others. If a type or a version is unknown, the result has the bytes in base64.
-- key: BINARY, the record's key.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, each the JSON that kafka-dump-log prints. NULL if
--   both arguments are NULL.
-- since: 1.0.0
-- see also: kafka_decode_transaction_state, kafka_decode_share_group_state

-- X'': b"\0\1" + b"\0\5group" + b"\0\6orders" + bytes(4)
-- X'': b"\0\3" + bytes(7) + b"\x2a" + bytes(14)
SELECT record.* FROM (SELECT kafka_decode_offsets(
  X'0001000567726F757000066F726465727300000000',
  X'0003000000000000002A0000000000000000000000000000'
) AS record);

-- A tombstone.
-- X'': b"\0\1" + b"\0\5group" + b"\0\6orders" + bytes(4)
SELECT record.* FROM (SELECT kafka_decode_offsets(X'0001000567726F757000066F726465727300000000', NULL) AS record);

-- A record that cannot be decoded raises an error.
-- X'': b"\0\1" + b"\0\5gro"
-- X'': b"\0\3"
SELECT kafka_decode_offsets(X'0001000567726F', X'0003');

SELECT kafka_decode_offsets(NULL, NULL) AS ofNull;

-- `try_kafka_decode_offsets` returns NULL instead of the error.
-- X'': b"\0\1" + b"\0\5gro"
-- X'': b"\0\3"
SELECT try_kafka_decode_offsets(X'0001000567726F', X'0003') AS damaged;
