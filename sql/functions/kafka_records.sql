-- signature: kafka_records(content [, columns [, mode]])
-- description: Returns the records of a log segment. An incomplete last batch and the zeros of a
--   preallocated file end it; damage raises an error that names the position. Content and records
--   share a row, which Spark limits to 2 GiB: larger segments are for `kafka_log` and for the data
--   source.
-- content: BINARY, the bytes of a segment, as `binaryFile` loads them.
-- columns: STRING, the columns to decode, separated by commas. The others are NULL. All by default.
-- mode: STRING, `FAILFAST` (the default) raises at a bad batch, `DROPMALFORMED` leaves it out.
-- returns: ARRAY of STRUCT, the columns of a record but for topic and partition, which bytes do not
--   tell. NULL for NULL.
-- since: 0.1.0
-- see also: try_kafka_records, kafka_log, kafka_record_batches

-- A row for each record.
-- X'': batch([Record(key=b"k", value=b"v"), Record(value=b"w")], base_offset=7)
SELECT offset, timestamp, key, value FROM (SELECT inline(kafka_records(
  X'000000000000000700000042000000000246E076B80000000000010000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF0000000210000000026B0276000E00000201027700'
)));

-- Every column there is. A header may have no value.
-- X'': batch([Record(b"k", b"v", [("h", b"1"), ("h", None)])],
--   producer_id=5, producer_epoch=0, base_sequence=9)
SELECT inline(kafka_records(
  X'0000000000000000000000410000000002571DBC850000000000000000018BCFE568000000018BCFE568000000000000000005000000000009000000011E000000026B02760402680231026801'
));

-- With columns, no more than these are decoded.
-- X'': batch([Record(key=b"k", value=b"v"), Record(value=b"w")], base_offset=7)
SELECT kafka_records(
  X'000000000000000700000042000000000246E076B80000000000010000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF0000000210000000026B0276000E00000201027700',
  columns => 'offset, value'
).value AS `values`;

-- Markers of transactions are records too.
-- X'': batch([Record(value=b"v")], producer_id=1, producer_epoch=0, base_sequence=0,
--   is_transactional=True)
-- X'': control_batch(0, base_offset=1, coordinator_epoch=3)
SELECT offset, controlType, coordinatorEpoch FROM (SELECT inline(kafka_records(
  X'00000000000000000000003900000000027AE9532C0010000000000000018BCFE568000000018BCFE568000000000000000001000000000000000000010E00000001027600' ||
  X'0000000000000001000000420000000002EF465CDD0030000000000000018BCFE568000000018BCFE5680000000000000000010000FFFFFFFF000000012000000008000000000C00000000000300'
)));

-- NULL in, NULL out. No bytes, no records.
SELECT kafka_records(NULL) AS ofNull, kafka_records(X'') AS ofNothing;

-- A batch that is not all there ends the log: a broker may just be writing it.
-- X'': batch([Record(value=b"v")])
-- X'': batch([Record(value=b"cut")], base_offset=1)[:40]
SELECT kafka_records(
  X'0000000000000000000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600' ||
  X'00000000000000010000003B00000000022793AA510000000000000000018BCFE568000000018BCF'
).offset AS offsets;

-- Damage raises.
-- X'': batch([Record(value=b"v")])
-- X'': broken("wrong crc", base_offset=1)
SELECT kafka_records(
  X'0000000000000000000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600' ||
  X'0000000000000001000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
);

-- Or, if you say so, is left out.
-- X'': broken("wrong crc")
-- X'': batch([Record(value=b"v")], base_offset=3)
SELECT kafka_records(
  X'0000000000000000000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801' ||
  X'0000000000000003000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600',
  mode => 'DROPMALFORMED'
).offset AS offsets;

SELECT kafka_records(X'', columns => 'ofset');

SELECT kafka_records(X'', mode => 'PERMISSIVE');
