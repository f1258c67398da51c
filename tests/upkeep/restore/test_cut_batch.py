"""A batch that is cut has the records inside the border, and is otherwise as it was."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import HEADER, NULLABLE

import kafkajit.testing as kt
from kafkajit import CorruptRecordError
from kafkajit.format.ranges import Range
from kafkajit.log.open_segment import OpenSegment
from kafkajit.log.segment import segments_of
from kafkajit.places.locations import stored_file
from kafkajit.upkeep.restore.cut_batch import CutBatch, cut_batch

T = 1_700_000_000_000
TIMES = st.sampled_from([-1, 0, T - 7, T, T + 1, T + 200, 2**62])


def cut(log: bytes, first: int, last: int, position: int = 0) -> tuple[CutBatch, bytes] | None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{0:020}.log"
        path.write_bytes(log)
        (segment,) = segments_of([stored_file(str(path))], {})
        found = cut_batch(OpenSegment(segment), position, Range(first, last))
        return found and (found[0], found[1].tobytes())


def sound(log: bytes) -> reference.Batch:
    """The only batch of these bytes."""
    (batch,), end = reference.read_batches(log)
    assert batch.is_valid
    assert end == len(log)
    return batch


@st.composite
def made_batches(draw: st.DrawFn) -> bytes:
    """A batch of v2 with gaps, timestamps in any order and encodings of careless writers."""
    deltas = sorted(draw(st.sets(st.integers(0, 200), min_size=1, max_size=6)))
    base_timestamp = draw(TIMES)
    timestamp_type = draw(st.sampled_from([kt.CREATE_TIME, kt.LOG_APPEND_TIME]))
    times = [draw(TIMES) for _ in deltas]
    return kt.batch(
        [
            kt.Record(
                draw(NULLABLE),
                draw(NULLABLE),
                draw(st.lists(HEADER, max_size=2)),
                timestamp=time,
                offset_delta=delta,
                attributes=draw(st.integers(0, 255)),
            )
            for delta, time in zip(deltas, times, strict=True)
        ],
        base_offset=draw(st.sampled_from([0, 7, 2**40])),
        codec=draw(st.sampled_from(kt.CODECS)),
        base_timestamp=base_timestamp,
        max_timestamp=T if timestamp_type else max(times),
        timestamp_type=timestamp_type,
        is_transactional=draw(st.booleans()),
        is_control=draw(st.sampled_from([False, False, True])),
        delete_horizon_ms=draw(st.sampled_from([None, base_timestamp])),
        producer_id=draw(st.sampled_from([-1, 9])),
        producer_epoch=draw(st.integers(-1, 3)),
        base_sequence=draw(st.sampled_from([-1, 0, 5, 2**31 - 3])),
        partition_leader_epoch=draw(st.integers(-1, 9)),
        last_offset_delta=deltas[-1] + draw(st.integers(0, 3)),
    )


@given(made_batches(), st.integers(-3, 210), st.integers(-3, 210))
def test_a_batch_has_the_records_inside_and_its_own_header(
    log: bytes, first: int, last: int
) -> None:
    was = sound(log)
    last_offset = was.base_offset + was.last_offset_delta
    first, last = was.base_offset + first, was.base_offset + last
    records = reference.read_records(was)
    inside = [record for record in records if first <= record.offset <= last]
    found = cut(log, first, last)
    if not inside:
        assert found is None
        return
    assert found is not None
    plan, content = found
    batch = sound(content)
    assert reference.read_records(batch) == inside
    assert batch.base_offset == max(first, was.base_offset)
    assert batch.base_offset + batch.last_offset_delta == min(last, last_offset)
    moved = batch.base_offset - was.base_offset
    if was.base_sequence >= 0:
        assert batch.base_sequence == reference.increment_sequence(was.base_sequence, moved)
    else:
        assert batch.base_sequence == -1
    for name in (
        *("attributes", "magic", "partition_leader_epoch", "base_timestamp"),
        *("producer_id", "producer_epoch"),
    ):
        assert getattr(batch, name) == getattr(was, name), name
    latest = max(record.timestamp for record in inside)
    assert batch.max_timestamp == latest
    assert plan == CutBatch(
        0,
        Range(was.base_offset, last_offset),
        Range(batch.base_offset, batch.base_offset + batch.last_offset_delta),
        latest,
        len(inside),
        len(records),
        len(content),
    )


@given(made_batches(), st.integers(0, 210))
def test_a_batch_that_loses_its_last_records_keeps_the_bytes_of_the_others(
    log: bytes, last: int
) -> None:
    """Also what no reader returns: attributes, and a producer's time under the broker's."""
    was = sound(log)
    found = cut(log, was.base_offset, was.base_offset + last)
    if found is not None:
        plain, cut_plain = (
            reference.decompress(batch.codec, batch.payload) for batch in (was, sound(found[1]))
        )
        assert plain.startswith(cut_plain)


def long_varint(number: int) -> bytes:
    """A varint of five bytes, which Kafka reads and does not write."""
    zigzag = number << 1
    return bytes([zigzag >> 7 * place & 0x7F | 0x80 for place in range(4)]) + b"\0"


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_varints_that_are_longer_than_needed_are_read(codec: str) -> None:
    body = [
        b"\x03" + long_varint(number) * 2 + long_varint(1) + b"k" + long_varint(1) + b"v\x00"
        for number in range(4)
    ]
    log = kt.batch([long_varint(len(one)) + one for one in body], base_offset=7, codec=codec)
    records = reference.read_records(sound(log))
    for first, last in ((7, 8), (8, 10), (9, 9)):
        found = cut(log, first, last)
        assert found is not None
        assert reference.read_records(sound(found[1])) == records[first - 7 : last - 6]


SETS = [(magic, codec) for magic in (0, 1) for codec in ("gzip", "snappy", "lz4")]


@pytest.mark.parametrize(("magic", "codec"), SETS)
@pytest.mark.parametrize("timestamp_type", [kt.CREATE_TIME, kt.LOG_APPEND_TIME])
@given(st.lists(TIMES, min_size=1, max_size=5), st.integers(-2, 7), st.integers(-2, 7))
def test_a_set_of_messages_has_those_inside(
    magic: int, codec: str, timestamp_type: int, times: list[int], first: int, last: int
) -> None:
    log = kt.message_set(
        [kt.Record(b"k", b"%d" % at, timestamp=time) for at, time in enumerate(times)],
        base_offset=70,
        magic=magic,
        codec=codec,
        timestamp_type=timestamp_type if magic else kt.CREATE_TIME,
        timestamp=T,
        key=b"of the set",
    )
    was = sound(log)
    records = reference.read_records(was)
    inside = [record for record in records if 70 + first <= record.offset <= 70 + last]
    found = cut(log, 70 + first, 70 + last)
    if not inside:
        assert found is None
        return
    assert found is not None
    plan, content = found
    batch = sound(content)
    assert reference.read_records(batch) == inside
    assert (batch.magic, batch.attributes) == (was.magic, was.attributes)
    assert batch.base_offset == inside[-1].offset
    assert b"of the set" in content
    latest = max(record.timestamp for record in inside)
    assert batch.max_timestamp == plan.max_timestamp == latest
    assert plan.was == Range(70, 69 + len(times))
    assert plan.offsets == Range(inside[0].offset, inside[-1].offset)
    assert (plan.records, plan.records_before) == (len(inside), len(records))


def test_a_set_of_which_a_client_wrote_0_keeps_its_offsets() -> None:
    records = [kt.Record(b"k", b"%d" % at) for at in range(4)]
    log = kt.message_set(records, codec="gzip", wrapper_offset=0)
    found = cut(log, 1, 2)
    assert found is not None
    assert [record.offset for record in reference.read_records(sound(found[1]))] == [1, 2]


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_large_batch_is_cut_too(codec: str) -> None:
    values = [bytes([at]) * (3 << 20) for at in range(7)]
    log = kt.batch([kt.Record(value=value) for value in values], base_offset=5, codec=codec)
    found = cut(log, 0, 10)
    assert found is not None
    kept = reference.read_records(sound(found[1]))
    assert [record.value for record in kept] == values[:6]


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_batch_that_is_damaged_is_an_error_that_names_it(codec: str) -> None:
    good = kt.batch([kt.Record()] * 3)
    bad = bytearray(kt.batch([kt.Record(value=b"v")] * 3, base_offset=3, codec=codec))
    bad[-1] ^= 1
    with pytest.raises(CorruptRecordError, match=f"at position {len(good)}, base offset 3 in /"):
        cut(good + bytes(bad), 3, 4, len(good))
    # The checksum is right, and the records are not.
    false = kt.batch([kt.Record(), b"\x7f"], base_offset=3, codec=codec, records_count=2)
    with pytest.raises(ValueError, match=f"at position {len(good)}, base offset 3 in /"):
        cut(good + false, 3, 3, len(good))
