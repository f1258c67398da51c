-- signature: kafka_decode_transaction_state(key, value)
-- group: Internal topics
-- description: Returns a record of `__transaction_state` as JSON. Read the JSON with `from_json` or
--   `get_json_object`. The states are 0 Empty, 1 Ongoing, 2 PrepareCommit, 3 PrepareAbort, 4
--   CompleteCommit and 5 CompleteAbort. If a type or a version is unknown, the result has the bytes
--   in base64.
-- key: BINARY, the record's key.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, each the JSON that kafka-dump-log prints. NULL if
--   both arguments are NULL.
-- since: 1.0.0
-- see also: kafka_decode_offsets, kafka_transaction_index

-- X'': b"\0\0" + b"\0\7billing"
-- X'': b"\0\0" + bytes(6) + b"\x12\x67" + bytes(2) + b"\0\0\xea\x60" + b"\1" + b"\0\0\0\1" + b"\0\6orders" + b"\0\0\0\1" + bytes(4) + bytes(16)
SELECT record.* FROM (SELECT kafka_decode_transaction_state(
  X'0000000762696C6C696E67',
  X'0000000000000000126700000000EA60010000000100066F7264657273000000010000000000000000000000000000000000000000'
) AS record);

-- A tombstone.
-- X'': b"\0\0" + b"\0\7billing"
SELECT record.* FROM (SELECT kafka_decode_transaction_state(X'0000000762696C6C696E67', NULL) AS record);

-- A record that cannot be decoded raises an error.
-- X'': b"\0\0" + b"\0\7bil"
-- X'': b"\0\0"
SELECT kafka_decode_transaction_state(X'0000000762696C', X'0000');

SELECT kafka_decode_transaction_state(NULL, NULL) AS ofNull;

-- `try_kafka_decode_transaction_state` returns NULL instead of the error.
-- X'': b"\0\0" + b"\0\7bil"
-- X'': b"\0\0"
SELECT try_kafka_decode_transaction_state(X'0000000762696C', X'0000') AS damaged;
