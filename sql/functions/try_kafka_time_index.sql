-- signature: try_kafka_time_index(content, baseOffset)
-- description: Returns what `kafka_time_index` does, or NULL where that would raise because of
--   damage. What is wrong with a query still raises.
-- content: BINARY, the bytes of a .timeindex file, as `binaryFile` loads them.
-- baseOffset: BIGINT, the segment's base offset, which entries count from;
--   `kafka_log_path(path).baseOffset` gives it.
-- returns: ARRAY of `STRUCT<timestamp: TIMESTAMP, offset: BIGINT>`, as `kafka_time_index`. NULL for
--   damage, and for NULL.
-- since: 0.1.0
-- see also: kafka_time_index

-- What is not damaged is read.
-- X'': time_index([(1700000000000, 9), (1700000060000, 21)])
SELECT inline(try_kafka_time_index(X'0000018BCFE56800000000090000018BCFE6526000000015', 100));

-- A file that ends inside an entry.
-- X'': time_index([(1700000000000, 9)]) + b'torn'
SELECT try_kafka_time_index(X'0000018BCFE5680000000009746F726E', 0) AS damaged;

SELECT try_kafka_time_index(NULL, 0) AS ofNull;
