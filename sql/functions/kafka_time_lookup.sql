-- signature: kafka_time_lookup(content, baseOffset, timestamp)
-- group: Indexes
-- description: Returns the entry of a .timeindex file at or before a timestamp: no record up to the
--   entry's offset is later than the entry's timestamp. If consecutive rows have the same index, it
--   is read once for all of them.
-- content: BINARY, the bytes of a .timeindex file, as `binaryFile` loads them.
-- baseOffset: BIGINT, the segment's base offset, which the entries are relative to;
--   `kafka_log_path(path).baseOffset` returns it.
-- timestamp: TIMESTAMP, or BIGINT for milliseconds since 1970, as in Kafka. TIMESTAMP_NTZ is
--   refused, because it has no time zone.
-- returns: `STRUCT<timestamp: TIMESTAMP, offset: BIGINT>`; before the first entry -1 ms and the
--   base offset, as in Kafka. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_time_index, kafka_offset_lookup

-- By a TIMESTAMP, and by Kafka's milliseconds.
-- X'': time_index([(1700000000000, 9), (1700000060000, 21)])
-- X'': time_index([(1700000000000, 9), (1700000060000, 21)])
SELECT
  kafka_time_lookup(X'0000018BCFE56800000000090000018BCFE6526000000015', 100, TIMESTAMP '2023-11-14 22:14:00 UTC').offset AS byTimestamp,
  kafka_time_lookup(X'0000018BCFE56800000000090000018BCFE6526000000015', 100, 1700000060000).offset AS byMilliseconds;

-- Before the first entry.
-- X'': time_index([(1700000000000, 9)])
SELECT found.offset, unix_millis(found.timestamp) AS timestampMs
FROM (SELECT kafka_time_lookup(X'0000018BCFE5680000000009', 100, 0) AS found);

-- An incomplete entry at the end raises an error.
-- X'': b'torn'
SELECT kafka_time_lookup(X'746F726E', 0, 5);

SELECT kafka_time_lookup(NULL, 0, 5) AS ofNull;

-- `try_kafka_time_lookup` returns NULL instead of the error.
-- X'': b'torn'
SELECT try_kafka_time_lookup(X'746F726E', 0, 5) AS damaged;
