-- signature: kafka_partition_metadata(content)
-- group: Snapshots, checkpoints and metadata
-- description: Returns the topic's id in a partition.metadata file.
-- content: BINARY, the bytes of a partition.metadata file, as `binaryFile` loads them.
-- returns: `STRUCT<version: INT, topicId: STRING>`. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_meta_properties

-- X'': b"version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA"
SELECT kafka_partition_metadata(X'76657273696F6E3A20300A746F7069635F69643A2070554D33424D7356516B3266652D6B6C6745674C4C41').topicId AS topicId;

-- A file without an id raises an error.
-- X'': b"version: 0\n"
SELECT kafka_partition_metadata(X'76657273696F6E3A20300A');

SELECT kafka_partition_metadata(NULL) AS ofNull;

-- `try_kafka_partition_metadata` returns NULL instead of the error.
-- X'': b"version: 0\n"
SELECT try_kafka_partition_metadata(X'76657273696F6E3A20300A') AS damaged;
