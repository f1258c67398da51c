"""Formats v0 and v1: messages, compressed sets of them, and logs of several formats."""

from __future__ import annotations

import pyarrow as pa
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
import kafkajit.testing as kt

COLUMNS = ["offset", "timestamp", "timestampType", "key", "value", "magic", "baseOffset"]
NAMES = [name for name in kt.COMPRESSORS if not name.startswith("zstd")]
RECORDS = [
    kt.Record(key=b"k", value=b"v", timestamp=1000),
    kt.Record(value=b"no key" * 40, timestamp=500),
    kt.Record(key=b"deleted", timestamp=2000),
    kt.Record(key=b"", value=b""),
]

by_magic = pytest.mark.parametrize("magic", [0, 1])
by_codec = pytest.mark.parametrize("codec", NAMES)
by_compression = pytest.mark.parametrize("codec", NAMES[1:])


def read(log: bytes, **options: object) -> pa.Table:
    """All columns, checked against the slow twin."""
    table = kafkajit.read_records(log, **options)
    plain = table.set_column(
        table.schema.get_field_index("timestamp"), "timestamp", table["timestamp"].cast(pa.int64())
    )
    assert plain.to_pylist() == reference.rows(log)
    views = kafkajit.read_records(log, columns=["key", "value"], binary_view=True, **options)
    for name in views.column_names:
        assert views[name].cast(pa.binary()).equals(table[name])
    return plain


@by_magic
@by_codec
def test_records_are_read_whatever_the_codec(magic: int, codec: str) -> None:
    log = kt.message_set(RECORDS, magic=magic, codec=codec, base_offset=70, timestamp=7)
    rows = read(log).select(COLUMNS).to_pylist()
    assert [row["offset"] for row in rows] == [70, 71, 72, 73]
    assert [(row["key"], row["value"]) for row in rows] == [(r.key, r.value) for r in RECORDS]
    stamps = [-1] * 4 if magic == 0 else [1000, 500, 2000, 7]
    assert [row["timestamp"] for row in rows] == stamps
    assert {row["timestampType"] for row in rows} == {-1 if magic == 0 else 0}
    first = [70] * 4 if codec != "none" else [70, 71, 72, 73]
    assert [row["baseOffset"] for row in rows] == first


@by_magic
@by_codec
def test_what_they_do_not_have_is_minus_one_or_null(magic: int, codec: str) -> None:
    (row,) = read(kt.message_set(RECORDS[:1], magic=magic, codec=codec)).to_pylist()
    assert row["headers"] is None
    assert row["controlType"] is None
    assert row["isTransactional"] is False
    absent = ("sequence", "partitionLeaderEpoch", "producerId", "producerEpoch")
    assert [row[name] for name in absent] == [-1] * 4


@by_codec
def test_the_time_of_the_append_is_every_records(codec: str) -> None:
    log = kt.message_set(RECORDS, codec=codec, timestamp=9, timestamp_type=kt.LOG_APPEND_TIME)
    table = read(log)
    assert set(table["timestampType"].to_pylist()) == {1}
    if codec != "none":  # a broker would have set them one by one
        assert table["timestamp"].to_pylist() == [9, 9, 9, 9]


@by_compression
def test_an_offset_of_zero_around_a_v1_set_is_no_offset(codec: str) -> None:
    log = kt.message_set(RECORDS, codec=codec, wrapper_offset=0)
    assert read(log)["offset"].to_pylist() == [0, 1, 2, 3]


@by_magic
@by_compression
def test_a_part_of_a_message_at_a_sets_end_is_left_out(magic: int, codec: str) -> None:
    part = kt.message(RECORDS[0], offset=1, magic=magic)
    for size in (1, 11, 12, 25, len(part) - 1):
        log = kt.message_set(
            [RECORDS[0], part[:size]], magic=magic, codec=codec, wrapper_offset=5 * magic
        )
        assert read(log)["offset"].to_pylist() == [5 * magic]


def test_compaction_leaves_gaps_in_a_set() -> None:
    inner = [kt.message(RECORDS[0], offset=offset) for offset in (1, 4, 6)]
    log = kt.message_set(inner, codec="snappy", wrapper_offset=106)
    assert read(log)["offset"].to_pylist() == [101, 104, 106]
    inner = [kt.message(RECORDS[0], offset=offset, magic=0) for offset in (1, 4, 6)]
    log = kt.message_set(inner, codec="snappy", magic=0, wrapper_offset=6)
    assert read(log)["offset"].to_pylist() == [1, 4, 6]


def test_headers_say_what_is_known_without_reading_a_set() -> None:
    log = (
        kt.message(RECORDS[0], offset=3, magic=0)
        + kt.message_set(RECORDS, base_offset=4, codec="lz4", timestamp_type=kt.LOG_APPEND_TIME)
        + kt.batch(RECORDS, base_offset=8)
    )
    table = kafkajit.read_record_batches(log)
    columns = ["baseOffset", "lastOffset", "recordsCount", "magic", "timestampType", "isValid"]
    assert [tuple(row.values()) for row in table.select(columns).to_pylist()] == [
        (3, 3, 1, 0, -1, True),
        (None, 7, None, 1, 1, True),
        (8, 11, 4, 2, 0, True),
    ]
    assert table["compressionType"].to_pylist() == ["none", "lz4", "none"]
    assert kafkajit.valid_bytes(log) == len(log)


records = st.builds(
    kt.Record,
    key=st.none() | st.binary(max_size=40),
    value=st.none() | st.binary(max_size=200),
    timestamp=st.none() | st.integers(-(2**40), 2**44),
)
message_sets = st.builds(
    kt.message_set,
    st.lists(records, min_size=1, max_size=6),
    base_offset=st.integers(0, 2**40),
    magic=st.integers(0, 1),
    codec=st.sampled_from(NAMES),
    timestamp_type=st.sampled_from([kt.CREATE_TIME, kt.LOG_APPEND_TIME]),
)
batches = st.builds(
    kt.batch,
    st.lists(records, max_size=6),
    base_offset=st.integers(0, 2**40),
    codec=st.sampled_from(list(kt.COMPRESSORS)),
)


@given(st.lists(message_sets | batches, max_size=8))
def test_formats_may_follow_each_other_in_any_order(parts: list[bytes]) -> None:
    log = b"".join(parts)
    read(log)
    read(log + b"\0" * 11)
    everything = kafkajit.read_records(log)
    pieces = list(kafkajit.iter_records(log, batch_rows=3))
    assert pa.Table.from_batches(pieces, everything.schema).equals(everything)
