-- signature: kafka_producer_snapshot(content)
-- group: Snapshots, checkpoints and metadata
-- description: Returns the idempotent and transactional producers that a broker knew at the offset
--   in the name of a .snapshot file. The file's checksum must be right.
-- content: BINARY, the bytes of a .snapshot file, as `binaryFile` loads them.
-- returns: ARRAY of STRUCT with the columns of the data source's kind `producers` except those that
--   come from the path. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_transaction_index, kafka_record_batches

-- Producer 9 has had a transaction open since offset 3.
-- X'': producer_snapshot([Producer(9, last_offset=12, current_txn_first_offset=3), Producer(10)])
SELECT producerId, producerEpoch, currentTxnFirstOffset, lastOffset, lastTimestamp
FROM (SELECT inline(kafka_producer_snapshot(X'00012524612F000000020000000000000009000000000000000000000000000C000000000000018BCFE56800FFFFFFFF0000000000000003000000000000000A0000000000000000000000000000000000000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFF')));

-- A wrong checksum raises an error.
-- X'': producer_snapshot([Producer(9)], crc=1)
SELECT kafka_producer_snapshot(X'0001000000010000000100000000000000090000000000000000000000000000000000000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFF');

SELECT kafka_producer_snapshot(NULL) AS ofNull;

-- `try_kafka_producer_snapshot` returns NULL instead of the error.
-- X'': producer_snapshot([Producer(9)], crc=1)
SELECT try_kafka_producer_snapshot(X'0001000000010000000100000000000000090000000000000000000000000000000000000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFF') AS damaged;
