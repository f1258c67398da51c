-- A statement for each group of figures, for `kafkajit sql --path PATH`.
--
-- They read logs whole, as a report with --depth all does. A partition is a folder, so a copy of one
-- counts as in the report. The header of a compressed set of v0 or v1 has neither the number of its
-- records nor their first time: statements that read only headers count such sets in
-- `setsNotCounted`.

-- name: folders
SELECT folder, count(DISTINCT topic) AS topics, count(*) AS partitions, sum(bytes) AS bytes
FROM (
  SELECT regexp_replace(path, '/[^/]*/[^/]*$', '') AS folder, topic, sum(length) AS bytes
  FROM files
  WHERE suffix = '.log'
  GROUP BY regexp_replace(path, '/[^/]*$', ''), folder, topic
)
GROUP BY folder
ORDER BY bytes DESC

-- name: topics
SELECT
  topic,
  count(DISTINCT folder) AS partitions,
  sum(bytes) AS bytes,
  sum(records) AS records,
  count(isControlBatch) AS batches,
  count_if(isControlBatch IS NOT NULL AND records IS NULL) AS setsNotCounted,
  min(first) AS firstTimestamp,
  max(last) AS lastTimestamp
FROM (
  SELECT
    topic, regexp_replace(path, '/[^/]*$', '') AS folder, length AS bytes, 0 AS records,
    NULL AS isControlBatch, NULL AS first, NULL AS last
  FROM files
  WHERE suffix = '.log'
  UNION ALL
  SELECT
    topic, regexp_replace(path, '/[^/]*$', ''), 0, if(isControlBatch, 0, recordsCount),
    isControlBatch,
    CASE
      WHEN isControlBatch OR maxTimestamp < timestamp_millis(0) THEN NULL
      WHEN timestampType = 1 OR deleteHorizonMs IS NOT NULL THEN maxTimestamp
      WHEN baseTimestamp < timestamp_millis(0) THEN maxTimestamp
      ELSE least(baseTimestamp, maxTimestamp)
    END,
    CASE WHEN NOT isControlBatch AND maxTimestamp >= timestamp_millis(0) THEN maxTimestamp END
  FROM batches
)
GROUP BY topic
ORDER BY bytes DESC

-- name: skew
SELECT topic, try_divide(max(bytes), avg(bytes)) AS skew
FROM (
  SELECT topic, sum(length) AS bytes
  FROM files
  WHERE suffix = '.log'
  GROUP BY topic, regexp_replace(path, '/[^/]*$', '')
)
GROUP BY topic
ORDER BY skew DESC

-- name: partitions
SELECT
  topic,
  partition,
  folder,
  sum(bytes) AS bytes,
  sum(records) AS records,
  count_if(isBatch AND records IS NULL) AS setsNotCounted,
  least(max(end), greatest(min(start), coalesce(max(offset), 0))) AS startOffset,
  max(end) AS endOffset,
  min(first) AS firstTimestamp,
  max(last) AS lastTimestamp
FROM (
  SELECT
    topic, partition, regexp_replace(path, '/[^/]*$', '') AS folder, length AS bytes,
    0 AS records, false AS isBatch, baseOffset AS start, baseOffset AS end, NULL AS first,
    NULL AS last
  FROM files
  WHERE suffix = '.log'
  UNION ALL
  SELECT
    topic, partition, regexp_replace(path, '/[^/]*$', ''), 0, if(isControlBatch, 0, recordsCount),
    true, NULL, lastOffset + 1,
    CASE
      WHEN isControlBatch OR maxTimestamp < timestamp_millis(0) THEN NULL
      WHEN timestampType = 1 OR deleteHorizonMs IS NOT NULL THEN maxTimestamp
      WHEN baseTimestamp < timestamp_millis(0) THEN maxTimestamp
      ELSE least(baseTimestamp, maxTimestamp)
    END,
    CASE WHEN NOT isControlBatch AND maxTimestamp >= timestamp_millis(0) THEN maxTimestamp END
  FROM batches
)
LEFT JOIN (
  SELECT topic, partition, max(offset) AS offset
  FROM checkpoints
  WHERE name = 'log-start-offset-checkpoint'
  GROUP BY topic, partition
) USING (topic, partition)
GROUP BY topic, partition, folder
ORDER BY topic, partition

-- name: life
SELECT
  topic,
  date_trunc('HOUR', maxTimestamp) AS hour,
  sum(sizeInBytes) AS bytes,
  sum(if(isControlBatch, 0, recordsCount)) AS records,
  count_if(recordsCount IS NULL) AS setsNotCounted
FROM batches
WHERE maxTimestamp >= timestamp_millis(0)
GROUP BY topic, hour
ORDER BY topic, hour

-- name: codecs
SELECT
  topic,
  compressionType,
  count(*) AS batches,
  sum(if(isControlBatch, 0, recordsCount)) AS records,
  count_if(recordsCount IS NULL) AS setsNotCounted,
  sum(sizeInBytes) AS bytes
FROM batches
GROUP BY topic, compressionType

-- name: formats
SELECT topic, magic, count(*) AS batches
FROM batches
GROUP BY topic, magic

-- name: timestampTypes
SELECT topic, timestampType, count(*) AS batches
FROM batches
GROUP BY topic, timestampType

-- name: sizes
SELECT
  topic,
  size,
  avg(value) AS mean,
  percentile_disc(0.5) WITHIN GROUP (ORDER BY value) AS p50,
  percentile_disc(0.9) WITHIN GROUP (ORDER BY value) AS p90,
  percentile_disc(0.99) WITHIN GROUP (ORDER BY value) AS p99,
  max(value) AS max
