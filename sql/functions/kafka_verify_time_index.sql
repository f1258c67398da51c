-- signature: kafka_verify_time_index(log, timeIndex, baseOffset)
-- group: Indexes
-- description: Returns the entries of a .timeindex file that do not match its log. An entry matches
--   if a batch ends with its offset and has its timestamp as the largest, and no earlier batch has
--   a later timestamp.
-- log: BINARY, the bytes of the segment.
-- timeIndex: BINARY, the bytes of its .timeindex file.
-- baseOffset: BIGINT, the segment's base offset, which the entries are relative to;
--   `kafka_log_path(path).baseOffset` returns it.
-- returns: ARRAY of `STRUCT<entry: INT, timestamp: TIMESTAMP, offset: BIGINT, logTimestamp:
--   TIMESTAMP, logOffset: BIGINT, problem: STRING>`, empty if all entries match. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_time_index, kafka_verify_index

-- The log's largest timestamp is one millisecond earlier.
-- X'': batch([Record(value=b'v')], base_offset=7)
-- X'': time_index([(1700000000001, 0)])
SELECT inline(kafka_verify_time_index(
  X'0000000000000007000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600',
  X'0000018BCFE5680100000000',
  7
));

SELECT kafka_verify_time_index(NULL, NULL, 0) AS ofNull;
