-- signature: kafka_corruption(content)
-- group: Segments
-- description: Returns the damaged stretches of a log segment, with the reasons and the missing offsets. It
--   decodes every batch. Each struct is a stretch without a sound batch. An incomplete batch at the
--   end and the zeros of a preallocated file are not damage.
-- content: BINARY, the bytes of a segment, as `binaryFile` loads them.
-- returns: ARRAY of STRUCT with the columns of the data source's kind `corruption` except topic,
--   partition and path, which the bytes do not contain. Empty if nothing is damaged. NULL for NULL.
-- since: 1.0.0
-- see also: kafka_records, kafka_log

-- A batch with a wrong checksum between two sound batches. It has the offsets 8 to 10.
-- X'': batch([Record(value=b"v")], base_offset=7)
-- X'': broken("wrong crc", base_offset=8)
-- X'': batch([Record(value=b"x")], base_offset=11)
SELECT inline(kafka_corruption(content)) FROM VALUES (
  X'0000000000000007000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600' ||
  X'0000000000000008000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801' ||
  X'000000000000000B00000039000000000227293EFF0000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027800'
) AS log(content);

-- No batch follows the damaged one: the missing offsets begin at 8, and their end is not known.
-- X'': batch([Record(value=b"v")], base_offset=7)
-- X'': broken("wrong crc", base_offset=8)
SELECT damage.position, damage.firstMissingOffset, damage.lastMissingOffset FROM VALUES (
  X'0000000000000007000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600' ||
  X'0000000000000008000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
) AS log(content) LATERAL VIEW explode(kafka_corruption(content)) AS damage;

-- Count the damaged stretches of several segments.
-- X'': batch([Record(value=b"v")])
-- X'': broken("too many records")
SELECT name, size(kafka_corruption(content)) AS damaged FROM VALUES
  ('sound', X'0000000000000000000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600'),
  ('broken', X'000000000000000000000073000000000233E867130000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000022A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801')
AS segments(name, content);

SELECT kafka_corruption(NULL) AS ofNull, kafka_corruption(X'') AS ofNothing;
