from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from column_rows import column_rows
from corpus import DAMAGED_LOGS, by_v2_log, log_id, plain_twin, rows_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import BATCH

import kafkajit
from kafkajit import testing as kt
from kafkajit.errors import MESSAGES, OK
from kafkajit.records.columns import ColumnMemory, Columns, Wanted
from kafkajit.records.default_records import (
    EXTENT,
    Reading,
    read_default_records,
)
from kafkajit.storage.source import as_bytes

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
by_codec = pytest.mark.parametrize("codec", kt.CODECS)
ALL = Wanted(offset=True, timestamp=True, fields=True, key=True, value=True, headers=True)


def read_plain(
    log: bytes, *, behind: bytes = b"", compressed: bool = False
) -> tuple[Reading, np.ndarray]:
    """The kernels' reading of the batches of a log that is not compressed."""
    batches, end = reference.read_batches(log)
    extents = np.zeros(len(batches), dtype=EXTENT)
    for extent, batch in zip(extents, batches, strict=True):
        extent["start"] = batch.position + 61
        extent["end"] = batch.position + batch.size
        extent["count"] = batch.records_count
        extent["baseOffset"] = batch.base_offset
        extent["baseTimestamp"] = batch.base_timestamp
        extent["logAppendTime"] = batch.max_timestamp
        extent["isLogAppendTime"] = batch.timestamp_type
        extent["isCompressed"] = compressed
        extent["magic"] = batch.magic
    content = as_bytes(log[:end] + behind)
    return read_default_records(content, extents, ColumnMemory(ALL)), content


def fields_of(reading: Reading, content: np.ndarray) -> list[tuple[Any, ...]]:
    def field(record: np.void, name: str) -> bytes | None:
        size = record[name + "Size"]
        return None if size < 0 else content[record[name] :][:size].tobytes()

    return [
        (int(r["offset"]), int(r["timestamp"]), field(r, "key"), field(r, "value"))
        for r in reading.columns.fields[: reading.rows]
    ]


def expected_fields(log: bytes) -> list[tuple[Any, ...]]:
    return [
        (record.offset, record.timestamp, record.key, record.value)
        for batch in reference.read_batches(log)[0]
        for record in reference.read_records(batch)
    ]


@by_v2_log
@pytest.mark.parametrize("room", [0, 64])
def test_the_kernels_find_what_the_reference_finds(path: Path, room: int) -> None:
    log = plain_twin(path.read_bytes())
    # Without room behind them, the last records are read with every byte checked.
    reading, content = read_plain(log, behind=bytes(room))
    assert reading.status == OK
    assert fields_of(reading, content) == expected_fields(log)
    counts = [batch.records_count for batch in reference.read_batches(log)[0]]
    assert reading.counts.tolist() == counts


@given(st.lists(BATCH, min_size=1, max_size=3), st.binary(max_size=70))
def test_what_stands_behind_a_batch_changes_nothing(batches: list[bytes], behind: bytes) -> None:
    log = plain_twin(b"".join(batches))
    reading, content = read_plain(log, behind=behind)
    assert reading.status == OK
    assert fields_of(reading, content) == expected_fields(log)


# How many records come before the bad one; in the other breaks, it is the second.
_BEFORE = {"negative records count": 0, "cut inside a record": 2, "too few records": 3}


@pytest.mark.parametrize(
    "name", [name for name in kt.BREAKS if kt.BREAKS[name].error is kafkajit.InvalidRecordError]
)
@pytest.mark.parametrize("room", [0, 64])
def test_a_bad_record_stops_the_reading_and_those_before_it_stand(name: str, room: int) -> None:
    good = kt.batch([kt.Record(b"k")] * 2)
    reading, content = read_plain(good + kt.broken(name, base_offset=2), behind=bytes(room))
    exception, text = MESSAGES[reading.status]
    assert exception is kafkajit.InvalidRecordError
    assert text.format(a=reading.a, b=reading.b).startswith(kt.BREAKS[name].message)
    assert reading.batch == 1
    assert reading.counts.tolist() == [2, _BEFORE.get(name, 1)]
    assert reading.rows == 2 + _BEFORE.get(name, 1)
    assert fields_of(reading, content)[:2] == expected_fields(good)


