-- signature: kafka_leader_epochs(content)
-- description: Returns which leader's epoch began at which offset.
-- content: BINARY, the bytes of a leader-epoch-checkpoint file, as `binaryFile` loads them.
-- returns: ARRAY of `STRUCT<epoch: INT, startOffset: BIGINT>`. NULL for NULL.
-- since: 0.1.0
-- see also: try_kafka_leader_epochs, kafka_checkpoint

-- X'': b"0\n2\n0 0\n2 5\n"
SELECT inline(kafka_leader_epochs(X'300A320A3020300A3220350A'));

-- A file that has fewer entries than it says raises.
-- X'': b"0\n2\n0 0\n"
SELECT kafka_leader_epochs(X'300A320A3020300A');

SELECT kafka_leader_epochs(NULL) AS ofNull;
