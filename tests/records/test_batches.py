from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import reference
from corpus import NO_JIT, by_log, by_sound_log, log_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import BATCH, INT32

from kafkajit import testing as kt
from kafkajit.errors import BATCH_TOO_SMALL, OK
from kafkajit.records.batches import Batches, Framing, frame, increment_sequence, read_int32
from kafkajit.storage.source import as_bytes


def frame_all(log: bytes, **limits: int) -> list[Framing]:
    """Framings one after the other, to the end."""
    content = as_bytes(log)
    framings = [frame(content, **limits)]
    while len(framings[-1].batches):
        framings.append(frame(content, framings[-1].position, **limits))
    return framings


def positions(framings: list[Framing]) -> list[int]:
    return [int(at) for framing in framings for at in framing.batches.position]


@by_log
def test_batches_begin_and_end_where_the_reference_has_them(path: Path) -> None:
    log = path.read_bytes()
    framing = frame(as_bytes(log))
    batches, end, problem = reference.framed(log)
    tail = log[end:]
    has_small_size = len(tail) > 17 and int.from_bytes(tail[8:12], signed=True) < 14
    assert (framing.status == BATCH_TOO_SMALL) == has_small_size
    if has_small_size:  # zeros after the last batch are a preallocated file's
        assert (problem is None) == (not any(tail))
    assert framing.position == end
    assert framing.batches.position.tolist() == [batch.position for batch in batches]
    assert framing.batches.size_in_bytes.tolist() == [batch.size for batch in batches]
    assert framing.batches.end.tolist() == [batch.position + batch.size for batch in batches]


def check_fields(found: Batches, expected: list[reference.Batch], log: bytes) -> None:
    names = {
        "baseOffset": "base_offset",
        "partitionLeaderEpoch": "partition_leader_epoch",
        "magic": "magic",
        "crc": "crc",
        "attributes": "attributes",
        "lastOffsetDelta": "last_offset_delta",
        "baseTimestamp": "base_timestamp",
        "maxTimestamp": "max_timestamp",
        "producerId": "producer_id",
        "producerEpoch": "producer_epoch",
        "baseSequence": "base_sequence",
        "recordsCount": "records_count",
    }
    assert len(found) == len(expected)
    for name, attribute in names.items():
        assert found.field(name).tolist() == [getattr(batch, attribute) for batch in expected], name
    for attribute in ("last_sequence", "codec", "timestamp_type", "is_transactional", "is_control"):
        values = getattr(found, attribute).tolist()
        assert values == [getattr(batch, attribute) for batch in expected], attribute
    horizons = [batch.delete_horizon_ms is not None for batch in expected]
    assert found.has_delete_horizon.tolist() == horizons
    assert found.is_valid(as_bytes(log)).tolist() == [batch.is_valid for batch in expected]
    assert found.last_offset.tolist() == [
        reference.int64(batch.base_offset + batch.last_offset_delta) for batch in expected
    ]


@by_sound_log
def test_a_brokers_headers_are_those_of_the_reference(path: Path) -> None:
    log = path.read_bytes()
    check_fields(frame(as_bytes(log)).batches, reference.read_batches(log)[0], log)


@given(st.lists(BATCH, max_size=4))
def test_any_headers_are_those_of_the_reference(batches: list[bytes]) -> None:
    log = b"".join(batches)
    check_fields(frame(as_bytes(log)).batches, reference.read_batches(log)[0], log)


@pytest.mark.parametrize("trailing", range(1, 18))
@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0xFF])
def test_fewer_than_eighteen_bytes_are_no_batch_and_no_error(trailing: int, byte: int) -> None:
    whole = kt.batch([kt.Record(b"k")])
    for log in (bytes([byte]) * trailing, whole + bytes([byte]) * trailing):
        framing = frame(as_bytes(log))
        assert framing.status == OK
        assert framing.position == len(log) - trailing


@pytest.mark.parametrize("length", [13, 0, -1, -(2**31)])
def test_a_length_below_the_smallest_entry_is_a_status(length: int) -> None:
    whole = kt.batch([kt.Record(b"k")])
    framing = frame(as_bytes(whole + kt.batch([], batch_length=length)))
    assert (framing.status, framing.position) == (BATCH_TOO_SMALL, len(whole))
    assert framing.batches.position.tolist() == [0]


@pytest.mark.parametrize("length", [50, 1000, 2**31 - 1])
def test_a_length_beyond_the_end_is_a_batch_to_come(length: int) -> None:
    whole = kt.batch([kt.Record(b"k")])
    framing = frame(as_bytes(whole + kt.batch([], batch_length=length)))
    assert (framing.status, framing.position) == (OK, len(whole))


