-- title: Consumer lag
-- question: How far behind is each consumer group, and which groups have offsets of partitions that
--   no longer exist?
-- answer: `lag` is the number of offsets between the committed offset and the end of the log.
--   Compaction and transaction markers use up some of them, so the number of records is at most
--   `lag`. `lag` is NULL if the partition is not at this path: it is on another broker, or it was
--   deleted. The log ends where your copy ends; on a broker, consumers see it up to the high
--   watermark (`checkpoints`, `replication-offset-checkpoint`). Offsets that are committed in a
--   transaction count only once it has committed (`isCommitted`).
-- reads: consumer_offsets (groupId, topic, partition, committedOffset, commitTimestamp, isCommitted,
--   isDeleted, recordOffset), batches (topic, partition, lastOffset)
-- cost: decodes all records of __consumer_offsets, and reads headers of batches.

WITH committed AS (
  SELECT
    groupId, topic, partition,
    max_by(committedOffset, recordOffset) AS committedOffset,
    max_by(commitTimestamp, recordOffset) AS commitTimestamp
  FROM consumer_offsets
  WHERE isCommitted
  GROUP BY groupId, topic, partition
  HAVING NOT max_by(isDeleted, recordOffset)
),
ends AS (
  SELECT topic, partition, max(lastOffset) + 1 AS logEndOffset
  FROM batches
  GROUP BY topic, partition
)
SELECT
  groupId, topic, partition, committedOffset, logEndOffset,
  logEndOffset - committedOffset AS lag,
  commitTimestamp
FROM committed LEFT JOIN ends USING (topic, partition)
ORDER BY lag DESC NULLS LAST, groupId, topic, partition;

-- Lag by group.
WITH committed AS (
  SELECT
    groupId, topic, partition,
    max_by(committedOffset, recordOffset) AS committedOffset
  FROM consumer_offsets
  WHERE isCommitted
  GROUP BY groupId, topic, partition
  HAVING NOT max_by(isDeleted, recordOffset)
),
ends AS (
  SELECT topic, partition, max(lastOffset) + 1 AS logEndOffset
  FROM batches
  GROUP BY topic, partition
)
SELECT
  groupId,
  count(*) AS partitions,
  sum(logEndOffset - committedOffset) AS lag,
  count_if(logEndOffset IS NULL) AS elsewhere
FROM committed LEFT JOIN ends USING (topic, partition)
GROUP BY groupId
ORDER BY lag DESC, groupId;