def expected_columns(log: bytes) -> list[tuple[Any, ...]]:
    return [
        (record.offset, record.timestamp, record.key, record.value, record.headers)
        for batch in reference.read_batches(log)[0]
        for record in reference.read_records(batch)
    ]


@by_v2_log
@pytest.mark.parametrize("room", [0, 64])
def test_columns_hold_what_the_fields_point_to(path: Path, room: int) -> None:
    log = plain_twin(path.read_bytes())
    reading, _ = read_plain(log, behind=bytes(room))
    assert column_rows(reading.columns, reading.rows) == expected_columns(log)


@pytest.mark.parametrize("name", [name for name in Columns._fields if name != "has_nulls"])
def test_a_column_that_nobody_asked_for_has_no_memory(name: str) -> None:
    columns = ColumnMemory(ALL._replace(**{name: False})).columns(10, 1000)
    column = getattr(columns, name)
    arrays = {"key": "data", "value": "data", "headers": "offsets"}
    assert (getattr(column, arrays[name]) if name in arrays else column).size == 0


def test_columns_too_small_for_a_chunk_are_made_again_large_enough() -> None:
    memory = ColumnMemory(ALL)
    small = kt.batch([kt.Record(b"k", b"v", [("padding", bytes(500))])] * 10)
    large = kt.batch([kt.Record(None if i % 3 else b"k" * 300, b"v" * 300) for i in range(40)])
    many = kt.batch([kt.Record(headers=[("a", None), ("b", b"")] * i) for i in range(40)])
    long = kt.batch([kt.Record(headers=[("key" * 50, b"v" * 300)]) for _ in range(40)])
    for log in (small, large, small, large, many, small, long, many):
        extents = np.zeros(1, dtype=EXTENT)
        (batch,), _ = reference.read_batches(log)
        extents["start"], extents["end"] = 61, len(log)
        extents["count"], extents["baseTimestamp"] = batch.records_count, batch.base_timestamp
        for room in (0, 64):
            reading = read_default_records(as_bytes(log + bytes(room)), extents, memory)
            assert reading.status == OK
            assert column_rows(reading.columns, reading.rows) == expected_columns(log)


def test_memory_follows_what_the_last_chunk_held() -> None:
    memory = ColumnMemory(ALL)
    columns = memory.columns(10, 100_000)
    headers = columns.headers
    columns.key.offsets[10], columns.value.offsets[10], headers.offsets[10] = 1_000, 50_000, 700
    headers.keys.offsets[700], headers.values.offsets[700] = 2_000, 30_000
    memory.learn(columns, 10, 100_000)
    again = memory.columns(10, 100_000)
    assert 1_000 <= again.key.data.size < 5_000
    assert 50_000 <= again.value.data.size < 60_000
    assert 700 <= again.headers.keys.offsets.size < 2_000
    assert 2_000 <= again.headers.keys.data.size < 6_000
    assert 30_000 <= again.headers.values.data.size < 40_000


def test_a_count_beyond_the_bytes_asks_for_no_memory() -> None:
    reading, _ = read_plain(kt.batch([kt.Record(b"k")], records_count=2**31 - 1))
    assert reading.status != OK
    assert reading.columns.fields.size < 10


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, None), (None, b""), (b"", None), (b"", b""), (b"k", None), (None, b"v")],
)
@by_codec
def test_null_is_not_empty(key: bytes | None, value: bytes | None, codec: str) -> None:
    log = kt.batch([kt.Record(key, value, [("", key), ("h", value)])], codec=codec)
    row = rows_of(kafkajit.read_records(log))[0]
    assert (row["key"], row["value"]) == (key, value)
    assert row["headers"] == [{"key": "", "value": key}, {"key": "h", "value": value}]


