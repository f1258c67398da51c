-- title: Timestamp anomalies
-- question: Which producers have a wrong clock, and which records are out of order?
-- answer: Retention by time uses the largest timestamp of a segment. A record from the future keeps
--   its segment until that time; set `message.timestamp.after.max.ms` to have brokers refuse such
--   records. Seconds instead of milliseconds become dates in January 1970, and a segment with only
--   such timestamps is deleted at once. A batch counts as in the future if its timestamp is more
--   than an hour later than the modification time of the segment's file. So a file that was copied
--   without its modification time hides some. To compare with the current time, replace
--   `modificationTime` with `current_timestamp()`. A record is out of order if the record before it
--   has a later timestamp. A few records out of order, by seconds, are normal if several producers
--   write.
-- reads: batches (topic, partition, path, baseOffset, recordsCount, producerId, timestampType,
--   maxTimestamp), files (path, modificationTime), records (topic, partition, offset, timestamp,
--   timestampType)
-- cost: the first two statements read headers of batches. The third decodes offsets and timestamps
--   of all records, and sorts them within each partition.

SELECT
  batches.topic,
  batches.partition,
  count(*) AS batches,
  count_if(maxTimestamp > modificationTime + INTERVAL '1' HOUR) AS inTheFuture,
  count_if(maxTimestamp < TIMESTAMP '2000-01-01 00:00:00Z') AS before2000,
  min(maxTimestamp) AS oldest,
  max(maxTimestamp) AS newest
FROM batches JOIN files ON files.path = batches.path
GROUP BY batches.topic, batches.partition
ORDER BY batches.topic, batches.partition;

-- The batches with such timestamps.
SELECT
  batches.topic,
  batches.partition,
  batches.baseOffset,
  recordsCount,
  producerId,
  maxTimestamp
FROM batches JOIN files ON files.path = batches.path
WHERE maxTimestamp > modificationTime + INTERVAL '1' HOUR
  OR maxTimestamp < TIMESTAMP '2000-01-01 00:00:00Z'
ORDER BY batches.topic, batches.partition, batches.baseOffset
LIMIT 100;

-- Records out of order, if producers set the timestamps.
WITH followed AS (
  SELECT
    topic,
    partition,
    timestamp,
    lag(timestamp) OVER (PARTITION BY topic, partition ORDER BY offset, timestamp) AS before
  FROM records
  WHERE timestampType = 0
)
SELECT
  topic,
  partition,
  count(*) AS records,
  count_if(timestamp < before) AS outOfOrder,
  percentile_approx(timestampdiff(SECOND, timestamp, before), 0.5)
    FILTER (WHERE timestamp < before) AS medianSeconds,
  max(timestampdiff(SECOND, timestamp, before)) FILTER (WHERE timestamp < before) AS mostSeconds
FROM followed
GROUP BY topic, partition
ORDER BY topic, partition;
