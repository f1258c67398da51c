-- signature: try_kafka_leader_epochs(content)
-- description: Returns what `kafka_leader_epochs` does, or NULL where that would raise because of
--   damage. What is wrong with a query still raises.
-- content: BINARY, the bytes of a leader-epoch-checkpoint file, as `binaryFile` loads them.
-- returns: ARRAY of `STRUCT<epoch: INT, startOffset: BIGINT>`, as `kafka_leader_epochs`. NULL for
--   damage, and for NULL.
-- since: 0.1.0
-- see also: kafka_leader_epochs

-- What is not damaged is read.
-- X'': b"0\n2\n0 0\n2 5\n"
SELECT inline(try_kafka_leader_epochs(X'300A320A3020300A3220350A'));

-- A file that has fewer entries than it says.
-- X'': b"0\n2\n0 0\n"
SELECT try_kafka_leader_epochs(X'300A320A3020300A') AS damaged;

SELECT try_kafka_leader_epochs(NULL) AS ofNull;
