-- signature: try_kafka_time_lookup(content, baseOffset, timestamp)
-- description: Returns what `kafka_time_lookup` does, or NULL where that would raise because of
--   damage. What is wrong with a query still raises.
-- content: BINARY, the bytes of a .timeindex file, as `binaryFile` loads them.
-- baseOffset: BIGINT, the segment's base offset, which entries count from;
--   `kafka_log_path(path).baseOffset` gives it.
-- timestamp: TIMESTAMP, or BIGINT for milliseconds since 1970 as Kafka counts them. TIMESTAMP_NTZ
--   is refused: it names no instant.
-- returns: `STRUCT<timestamp: TIMESTAMP, offset: BIGINT>`, as `kafka_time_lookup`. NULL for damage,
--   and for NULL.
-- since: 0.1.0
-- see also: kafka_time_lookup

-- What is not damaged is read.
-- X'': time_index([(1700000000000, 9), (1700000060000, 21)])
-- X'': time_index([(1700000000000, 9), (1700000060000, 21)])
SELECT
  try_kafka_time_lookup(X'0000018BCFE56800000000090000018BCFE6526000000015', 100, TIMESTAMP '2023-11-14 22:14:00 UTC').offset AS byTimestamp,
  try_kafka_time_lookup(X'0000018BCFE56800000000090000018BCFE6526000000015', 100, 1700000060000).offset AS byMilliseconds;

-- A file that ends inside an entry.
-- X'': b'torn'
SELECT try_kafka_time_lookup(X'746F726E', 0, 5) AS damaged;

SELECT try_kafka_time_lookup(NULL, 0, 5) AS ofNull;
