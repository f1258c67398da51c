-- signature: try_kafka_encode_batch(records [, options])
-- description: Returns records as a record batch, as it stands in a log, NULL where they cannot be
--   one.
-- records: ARRAY of STRUCT, as for `kafka_encode_batch`.
-- options: MAP of STRING to STRING, as for `kafka_encode_batch`. Unknown ones still raise.
-- returns: BINARY.
-- since: 0.1.0
-- see also: kafka_encode_batch

-- Offsets that go back are no batch.
SELECT id, length(try_kafka_encode_batch(
  array(named_struct('offset', 2, 'value', 'v'), named_struct('offset', id, 'value', 'w'))
)) AS bytes FROM range(1, 4);

SELECT try_kafka_encode_batch(array(named_struct('key', 'k')), map('compressionType', 'brotli'));
