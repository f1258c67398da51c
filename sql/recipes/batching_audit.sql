-- title: Batching audit
-- question: Are batches large enough, and does compression pay?
-- answer: A batch has a header of 61 bytes and is compressed as a whole. A batch with many records
--   therefore saves space twice. If most batches have one record, raise `linger.ms` and
--   `batch.size` of the producers. `ratio` is the number of bytes in keys, values and headers for
--   each byte stored. Without a codec it is below 1, because each record also takes about 7 bytes
--   of its own. A topic with several codecs has producers with different settings; a broker with
--   `compression.type=producer` keeps what they send.
-- reads: batches (topic, partition, baseOffset, recordsCount, sizeInBytes, compressionType,
--   isControlBatch), records (topic, partition, baseOffset, key, value, headers)
-- cost: the first two statements read headers of batches. The third decodes all keys, values and
--   headers, which is the most expensive read of all: try it on one topic first.

SELECT
  topic,
  count(*) AS batches,
  round(avg(recordsCount), 1) AS recordsPerBatch,
  percentile_approx(recordsCount, 0.5) AS median,
  round(100 * count_if(recordsCount = 1) / count(*), 1) AS percentOfOne,
  round(avg(sizeInBytes)) AS bytesPerBatch,
  round(100 * 61 * count(*) / sum(sizeInBytes), 1) AS percentHeader
FROM batches
WHERE NOT isControlBatch AND recordsCount > 0
GROUP BY topic
ORDER BY topic;

-- Batches by codec.
SELECT
  topic,
  compressionType,
  count(*) AS batches,
  sum(recordsCount) AS records,
  sum(sizeInBytes) AS bytes,
  round(100 * sum(sizeInBytes) / sum(sum(sizeInBytes)) OVER (PARTITION BY topic), 1) AS percent
FROM batches
WHERE NOT isControlBatch
GROUP BY topic, compressionType
ORDER BY topic, bytes DESC, compressionType;

-- The compression ratio. Both sides are summed by batch before the join.
WITH payload AS (
  SELECT
    topic,
    partition,
    baseOffset,
    sum(
      coalesce(octet_length(key), 0)
      + coalesce(octet_length(value), 0)
      + coalesce(aggregate(
          headers, 0, (n, h) -> n + octet_length(h.key) + coalesce(octet_length(h.value), 0)
        ), 0)
    ) AS bytes
  FROM records
  GROUP BY topic, partition, baseOffset
),
stored AS (
  SELECT
    topic,
    partition,
    baseOffset,
    max(compressionType) AS compressionType,
    sum(sizeInBytes - 61) AS bytes
  FROM batches
  WHERE NOT isControlBatch
  GROUP BY topic, partition, baseOffset
)
SELECT
  topic,
  compressionType,
  sum(payload.bytes) AS payloadBytes,
  sum(stored.bytes) AS storedBytes,
  round(sum(payload.bytes) / sum(stored.bytes), 2) AS ratio
FROM payload JOIN stored USING (topic, partition, baseOffset)
GROUP BY topic, compressionType
ORDER BY topic, ratio DESC;
