-- signature: kafka_log_path(path)
-- description: Returns what the path of a segment's file says. Folders and files on their way out
--   of a log are told by the suffix.
-- path: STRING, a path or URI, as `binaryFile` gives it.
-- returns: `STRUCT<topic: STRING, partition: INT, baseOffset: BIGINT, suffix: STRING>`. What a path
--   does not say is NULL. NULL for NULL.
-- since: 0.1.0
-- see also: kafka_records

SELECT log.* FROM (SELECT kafka_log_path('/var/kafka/orders-3/00000000000000000042.log') AS log);

-- A topic's name may have hyphens and dots. The index that belongs to a deleted segment:
SELECT log.* FROM (
  SELECT kafka_log_path('s3://backup/eu-west.orders-12/00000000000000000042.index.deleted') AS log
);

-- Parts that a path does not have are NULL.
SELECT path, log.* FROM (SELECT path, kafka_log_path(path) AS log FROM VALUES
  ('/var/kafka/orders-3'), ('orders-3/notes.txt'), ('00000000000000000042.log'), (NULL) AS t(path));

SELECT kafka_log_path(NULL) AS ofNull;
