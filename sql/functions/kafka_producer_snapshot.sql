-- signature: kafka_producer_snapshot(content)
-- description: Returns what a broker knew of idempotent and transactional producers at the offset
--   in the file's name. Its checksum has to hold.
-- content: BINARY, the bytes of a .snapshot file, as `binaryFile` loads them.
-- returns: ARRAY of STRUCT, the columns of the data source's kind producers but for what a path
--   says. NULL for NULL.
-- since: 0.1.0
-- see also: try_kafka_producer_snapshot, kafka_record_batches

-- One producer has a transaction open, since offset 3.
-- X'': producer_snapshot([Producer(9, last_offset=12, current_txn_first_offset=3), Producer(10)])
SELECT producerId, producerEpoch, currentTxnFirstOffset, lastOffset, lastTimestamp
FROM (SELECT inline(kafka_producer_snapshot(X'00012524612F000000020000000000000009000000000000000000000000000C000000000000018BCFE56800FFFFFFFF0000000000000003000000000000000A0000000000000000000000000000000000000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFF')));

-- A checksum that does not hold raises.
-- X'': producer_snapshot([Producer(9)], crc=1)
SELECT kafka_producer_snapshot(X'0001000000010000000100000000000000090000000000000000000000000000000000000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFF');

SELECT kafka_producer_snapshot(NULL) AS ofNull;
