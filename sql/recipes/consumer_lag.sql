-- title: Consumer lag
-- question: How far is each consumer group behind, and which of them read what nobody has any more?
-- answer: `lag` counts offsets between what a group has committed and the end of the log: compaction
--   and markers of transactions take some of them, so it is at most so many records. It is NULL where
--   the partition is not at this path, on another broker or deleted. The log ends where its copy does;
--   a broker's consumers see it up to the high watermark (`checkpoints`, `replication-offset-checkpoint`).
--   Commits that are part of a transaction count when it has ended: say
--   `--isolation-level read_committed` where groups commit so.
-- reads: consumer_offsets (groupId, topic, partition, committedOffset, commitTimestamp, isDeleted,
--   recordOffset), batches (topic, partition, lastOffset)
-- cost: all records of __consumer_offsets, and headers of batches.

WITH committed AS (
  SELECT
    groupId, topic, partition,
    max_by(committedOffset, recordOffset) AS committedOffset,
    max_by(commitTimestamp, recordOffset) AS commitTimestamp
  FROM consumer_offsets
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

-- By group.
WITH committed AS (
  SELECT
    groupId, topic, partition,
    max_by(committedOffset, recordOffset) AS committedOffset
  FROM consumer_offsets
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
