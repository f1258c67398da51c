-- title: Size and records by topic
-- question: Which topics take the space, how many records is that, and is it spread evenly?
-- answer: `bytes` are those on disk. `bytesPerRecord` is what a record costs after compression, its
--   share of the batch's header included. `oldest` and `newest` are timestamps that batches claim;
--   where they look wrong, see [timestamp anomalies](#timestamp-anomalies). A partition whose share
--   is far from its siblings' has a hot key, or a producer that does not partition.
-- reads: files (topic, partition, suffix, length), batches (topic, partition, recordsCount,
--   sizeInBytes, maxTimestamp, isControlBatch)
-- cost: the first statement lists folders and reads nothing; the others read headers of batches.

-- On disk, indexes and all.
SELECT
  topic,
  count(DISTINCT partition) AS partitions,
  count_if(suffix = '.log') AS segments,
  sum(length) AS bytes
FROM files
WHERE topic IS NOT NULL
GROUP BY topic
ORDER BY bytes DESC, topic;

-- In the log. Markers of transactions are not counted.
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

-- By partition, with its share of the topic.
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
