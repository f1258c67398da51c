-- signature: kafka_encode_batch(records [, options])
-- group: Writing
-- description: Returns records as a record batch, byte for byte as it is stored in a log. Records
--   that name their batches (column baseOffset, as `kafka_records` returns it) keep them, so that a
--   whole segment comes out as it was. Other records become one batch, unless producerId or another
--   column of the batch changes from one record to the next, or the options set batchSize.
-- records: ARRAY of STRUCT with columns of a record: key, value, headers, offset, timestamp and the
--   others that `kafka_records` returns. All are optional. A column that is NULL in all records is
--   ignored.
-- options: MAP of STRING to STRING with compressionType (none, gzip, snappy, lz4 or zstd),
--   compressionLevel, batchSize, batchRecords, magic, and values for all records: baseOffset,
--   timestamp (in milliseconds), timestampType (0 or 1), partitionLeaderEpoch, producerId,
--   producerEpoch, baseSequence, isTransactional, controlType, coordinatorEpoch, deleteHorizonMs.
-- returns: BINARY. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_records, kafka_partition

-- A batch of two records.
SELECT hex(kafka_encode_batch(
  array(named_struct('key', 'a', 'value', 'v'), named_struct('key', 'b', 'value', 'w')),
  map('baseOffset', '7', 'timestamp', '1700000000000')
)) AS batch;

-- Compressed batches of 60 records, and their headers.
SELECT baseOffset, lastOffset, recordsCount, compressionType, isValid FROM (
  SELECT inline(kafka_record_batches(kafka_encode_batch(
    collect_list(named_struct('offset', id, 'key', string(id), 'value', repeat('x', 100))),
    map('compressionType', 'zstd', 'batchRecords', '60')
  ))) FROM range(100)
);

-- Records that were read are written back unchanged.
-- X'': batch([Record(b"k", b"v", [("h", b"1"), ("h", None)])],
--   producer_id=5, producer_epoch=0, base_sequence=9)
SELECT kafka_encode_batch(kafka_records(content)) = content AS isSame FROM VALUES (
  X'0000000000000000000000410000000002571DBC850000000000000000018BCFE568000000018BCFE568000000000000000005000000000009000000011E000000026B02760402680231026801'
) AS log(content);

-- A transaction marker needs only its type.
SELECT offset, producerId, controlType, coordinatorEpoch, isTransactional FROM (
  SELECT inline(kafka_records(kafka_encode_batch(
    array(named_struct('offset', 4711L, 'controlType', 'ABORT', 'coordinatorEpoch', 3)),
    map('producerId', '9', 'producerEpoch', '0')
  )))
);

-- NULL stays NULL. An empty array becomes zero bytes.
SELECT kafka_encode_batch(NULL) AS ofNull, length(kafka_encode_batch(kafka_records(X''))) AS ofNothing;

-- Offsets must increase from record to record.
SELECT kafka_encode_batch(array(named_struct('offset', 2), named_struct('offset', 1)));

SELECT kafka_encode_batch(array(named_struct('key', 'k')), map('codec', 'zstd'));

SELECT kafka_encode_batch(array(named_struct('ofset', 1)));

-- `try_kafka_encode_batch` returns NULL if the records cannot be written.
SELECT try_kafka_encode_batch(array(named_struct('offset', 2), named_struct('offset', 1))) AS invalid;
