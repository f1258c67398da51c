-- signature: kafka_partition(key, partitions)
-- group: Paths and keys
-- description: Returns the partition that Kafka's Java producer chooses for a key: murmur2 of the
--   key, as in BuiltInPartitioner. Other clients can have another default, such as librdkafka's
--   consistent_random.
-- key: BINARY, or STRING as its UTF-8 bytes.
-- partitions: INT, the number of partitions of the topic.
-- returns: INT. NULL for NULL: producers spread records without a key over the partitions, each in
--   its own way.
-- since: 1.0.0
-- see also: kafka_encode_batch, kafka_log_path

SELECT kafka_partition('user-1', 12) AS ofText, kafka_partition(X'757365722D31', 12) AS ofBytes;

-- Check whether a topic's records are in the partitions of their keys. If not, another partitioner
-- produced them, or partitions were added later.
SELECT count_if(partition != kafka_partition(key, 3)) AS elsewhere FROM VALUES
  ('orders', 2, X'757365722D31'), ('orders', 1, X'757365722D32'), ('orders', 2, NULL)
  AS records(topic, partition, key);

-- The partition of each key before and after a topic gets more partitions.
SELECT key, kafka_partition(key, 3) AS before, kafka_partition(key, 12) AS after
FROM VALUES ('user-1'), ('user-2'), ('user-3'), ('') AS t(key);

SELECT kafka_partition(NULL, 12) AS ofNoKey, kafka_partition('user-1', NULL) AS ofUnknown;

SELECT kafka_partition('user-1', 0);
