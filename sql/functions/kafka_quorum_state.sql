-- signature: kafka_quorum_state(content)
-- group: Snapshots, checkpoints and metadata
-- description: Returns what a node of the KRaft quorum knows about its election, from a
--   quorum-state file.
-- content: BINARY, the bytes of a quorum-state file, as `binaryFile` loads them.
-- returns: STRUCT with the columns of the data source's kind `quorumState` except those that come
--   from the path. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_meta_properties

-- X'': b'{"leaderId":1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
--   + b'"data_version":1}'
SELECT state.leaderId, state.leaderEpoch, state.votedId, state.dataVersion
FROM (SELECT kafka_quorum_state(X'7B226C65616465724964223A312C226C656164657245706F6368223A332C22766F7465644964223A2D312C22766F7465644469726563746F72794964223A2241414141414141414141414141414141414141414141222C22646174615F76657273696F6E223A317D') AS state);

-- A file that is not JSON raises an error.
-- X'': b"leader=1"
SELECT kafka_quorum_state(X'6C65616465723D31');

SELECT kafka_quorum_state(NULL) AS ofNull;

-- `try_kafka_quorum_state` returns NULL instead of the error.
-- X'': b"leader=1"
SELECT try_kafka_quorum_state(X'6C65616465723D31') AS damaged;
