-- signature: try_kafka_producer_snapshot(content)
-- description: Returns what `kafka_producer_snapshot` does, or NULL where that would raise because
--   of damage. What is wrong with a query still raises.
-- content: BINARY, the bytes of a .snapshot file, as `binaryFile` loads them.
-- returns: ARRAY of STRUCT, as `kafka_producer_snapshot`. NULL for damage, and for NULL.
-- since: 0.1.0
-- see also: kafka_producer_snapshot

-- What is not damaged is read.
-- X'': producer_snapshot([Producer(9, last_offset=12, current_txn_first_offset=3), Producer(10)])
SELECT producerId, producerEpoch, currentTxnFirstOffset, lastOffset, lastTimestamp
FROM (SELECT inline(try_kafka_producer_snapshot(X'00012524612F000000020000000000000009000000000000000000000000000C000000000000018BCFE56800FFFFFFFF0000000000000003000000000000000A0000000000000000000000000000000000000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFF')));

-- A checksum that does not hold.
-- X'': producer_snapshot([Producer(9)], crc=1)
SELECT try_kafka_producer_snapshot(X'0001000000010000000100000000000000090000000000000000000000000000000000000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFF') AS damaged;

SELECT try_kafka_producer_snapshot(NULL) AS ofNull;
