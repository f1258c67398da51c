-- title: Tombstones and keys by count
-- question: What would compaction leave of a topic, and do a few keys have most of its records?
-- answer: `superseded` counts records that a later record with the same key in the same partition
--   replaces: compaction can remove them. `deleted` counts keys whose last record is a tombstone,
--   which compaction can also remove after `delete.retention.ms`. Records without a key cannot be
--   compacted, and brokers refuse them on a compacted topic. If a key has records in several
--   partitions, they are no longer in order: partitions were added, or clients use different
--   partitioners.
-- reads: records (topic, partition, offset, key, value, controlType)
-- cost: decodes all keys and values, though it only checks whether a value is NULL.
--   `approx_count_distinct` takes little memory; the other statements shuffle one row for each key.

SELECT
  topic,
  count(*) AS records,
  count_if(key IS NULL) AS withoutKey,
  count_if(value IS NULL) AS tombstones,
  approx_count_distinct(key) AS keys
FROM records
WHERE controlType IS NULL
GROUP BY topic
ORDER BY topic;

-- What compaction would leave. It works within a partition.
WITH latest AS (
  SELECT topic, partition, key, count(*) AS records, max_by(value IS NULL, offset) AS isDeleted
  FROM records
  WHERE controlType IS NULL AND key IS NOT NULL
  GROUP BY topic, partition, key
)
SELECT
  topic,
  partition,
  sum(records) AS records,
  count(*) AS keys,
  count_if(isDeleted) AS deleted,
  sum(records) - count(*) AS superseded
FROM latest
GROUP BY topic, partition
ORDER BY topic, partition;

-- The three keys of each topic with most records, and the number of partitions that they are in.
WITH counted AS (
  SELECT topic, key, count(*) AS records, count(DISTINCT partition) AS partitions
  FROM records
  WHERE controlType IS NULL AND key IS NOT NULL
  GROUP BY topic, key
),
placed AS (
  SELECT *, row_number() OVER (PARTITION BY topic ORDER BY records DESC, key) AS place
  FROM counted
)
SELECT topic, CAST(key AS STRING) AS key, records, partitions
FROM placed
WHERE place <= 3
ORDER BY topic, place;
