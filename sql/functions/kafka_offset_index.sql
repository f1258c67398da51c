-- signature: kafka_offset_index(content, baseOffset)
-- group: Indexes
-- description: Returns the entries of an .index file: an offset for every few kilobytes of the log,
--   and the position where its batch begins. The zeros at the end of an active segment's index are
--   skipped. Entries must be in order, as a broker writes them.
-- content: BINARY, the bytes of an .index file, as `binaryFile` loads them.
-- baseOffset: BIGINT, the segment's base offset, which the entries are relative to;
--   `kafka_log_path(path).baseOffset` returns it.
-- returns: ARRAY of `STRUCT<offset: BIGINT, position: INT>`. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_offset_lookup, kafka_verify_index

-- Two entries, and the zeros of a preallocated file.
-- X'': offset_index([(9, 4096), (21, 8192)]) + bytes(16)
SELECT inline(kafka_offset_index(X'0000000900001000000000150000200000000000000000000000000000000000', 100));

-- For the indexes of a folder, read ``FROM binaryFile.`/var/kafka/*/*.index` ``, which has the
-- columns content and path.
-- X'': offset_index([(9, 4096)])
SELECT path, kafka_offset_index(content, kafka_log_path(path).baseOffset) AS entries FROM VALUES
  ('orders-0/00000000000000000042.index', X'0000000900001000')
AS files(path, content);

-- Offsets that do not increase raise an error.
-- X'': offset_index([(9, 4096), (9, 8192)])
SELECT kafka_offset_index(X'00000009000010000000000900002000', 0);

SELECT kafka_offset_index(NULL, 0) AS ofNull;

-- `try_kafka_offset_index` returns NULL instead of the error.
-- X'': offset_index([(9, 4096), (9, 8192)])
SELECT try_kafka_offset_index(X'00000009000010000000000900002000', 0) AS damaged;
