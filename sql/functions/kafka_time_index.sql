-- signature: kafka_time_index(content, baseOffset)
-- description: Returns the entries of a .timeindex file: the largest timestamp so far, and whose
--   offset it is.
-- content: BINARY, the bytes of a .timeindex file, as `binaryFile` loads them.
-- baseOffset: BIGINT, the segment's base offset, which entries count from;
--   `kafka_log_path(path).baseOffset` gives it.
-- returns: ARRAY of `STRUCT<timestamp: TIMESTAMP, offset: BIGINT>`. NULL for NULL.
-- since: 0.1.0
-- see also: try_kafka_time_index, kafka_time_lookup, kafka_verify_time_index

-- X'': time_index([(1700000000000, 9), (1700000060000, 21)])
SELECT inline(kafka_time_index(X'0000018BCFE56800000000090000018BCFE6526000000015', 100));

-- A file that ends inside an entry raises.
-- X'': time_index([(1700000000000, 9)]) + b'torn'
SELECT kafka_time_index(X'0000018BCFE5680000000009746F726E', 0);

SELECT kafka_time_index(NULL, 0) AS ofNull;
