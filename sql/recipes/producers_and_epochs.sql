-- title: Producers and epochs
-- question: Which producers write here, was one of them fenced, and are their sequences complete?
-- answer: A producer without idempotence has the id -1, and can write a batch twice. Since Kafka
--   4.0 (`transaction.version=2`) each transaction has its own epoch. Before that, an epoch ends
--   when its producer restarts or is fenced: an id with many epochs is a client that keeps
--   restarting, or several clients with the same `transactional.id`. Within an epoch, each sequence
--   follows the one before. If one does not, the batches between them are gone: removed by
--   compaction on a compacted topic, otherwise lost with a segment, as [offset
--   gaps](#offset-gaps-and-duplicates) shows.
-- reads: batches (topic, partition, baseOffset, lastOffset, recordsCount, baseSequence,
--   lastSequence, producerId, producerEpoch, isTransactional, isControlBatch, maxTimestamp)
-- cost: reads headers of batches. The third statement sorts them within each producer's epoch.

SELECT
  topic,
  count(*) AS batches,
  count_if(producerId = -1) AS notIdempotent,
  count_if(isTransactional) AS transactional,
  count(DISTINCT nullif(producerId, -1)) AS producers
FROM batches
WHERE NOT isControlBatch
GROUP BY topic
ORDER BY topic;

-- The epochs of each producer.
SELECT
  topic,
  partition,
  producerId,
  producerEpoch,
  bool_or(isTransactional) AS isTransactional,
  min(baseOffset) AS firstOffset,
  max(lastOffset) AS lastOffset,
  sum(recordsCount) AS records,
  max_by(lastSequence, lastOffset) AS lastSequence,
  max(maxTimestamp) AS lastSeen
FROM batches
WHERE producerId >= 0 AND NOT isControlBatch
GROUP BY topic, partition, producerId, producerEpoch
ORDER BY topic, partition, producerId, producerEpoch;

-- Gaps in sequences. 0 follows 2147483647.
WITH followed AS (
  SELECT
    *,
    lag(lastSequence) OVER epoch AS sequenceBefore,
    lag(lastOffset) OVER epoch AS offsetBefore
  FROM batches
  WHERE baseSequence >= 0 AND NOT isControlBatch
  WINDOW epoch AS (
    PARTITION BY topic, partition, producerId, producerEpoch
    ORDER BY baseOffset, lastOffset
  )
)
SELECT
  topic,
  partition,
  producerId,
  producerEpoch,
  offsetBefore,
  baseOffset,
  pmod(CAST(baseSequence AS BIGINT) - sequenceBefore - 1, 2147483648) AS missing
FROM followed
WHERE CAST(baseSequence AS BIGINT) <> pmod(CAST(sequenceBefore AS BIGINT) + 1, 2147483648)
ORDER BY topic, partition, baseOffset;
