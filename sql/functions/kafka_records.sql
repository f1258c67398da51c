-- signature: kafka_records(content [, columns [, mode]])
-- group: Segments
-- description: Returns the records of a log segment. An incomplete last batch and the zeros of a
--   preallocated file end the segment; any other damage raises an error that names the position.
--   Content and records share a row, so this function is for small segments: a row that needs more
--   heap than Spark has is refused. For larger segments use `kafka_log` or the data source.
-- content: BINARY, the bytes of a segment, as `binaryFile` loads them.
-- columns: STRING, the columns to decode, separated by commas. The other columns are NULL. Default:
--   all columns.
-- mode: STRING, `FAILFAST` (the default) raises an error at a damaged batch, `DROPMALFORMED` skips
--   it.
-- returns: ARRAY of STRUCT with the columns of a record except topic and partition, which the bytes
--   do not contain. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_log, kafka_record_batches, kafka_corruption

-- A row for each record.
-- X'': batch([Record(key=b"k", value=b"v"), Record(value=b"w")], base_offset=7)
SELECT offset, timestamp, key, value FROM (SELECT inline(kafka_records(
  X'000000000000000700000042000000000246E076B80000000000010000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF0000000210000000026B0276000E00000201027700'
)));

-- All columns. A header can have no value.
-- X'': batch([Record(b"k", b"v", [("h", b"1"), ("h", None)])],
--   producer_id=5, producer_epoch=0, base_sequence=9)
SELECT inline(kafka_records(
  X'0000000000000000000000410000000002571DBC850000000000000000018BCFE568000000018BCFE568000000000000000005000000000009000000011E000000026B02760402680231026801'
));

-- Decode two columns only.
-- X'': batch([Record(key=b"k", value=b"v"), Record(value=b"w")], base_offset=7)
SELECT kafka_records(
  X'000000000000000700000042000000000246E076B80000000000010000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF0000000210000000026B0276000E00000201027700',
  columns => 'offset, value'
).value AS `values`;

-- Transaction markers are also records.
-- X'': batch([Record(value=b"v")], producer_id=1, producer_epoch=0, base_sequence=0,
--   is_transactional=True)
-- X'': control_batch(0, base_offset=1, coordinator_epoch=3)
SELECT offset, controlType, coordinatorEpoch FROM (SELECT inline(kafka_records(
  X'00000000000000000000003900000000027AE9532C0010000000000000018BCFE568000000018BCFE568000000000000000001000000000000000000010E00000001027600' ||
  X'0000000000000001000000420000000002EF465CDD0030000000000000018BCFE568000000018BCFE5680000000000000000010000FFFFFFFF000000012000000008000000000C00000000000300'
)));

-- NULL for NULL. An empty segment has no records.
SELECT kafka_records(NULL) AS ofNull, kafka_records(X'') AS ofNothing;

-- An incomplete last batch ends the segment: a broker may be writing it.
-- X'': batch([Record(value=b"v")])
-- X'': batch([Record(value=b"cut")], base_offset=1)[:40]
SELECT kafka_records(
  X'0000000000000000000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600' ||
  X'00000000000000010000003B00000000022793AA510000000000000000018BCFE568000000018BCF'
).offset AS offsets;

-- Damage raises an error.
-- X'': batch([Record(value=b"v")])
-- X'': broken("wrong crc", base_offset=1)
SELECT kafka_records(
  X'0000000000000000000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600' ||
  X'0000000000000001000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
);

-- `DROPMALFORMED` skips the damaged batch.
-- X'': broken("wrong crc")
-- X'': batch([Record(value=b"v")], base_offset=3)
SELECT kafka_records(
  X'0000000000000000000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801' ||
  X'0000000000000003000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600',
  mode => 'DROPMALFORMED'
).offset AS offsets;

SELECT kafka_records(X'', columns => 'ofset');

SELECT kafka_records(X'', mode => 'PERMISSIVE');

-- `try_kafka_records` returns NULL instead of the error.
-- X'': broken("wrong crc")
SELECT try_kafka_records(
  X'0000000000000000000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
) AS damaged;
