-- signature: kafka_decode_offsets(key, value)
-- description: Returns a record of `__consumer_offsets` as JSON, which `from_json` and
--   `get_json_object` take apart. Keys say which message it is: a commit (0, 1), a group's metadata
--   (2) and more. Of a type or version that is not known, the bytes are kept, in base64.
-- key: BINARY, the record's key.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, both the JSON that kafka-dump-log prints. NULL
--   where both are NULL.
-- since: 0.1.0
-- see also: try_kafka_decode_offsets, kafka_decode_transaction_state

-- X'': b"\0\1" + b"\0\5group" + b"\0\6orders" + bytes(4)
-- X'': b"\0\3" + bytes(7) + b"\x2a" + bytes(14)
SELECT record.* FROM (SELECT kafka_decode_offsets(
  X'0001000567726F757000066F726465727300000000',
  X'0003000000000000002A0000000000000000000000000000'
) AS record);

-- A tombstone.
-- X'': b"\0\1" + b"\0\5group" + b"\0\6orders" + bytes(4)
SELECT record.* FROM (SELECT kafka_decode_offsets(X'0001000567726F757000066F726465727300000000', NULL) AS record);

-- What cannot be decoded raises.
-- X'': b"\0\1" + b"\0\5gro"
-- X'': b"\0\3"
SELECT kafka_decode_offsets(X'0001000567726F', X'0003');

SELECT kafka_decode_offsets(NULL, NULL) AS ofNull;