@pytest.mark.parametrize("size", [-1, -2, -64, -65, -(2**31)])
@by_codec
def test_any_negative_length_is_null(size: int, codec: str) -> None:
    record = kt.Record(key_size=size, value_size=size, headers=[("h", None)])
    header = kt.Record(headers=[("h", None)]).encode(0, 0)[:-1] + kt.varint(size)
    odd = kt.varint(len(header) - 1) + header[1:]
    log = kt.batch([record, odd, record], codec=codec)
    assert [
        (row["key"], row["value"], row["headers"]) for row in rows_of(kafkajit.read_records(log))
    ] == [(None, None, [{"key": "h", "value": None}])] * 3


@pytest.mark.parametrize("size", [-1, -2, -(2**31)])
@pytest.mark.parametrize("room", [0, 64])
def test_the_kernels_size_of_null_is_minus_one(size: int, room: int) -> None:
    log = kt.batch([kt.Record(key_size=size, value_size=size)] * 3)
    reading, _ = read_plain(log, behind=bytes(room))
    assert reading.columns.fields["keySize"].tolist() == [-1] * 3
    assert reading.columns.fields["valueSize"].tolist() == [-1] * 3


@pytest.mark.parametrize("count", [0, 1, 63, 64, 300])
@by_codec
def test_headers_keep_their_order_and_their_double_keys(count: int, codec: str) -> None:
    headers = [("k" * (i % 3), b"%d" % i) for i in range(count)]
    log = kt.batch([kt.Record(headers=headers)] * 2, codec=codec)
    expected = [{"key": key, "value": value} for key, value in headers] or None
    assert kafkajit.read_records(log)["headers"].to_pylist() == [expected] * 2


@pytest.mark.parametrize(
    ("base", "timestamp"),
    [
        (0, INT64_MAX),
        (0, INT64_MIN),
        (INT64_MAX, INT64_MAX),
        (INT64_MIN, INT64_MIN),
        (INT64_MAX, INT64_MIN),  # a delta of 1 that wraps, as Java's long does
        (INT64_MIN, INT64_MAX),
        (-1, 0),
        (1_700_000_000_000, 0),
    ],
)
@by_codec
def test_timestamps_reach_the_ends_of_int64(base: int, timestamp: int, codec: str) -> None:
    log = kt.batch([kt.Record(timestamp=timestamp)] * 3, base_timestamp=base, codec=codec)
    assert [row["timestamp"] for row in rows_of(kafkajit.read_records(log))] == [timestamp] * 3


def test_log_append_time_is_every_records_timestamp() -> None:
    log = kt.batch(
        [kt.Record(timestamp=5), kt.Record(timestamp=9)],
        timestamp_type=kt.LOG_APPEND_TIME,
        max_timestamp=77,
    )
    rows = rows_of(kafkajit.read_records(log))
    assert [(row["timestamp"], row["timestampType"]) for row in rows] == [(77, 1)] * 2


def test_timestamps_count_from_the_delete_horizon_where_one_is_set() -> None:
    log = kt.batch([kt.Record(timestamp=1000)], delete_horizon_ms=5000)
    assert rows_of(kafkajit.read_records(log))[0]["timestamp"] == 1000
    assert kafkajit.read_record_batches(log)["deleteHorizonMs"].to_pylist() == [5000]


@pytest.mark.parametrize(
    ("base", "delta", "offset"),
    [
        (42, 0, 42),
        (42, 5, 47),
        (42, -2, 40),
        (0, 2**31 - 1, 2**31 - 1),
        (INT64_MAX, 1, INT64_MIN),
        (INT64_MAX - 5, 5, INT64_MAX),
    ],
)
def test_offsets_count_from_the_base_offset(base: int, delta: int, offset: int) -> None:
    log = kt.batch([kt.Record(offset_delta=delta)], base_offset=base, last_offset_delta=9)
    assert kafkajit.read_records(log)["offset"].to_pylist() == [offset]


