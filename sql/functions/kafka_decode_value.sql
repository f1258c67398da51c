-- signature: kafka_decode_value(value, schema)
-- group: Keys and values
-- description: Returns a key or value in Avro, Protobuf or JSON as VARIANT. Take fields out of it
--   with a path and a type, as in `kafka_decode_value(value, schema):customer.id::bigint`. Values
--   keep their types: a decimal is a DECIMAL, a timestamp a TIMESTAMP. Bytes in front of a value
--   that name a schema are recognized.
-- value: BINARY, the record's key or value.
-- schema: STRING, the schema with which all values have been written, as text or as the path of an
--   .avsc or .proto file; or the path of a registry's log such as /var/kafka/_schemas-0, which has
--   the schemas that the values name.
-- returns: VARIANT. NULL if an argument is NULL, and for a value that is Avro's null.
-- since: 1.0.0
-- see also: kafka_schema_id

SELECT decoded:id::bigint AS id, decoded:sku::string AS sku FROM (
  SELECT kafka_decode_value(value, '{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "sku", "type": "string"}]}') AS decoded
  FROM VALUES (X'00000000075406412D31'), (X'00000000075606412D32') AS orders(value)
);

-- The types in a value.
SELECT decoded, schema_of_variant(decoded) AS type FROM (
  SELECT kafka_decode_value(X'000000000780808982E2F586060404D2', '{"type": "record", "name": "Payment", "fields": [
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "amount", "type": {
      "type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}]}') AS decoded
);

-- A value that does not fit the schema raises an error.
SELECT kafka_decode_value(X'000000000754', '"string"');

SELECT kafka_decode_value(NULL, '"long"') AS ofNull, kafka_decode_value(X'54', NULL) AS ofNoSchema;

-- `try_kafka_decode_value` returns NULL instead of the error.
SELECT try_kafka_decode_value(X'000000000754', '"string"') AS malformed;