def test_a_batch_of_fourteen_bytes_is_framed() -> None:
    log = kt.batch([kt.Record(bytes(100))], batch_length=14)[:26]
    batches = frame(as_bytes(log)).batches
    assert batches.size_in_bytes.tolist() == [26]
    assert batches.is_valid(as_bytes(log)).tolist() == [False]


@pytest.mark.parametrize("name", ["none-0", "segments-0", "single-record-0", "emptied-0"])
@pytest.mark.parametrize("max_bytes", [0, 1, 100, 500, 1000, 2**62])
@pytest.mark.parametrize("max_records", [0, 1, 2, 5, 64, 2**62])
def test_limits_change_the_runs_and_never_the_batches(
    name: str, max_bytes: int, max_records: int
) -> None:
    log = log_of(name)
    expected, end = reference.read_batches(log)
    framings = frame_all(log, max_bytes=max_bytes, max_records=max_records)
    assert positions(framings) == [batch.position for batch in expected]
    assert framings[-1].position == end
    for framing in framings[:-1]:
        sizes, counts = framing.batches.size_in_bytes, framing.batches.field("recordsCount")
        assert len(framing.batches) == 1 or sizes.sum() <= max_bytes
        assert len(framing.batches) == 1 or counts.sum() <= max_records


@given(st.lists(BATCH, max_size=6), st.integers(0, 400), st.integers(0, 8), st.binary(max_size=20))
def test_any_limits_give_the_same_batches(
    batches: list[bytes], max_bytes: int, max_records: int, trailing: bytes
) -> None:
    log = b"".join(batches) + trailing[:17]
    framings = frame_all(log, max_bytes=max_bytes, max_records=max_records)
    assert positions(framings) == positions(frame_all(log))
    assert framings[-1].position == sum(map(len, batches))


def test_runs_are_as_long_as_the_limits_allow() -> None:
    log = kt.batch([kt.Record(b"k")] * 2) * 10
    size = len(log) // 10
    assert [len(f.batches) for f in frame_all(log, max_bytes=3 * size)] == [3, 3, 3, 1, 0]
    assert [len(f.batches) for f in frame_all(log, max_bytes=3 * size - 1)] == [2] * 5 + [0]
    assert [len(f.batches) for f in frame_all(log, max_records=6)] == [3, 3, 3, 1, 0]
    assert [len(f.batches) for f in frame_all(log, max_records=7)] == [3, 3, 3, 1, 0]


def test_one_call_finds_at_most_65536_batches() -> None:
    log = kt.batch([]) * 65_540
    assert [len(framing.batches) for framing in frame_all(log)] == [65_536, 4, 0]


def test_framing_can_begin_and_end_between_batches() -> None:
    log = kt.batch([]) * 5
    content = as_bytes(log)
    assert frame(content, 61).batches.position.tolist() == [61, 122, 183, 244]
    assert frame(content, 61, end=183).batches.position.tolist() == [61, 122]
    assert frame(content, 61, end=182).batches.position.tolist() == [61]
    assert frame(content, len(log)).batches.position.tolist() == []


def test_batches_can_be_sliced() -> None:
    batches = frame(as_bytes(kt.batch([]) * 5)).batches
    assert batches[1:3].position.tolist() == [61, 122]
    assert batches[1:3].end.tolist() == [122, 183]


@pytest.mark.parametrize(
    ("base", "delta", "last"),
    [
        (-1, 5, -1),
        (0, 0, 0),
        (10, 5, 15),
        (2**31 - 1, 0, 2**31 - 1),
        (2**31 - 1, 1, 0),
        (2**31 - 3, 10, 7),
        (2**31 - 1, 2**31 - 1, 2**31 - 2),
    ],
)
def test_the_last_sequence_wraps_to_zero(base: int, delta: int, last: int) -> None:
    log = kt.batch([], base_sequence=base, last_offset_delta=delta)
    assert frame(as_bytes(log)).batches.last_sequence.tolist() == [last]


@given(INT32, INT32)
def test_sequences_are_added_as_java_adds_them(sequence: int, increment: int) -> None:
    found = increment_sequence(
        np.array([sequence], dtype=np.int32), np.array([increment], dtype=np.int32)
    )
    assert found.tolist() == [reference.increment_sequence(sequence, increment)]


@given(INT32)
def test_an_int32_is_big_endian(value: int) -> None:
    raw = as_bytes(b"\xff" + value.to_bytes(4, "big", signed=True))
    assert read_int32(raw, 1) == value


def test_a_long_log_is_framed_whole() -> None:
    count = 2000 if NO_JIT else 50_000
    log = b"".join(kt.batch([kt.Record(bytes(place % 90))]) for place in range(count))
    batches, _ = reference.read_batches(log)
    assert positions(frame_all(log, max_bytes=1 << 16)) == [batch.position for batch in batches]
