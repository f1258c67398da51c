-- signature: kafka_verify_index(log, index, baseOffset)
-- group: Indexes
-- description: Returns the entries of an .index file that do not match its log. An entry matches if
--   a batch begins at its position and that batch, or one that was appended with it, ends with its
--   offset. With a wrong index a broker reads from the wrong position.
-- log: BINARY, the bytes of the segment.
-- index: BINARY, the bytes of its .index file.
-- baseOffset: BIGINT, the segment's base offset, which the entries are relative to;
--   `kafka_log_path(path).baseOffset` returns it.
-- returns: ARRAY of `STRUCT<entry: INT, offset: BIGINT, position: INT, logOffset: BIGINT, problem:
--   STRING>`, empty if all entries match. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_offset_index, kafka_verify_time_index

-- The second entry points into the middle of a batch.
-- X'': batch([Record(value=b'v')], base_offset=7) + batch([Record(value=b'w')], base_offset=8)
-- X'': offset_index([(0, 0), (1, 64)])
SELECT inline(kafka_verify_index(
  X'0000000000000007000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E000000010276000000000000000008000000390000000002C05034020000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027700',
  X'00000000000000000000000100000040',
  7
));

SELECT kafka_verify_index(NULL, NULL, 0) AS ofNull, kafka_verify_index(X'', X'', 0) AS ofNothing;
