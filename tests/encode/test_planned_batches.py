from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
import reference
from corpus import rows_of
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
from kafkajit import InvalidOffsetError, InvalidRecordError, encode_batches
from kafkajit import testing as kt
from kafkajit.encode.planned_batches import DEFAULT_BATCH_SIZE

MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1


def batches_of(columns: dict[str, Any], **options: Any) -> list[reference.Batch]:
    """The batches of records with these columns, as the reference reads them."""
    log = encode_batches(pa.table(columns), timestamp=options.pop("timestamp", 0), **options)
    batches, end = reference.read_batches(bytes(log))
    assert end == log.size
    assert all(batch.is_valid for batch in batches)
    for batch in batches:
        if batch.records_count >= 0:  # a set does not have the count
            assert len(reference.read_records(batch)) == batch.records_count
    return batches


def counts_of(columns: dict[str, Any], **options: Any) -> list[int]:
    return [batch.records_count for batch in batches_of(columns, **options)]


# Where a batch ends


def test_a_batch_is_as_full_as_a_producers_by_default() -> None:
    sizes = [batch.size for batch in batches_of({"value": [bytes(100)] * 1000})]
    assert all(DEFAULT_BATCH_SIZE - 120 < size <= DEFAULT_BATCH_SIZE for size in sizes[:-1])
    assert len(sizes) == 7


@pytest.mark.parametrize("magic", [1, 0])
@pytest.mark.parametrize("batch_size", [150, 300, 1000])
def test_a_set_of_old_messages_is_never_larger_either(magic: int, batch_size: int) -> None:
    values = [b"v" * (number % 40) for number in range(200)]
    codec = {"compression_type": "gzip", "magic": magic}
    batches = batches_of({"value": values}, batch_size=batch_size, **codec)
    counts = []
    for batch in batches:
        records = reference.read_records(batch)
        counts.append(len(records))
        plain = kt.message_set([kt.Record(value=record.value) for record in records], magic=magic)
        assert len(records) == 1 or len(plain) + 34 <= batch_size
    assert sum(counts) == 200
    assert max(counts) > 1


@given(st.integers(62, 400), st.lists(st.integers(0, 2**62), min_size=1, max_size=30))
def test_a_delete_horizon_far_from_the_records_makes_no_batch_too_large(
    batch_size: int, timestamps: list[int]
) -> None:
    options = {"batch_size": batch_size, "delete_horizon_ms": 1_700_000_000_000}
    for batch in batches_of({"timestamp": timestamps}, **options):
        assert batch.records_count == 1 or batch.size <= batch_size
        assert batch.delete_horizon_ms == 1_700_000_000_000


def test_records_that_name_their_batches_stay_together_whatever_their_size() -> None:
    columns = {"value": [bytes(9000)] * 6, "position": [0, 0, 0, 5, 5, 9]}
    assert counts_of(columns) == [3, 2, 1]
    assert counts_of(columns, batch_size=20_000) == [2, 2, 2]
    assert counts_of(columns, batch_records=2) == [2, 1, 2, 1]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("partitionLeaderEpoch", [1, 1, 2, 2, 1]),
        ("producerId", [1, 1, 2, 2, None]),
        ("producerEpoch", [1, 1, 2, 2, 1]),
        ("isTransactional", [True, True, False, None, True]),
        ("magic", [2, None, 1, 1, 2]),
        ("timestampType", [0, -1, 1, 1, 0]),
    ],
)
def test_a_batch_ends_where_a_column_of_batches_changes(column: str, values: list[Any]) -> None:
    defaults = {"producerId": -1, "isTransactional": False, "magic": 2}
    said = [defaults[column] if value is None else value for value in values]
    begins = [0, *(row for row, (before, here) in enumerate(pairwise(said), 1) if before != here)]
    log = encode_batches(pa.table({column: values}), compression_type="gzip", timestamp=5)
    found = kafkajit.read_records(log)
    assert sorted(set(found["baseOffset"].to_pylist())) == begins
    # In v2 a null timestamp type is CreateTime.
    read = [0 if column == "timestampType" and value == -1 else value for value in said]
    assert found[column].to_pylist() == read


