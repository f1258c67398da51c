-- signature: try_kafka_offset_index(content, baseOffset)
-- description: Returns what `kafka_offset_index` does, or NULL where that would raise because of
--   damage. What is wrong with a query still raises.
-- content: BINARY, the bytes of an .index file, as `binaryFile` loads them.
-- baseOffset: BIGINT, the segment's base offset, which entries count from;
--   `kafka_log_path(path).baseOffset` gives it.
-- returns: ARRAY of `STRUCT<offset: BIGINT, position: INT>`, as `kafka_offset_index`. NULL for
--   damage, and for NULL.
-- since: 0.1.0
-- see also: kafka_offset_index

-- What is not damaged is read.
-- X'': offset_index([(9, 4096), (21, 8192)]) + bytes(16)
SELECT inline(try_kafka_offset_index(X'0000000900001000000000150000200000000000000000000000000000000000', 100));

-- Offsets that do not grow.
-- X'': offset_index([(9, 4096), (9, 8192)])
SELECT try_kafka_offset_index(X'00000009000010000000000900002000', 0) AS damaged;

SELECT try_kafka_offset_index(NULL, 0) AS ofNull;
