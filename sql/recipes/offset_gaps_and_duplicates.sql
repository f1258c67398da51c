-- title: Offset gaps and duplicates
-- question: Is the log complete, and does it have every record only once?
-- answer: `insideBatches` counts offsets that are missing inside a batch: compaction removed them,
--   which is harmless. `betweenBatches` counts offsets between batches. On a compacted topic,
--   compaction is the reason again. On any other topic records are lost, most often with a segment
--   that was not copied; the second statement shows which. `twice` counts offsets that several
--   batches have: two copies of a partition were read as one, or with the option overlaps=all, a
--   segment overlaps the next. A batch that was sent twice has two ranges of offsets but the same
--   bytes: its producer retried with `enable.idempotence=false`.
-- reads: batches (topic, partition, baseOffset, lastOffset, recordsCount, sizeInBytes, producerId,
--   maxTimestamp, crc)
-- cost: reads headers of batches. The window sorts them within each partition.

-- offsets + twice = records + insideBatches + betweenBatches
WITH placed AS (
  SELECT
    *,
    coalesce(max(lastOffset) OVER (
      PARTITION BY topic, partition
      ORDER BY baseOffset, lastOffset
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), baseOffset - 1) AS lastBefore
  FROM batches
)
SELECT
  topic,
  partition,
  min(baseOffset) AS first,
  max(lastOffset) AS last,
  max(lastOffset) - min(baseOffset) + 1 AS offsets,
  sum(recordsCount) AS records,
  sum(lastOffset - baseOffset + 1 - recordsCount) AS insideBatches,
  sum(greatest(baseOffset - lastBefore - 1, 0)) AS betweenBatches,
  sum(greatest(least(lastOffset, lastBefore) - baseOffset + 1, 0)) AS twice
FROM placed
GROUP BY topic, partition
ORDER BY topic, partition;

-- The largest gaps between batches, and the timestamps around them.
WITH placed AS (
  SELECT
    *,
    max(lastOffset) OVER earlier AS lastBefore,
    max_by(maxTimestamp, lastOffset) OVER earlier AS timeBefore
  FROM batches
  WINDOW earlier AS (
    PARTITION BY topic, partition
    ORDER BY baseOffset, lastOffset
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
)
SELECT
  topic,
  partition,
  lastBefore + 1 AS firstMissing,
  baseOffset - 1 AS lastMissing,
  baseOffset - lastBefore - 1 AS missing,
  timeBefore,
  maxTimestamp AS timeAfter
FROM placed
WHERE baseOffset > lastBefore + 1
ORDER BY missing DESC, topic, partition
LIMIT 20;

-- Batches that were sent twice. Checksums do not cover the offset, so those of the copies are
-- equal. With LogAppendTime they differ.
SELECT
  topic,
  partition,
  min(baseOffset) AS first,
  max(baseOffset) AS last,
  count(DISTINCT baseOffset) AS times,
  any_value(recordsCount) AS records
FROM batches
WHERE producerId = -1 AND recordsCount > 0
GROUP BY topic, partition, crc, sizeInBytes, maxTimestamp
HAVING count(DISTINCT baseOffset) > 1
ORDER BY topic, partition, first;
