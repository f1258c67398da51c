-- signature: kafka_record_batches(content)
-- group: Segments
-- description: Returns the headers of the record batches of a log segment. It decompresses nothing:
--   it raises an error only if the length of a batch is damaged. `isValid` is true if a batch's
--   checksum is right.
-- content: BINARY, the bytes of a segment, as `binaryFile` loads them.
-- returns: ARRAY of STRUCT with the columns of a batch except topic, partition and path, which the
--   bytes do not contain. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_records, kafka_valid_bytes

-- A row for each batch.
-- X'': batch([Record(value=b"v"), Record(value=b"w")], base_offset=7)
-- X'': control_batch(1, base_offset=9, producer_id=5)
SELECT baseOffset, lastOffset, recordsCount, isControlBatch, position, sizeInBytes
FROM (SELECT inline(kafka_record_batches(
  X'0000000000000007000000410000000002497A433D0000000000010000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000020E000000010276000E00000201027700' ||
  X'0000000000000009000000420000000002AC11E33E0030000000000000018BCFE568000000018BCFE5680000000000000000050000FFFFFFFF000000012000000008000000010C00000000000000'
)));

-- All columns.
-- X'': batch([Record(value=b"v")], codec="lz4", producer_id=5, producer_epoch=0,
--   base_sequence=2147483647)
SELECT inline(kafka_record_batches(
  X'00000000000000000000004800000000024B92E9840003000000000000018BCFE568000000018BCFE56800000000000000000500007FFFFFFF0000000104224D18604082080000800E0000000102760000000000'
));

-- A wrong checksum is reported and does not raise an error.
-- X'': broken("wrong crc")
SELECT isValid, crc FROM (SELECT inline(kafka_record_batches(
  X'0000000000000000000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
)));

-- A length that no batch can have raises an error.
-- X'': broken("batch shorter than an entry")
SELECT kafka_record_batches(
  X'00000000000000000000000D00000000024CD95F4F0000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
);

SELECT kafka_record_batches(NULL) AS ofNull, kafka_record_batches(X'') AS ofNothing;

-- `try_kafka_record_batches` returns NULL instead of the error.
-- X'': broken("batch shorter than an entry")
SELECT try_kafka_record_batches(
  X'00000000000000000000000D00000000024CD95F4F0000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
) AS damaged;
