-- signature: kafka_meta_properties(content)
-- description: Returns the properties of a meta.properties file: whose `log.dirs` folder it is.
-- content: BINARY, the bytes of a meta.properties file, as `binaryFile` loads them.
-- returns: ARRAY of `STRUCT<key: STRING, value: STRING>`; `map_from_entries` makes a MAP of it.
--   NULL for NULL.
-- since: 0.1.0
-- see also: try_kafka_meta_properties, kafka_quorum_state

-- X'': b"version=1\ncluster.id=mkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\n"
SELECT inline(kafka_meta_properties(X'76657273696F6E3D310A636C75737465722E69643D6D6B55334F4556424E5463774E544A454E444D3251670A6E6F64652E69643D310A'));

-- One of them.
-- X'': b"version=1\ncluster.id=mkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\n"
SELECT map_from_entries(kafka_meta_properties(X'76657273696F6E3D310A636C75737465722E69643D6D6B55334F4556424E5463774E544A454E444D3251670A6E6F64652E69643D310A'))['node.id'] AS nodeId;

-- An id that is missing raises.
-- X'': b"version=1\nnode.id=1\n"
SELECT kafka_meta_properties(X'76657273696F6E3D310A6E6F64652E69643D310A');

SELECT kafka_meta_properties(NULL) AS ofNull;
