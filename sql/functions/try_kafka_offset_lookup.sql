-- signature: try_kafka_offset_lookup(content, baseOffset, targetOffset)
-- description: Returns what `kafka_offset_lookup` does, or NULL where that would raise because of
--   damage. What is wrong with a query still raises.
-- content: BINARY, the bytes of an .index file, as `binaryFile` loads them.
-- baseOffset: BIGINT, the segment's base offset, which entries count from;
--   `kafka_log_path(path).baseOffset` gives it.
-- targetOffset: BIGINT, the offset to look for.
-- returns: `STRUCT<offset: BIGINT, position: INT>`, as `kafka_offset_lookup`. NULL for damage, and
--   for NULL.
-- since: 0.1.0
-- see also: kafka_offset_lookup

-- What is not damaged is read.
-- X'': offset_index([(9, 4096), (21, 8192)])
SELECT targetOffset, found.offset, found.position FROM (
  SELECT targetOffset, try_kafka_offset_lookup(X'00000009000010000000001500002000', 100, targetOffset) AS found
  FROM VALUES (50), (109), (120), (500) AS targets(targetOffset)
);

-- Offsets that do not grow.
-- X'': offset_index([(9, 4096), (9, 8192)])
SELECT try_kafka_offset_lookup(X'00000009000010000000000900002000', 0, 5) AS damaged;

SELECT try_kafka_offset_lookup(NULL, 0, 5) AS ofNull, try_kafka_offset_lookup(X'', 7, 5) AS ofNothing;
