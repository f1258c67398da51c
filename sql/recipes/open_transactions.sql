-- title: Open transactions
-- question: Which transactions are still open, and which records do they hold back?
-- answer: Consumers with `isolation.level=read_committed` read up to `lastStableOffset` and wait
--   there. A transaction younger than `transaction.timeout.ms` (one minute by default) was in
--   progress when the log was copied. An older one hangs. On the cluster,
--   `kafka-transactions.sh find-hanging` shows it, and `kafka-transactions.sh abort` ends it; its
--   `--start-offset` is `firstOffset`. `ageInSeconds` is the time from the transaction's first
--   batch to the newest record in the partition.
-- reads: batches (topic, partition, baseOffset, lastOffset, recordsCount, producerId,
--   producerEpoch, isTransactional, isControlBatch, maxTimestamp)
-- cost: reads headers of batches, twice.

-- A transaction is open if no marker of its producer follows.
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

-- The records that wait for open transactions.
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