def test_an_option_for_all_batches_overrides_columns() -> None:
    columns = {
        "partitionLeaderEpoch": [1, 2],
        "producerId": [1, 2],
        "producerEpoch": [1, 2],
        "sequence": [7, 3],
        "isTransactional": [False, True],
        "timestampType": [0, 1],
    }
    (batch,) = batches_of(
        columns,
        partition_leader_epoch=5,
        producer_id=6,
        producer_epoch=7,
        base_sequence=8,
        is_transactional=True,
        timestamp_type=0,
    )
    assert (batch.partition_leader_epoch, batch.producer_id, batch.producer_epoch) == (5, 6, 7)
    assert (batch.base_sequence, batch.is_transactional, batch.timestamp_type) == (8, True, 0)


def test_offsets_further_apart_than_an_int32_are_in_different_batches() -> None:
    offsets = [0, MAX_INT32, 2**31, 2**32, MAX_INT64 - 1, MAX_INT64]
    log = encode_batches(pa.table({"offset": offsets}))
    assert kafkajit.read_records(log)["offset"].to_pylist() == offsets
    bases = [batch.base_offset for batch in reference.read_batches(bytes(log))[0]]
    assert bases == [0, 2**31, 2**32, MAX_INT64 - 1]


def test_offsets_at_both_ends_of_an_int64_are_in_different_batches() -> None:
    offsets = [-(2**63), 2**63 - 1]
    log = encode_batches(pa.table({"offset": offsets}))
    assert [batch.base_offset for batch in reference.read_batches(bytes(log))[0]] == offsets


# Markers


def test_a_marker_is_alone_in_its_batch() -> None:
    types = [None, "COMMIT", "COMMIT", None, None, "ABORT"]
    batches = batches_of({"controlType": types})
    assert [batch.records_count for batch in batches] == [1, 1, 1, 2, 1]
    assert [batch.is_control for batch in batches] == [False, True, True, False, True]
    assert counts_of({"offset": [4, 5, 6]}, control_type="ABORT") == [1, 1, 1]


def test_a_commit_or_abort_is_transactional_by_default() -> None:
    types = {"controlType": ["ABORT"]}
    assert batches_of(types)[0].is_transactional
    assert batches_of({"offset": [1]}, control_type="COMMIT")[0].is_transactional
    assert not batches_of(types | {"isTransactional": [False]})[0].is_transactional
    assert not batches_of(types, is_transactional=False)[0].is_transactional
    leader = {"controlType": ["LEADER_CHANGE"], "key": [b"\0\0\0\2"], "value": [b""]}
    assert not batches_of(leader)[0].is_transactional


# Sequence numbers


@pytest.mark.parametrize("base_sequence", [0, 5, MAX_INT32 - 3, MAX_INT32])
@pytest.mark.parametrize("batch_records", [1, 2, 5])
def test_sequence_numbers_count_up_and_wrap(base_sequence: int, batch_records: int) -> None:
    log = encode_batches(
        pa.table({"value": [b"v"] * 9}),
        base_sequence=base_sequence,
        producer_id=1,
        batch_records=batch_records,
    )
    expected = [(base_sequence + number) % 2**31 for number in range(9)]
    assert [row["sequence"] for row in reference.rows(bytes(log))] == expected


def test_sequence_numbers_of_two_batches_never_overlap_where_offsets_have_gaps() -> None:
    batches = batches_of({"offset": [0, 5, 6, 9, 20]}, base_sequence=0, batch_records=2)
    assert [(b.base_sequence, b.last_sequence) for b in batches] == [(0, 5), (6, 9), (10, 10)]
    far = batches_of({"offset": [0, MAX_INT32, 2**31, 2**32 - 1]}, base_sequence=7, batch_records=2)
    assert [(b.base_sequence, b.last_sequence) for b in far] == [(7, 6), (7, 6)]


def test_markers_neither_have_nor_use_sequence_numbers() -> None:
    types = [None, None, "COMMIT", None]
    batches = batches_of({"controlType": types}, base_sequence=4, producer_id=1)
    assert [batch.base_sequence for batch in batches] == [4, -1, 6]
    none = batches_of({"offset": [0, 1]}, base_sequence=-1, batch_records=1)
    assert [batch.base_sequence for batch in none] == [-1, -1]


