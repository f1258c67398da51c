-- title: Size and records by topic
-- question: Which topics take the space, how many records do they have, and are these spread
--   evenly?
-- answer: `bytes` is the size on disk. `bytesPerRecord` is the size of a record after compression,
--   with its share of the batch's header. `oldest` and `newest` are the timestamps in the batches;
--   if they look wrong, see [timestamp anomalies](#timestamp-anomalies). If a partition is much
--   larger than the others, the topic has a hot key, or a producer that does not partition its
--   records.
-- reads: files (topic, partition, suffix, length), batches (topic, partition, recordsCount,
--   sizeInBytes, maxTimestamp, isControlBatch)
-- cost: the first statement lists folders and reads nothing. The others read headers of batches.

-- The size on disk, with indexes.
SELECT
  topic,
  count(DISTINCT partition) AS partitions,
  count_if(suffix = '.log') AS segments,
  sum(length) AS bytes
FROM files
WHERE topic IS NOT NULL
GROUP BY topic
ORDER BY bytes DESC, topic;

-- The records in the log, without transaction markers.
SELECT
  topic,
  sum(recordsCount) AS records,
  count(*) AS batches,
  sum(sizeInBytes) AS bytes,
  round(sum(sizeInBytes) / nullif(sum(recordsCount), 0), 1) AS bytesPerRecord,
  min(maxTimestamp) AS oldest,
  max(maxTimestamp) AS newest
FROM batches
WHERE NOT isControlBatch
GROUP BY topic
ORDER BY bytes DESC, topic;

-- The partitions, each with its share of the topic.
SELECT
  topic,
  partition,
  sum(recordsCount) AS records,
  sum(sizeInBytes) AS bytes,
  round(100 * sum(sizeInBytes) / sum(sum(sizeInBytes)) OVER (PARTITION BY topic), 1) AS percent
FROM batches
WHERE NOT isControlBatch
GROUP BY topic, partition
ORDER BY topic, partition;
