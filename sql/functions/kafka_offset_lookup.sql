-- signature: kafka_offset_lookup(content, baseOffset, targetOffset)
-- group: Indexes
-- description: Returns the entry of an .index file at or before an offset: no batch before the
--   entry's position has that offset. If consecutive rows have the same index, as after a join, it
--   is read once for all of them.
-- content: BINARY, the bytes of an .index file, as `binaryFile` loads them.
-- baseOffset: BIGINT, the segment's base offset, which the entries are relative to;
--   `kafka_log_path(path).baseOffset` returns it.
-- targetOffset: BIGINT, the offset to look up.
-- returns: `STRUCT<offset: BIGINT, position: INT>`; before the first entry `(baseOffset, 0)`, as in
--   Kafka. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_offset_index, kafka_time_lookup

-- The position from which to search for each of these offsets.
-- X'': offset_index([(9, 4096), (21, 8192)])
SELECT targetOffset, found.offset, found.position FROM (
  SELECT targetOffset, kafka_offset_lookup(X'00000009000010000000001500002000', 100, targetOffset) AS found
  FROM VALUES (50), (109), (120), (500) AS targets(targetOffset)
);

-- Offsets that do not increase raise an error.
-- X'': offset_index([(9, 4096), (9, 8192)])
SELECT kafka_offset_lookup(X'00000009000010000000000900002000', 0, 5);

SELECT kafka_offset_lookup(NULL, 0, 5) AS ofNull, kafka_offset_lookup(X'', 7, 5) AS ofNothing;

-- `try_kafka_offset_lookup` returns NULL instead of the error.
-- X'': offset_index([(9, 4096), (9, 8192)])
SELECT try_kafka_offset_lookup(X'00000009000010000000000900002000', 0, 5) AS damaged;