@pytest.mark.parametrize(
    ("offsets", "sequences", "bases"),
    [
        ([0, 1, 2], [5, 6, 7], [5]),
        ([0, 1, 2], [5, 7, 8], [5, 7]),
        ([0, 1, 2], [-1, -1, -1], [-1]),
        ([0, 1, 2], [None, -1, 0], [-1, 0]),
        ([0, 3, 4], [5, 8, 9], [5]),  # offsets with gaps: sequence numbers have the same gaps
        ([0, 3, 4], [5, 6, 7], [5, 6]),
        ([0, 1, 2], [MAX_INT32 - 1, MAX_INT32, 0], [MAX_INT32 - 1]),
        ([0, 1, 2], [MAX_INT32, 0, 1], [MAX_INT32]),
        ([0, 1], [7, 7], [7, 7]),
        ([0, 1], [0, -1], [0, -1]),
    ],
)
def test_a_batch_ends_where_sequence_numbers_do_not_follow(
    offsets: list[int], sequences: list[int | None], bases: list[int]
) -> None:
    columns = {"offset": offsets, "sequence": pa.array(sequences, pa.int64())}
    batches = batches_of(columns)
    assert [batch.base_sequence for batch in batches] == bases
    read = [row["sequence"] for batch in batches for row in sequences_in(batch)]
    assert read == [-1 if number is None else number for number in sequences]


def sequences_in(batch: reference.Batch) -> list[dict[str, int]]:
    return [{"sequence": record.sequence} for record in reference.read_records(batch)]


def test_the_first_sequence_number_is_found_where_the_first_records_are_gone() -> None:
    columns = {"offset": [12, 13], "sequence": [1, 2], "baseOffset": [10, 10]}
    (batch,) = batches_of(columns)
    assert (batch.base_sequence, batch.base_offset) == (MAX_INT32, 10)
    assert [row["sequence"] for row in sequences_in(batch)] == [1, 2]


# Base offsets that columns name


def test_a_batch_begins_at_the_base_offset_that_its_records_name() -> None:
    columns = {"offset": [12, 15, 21], "baseOffset": [10, 10, 20]}
    batches = batches_of(columns)
    assert [(b.base_offset, b.last_offset_delta) for b in batches] == [(10, 5), (20, 1)]


