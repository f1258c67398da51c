-- signature: try_kafka_transaction_index(content)
-- description: Returns what `kafka_transaction_index` does, or NULL where that would raise because
--   of damage. What is wrong with a query still raises.
-- content: BINARY, the bytes of a .txnindex file, as `binaryFile` loads them.
-- returns: ARRAY of `STRUCT<producerId: BIGINT, firstOffset: BIGINT, lastOffset: BIGINT,
--   lastStableOffset: BIGINT>`, as `kafka_transaction_index`. NULL for damage, and for NULL.
-- since: 0.1.0
-- see also: kafka_transaction_index

-- What is not damaged is read.
-- X'': transaction_index([(4711, 23, 25, 26)])
SELECT inline(try_kafka_transaction_index(X'0000000000000000126700000000000000170000000000000019000000000000001A'));

-- A file that ends inside an entry.
-- X'': transaction_index([(4711, 23, 25, 26)])[:33]
SELECT try_kafka_transaction_index(X'000000000000000012670000000000000017000000000000001900000000000000') AS damaged;

SELECT try_kafka_transaction_index(NULL) AS ofNull;
