-- signature: kafka_transaction_index(content)
-- group: Indexes
-- description: Returns the entries of a .txnindex file: the aborted transactions that end in a
--   segment.
-- content: BINARY, the bytes of a .txnindex file, as `binaryFile` loads them.
-- returns: ARRAY of `STRUCT<producerId: BIGINT, firstOffset: BIGINT, lastOffset: BIGINT,
--   lastStableOffset: BIGINT>`. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_offset_index, kafka_producer_snapshot

-- Producer 4711 began a transaction at offset 23. Its marker is at offset 25.
-- X'': transaction_index([(4711, 23, 25, 26)])
SELECT inline(kafka_transaction_index(X'0000000000000000126700000000000000170000000000000019000000000000001A'));

-- An incomplete entry at the end raises an error.
-- X'': transaction_index([(4711, 23, 25, 26)])[:33]
SELECT kafka_transaction_index(X'000000000000000012670000000000000017000000000000001900000000000000');

SELECT kafka_transaction_index(NULL) AS ofNull;

-- `try_kafka_transaction_index` returns NULL instead of the error.
-- X'': transaction_index([(4711, 23, 25, 26)])[:33]
SELECT try_kafka_transaction_index(X'000000000000000012670000000000000017000000000000001900000000000000') AS damaged;