@pytest.mark.parametrize(
    ("base", "delta", "sequence"),
    [
        (-1, 3, -1),
        (0, 3, 3),
        (2**31 - 1, 0, 2**31 - 1),
        (2**31 - 1, 1, 0),
        (2**31 - 2, 3, 1),
        (2**31 - 1, 2**31 - 1, 2**31 - 2),
        (-5, 3, -1),
    ],
)
def test_a_sequence_wraps_to_zero(base: int, delta: int, sequence: int) -> None:
    log = kt.batch([kt.Record(offset_delta=delta)], base_sequence=base, producer_id=1)
    assert kafkajit.read_records(log)["sequence"].to_pylist() == [sequence]


def test_a_batch_without_records_has_none() -> None:
    log = kt.batch([], last_offset_delta=9) + kt.batch([kt.Record()], base_offset=10)
    assert kafkajit.read_records(log)["offset"].to_pylist() == [10]


def test_kafka_does_not_look_into_a_batch_that_counts_no_records() -> None:
    for codec in range(len(kt.CODECS)):
        log = kt.batch([b"neither compressed nor a record"], records_count=0, attributes=codec)
        assert kafkajit.read_records(log).num_rows == 0


@pytest.mark.parametrize("attributes", [0, 1, 0x7F, 0x80, 0xFF])
def test_a_records_attributes_are_a_byte_that_means_nothing(attributes: int) -> None:
    log = kt.batch([kt.Record(b"k", b"v", attributes=attributes)] * 3)
    assert kafkajit.read_records(log)["value"].to_pylist() == [b"v"] * 3


def overlong(value: int, size: int) -> bytes:
    """A varint in more bytes than it needs."""
    encoded = bytearray(kt.varint(value))
    while len(encoded) < size:
        encoded[-1] |= 0x80
        encoded.append(0)
    return bytes(encoded)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@by_codec
def test_varints_longer_than_needed_are_read(size: int, codec: str) -> None:
    body = b"".join(
        [
            b"\x00",
            overlong(7, 2 * size),  # the timestamp's delta is a varlong
            overlong(1, size),
            overlong(1, size) + b"k",
            overlong(1, size) + b"v",
            overlong(1, size),
            overlong(1, size) + b"h",
            overlong(-1, size),
        ]
    )
    record = overlong(len(body), size) + body
    log = kt.batch([kt.Record(b"k"), record, kt.Record(b"k")], codec=codec, base_timestamp=0)
    row = rows_of(kafkajit.read_records(log))[1]
    assert (row["offset"], row["timestamp"], row["key"], row["value"]) == (1, 7, b"k", b"v")
    assert row["headers"] == [{"key": "h", "value": None}]


@pytest.mark.parametrize("cut", range(1, 40))
@by_codec
def test_a_record_cut_anywhere_is_an_error(cut: int, codec: str) -> None:
    record = kt.Record(b"k" * 5, b"v" * 70, [("h", b"x" * 5), ("i", None)], offset_delta=300)
    encoded = record.encode(0, 0)
    log = kt.batch([encoded, encoded[:-cut]], codec=codec)
    with pytest.raises(kafkajit.InvalidRecordError) as caught:
        kafkajit.read_records(log)
    assert "record 1 of the batch" in str(caught.value)


@pytest.mark.parametrize("path", DAMAGED_LOGS, ids=log_id)
def test_an_uncompressed_record_is_refused_where_the_reference_refuses(path: Path) -> None:
    try:
        batches, _ = reference.read_batches(path.read_bytes())
    except reference.Invalid:
        return
    for batch in batches:
        if batch.codec == 0 and batch.magic == 2 and batch.size >= 61:
            whole = path.read_bytes()[batch.position : batch.position + batch.size]
            reading, content = read_plain(whole)
            try:
                expected = expected_fields(whole)
            except reference.Invalid:
                assert reading.status != OK
            else:
                assert fields_of(reading, content) == expected
