-- signature: try_kafka_records(content [, columns [, mode]])
-- description: Returns the records of a log segment, or NULL where `kafka_records` would raise
--   because of damage. What is wrong with a query still raises.
-- content: BINARY, the bytes of a segment, as `binaryFile` loads them.
-- columns: STRING, the columns to decode, separated by commas. The others are NULL. All by default.
-- mode: STRING, as for `kafka_records`.
-- returns: ARRAY of STRUCT, as `kafka_records`. NULL for damage, and for NULL.
-- since: 0.1.0
-- see also: kafka_records, kafka_log

-- What is not damaged is read.
-- X'': batch([Record(key=b"k", value=b"v"), Record(value=b"w")], base_offset=7)
SELECT try_kafka_records(
  X'000000000000000700000042000000000246E076B80000000000010000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF0000000210000000026B0276000E00000201027700'
).offset AS offsets;

-- A checksum that does not hold, and records that end too early.
-- X'': broken("wrong crc")
-- X'': broken("too few records")
SELECT
  try_kafka_records(
    X'0000000000000000000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
  ) AS wrongCrc,
  try_kafka_records(
    X'000000000000000000000073000000000234A2802A0000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000042A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
  ) AS tooFewRecords;

-- What is not asked for is not all looked at, but checksums always are.
-- X'': broken("wrong crc")
SELECT try_kafka_records(
  X'0000000000000000000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801',
  columns => 'offset'
) AS wrongCrc;

SELECT try_kafka_records(X'', columns => 'ofset');

SELECT try_kafka_records(NULL) AS ofNull;
