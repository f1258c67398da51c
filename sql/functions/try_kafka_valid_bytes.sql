-- signature: try_kafka_valid_bytes(content)
-- description: Returns the number of bytes up to the end of the last whole batch of a log segment,
--   or NULL where batches cannot be told apart.
-- content: BINARY, the bytes of a segment, as `binaryFile` loads them.
-- returns: BIGINT. NULL for damage, and for NULL.
-- since: 0.1.0
-- see also: kafka_valid_bytes

-- X'': batch([Record(value=b"v")]) + b"torn"
SELECT try_kafka_valid_bytes(
  X'0000000000000000000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600746F726E'
) AS validBytes;

-- A length that no batch can have.
-- X'': broken("batch shorter than an entry")
SELECT try_kafka_valid_bytes(
  X'00000000000000000000000D00000000024CD95F4F0000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
) AS tooShort;

SELECT try_kafka_valid_bytes(NULL) AS ofNull;