def test_only_the_first_part_of_a_named_batch_keeps_its_base_offset() -> None:
    columns = {"offset": [12, 13, 14, 15, 21], "baseOffset": [10, 10, 10, 10, 20]}
    for options in ({"batch_records": 2}, {"batch_records": 1}):
        batches = batches_of(columns, **options)
        bases = [batch.base_offset for batch in batches]
        assert bases[0] == 10
        assert bases[-1] == 20
        ends = [batch.base_offset + batch.last_offset_delta for batch in batches]
        assert all(end < base for end, base in zip(ends, bases[1:], strict=False))
    changed = batches_of(columns | {"producerId": [1, 2, 2, 2, 2]})
    assert [batch.base_offset for batch in changed] == [10, 13, 20]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_that_holds_if_rows_are_encoded_in_several_windows(
    cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkajit.encode.windows._WINDOW_ROWS", cut)
    columns = {"offset": [12, 13, 14, 15, 21], "baseOffset": [10, 10, 10, 10, 20]}
    batches = batches_of(columns, batch_records=1)
    assert [batch.base_offset for batch in batches] == [10, 13, 14, 15, 20]


@pytest.mark.parametrize(("offsets", "base"), [([5, 9], 6), ([2**40, 2**40 + 1], 5)])
def test_a_batch_that_cannot_begin_there_is_an_error(offsets: list[int], base: int) -> None:
    columns = {"offset": [-1, *offsets], "baseOffset": [-1, base, base], "position": [0, 1, 1]}
    with pytest.raises(
        InvalidOffsetError,
        match=rf"^row \d: offset \d+ is not within an int32 behind its batch's baseOffset, {base}$",
    ):
        batches_of(columns)


@pytest.mark.parametrize("window", [2, 65536])
@pytest.mark.parametrize("base", [6, 3])
def test_a_batch_that_would_begin_within_the_one_before_it_is_an_error(
    base: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkajit.encode.windows._WINDOW_ROWS", window)
    columns = {"offset": [5, 6, 7], "baseOffset": [4, 4, base]}
    message = f"^row 2: its batch's baseOffset, {base}, is not behind offset 6 of the record before"
    with pytest.raises(InvalidOffsetError, match=message):
        batches_of(columns)
    assert len(batches_of(columns | {"baseOffset": [4, 4, 7]})) == 2


# Timestamps


def test_a_batch_has_one_append_time() -> None:
    columns = {"timestamp": [5, 5, 9, 9, 3], "timestampType": [1] * 5}
    log = encode_batches(pa.table(columns))
    rows = rows_of(kafkajit.read_records(log))
    assert [row["timestamp"] for row in rows] == [5, 5, 9, 9, 3]
    assert [row["baseOffset"] for row in rows] == [0, 0, 2, 2, 4]
    assert {row["timestampType"] for row in rows} == {1}
    created = encode_batches(pa.table(columns | {"timestampType": [0] * 5}))
    assert {row["baseOffset"] for row in reference.rows(bytes(created))} == {0}


def test_the_time_of_an_append_is_that_of_all_records() -> None:
    (batch,) = batches_of({"timestamp": [5, 9, None]}, timestamp_type=1, timestamp=100)
    assert (batch.base_timestamp, batch.max_timestamp, batch.timestamp_type) == (100, 100, 1)
    assert [record.timestamp for record in reference.read_records(batch)] == [100] * 3


def test_timestamps_at_both_ends_of_an_int64_come_back() -> None:
    stamps = [0, 2**63 - 1, -(2**63), -1, 1]
    (batch,) = batches_of({"timestamp": stamps})
    assert [record.timestamp for record in reference.read_records(batch)] == stamps
    assert (batch.base_timestamp, batch.max_timestamp) == (0, 2**63 - 1)


# Columns


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("partitionLeaderEpoch", -(2**31), MAX_INT32),
        ("producerEpoch", -(2**15), 2**15 - 1),
        ("sequence", -1, MAX_INT32),
        ("timestampType", -1, 1),
        ("magic", 0, 2),
    ],
)
def test_a_number_that_a_header_does_not_hold_is_an_error(name: str, least: int, most: int) -> None:
    for number in (least, most):
        assert batches_of({name: pa.array([number], pa.int64())})
    for number in (least - 1, most + 1):
        message = f"^row 1: {name} is from {least} to {most}, not {number}$"
        with pytest.raises(InvalidRecordError, match=message):
            batches_of({name: pa.array([most, number], pa.int64())})


@pytest.mark.parametrize(
    "name", ["partitionLeaderEpoch", "producerId", "producerEpoch", "sequence", "isTransactional"]
)
def test_a_column_of_another_type_is_a_type_error_that_names_it(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name} is a column of string"):
        batches_of({name: ["1"]})


# Features that v0 and v1 lack


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"headers": [None, [("a", b"")]]}, {}, "record headers"),
        ({"controlType": [None, "COMMIT"]}, {}, "control records"),
        ({"isTransactional": [None, True]}, {}, "transactional records"),
        ({"producerId": [None, 4]}, {}, "idempotent records"),
        ({}, {"producer_id": 4}, "idempotent records"),
        ({}, {"base_sequence": 4}, "idempotent records"),
        ({}, {"compression_type": "zstd"}, "zstd"),
        ({}, {"delete_horizon_ms": 4}, "delete horizons"),
    ],
)
def test_what_a_message_of_v0_or_v1_does_not_have_is_an_error(
    magic: int, columns: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    if "headers" in columns:
        kind = pa.map_(pa.string(), pa.binary())
        columns = {"headers": pa.array(columns["headers"], kind)}
    columns = {"offset": [5, 6]} | columns
    row = 0 if options else 1
    message = f"Magic v{magic} does not support {words}"
    with pytest.raises(InvalidRecordError, match=f"^row {row}: {message}$"):
        encode_batches(pa.table(columns), magic=magic, **options)
    mixed = pa.table(columns | {"magic": [2, magic]})
    with pytest.raises(InvalidRecordError, match=f"^row 1: {message}$"):
        encode_batches(mixed, **options)
    assert encode_batches(pa.table(columns), **options).size
