from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import reference
from corpus import by_sound_log, log_of, rows_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import BATCH

import kafkajit
from kafkajit import testing as kt
from kafkajit.arrow.arrays import repeated
from kafkajit.format.utf8 import java_string
from kafkajit.schema import BATCH_COLUMNS, RECORD_COLUMNS, record_schema, table_schema

# Spark's format("kafka"), as Arrow types
SPARKS = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("ms", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}
OURS = {
    "sequence": pa.int32(),
    "controlType": pa.string(),
    "coordinatorEpoch": pa.int32(),
    "baseOffset": pa.int64(),
    "partitionLeaderEpoch": pa.int32(),
    "producerId": pa.int64(),
    "producerEpoch": pa.int16(),
    "isTransactional": pa.bool_(),
    "magic": pa.int8(),
    "position": pa.int64(),
}
BATCHES = {
    "baseOffset": pa.int64(),
    "lastOffset": pa.int64(),
    "recordsCount": pa.int32(),
    "baseSequence": pa.int32(),
    "lastSequence": pa.int32(),
    "producerId": pa.int64(),
    "producerEpoch": pa.int16(),
    "partitionLeaderEpoch": pa.int32(),
    "isTransactional": pa.bool_(),
    "isControlBatch": pa.bool_(),
    "deleteHorizonMs": pa.int64(),
    "position": pa.int64(),
    "timestampType": pa.int32(),
    "baseTimestamp": pa.timestamp("ms", tz="UTC"),
    "maxTimestamp": pa.timestamp("ms", tz="UTC"),
    "sizeInBytes": pa.int32(),
    "magic": pa.int8(),
    "compressionType": pa.string(),
    "crc": pa.int64(),
    "isValid": pa.bool_(),
}
COLUMNS = [name for name in SPARKS | OURS if name not in ("topic", "partition")]
# Headers, control records, sequences, nulls: together they fill every column.
TELLING = ("headers-0", "transactions-0", "idempotent-0", "nulls-0", "append-time-zstd-0")


def test_the_first_eight_columns_of_records_are_those_of_sparks_kafka_source() -> None:
    schema = record_schema(list(RECORD_COLUMNS))
    assert schema.equals(pa.schema(SPARKS | OURS))
    assert schema.names[:8] == list(SPARKS)


def test_the_columns_of_batches_are_in_the_order_of_dump_log() -> None:
    assert table_schema(BATCH_COLUMNS).equals(pa.schema(BATCHES))
    assert (
        kafkajit.read_record_batches(b"")
        .schema.remove_metadata()
        .equals(table_schema(BATCH_COLUMNS))
    )


@pytest.mark.parametrize("columns", [RECORD_COLUMNS, BATCH_COLUMNS], ids=["records", "batches"])
def test_every_column_has_a_description(columns: dict) -> None:
    assert all(column.doc for column in columns.values())


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", TELLING)
def test_a_column_read_alone_is_that_of_the_reference(name: str, column: str) -> None:
    table = kafkajit.read_records(log_of(name), columns=[column])
    assert table.column_names == [column]
    expected = [row[column] for row in reference.rows(log_of(name))]
    assert [row[column] for row in rows_of(table)] == expected
    table.validate(full=True)


@by_sound_log
def test_a_table_is_valid_arrow(path: Path) -> None:
    for source in (path, path.read_bytes()):
        table = kafkajit.read_records(source)
        table.validate(full=True)
        for column in table.columns:
            assert column.null_count == sum(value is None for value in rows_of_one(column))
    kafkajit.read_record_batches(path).validate(full=True)


def rows_of_one(column: pa.ChunkedArray) -> Iterator[object]:
    return (row["column"] for row in rows_of(pa.table({"column": column})))


@given(st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True), st.lists(BATCH, max_size=3))
def test_columns_in_any_order_are_a_projection_of_the_whole(
    columns: list[str], batches: list[bytes]
) -> None:
    log = b"".join(batches)
    table = kafkajit.read_records(log, columns=columns)
    table.validate(full=True)
    assert table.equals(kafkajit.read_records(log).select(columns))


def test_topic_and_partition_are_columns_like_others(tmp_path: Path) -> None:
    path = tmp_path / "orders-7" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(log_of("none-0"))
    table = kafkajit.read_records(path, columns=["partition", "offset", "topic"])
    assert table.equals(kafkajit.read_records(path).select(["partition", "offset", "topic"]))
    assert table["topic"].to_pylist() == ["orders"] * 86
    assert table["partition"].to_pylist() == [7] * 86


@pytest.mark.parametrize("columns", [["ofset"], ["offset", "ofset"], ("ofset",), "ofset"])
def test_an_unknown_column_is_an_error_that_lists_the_known(columns: object) -> None:
    with pytest.raises(ValueError, match="unknown column 'ofset'; there are: ") as caught:
        kafkajit.read_records(b"", columns=columns)
    assert str(caught.value).partition("there are: ")[2].split(", ") == COLUMNS


def test_a_column_named_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="named twice"):
        kafkajit.read_records(b"", columns=["offset", "key", "offset"])


def test_a_single_name_is_one_column() -> None:
    assert kafkajit.read_records(b"", columns="offset").column_names == ["offset"]


@by_sound_log
def test_views_equal_copies(path: Path) -> None:
    log = path.read_bytes()
    views = kafkajit.read_records(log, binary_view=True)
    assert views.schema.field("key").type == pa.binary_view()
    assert views.schema.field("value").type == pa.binary_view()
    assert rows_of(views) == rows_of(kafkajit.read_records(log))
    views.validate(full=True)


