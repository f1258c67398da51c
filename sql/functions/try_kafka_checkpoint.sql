-- signature: try_kafka_checkpoint(content)
-- description: Returns what `kafka_checkpoint` does, or NULL where that would raise because of
--   damage. What is wrong with a query still raises.
-- content: BINARY, the bytes of a checkpoint, as `binaryFile` loads them.
-- returns: ARRAY of `STRUCT<topic: STRING, partition: INT, offset: BIGINT>`, as `kafka_checkpoint`.
--   NULL for damage, and for NULL.
-- since: 0.1.0
-- see also: kafka_checkpoint

-- What is not damaged is read.
-- X'': b"0\n2\norders 0 27\npayments 1 10\n"
SELECT inline(try_kafka_checkpoint(X'300A320A6F726465727320302032370A7061796D656E747320312031300A'));

-- A line that is no entry.
-- X'': b"0\n1\norders 27\n"
SELECT try_kafka_checkpoint(X'300A310A6F72646572732032370A') AS damaged;

SELECT try_kafka_checkpoint(NULL) AS ofNull;
