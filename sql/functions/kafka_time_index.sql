-- signature: kafka_time_index(content, baseOffset)
-- group: Indexes
-- description: Returns the entries of a .timeindex file: the largest timestamp so far, and the
--   offset of its record.
-- content: BINARY, the bytes of a .timeindex file, as `binaryFile` loads them.
-- baseOffset: BIGINT, the segment's base offset, which the entries are relative to;
--   `kafka_log_path(path).baseOffset` returns it.
-- returns: ARRAY of `STRUCT<timestamp: TIMESTAMP, offset: BIGINT>`. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_time_lookup, kafka_verify_time_index

-- X'': time_index([(1700000000000, 9), (1700000060000, 21)])
SELECT inline(kafka_time_index(X'0000018BCFE56800000000090000018BCFE6526000000015', 100));

-- An incomplete entry at the end raises an error.
-- X'': time_index([(1700000000000, 9)]) + b'torn'
SELECT kafka_time_index(X'0000018BCFE5680000000009746F726E', 0);

SELECT kafka_time_index(NULL, 0) AS ofNull;

-- `try_kafka_time_index` returns NULL instead of the error.
-- X'': time_index([(1700000000000, 9)]) + b'torn'
SELECT try_kafka_time_index(X'0000018BCFE5680000000009746F726E', 0) AS damaged;