FROM (
  SELECT topic, stack(2, 'records of a batch', recordsCount, 'bytes of a batch', sizeInBytes)
    AS (size, value)
  FROM batches
  WHERE NOT isControlBatch
  UNION ALL
  SELECT topic, stack(2, 'bytes of a key', length(key), 'bytes of a value', length(value))
    AS (size, value)
  FROM records
  WHERE controlType IS NULL
)
GROUP BY topic, size
ORDER BY topic, size

-- name: producers
SELECT
  topic,
  count(DISTINCT producerId) FILTER (WHERE producerId >= 0) AS producers,
  count(DISTINCT partitionLeaderEpoch) FILTER (WHERE partitionLeaderEpoch >= 0) AS leaderEpochs,
  count_if(isTransactional AND NOT isControlBatch) AS transactionalBatches,
  count_if(isControlBatch) AS controlBatches,
  sum(aborted) AS abortedTransactions,
  sum(missing) AS missingOffsets
FROM (
  SELECT
    topic, producerId, partitionLeaderEpoch, isTransactional, isControlBatch, 0 AS aborted,
    greatest(0, baseOffset - 1 - lag(lastOffset) OVER (
      PARTITION BY topic, regexp_replace(path, '/[^/]*$', '') ORDER BY lastOffset
    )) AS missing
  FROM batches
  UNION ALL
  SELECT topic, NULL, NULL, NULL, NULL, 1, 0
  FROM transaction_index
)
GROUP BY topic

-- name: timestamps
SELECT
  topic,
  count_if(maxTimestamp < earlier) AS batchesBack,
  count_if(maxTimestamp > now()) AS batchesAhead
FROM (
  SELECT
    topic, maxTimestamp,
    max(maxTimestamp) OVER (
      PARTITION BY topic, regexp_replace(path, '/[^/]*$', '') ORDER BY lastOffset
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS earlier
  FROM batches
  WHERE maxTimestamp >= timestamp_millis(0)
)
GROUP BY topic

-- name: retention
SELECT topic, days, sum(if(newest < now() - make_dt_interval(days), bytes, 0)) AS bytes
FROM (
  SELECT topic, bytes, newest, base < max(base) OVER (PARTITION BY topic, folder) AS isClosed
  FROM (
    SELECT
      topic, regexp_replace(path, '/[^/]*$', '') AS folder, max(baseOffset) AS base,
      max(length) AS bytes, coalesce(max(time), max(modificationTime)) AS newest
    FROM (
      SELECT topic, path, baseOffset, length, modificationTime, NULL AS time
      FROM files
      WHERE suffix = '.log'
      UNION ALL
      SELECT topic, path, NULL, NULL, NULL, maxTimestamp
      FROM batches
      WHERE maxTimestamp >= timestamp_millis(0)
    )
    GROUP BY topic, path
  )
)
CROSS JOIN (SELECT explode(array(1, 3, 7, 14, 30, 90, 365)) AS days)
WHERE isClosed
GROUP BY topic, days
ORDER BY topic, days

-- name: compaction
SELECT topic, sum(records - 1) AS records, sum(records) AS ofRecords
FROM (
  SELECT topic, partition, key, count(*) AS records
  FROM records
  WHERE key IS NOT NULL AND controlType IS NULL
  GROUP BY topic, partition, key
)
GROUP BY topic

-- name: idle
SELECT topic, coalesce(max(last), max(modificationTime)) AS lastWrite
FROM (
  SELECT topic, NULL AS last, modificationTime
  FROM files
  WHERE suffix = '.log'
  UNION ALL
  SELECT topic, maxTimestamp, NULL
  FROM batches
  WHERE NOT isControlBatch AND maxTimestamp >= timestamp_millis(0)
)
GROUP BY topic
ORDER BY lastWrite

-- name: keys
SELECT
  topic,
  count(*) AS records,
  count_if(key IS NULL) AS nullKeys,
  count(DISTINCT key) AS distinctKeys,
  count_if(value IS NULL) AS tombstones,
  count_if(size(headers) > 0) AS withHeaders
FROM records
WHERE controlType IS NULL
GROUP BY topic

-- name: hottestKeys
SELECT topic, key, records
FROM (
  SELECT
    topic, key, count(*) AS records,
    row_number() OVER (PARTITION BY topic ORDER BY count(*) DESC, key) AS place
  FROM records
  WHERE key IS NOT NULL AND controlType IS NULL
  GROUP BY topic, key
)
WHERE place <= 20
ORDER BY topic, place

-- name: groups
SELECT groupId, topic, partition, offset, endOffset, endOffset - offset AS lag, committedAt
FROM (
  SELECT
    groupId, topic, partition, max_by(committedOffset, recordOffset) AS offset,
    max_by(commitTimestamp, recordOffset) AS committedAt
  FROM consumer_offsets
  WHERE isCommitted
  GROUP BY groupId, topic, partition
  HAVING NOT max_by(isDeleted, recordOffset)
)
LEFT JOIN (
  SELECT topic, partition, max(end) AS endOffset
  FROM (
    SELECT topic, partition, lastOffset + 1 AS end
    FROM batches
    UNION ALL
    SELECT topic, partition, baseOffset
    FROM files
    WHERE suffix = '.log'
  )
  GROUP BY topic, partition
) USING (topic, partition)
ORDER BY lag DESC

-- name: trouble
SELECT *
FROM corruption

-- name: indexes
SELECT path, problem
FROM indexes
WHERE problems > 0 AND suffix IN ('.index', '.timeindex')
