-- signature: try_kafka_meta_properties(content)
-- description: Returns what `kafka_meta_properties` does, or NULL where that would raise because of
--   damage. What is wrong with a query still raises.
-- content: BINARY, the bytes of a meta.properties file, as `binaryFile` loads them.
-- returns: ARRAY of `STRUCT<key: STRING, value: STRING>`, as `kafka_meta_properties`. NULL for
--   damage, and for NULL.
-- since: 0.1.0
-- see also: kafka_meta_properties

-- What is not damaged is read.
-- X'': b"version=1\ncluster.id=mkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\n"
SELECT inline(try_kafka_meta_properties(X'76657273696F6E3D310A636C75737465722E69643D6D6B55334F4556424E5463774E544A454E444D3251670A6E6F64652E69643D310A'));

-- An id that is missing.
-- X'': b"version=1\nnode.id=1\n"
SELECT try_kafka_meta_properties(X'76657273696F6E3D310A6E6F64652E69643D310A') AS damaged;

SELECT try_kafka_meta_properties(NULL) AS ofNull;
