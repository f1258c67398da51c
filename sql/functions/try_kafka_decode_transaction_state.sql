-- signature: try_kafka_decode_transaction_state(key, value)
-- description: Returns a record of `__transaction_state` as JSON, or NULL where it cannot be
--   decoded.
-- key: BINARY, the record's key.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, as `kafka_decode_transaction_state`. NULL for
--   damage, and where both are NULL.
-- since: 0.1.0
-- see also: kafka_decode_transaction_state

-- X'': b"\0\0" + b"\0\7billing"
-- X'': b"\0\0" + bytes(6) + b"\x12\x67" + bytes(2) + b"\0\0\xea\x60" + b"\1" + b"\0\0\0\1" + b"\0\6orders" + b"\0\0\0\1" + bytes(4) + bytes(16)
SELECT record.* FROM (SELECT try_kafka_decode_transaction_state(
  X'0000000762696C6C696E67',
  X'0000000000000000126700000000EA60010000000100066F7264657273000000010000000000000000000000000000000000000000'
) AS record);

-- What cannot be decoded.
-- X'': b"\0\0" + b"\0\7bil"
-- X'': b"\0\0"
SELECT try_kafka_decode_transaction_state(X'0000000762696C', X'0000') AS damaged;

SELECT try_kafka_decode_transaction_state(NULL, NULL) AS ofNull;
