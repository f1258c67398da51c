-- title: Hanging transactions
-- question: Which open transactions will never end, because their coordinator no longer knows them?
-- answer: A coordinator aborts a transaction after its timeout, so a transaction that the
--   coordinator has as `Ongoing` ends by itself. A transaction hangs if it is open in a partition
--   ([open transactions](#open-transactions)) but its coordinator has ended it, does not have the
--   partition in it, or does not know its producer. It blocks every consumer with `isolation.level=read_committed` until
--   `kafka-transactions.sh abort` ends it. The path must contain all partitions of
--   `__transaction_state`.
-- reads: batches (topic, partition, baseOffset, producerId, producerEpoch, isTransactional,
--   isControlBatch), transactions (transactionalId, producerId, producerEpoch, state, timeoutMs,
--   start, partitions, recordOffset, recordTimestamp, isDeleted)
-- cost: reads headers of batches, and decodes all records of __transaction_state.

WITH ended AS (
  SELECT topic, partition, producerId, max(baseOffset) AS markerOffset
  FROM batches
  WHERE isTransactional AND isControlBatch
  GROUP BY topic, partition, producerId
),
open AS (
  SELECT topic, partition, producerId, max(producerEpoch) AS producerEpoch,
    min(baseOffset) AS firstOffset
  FROM batches LEFT JOIN ended USING (topic, partition, producerId)
  WHERE isTransactional AND NOT isControlBatch AND baseOffset > coalesce(markerOffset, -1)
  GROUP BY topic, partition, producerId
),
latest AS (
  SELECT transactionalId, max_by(producerId, recordOffset) AS producerId,
    max_by(state, recordOffset) AS state, max_by(partitions, recordOffset) AS partitions,
    max(recordTimestamp) AS since
  FROM transactions
  GROUP BY transactionalId
  HAVING NOT max_by(isDeleted, recordOffset)
)
SELECT topic, partition, producerId, producerEpoch, firstOffset, transactionalId,
  coalesce(state, 'unknown') AS coordinatorState, since
FROM open LEFT JOIN latest USING (producerId)
WHERE state IS NULL OR state NOT IN ('Ongoing', 'PrepareCommit', 'PrepareAbort')
  OR NOT exists(
    partitions, p -> p.topic = open.topic AND array_contains(p.partitions, open.partition))
ORDER BY topic, partition, firstOffset;

-- Transactions that coordinators have not ended, and whether they are overdue.
WITH latest AS (
  SELECT transactionalId,
    max_by(struct(state, start, timeoutMs, partitions), recordOffset) AS now
  FROM transactions
  GROUP BY transactionalId
)
SELECT transactionalId, now.state, now.start, now.partitions,
  (SELECT max(recordTimestamp) FROM transactions)
    > timestampadd(MILLISECOND, now.timeoutMs, now.start) AS isOverdue
FROM latest
WHERE now.state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort')
ORDER BY now.start, transactionalId;
