-- signature: kafka_meta_properties(content)
-- group: Snapshots, checkpoints and metadata
-- description: Returns the properties in a meta.properties file, which identify the cluster and the
--   node that a `log.dirs` folder belongs to.
-- content: BINARY, the bytes of a meta.properties file, as `binaryFile` loads them.
-- returns: ARRAY of `STRUCT<key: STRING, value: STRING>`; `map_from_entries` makes it a MAP. NULL
--   for NULL.
-- since: 1.0.0
-- see also: kafka_quorum_state, kafka_partition_metadata

-- X'': b"version=1\ncluster.id=mkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\n"
SELECT inline(kafka_meta_properties(X'76657273696F6E3D310A636C75737465722E69643D6D6B55334F4556424E5463774E544A454E444D3251670A6E6F64652E69643D310A'));

-- A single property.
-- X'': b"version=1\ncluster.id=mkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\n"
SELECT map_from_entries(kafka_meta_properties(X'76657273696F6E3D310A636C75737465722E69643D6D6B55334F4556424E5463774E544A454E444D3251670A6E6F64652E69643D310A'))['node.id'] AS nodeId;

-- A missing id raises an error.
-- X'': b"version=1\nnode.id=1\n"
SELECT kafka_meta_properties(X'76657273696F6E3D310A6E6F64652E69643D310A');

SELECT kafka_meta_properties(NULL) AS ofNull;

-- `try_kafka_meta_properties` returns NULL instead of the error.
-- X'': b"version=1\nnode.id=1\n"
SELECT try_kafka_meta_properties(X'76657273696F6E3D310A6E6F64652E69643D310A') AS damaged;
