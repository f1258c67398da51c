-- signature: kafka_log(segments [, columns [, mode]])
-- group: Segments
-- description: A table function: returns the records of segments of any size, in bounded memory.
--   The argument is a table with a column `path` or `content`, as in `TABLE(SELECT path FROM …)`,
--   or a single path or content. Spark reads each segment in one task, and as many segments in
--   parallel as the table has partitions. The data source can also split a segment and skip parts
--   of it.
-- segments: TABLE, or STRING for a path, or BINARY for the bytes of a segment. Rows that are NULL
--   are skipped. Names of columns are not case-sensitive.
-- columns: STRING, the columns to decode, separated by commas. The other columns are NULL. Default:
--   all columns.
-- mode: STRING, `FAILFAST` (the default) raises an error at a damaged batch, `DROPMALFORMED` skips
--   it, `PERMISSIVE` returns a row whose column `corruption` describes the damage.
-- returns: TABLE with the columns of a record, and `corruption`. `topic` and `partition` come from
--   the path.
-- since: 1.0.0
-- see also: kafka_records, kafka_corruption

-- Segments by path. `files` is a view of the data source with kind `files`.
SELECT topic, partition, count(*) AS records, min(offset) AS first, max(offset) AS last
FROM kafka_log(
  TABLE(SELECT path FROM files WHERE topic = 'payments' AND suffix = '.log'),
  columns => 'topic, partition, offset'
)
GROUP BY topic, partition
ORDER BY topic, partition;

-- Segments by content, as `binaryFile` loads them.
-- X'': batch([Record(key=b"k", value=b"v"), Record(value=b"w")], base_offset=7)
SELECT offset, key, value FROM kafka_log(TABLE(SELECT * FROM VALUES (
  X'000000000000000700000042000000000246E076B80000000000010000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF0000000210000000026B0276000E00000201027700'
) AS log(content)));

-- Decode two columns of a single content.
-- X'': batch([Record(key=b"k", value=b"v"), Record(value=b"w")], base_offset=7)
SELECT offset, key, value FROM kafka_log(
  X'000000000000000700000042000000000246E076B80000000000010000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF0000000210000000026B0276000E00000201027700',
  columns => 'offset, value'
);

-- Damage raises an error.
-- X'': broken("wrong crc")
SELECT offset FROM kafka_log(
  X'0000000000000000000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801'
);

-- `PERMISSIVE` reports the position, the length and the reason.
-- X'': batch([Record(value=b"v")])
-- X'': broken("wrong crc", base_offset=1)
-- X'': batch([Record(value=b"x")], base_offset=4)
SELECT offset, value, corruption.* FROM kafka_log(
  X'0000000000000000000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600' ||
  X'0000000000000001000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801' ||
  X'000000000000000400000039000000000227293EFF0000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027800',
  mode => 'PERMISSIVE'
);

-- `DROPMALFORMED` skips the damaged batch.
-- X'': broken("wrong crc")
-- X'': batch([Record(value=b"x")], base_offset=3)
SELECT offset, value FROM kafka_log(
  X'0000000000000000000000730000000002000000010000000000020000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000032A000000066B65790A76616C756504026802310268012A000002066B65790A76616C756504026802310268012A000004066B65790A76616C75650402680231026801' ||
  X'000000000000000300000039000000000227293EFF0000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027800',
  mode => 'DROPMALFORMED'
);

-- NULL is skipped.
SELECT offset FROM kafka_log(TABLE(SELECT CAST(NULL AS STRING) AS path));

-- Topic and partition come from the path, even if the table also has the content.
-- X'': batch([Record(value=b"v")], base_offset=42)
SELECT topic, partition, offset FROM kafka_log(TABLE(SELECT * FROM VALUES (
  '/var/kafka/orders-3/00000000000000000042.log',
  X'000000000000002A000000390000000002D3F2AC750000000000000000018BCFE568000000018BCFE56800FFFFFFFFFFFFFFFFFFFFFFFFFFFF000000010E00000001027600'
) AS log(path, content)));

SELECT * FROM kafka_log('/no/such/orders-3/00000000000000000042.log');

SELECT * FROM kafka_log(TABLE(SELECT 1 AS id));

SELECT * FROM kafka_log(X'', columns => 'ofset');

SELECT * FROM kafka_log(X'', mode => 'STRICT');
