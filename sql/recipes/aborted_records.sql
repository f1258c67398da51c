-- title: Aborted records
-- question: How many records were aborted, and which producers wrote them?
-- answer: A record in a transaction belongs to the next marker of its producer in its partition,
--   COMMIT or ABORT; without one the transaction is still open. Aborted records take space. Brokers
--   also send them to consumers with `isolation.level=read_committed`, which drop them. To leave
--   them out, use `OPTIONS (path …, isolationLevel 'read_committed')`.
-- reads: records (topic, partition, offset, baseOffset, producerId, producerEpoch, isTransactional,
--   controlType)
-- cost: decodes the structure of records, but no keys, values or headers. The window gets one row
--   for each batch in a transaction.

-- Records by outcome.
WITH written AS (
  SELECT
    topic,
    partition,
    producerId,
    baseOffset,
    count(*) AS records,
    max(controlType) AS controlType
  FROM records
  WHERE isTransactional
  GROUP BY topic, partition, producerId, baseOffset
),
decided AS (
  -- Ordered from the end, because a window that looks ahead takes Spark quadratic time.
  SELECT
    *,
    min(CASE WHEN controlType IS NOT NULL THEN struct(baseOffset, controlType) END) OVER (
      PARTITION BY topic, partition, producerId
      ORDER BY baseOffset DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS marker
  FROM written
),
transactions AS (
  SELECT topic, partition, producerId, marker, sum(records) AS records
  FROM decided
  WHERE controlType IS NULL
  GROUP BY topic, partition, producerId, marker
)
SELECT
  topic,
  partition,
  coalesce(marker.controlType, 'open') AS outcome,
  count(*) AS transactions,
  sum(records) AS records
FROM transactions
GROUP BY topic, partition, marker.controlType
ORDER BY topic, partition, outcome;

-- The largest aborted transactions.
WITH written AS (
  SELECT
    topic,
    partition,
    producerId,
    baseOffset,
    max(producerEpoch) AS producerEpoch,
    max(offset) AS lastOffset,
    count(*) AS records,
    max(controlType) AS controlType
  FROM records
  WHERE isTransactional
  GROUP BY topic, partition, producerId, baseOffset
),
decided AS (
  SELECT
    *,
    min(CASE WHEN controlType IS NOT NULL THEN struct(baseOffset, controlType) END) OVER (
      PARTITION BY topic, partition, producerId
      ORDER BY baseOffset DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS marker
  FROM written
)
SELECT
  topic,
  partition,
  producerId,
  max(producerEpoch) AS producerEpoch,
  min(baseOffset) AS firstOffset,
  max(lastOffset) AS lastOffset,
  marker.baseOffset AS abortedAt,
  sum(records) AS records
FROM decided
WHERE controlType IS NULL AND marker.controlType = 'ABORT'
GROUP BY topic, partition, producerId, marker
ORDER BY records DESC, topic, partition, firstOffset
LIMIT 20;
