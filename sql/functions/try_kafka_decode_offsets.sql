-- signature: try_kafka_decode_offsets(key, value)
-- description: Returns a record of `__consumer_offsets` as JSON, or NULL where it cannot be
--   decoded.
-- key: BINARY, the record's key.
-- value: BINARY, the record's value.
-- returns: `STRUCT<key: STRING, value: STRING>`, as `kafka_decode_offsets`. NULL for damage, and
--   where both are NULL.
-- since: 0.1.0
-- see also: kafka_decode_offsets

-- X'': b"\0\1" + b"\0\5group" + b"\0\6orders" + bytes(4)
-- X'': b"\0\3" + bytes(7) + b"\x2a" + bytes(14)
SELECT record.* FROM (SELECT try_kafka_decode_offsets(
  X'0001000567726F757000066F726465727300000000',
  X'0003000000000000002A0000000000000000000000000000'
) AS record);

-- What cannot be decoded.
-- X'': b"\0\1" + b"\0\5gro"
-- X'': b"\0\3"
SELECT try_kafka_decode_offsets(X'0001000567726F', X'0003') AS damaged;

SELECT try_kafka_decode_offsets(NULL, NULL) AS ofNull;
