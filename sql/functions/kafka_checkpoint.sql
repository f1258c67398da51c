-- signature: kafka_checkpoint(content)
-- group: Snapshots, checkpoints and metadata
-- description: Returns the offsets in a checkpoint of a `log.dirs` folder:
--   `cleaner-offset-checkpoint`, `log-start-offset-checkpoint`, `recovery-point-offset-checkpoint`
--   or `replication-offset-checkpoint`.
-- content: BINARY, the bytes of a checkpoint, as `binaryFile` loads them.
-- returns: ARRAY of `STRUCT<topic: STRING, partition: INT, offset: BIGINT>`. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_leader_epochs

-- X'': b"0\n2\norders 0 27\npayments 1 10\n"
SELECT inline(kafka_checkpoint(X'300A320A6F726465727320302032370A7061796D656E747320312031300A'));

-- A line that is not an entry raises an error.
-- X'': b"0\n1\norders 27\n"
SELECT kafka_checkpoint(X'300A310A6F72646572732032370A');

SELECT kafka_checkpoint(NULL) AS ofNull;

-- `try_kafka_checkpoint` returns NULL instead of the error.
-- X'': b"0\n1\norders 27\n"
SELECT try_kafka_checkpoint(X'300A310A6F72646572732032370A') AS damaged;
