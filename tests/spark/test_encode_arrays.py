from __future__ import annotations

import pyarrow as pa
import pytest

import kafkajit
import kafkajit.testing as kt
from kafkajit.errors import InvalidOffsetError
from kafkajit.schema import RECORDS_TYPE
from kafkajit.spark.catalogue import evaluator

kafka_records = evaluator("kafka_records")
kafka_encode_batch = evaluator("kafka_encode_batch")
try_kafka_encode_batch = evaluator("try_kafka_encode_batch")

OPTIONS = pa.map_(pa.string(), pa.string())
LOG = kt.batch(
    [kt.Record(b"k", b"v", [("h", b"1")]), kt.Record(value=b"w")], base_offset=7, producer_id=5
) + kt.batch([kt.Record(value=b"x")], base_offset=20)


def records_of(*logs: bytes | None) -> pa.Array:
    return kafka_records(pa.array(logs, pa.binary()))


def structs(*rows: list[dict[str, object]] | None) -> pa.Array:
    return pa.array(rows)


def options(*given: dict[str, str | None] | None) -> pa.Array:
    return pa.array([None if o is None else list(o.items()) for o in given], OPTIONS)


def test_records_that_were_read_come_out_as_they_were() -> None:
    assert kafka_encode_batch(records_of(LOG, b"", None)).to_pylist() == [LOG, b"", None]


def test_an_array_that_is_a_part_of_another_is_written_by_itself() -> None:
    records = records_of(LOG, kt.batch([kt.Record(value=b"y")], base_offset=3))[1:]
    (written,) = kafka_encode_batch(records).to_pylist()
    assert kafkajit.read_records(written, columns=["offset", "value"]).to_pylist() == [
        {"offset": 3, "value": b"y"}
    ]


def test_options_are_each_rows_own() -> None:
    records = structs(*[[{"value": b"x" * 100}]] * 3)
    given = options({"compressionType": "zstd", "baseOffset": "7"}, None, {"MAGIC": "1"})
    batches = [
        kafkajit.read_record_batches(log).to_pylist()[0]
        for log in kafka_encode_batch(records, given).to_pylist()
    ]
    assert [batch["compressionType"] for batch in batches] == ["zstd", "none", "none"]
    assert [batch["lastOffset"] for batch in batches] == [7, 0, 0]
    assert [batch["magic"] for batch in batches] == [2, 2, 1]


def test_all_records_are_one_batch_unless_a_limit_is_given() -> None:
    records = structs([{"value": b"x" * 1000}] * 100)
    for given, count in ((None, 1), ({"batchSize": "16384"}, 7), ({"batchRecords": "10"}, 10)):
        (log,) = kafka_encode_batch(records, options(given)).to_pylist()
        assert kafkajit.read_record_batches(log).num_rows == count


def test_columns_that_were_not_decoded_are_not_there() -> None:
    pruned = kafka_records(pa.array([LOG]), pa.array(["value"]))
    (log,) = kafka_encode_batch(pruned, options({"baseOffset": "3"})).to_pylist()
    assert kafkajit.read_records(log, columns=["offset", "value"]).to_pylist() == [
        {"offset": 3, "value": b"v"},
        {"offset": 4, "value": b"w"},
        {"offset": 5, "value": b"x"},
    ]


def test_names_of_fields_are_found_in_any_case() -> None:
    (log,) = kafka_encode_batch(structs([{"OFFSET": 5, "Key": "k"}])).to_pylist()
    assert kafkajit.read_records(log, columns=["offset", "key"]).to_pylist() == [
        {"offset": 5, "key": b"k"}
    ]


def test_what_cannot_be_written_raises_or_is_null() -> None:
    records = structs([{"offset": 2}, {"offset": 1}], [{"offset": 2}])
    with pytest.raises(InvalidOffsetError, match="is not behind 2"):
        kafka_encode_batch(records)
    assert try_kafka_encode_batch(records).is_valid().to_pylist() == [False, True]


def test_what_is_asked_wrongly_raises_either_way() -> None:
    records = structs([{"key": "k"}])
    for encode in (kafka_encode_batch, try_kafka_encode_batch):
        with pytest.raises(ValueError, match="unknown option 'codec'; there are: compressionType"):
            encode(records, options({"codec": "zstd"}))
        with pytest.raises(ValueError, match="baseOffset is a number, not 'seven'"):
            encode(records, options({"baseOffset": "seven"}))
        with pytest.raises(ValueError, match="isTransactional is true or false, not 'yes'"):
            encode(records, options({"isTransactional": "yes"}))
        with pytest.raises(ValueError, match="unknown column 'ofset'"):
            encode(structs([{"ofset": 1}]))
        with pytest.raises(TypeError, match="records must be an ARRAY of STRUCT"):
            encode(pa.array([b"k"]))
        with pytest.raises(TypeError, match="options must be a MAP"):
            encode(records, pa.array(["zstd"]))
        with pytest.raises(ValueError, match="a record is a STRUCT"):
            encode(pa.array([[None]], RECORDS_TYPE))


def test_null_is_null() -> None:
    assert kafka_encode_batch(pa.nulls(2)).to_pylist() == [None, None]