def address_of(array: np.ndarray | pa.Buffer) -> int:
    return array.ctypes.data if isinstance(array, np.ndarray) else array.address


@pytest.mark.parametrize("name", ["none-0", "headers-0", "sizes-0"])
def test_views_of_uncompressed_records_lie_in_the_segment(name: str) -> None:
    segment = np.frombuffer(log_of(name), dtype=np.uint8)
    table = kafkajit.read_records(segment, columns=["key", "value"], binary_view=True)
    found = 0
    for chunk in [chunk for column in table.columns for chunk in column.chunks]:
        _, _, *data = chunk.buffers()
        for buffer in data:
            first, last = buffer.address, buffer.address + buffer.size
            assert address_of(segment) <= first <= last <= address_of(segment) + segment.size
            found += 1
    assert found >= 2


def test_views_see_changes_of_the_segment() -> None:
    segment = bytearray(kt.batch([kt.Record(b"k" * 20, b"v" * 20)]))
    table = kafkajit.read_records(segment, columns=["value"], binary_view=True)
    copied = kafkajit.read_records(segment, columns=["value"])
    at = segment.index(b"v" * 20)
    segment[at + 10] = ord("!")
    assert table["value"].to_pylist() == [b"v" * 10 + b"!" + b"v" * 9]
    assert copied["value"].to_pylist() == [b"v" * 20]


@pytest.mark.parametrize("codec", kt.CODECS)
def test_views_of_one_batch_outlive_the_next(codec: str) -> None:
    value = 200
    log = b"".join(
        kt.batch([kt.Record(b"%d" % place, b"%d" % place * value)], codec=codec)
        for place in range(6)
    )
    batches = list(kafkajit.iter_records(log, 1, columns=["key", "value"], binary_view=True))
    for place, batch in enumerate(batches):
        assert rows_of(batch) == [{"key": b"%d" % place, "value": b"%d" % place * value}]


@pytest.mark.parametrize("size", [0, 1, 4, 11, 12, 13, 14, 64])
def test_a_view_of_any_size_is_the_value(size: int) -> None:
    value = bytes(range(size))
    log = kt.batch([kt.Record(None, b"before"), kt.Record(value, value), kt.Record(b"", None)])
    table = kafkajit.read_records(log, columns=["key", "value"], binary_view=True)
    assert table["key"].to_pylist() == [None, value, b""]
    assert table["value"].to_pylist() == [b"before", value, None]


HEADER_KEYS = [b"", b"plain", "é€😀".encode(), b"\xff", b"\xed\xa0\x80", b"cut \xe2\x82", b"\xc3("]


@pytest.mark.parametrize("key", HEADER_KEYS)
def test_a_header_key_is_the_string_that_java_holds(key: bytes) -> None:
    log = kt.batch([kt.Record(headers=[("before", b"1"), (key, b"2"), ("after", None)])] * 2)
    table = kafkajit.read_records(log, columns=["headers"])
    table.validate(full=True)
    expected = [
        {"key": "before", "value": b"1"},
        {"key": java_string(key), "value": b"2"},
        {"key": "after", "value": None},
    ]
    assert table["headers"].to_pylist() == [expected] * 2


@given(st.lists(st.lists(st.binary(max_size=8), max_size=4), max_size=6))
def test_header_keys_of_any_bytes_are_javas_strings(records: list[list[bytes]]) -> None:
    log = kt.batch([kt.Record(headers=[(key, key) for key in keys]) for keys in records])
    table = kafkajit.read_records(log, columns=["headers"])
    table.validate(full=True)
    assert table["headers"].to_pylist() == [
        [{"key": java_string(key), "value": key} for key in keys] or None for keys in records
    ]


def test_no_headers_are_null_and_not_an_empty_list() -> None:
    log = kt.batch([kt.Record(), kt.Record(headers=[("h", None)]), kt.Record()])
    headers = kafkajit.read_records(log)["headers"]
    assert headers.null_count == 2
    assert headers.to_pylist() == [None, [{"key": "h", "value": None}], None]


def test_an_unknown_codec_is_named_by_its_number() -> None:
    table = kafkajit.read_record_batches(kt.batch([], attributes=5) + kt.batch([], codec="zstd"))
    assert table["compressionType"].to_pylist() == ["unknown(5)", "zstd"]


@pytest.mark.parametrize("timestamp", [2**63 - 1, -(2**63), -1, 0])
def test_the_ends_of_int64_are_timestamps_of_batches(timestamp: int) -> None:
    log = kt.batch([], base_timestamp=timestamp, max_timestamp=timestamp)
    row = rows_of(kafkajit.read_record_batches(log))[0]
    assert (row["baseTimestamp"], row["maxTimestamp"]) == (timestamp, timestamp)


@pytest.mark.parametrize("value", ["orders", "", "żółw", None, 7])
def test_a_constant_column_has_the_value_in_every_row(value: str | int | None) -> None:
    type_ = pa.int32() if value == 7 else pa.string()
    column = repeated(value, 3, type_)
    column.validate(full=True)
    assert column.type == type_
    assert column.to_pylist() == [value] * 3
    assert repeated(value, 0, type_).to_pylist() == []


def test_a_constant_column_of_more_than_arrow_holds_is_refused() -> None:
    with pytest.raises(OverflowError, match=r"9000000 times 'xxx.* are more than 2 GiB"):
        repeated("x" * 249, 9_000_000, pa.string())
