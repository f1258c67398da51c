-- signature: kafka_log_path(path)
-- group: Paths and keys
-- description: Returns the parts of the path of a segment's file. Files and folders that a broker
--   is about to delete have their own suffix.
-- path: STRING, a path or URI, as `binaryFile` returns it.
-- returns: `STRUCT<topic: STRING, partition: INT, baseOffset: BIGINT, suffix: STRING>`. Parts that
--   the path does not have are NULL. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_records, kafka_partition

SELECT log.* FROM (SELECT kafka_log_path('/var/kafka/orders-3/00000000000000000042.log') AS log);

-- The name of a topic can have hyphens and dots. This is the index of a deleted segment.
SELECT log.* FROM (
  SELECT kafka_log_path('s3://backup/eu-west.orders-12/00000000000000000042.index.deleted') AS log
);

-- Parts that a path does not have are NULL.
SELECT path, log.* FROM (SELECT path, kafka_log_path(path) AS log FROM VALUES
  ('/var/kafka/orders-3'), ('orders-3/notes.txt'), ('00000000000000000042.log'), (NULL) AS t(path));

SELECT kafka_log_path(NULL) AS ofNull;
