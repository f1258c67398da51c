-- signature: kafka_schema_id(value)
-- group: Keys and values
-- description: Returns the id in front of a key or a value, by which a schema registry names the
--   schema. The framings of Confluent and Apicurio have such a number.
-- value: BINARY, the record's key or value.
-- returns: INT. NULL if nothing in front of the value is an id of 32 bits, and for NULL.
-- since: 1.0.0
-- see also: kafka_decode_value

-- The values of a topic by the schema that wrote them.
SELECT kafka_schema_id(value) AS id, count(*) AS records
FROM VALUES (X'000000000754'), (X'000000000756'), (X'000000000956'), (X'7B7D') AS orders(value)
GROUP BY ALL ORDER BY id NULLS LAST;

SELECT kafka_schema_id(NULL) AS ofNull;
