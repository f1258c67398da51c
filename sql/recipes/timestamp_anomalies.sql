-- title: Timestamp anomalies
-- question: Are there clocks that are wrong, and records that came late?
-- answer: Retention by time goes by a segment's largest timestamp. One record from the future keeps
--   its segment until then; `message.timestamp.after.max.ms` makes a broker refuse such records.
--   Seconds where milliseconds belong are dates in January 1970, and a segment full of them is
--   deleted at once. Future means later than the segment's file was last written, an hour allowed;
--   a file that was copied without its time hides some. Put `current_timestamp()` for
--   `modificationTime` to compare with today. A record is out of order when the one before it has a
--   later timestamp: where several producers write, a few are, by seconds.
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

-- Which batches those are.
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

-- Out of order, where producers set the timestamps.
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
