-- signature: kafka_time_lookup(content, baseOffset, timestamp)
-- description: Returns the entry of a .timeindex file at or before a timestamp: no record up to its
--   offset is later than that. Where rows one behind the other have the same index, it is read once
--   for them.
-- content: BINARY, the bytes of a .timeindex file, as `binaryFile` loads them.
-- baseOffset: BIGINT, the segment's base offset, which entries count from;
--   `kafka_log_path(path).baseOffset` gives it.
-- timestamp: TIMESTAMP, or BIGINT for milliseconds since 1970 as Kafka counts them. TIMESTAMP_NTZ
--   is refused: it names no instant.
-- returns: `STRUCT<timestamp: TIMESTAMP, offset: BIGINT>`; below the first entry -1 ms and the base
--   offset, as in Kafka. NULL for NULL.
-- since: 0.1.0
-- see also: try_kafka_time_lookup, kafka_time_index

-- By a timestamp, and by Kafka's milliseconds.
-- X'': time_index([(1700000000000, 9), (1700000060000, 21)])
-- X'': time_index([(1700000000000, 9), (1700000060000, 21)])
SELECT
  kafka_time_lookup(X'0000018BCFE56800000000090000018BCFE6526000000015', 100, TIMESTAMP '2023-11-14 22:14:00 UTC').offset AS byTimestamp,
  kafka_time_lookup(X'0000018BCFE56800000000090000018BCFE6526000000015', 100, 1700000060000).offset AS byMilliseconds;

-- Before the first entry.
-- X'': time_index([(1700000000000, 9)])
SELECT found.offset, unix_millis(found.timestamp) AS timestampMs
FROM (SELECT kafka_time_lookup(X'0000018BCFE5680000000009', 100, 0) AS found);

-- A file that ends inside an entry raises.
-- X'': b'torn'
SELECT kafka_time_lookup(X'746F726E', 0, 5);

SELECT kafka_time_lookup(NULL, 0, 5) AS ofNull;
