-- title: Producers and epochs
-- question: Who writes here, was anybody fenced, and is a producer's sequence whole?
-- answer: A producer without idempotence has the id -1, and can write a batch twice. Since Kafka
--   4.0 (`transaction.version=2`) each transaction has an epoch of its own; without that an epoch
--   ends when its producer starts again or is fenced, so many epochs of one id are a client that
--   keeps restarting, or two with the same `transactional.id`. Within an epoch each sequence
--   follows the one before. Where it does not, batches in between are gone: to compaction where the
--   topic is compacted, elsewhere with a segment, as [offset gaps](#offset-gaps-and-duplicates)
--   show.
-- reads: batches (topic, partition, baseOffset, lastOffset, recordsCount, baseSequence,
--   lastSequence, producerId, producerEpoch, isTransactional, isControlBatch, maxTimestamp)
-- cost: headers of batches. The third statement sorts them within each producer's epoch.

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

-- Where a sequence does not go on. After 2147483647 comes 0.
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
