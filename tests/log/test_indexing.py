from __future__ import annotations

from pathlib import Path
from typing import Any

import log_twin
import pytest
import reference
from corpus import DATA, NO_JIT, split
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
import kafkajit.testing as kt
from kafkajit.index.index_file import whole_entries
from kafkajit.index.offset_index import ENTRY as OFFSET_ENTRY
from kafkajit.index.time_index import ENTRY as TIME_ENTRY
from kafkajit.log.config import LogConfig
from kafkajit.log.indexing import SegmentIndexes
from kafkajit.records.batches import Batches, frame
from kafkajit.storage.source import as_bytes

BASES = st.sampled_from([0, 45, 2**31 - 3, 2**62])


@st.composite
def segments(draw: st.DrawFn) -> tuple[int, list[bytes]]:
    """A base offset with batches behind it, some of them far behind; sizes and timestamps vary."""
    base = draw(BASES)
    offset, batches = base, []
    for _ in range(draw(st.integers(0, 12))):
        timestamp = draw(st.sampled_from([-1, 0, 5, 5, 6, 7, 9, -(2**63), 2**63 - 1]))
        record = kt.Record(value=b"v" * draw(st.sampled_from([0, 0, 30, 100])))
        if draw(st.sampled_from([False, False, True])):
            batches.append(kt.message(record, offset=offset, timestamp=timestamp))
        else:
            delta = draw(st.sampled_from([0, 0, 3]))
            batches.append(
                kt.batch(
                    [record],
                    base_offset=offset,
                    max_timestamp=timestamp,
                    last_offset_delta=delta,
                )
            )
            offset += delta
        offset += draw(st.sampled_from([1, 1, 1, 4, 2**30]))
    return base, batches


CONFIGS = st.builds(
    LogConfig,
    index_interval_bytes=st.sampled_from([0, 60, 69, 99, 150, 4096]),
    segment_index_bytes=st.sampled_from([12, 24, 36, 40, 1000]),
)


def framed(log: bytes) -> Batches:
    return frame(as_bytes(log)).batches


@given(segments(), CONFIGS, st.data())
def test_entries_are_those_of_a_segment(
    segment: tuple[int, list[bytes]], config: LogConfig, data: Any
) -> None:
    base, batches = segment
    twin, refused = log_twin.Indexes(base, config), None
    for row, batch in enumerate(reference.read_batches(b"".join(batches))[0]):
        try:
            twin.add(batch)
        except log_twin.Refused:
            refused = row
            break
    indexes = SegmentIndexes(base, config)
    everything = framed(b"".join(batches))
    row = 0
    while row < len(everything):  # in runs of any length
        run = everything[row : row + data.draw(st.integers(1, 5))]
        if refused is not None and row + len(run) > refused:
            with pytest.raises(kafkajit.InvalidOffsetError) as error:
                indexes.add(run, "a/b")
            assert error.value.position == everything.position[refused]
            assert error.value.path == "a/b"
            break
        indexes.add(run)
        row += len(run)
    assert indexes.size == twin.size
    assert indexes.largest_timestamp == twin.latest
    assert indexes.is_full == twin.is_full
    for _ in range(2):  # closing twice adds nothing
        assert indexes.offset_index == twin.offset_index
        assert indexes.time_index == twin.time_index
        twin.close()
        indexes.close()


@given(segments(), CONFIGS)
def test_a_segment_is_to_be_rolled_where_an_index_is_full_or_an_offset_too_far(
    segment: tuple[int, list[bytes]], config: LogConfig
) -> None:
    base, batches = segment
    twin, expected = log_twin.Indexes(base, config), 0
    for batch in reference.read_batches(b"".join(batches))[0]:
        if twin.is_full:
            break
        try:
            twin.add(batch)
        except log_twin.Refused:
            break
        expected += 1
    indexes = SegmentIndexes(base, config)
    assert indexes.add_until_roll(framed(b"".join(batches))) == expected
    assert indexes.offset_index == twin.offset_index
    assert indexes.time_index == twin.time_index
    assert indexes.size == twin.size


# The setting of tests/broker/make_corpus.py; other logs have Kafka's default.
INTERVALS = {"segments-0": 200, "segments-idempotent-0": 200, "segments-lz4-0": 256}
INTERVALS |= {"crashed-0": 256, "preallocated-0": 256}
# These were not closed.
OPEN = {"crashed-0/00000000000000000096", "preallocated-0/00000000000000000096"}
LOGS = [
    log
    for log in sorted((DATA / "v2").rglob("*.log"))
    if log.with_suffix(".index").exists() and not (NO_JIT and "-value-" in str(log))
]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.parent.name}/{log.stem[-3:]}")
def test_entries_are_those_of_a_broker(log: Path) -> None:
    config = LogConfig(index_interval_bytes=INTERVALS.get(log.parent.name, 4096))
    indexes = SegmentIndexes(int(log.stem), config)
    indexes.add(framed(log.read_bytes()))
    if f"{log.parent.name}/{log.stem}" not in OPEN:
        indexes.close()
    for found, suffix, kind in (
        (indexes.offset_index, ".index", OFFSET_ENTRY),
        (indexes.time_index, ".timeindex", TIME_ENTRY),
    ):
        written = as_bytes(log.with_suffix(suffix).read_bytes())
        assert found == whole_entries(written, kind).tobytes()


def test_the_corpus_has_indexes_with_entries() -> None:
    assert len(LOGS) > 50
    assert sum(log.with_suffix(".index").stat().st_size > 16 for log in LOGS) > 10


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([2**31 + 7], r"Detected offset overflow at offset 2147483655 in a segment of base offset"),
        ([6], r"Detected offset overflow at offset 6 in a segment of base offset 7"),
        ([7, 9, 9], r"Attempt to append an offset 9 to an index, no larger than .* \(9\)"),
    ],
)
def test_an_offset_that_does_not_fit_is_told(offsets: list[int], message: str) -> None:
    log = b"".join(kt.batch([kt.Record()], base_offset=offset) for offset in offsets)
    indexes = SegmentIndexes(7, LogConfig(index_interval_bytes=0))
    with pytest.raises(kafkajit.InvalidOffsetError, match=message) as error:
        indexes.add(framed(log), "a/7.log")
    assert (error.value.base_offset, error.value.path) == (offsets[-1], "a/7.log")
    assert error.value.position == indexes.size == 68 * (len(offsets) - 1)


def test_a_timestamp_of_an_offset_before_the_last_entrys_is_told() -> None:
    stamped = [(100, 4), (101, 5), (102, 6), (50, 9), (120, 7)]
    log = b"".join(
        kt.batch([kt.Record()], base_offset=offset, max_timestamp=timestamp)
        for offset, timestamp in stamped
    )
    # The third batch has an entry, the fourth does not, the fifth would name the fourth's offset.
    indexes = SegmentIndexes(0, LogConfig(index_interval_bytes=100))
    with pytest.raises(kafkajit.InvalidOffsetError, match=r"offset 50 to a time index.*\(102\)"):
        indexes.add(framed(log))
    assert indexes.largest_timestamp == (9, 50)


def test_a_segment_has_at_most_two_gibibytes() -> None:
    (batch,) = split(kt.batch([kt.Record()]))
    batches = framed(batch)
    batches.header["batchLength"] = 2**31 - 100
    indexes = SegmentIndexes(0)
    indexes.add(batches)
    batches.header["baseOffset"] = 1
    with pytest.raises(kafkajit.CorruptRecordError, match=r"at most 2147483647 bytes, not 42949"):
        indexes.add(batches, "a/b")
