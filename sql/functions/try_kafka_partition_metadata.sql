-- signature: try_kafka_partition_metadata(content)
-- description: Returns what `kafka_partition_metadata` does, or NULL where that would raise because
--   of damage. What is wrong with a query still raises.
-- content: BINARY, the bytes of a partition.metadata file, as `binaryFile` loads them.
-- returns: `STRUCT<version: INT, topicId: STRING>`, as `kafka_partition_metadata`. NULL for damage,
--   and for NULL.
-- since: 0.1.0
-- see also: kafka_partition_metadata

-- What is not damaged is read.
-- X'': b"version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA"
SELECT try_kafka_partition_metadata(X'76657273696F6E3A20300A746F7069635F69643A2070554D33424D7356516B3266652D6B6C6745674C4C41').topicId AS topicId;

-- A file without an id.
-- X'': b"version: 0\n"
SELECT try_kafka_partition_metadata(X'76657273696F6E3A20300A') AS damaged;

SELECT try_kafka_partition_metadata(NULL) AS ofNull;
