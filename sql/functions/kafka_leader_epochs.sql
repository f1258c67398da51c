-- signature: kafka_leader_epochs(content)
-- group: Snapshots, checkpoints and metadata
-- description: Returns the leader epochs of a leader-epoch-checkpoint file, and the offset at which
--   each began.
-- content: BINARY, the bytes of a leader-epoch-checkpoint file, as `binaryFile` loads them.
-- returns: ARRAY of `STRUCT<epoch: INT, startOffset: BIGINT>`. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_checkpoint

-- X'': b"0\n2\n0 0\n2 5\n"
SELECT inline(kafka_leader_epochs(X'300A320A3020300A3220350A'));

-- A file with fewer entries than its second line announces raises an error.
-- X'': b"0\n2\n0 0\n"
SELECT kafka_leader_epochs(X'300A320A3020300A');

SELECT kafka_leader_epochs(NULL) AS ofNull;

-- `try_kafka_leader_epochs` returns NULL instead of the error.
-- X'': b"0\n2\n0 0\n"
SELECT try_kafka_leader_epochs(X'300A320A3020300A') AS damaged;
