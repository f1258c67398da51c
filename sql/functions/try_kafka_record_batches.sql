-- signature: try_kafka_record_batches(content)
-- description: Returns the headers of the record batches of a log segment, or NULL where batches
--   cannot be told apart.
-- content: BINARY, the bytes of a segment, as `binaryFile` loads them.
-- returns: ARRAY of STRUCT, as `kafka_record_batches`. NULL for damage, and for NULL.
-- since: 0.1.0
-- see also: kafka_record_batches

-- X'': batch([Record(value=b"v"), Record(value=b"w")], base_offset=7)
SELECT try_kafka_record_batches(
  X'0000000000000007000000410000000002497A433D0000000000010000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000020E000000010276000E00000201027700'
).recordsCount AS counts;

-- A length that no batch can have.
-- X'': broken("batch shorter than an entry")
SELECT try_kafka_record_batches(
  X'00000000000000000000000D00000000024CD95F4F0000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
) AS tooShort;

SELECT try_kafka_record_batches(NULL) AS ofNull;
