-- title: Avro values
-- question: What is in a topic whose values are Avro, and which producers still write an old
--   schema?
-- answer: If the log of the schema registry (`_schemas-0`) is among the logs or beside them,
--   `kafkajit sql` types the topic's values: `value.carrier` is a column, whichever version of the
--   schema a record was written with. In your own Spark session, create the view with `OPTIONS
--   (path '/var/kafka/shipments-*', schemas 'auto')`. A tombstone has the value NULL. `rawValue`
--   has the bytes: a zero, the id of the schema in four bytes, and the encoded value. The view
--   `schemas` names the version that has this id.
-- reads: shipments (offset, timestamp, value, rawValue), schemas (subject, version, id)
-- cost: decodes only those fields of values that the query names. The last statement decodes none.

-- Records by a field.
SELECT
  value.carrier,
  count(*) AS shipments,
  round(sum(value.weight), 2) AS weight,
  max(value.created) AS latest
FROM shipments
WHERE value IS NOT NULL
GROUP BY value.carrier
ORDER BY shipments DESC, carrier;

-- Records by the elements of an array.
SELECT parcel.sku, count(*) AS parcels, sum(parcel.price) AS price
FROM shipments LATERAL VIEW explode(value.parcels) AS parcel
GROUP BY parcel.sku
ORDER BY price DESC, sku;

-- The versions that producers write. Here a producer still writes version 1 after version 2 has come.
WITH written AS (
  SELECT
    CAST(conv(hex(substring(rawValue, 2, 4)), 16, 10) AS INT) AS id,
    count(*) AS records,
    min(offset) AS firstOffset,
    max(offset) AS lastOffset,
    max(timestamp) AS latest
  FROM shipments
  WHERE rawValue IS NOT NULL
  GROUP BY id
)
SELECT subject, version, id, records, firstOffset, lastOffset, latest
FROM written JOIN schemas USING (id)
ORDER BY subject, version;
