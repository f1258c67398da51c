-- signature: kafka_partition(key, partitions)
-- description: Returns the partition that Kafka's producers put records with this key in: murmur2 of
--   the key, as BuiltInPartitioner has it. Clients of another ancestry may have another default, such
--   as librdkafka's consistent_random.
-- key: BINARY or STRING, which is its UTF-8.
-- partitions: INT, how many the topic has.
-- returns: INT. NULL for NULL: producers spread records without a key, each in its way.
-- since: 0.1.0
-- see also: kafka_encode_batch

SELECT kafka_partition('user-1', 12) AS ofText, kafka_partition(X'757365722D31', 12) AS ofBytes;

-- Whether a topic's records are where their keys say. An answer other than 0 names those that were
-- produced by another partitioner, or before the topic had so many partitions.
SELECT count_if(partition != kafka_partition(key, 3)) AS elsewhere FROM VALUES
  ('orders', 2, X'757365722D31'), ('orders', 1, X'757365722D32'), ('orders', 2, NULL)
  AS records(topic, partition, key);

-- Where keys go when a topic gets more partitions.
SELECT key, kafka_partition(key, 3) AS before, kafka_partition(key, 12) AS after
FROM VALUES ('user-1'), ('user-2'), ('user-3'), ('') AS t(key);

SELECT kafka_partition(NULL, 12) AS ofNoKey, kafka_partition('user-1', NULL) AS ofUnknown;

SELECT kafka_partition('user-1', 0);
