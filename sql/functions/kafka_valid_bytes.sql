-- signature: kafka_valid_bytes(content)
-- group: Segments
-- description: Returns the number of bytes up to the end of the last complete batch of a log
--   segment. A broker truncates the segment there after a crash. Checksums are not verified.
-- content: BINARY, the bytes of a segment, as `binaryFile` loads them.
-- returns: BIGINT. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_record_batches, kafka_corruption

-- A complete batch, and 4 bytes of the next.
-- X'': batch([Record(value=b"v")]) + b"torn"
SELECT octet_length(content) AS bytes, kafka_valid_bytes(content) AS validBytes FROM VALUES (
  X'0000000000000000000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600746F726E'
) AS log(content);

-- A complete batch, and the zeros of a preallocated file.
-- X'': batch([Record(value=b"v")]) + bytes(27)
SELECT octet_length(content) AS bytes, kafka_valid_bytes(content) AS validBytes FROM VALUES (
  X'0000000000000000000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600000000000000000000000000000000000000000000000000000000'
) AS log(content);

-- A length that no batch can have raises an error.
-- X'': broken("batch shorter than an entry")
SELECT kafka_valid_bytes(
  X'00000000000000000000000D00000000024CD95F4F0000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
);

SELECT kafka_valid_bytes(NULL) AS ofNull, kafka_valid_bytes(X'') AS ofNothing;

-- `try_kafka_valid_bytes` returns NULL instead of the error.
-- X'': broken("batch shorter than an entry")
SELECT try_kafka_valid_bytes(
  X'00000000000000000000000D00000000024CD95F4F0000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
) AS damaged;
