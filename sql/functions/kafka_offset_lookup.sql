-- signature: kafka_offset_lookup(content, baseOffset, targetOffset)
-- description: Returns the entry of an .index file at or before an offset: no batch before its
--   position has the offset. Where rows one behind the other have the same index, as after a join,
--   it is read once for them.
-- content: BINARY, the bytes of an .index file, as `binaryFile` loads them.
-- baseOffset: BIGINT, the segment's base offset, which entries count from;
--   `kafka_log_path(path).baseOffset` gives it.
-- targetOffset: BIGINT, the offset to look for.
-- returns: `STRUCT<offset: BIGINT, position: INT>`; below the first entry `(baseOffset, 0)`, as in
--   Kafka. NULL for NULL.
-- since: 0.1.0
-- see also: try_kafka_offset_lookup, kafka_offset_index

-- Where to begin to look for each of these.
-- X'': offset_index([(9, 4096), (21, 8192)])
SELECT targetOffset, found.offset, found.position FROM (
  SELECT targetOffset, kafka_offset_lookup(X'00000009000010000000001500002000', 100, targetOffset) AS found
  FROM VALUES (50), (109), (120), (500) AS targets(targetOffset)
);

-- Offsets that do not grow raises.
-- X'': offset_index([(9, 4096), (9, 8192)])
SELECT kafka_offset_lookup(X'00000009000010000000000900002000', 0, 5);

SELECT kafka_offset_lookup(NULL, 0, 5) AS ofNull, kafka_offset_lookup(X'', 7, 5) AS ofNothing;
