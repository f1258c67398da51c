-- title: Open transactions
-- question: Which transactions has nobody ended, and what do they hold up?
-- answer: Consumers with `isolation.level=read_committed` read up to `lastStableOffset` and wait
--   there. A transaction younger than `transaction.timeout.ms` (a minute, unless a producer says
--   otherwise) is at work: the log was copied while it was. One that is older hangs:
--   `kafka-transactions.sh` has `find-hanging` to see it on the cluster, and `abort` to end it,
--   whose `--start-offset` is `firstOffset`. `ageInSeconds` counts up to the newest record of the
--   partition.
-- reads: batches (topic, partition, baseOffset, lastOffset, recordsCount, producerId,
--   producerEpoch, isTransactional, isControlBatch, maxTimestamp)
-- cost: headers of batches, read twice.

-- Open is what has no marker of its producer behind it.
WITH ended AS (
  SELECT topic, partition, producerId, max(baseOffset) AS markerOffset
  FROM batches
  WHERE isTransactional AND isControlBatch
  GROUP BY topic, partition, producerId
)
SELECT
  topic,
  partition,
  producerId,
  max(producerEpoch) AS producerEpoch,
  min(baseOffset) AS firstOffset,
  max(lastOffset) AS lastOffset,
  sum(recordsCount) AS records,
  min(maxTimestamp) AS since
FROM batches LEFT JOIN ended USING (topic, partition, producerId)
WHERE isTransactional AND NOT isControlBatch AND baseOffset > coalesce(markerOffset, -1)
GROUP BY topic, partition, producerId
ORDER BY since, topic, partition, producerId;

-- What waits for them.
WITH ended AS (
  SELECT topic, partition, producerId, max(baseOffset) AS markerOffset
  FROM batches
  WHERE isTransactional AND isControlBatch
  GROUP BY topic, partition, producerId
),
stable AS (
  SELECT topic, partition, min(baseOffset) AS lastStableOffset, min(maxTimestamp) AS since
  FROM batches LEFT JOIN ended USING (topic, partition, producerId)
  WHERE isTransactional AND NOT isControlBatch AND baseOffset > coalesce(markerOffset, -1)
  GROUP BY topic, partition
)
SELECT
  topic,
  partition,
  any_value(lastStableOffset) AS lastStableOffset,
  max(lastOffset) + 1 AS logEndOffset,
  sum(recordsCount) FILTER (WHERE baseOffset >= lastStableOffset AND NOT isControlBatch) AS waiting,
  timestampdiff(SECOND, any_value(since), max(maxTimestamp)) AS ageInSeconds
FROM batches JOIN stable USING (topic, partition)
GROUP BY topic, partition
ORDER BY topic, partition;
