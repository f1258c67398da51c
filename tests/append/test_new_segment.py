from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import log_twin
import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import kafkajit.testing as kt
from kafkajit.append.new_segment import NewSegment
from kafkajit.index.transaction_index import ENTRY as ABORTED
from kafkajit.log.config import LogConfig
from kafkajit.records.batches import frame
from kafkajit.storage.source import as_bytes

NONE = np.empty(0, dtype=ABORTED)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches with timestamps close together, far apart, or missing."""
    offset, log = 7, b""
    for _ in range(draw(st.integers(1, 10))):
        timestamp = draw(st.sampled_from([-(2**63), -1, 0, 5, 90, 100, 105, 106, 2**63 - 1]))
        log += kt.batch(
            [kt.Record(value=b"v" * draw(st.sampled_from([0, 1, 40])))],
            base_offset=offset,
            max_timestamp=timestamp,
        )
        offset += draw(st.sampled_from([1, 1, 2, 2**30, 2**31]))
    return log


CONFIGS = st.builds(
    LogConfig,
    segment_bytes=st.sampled_from([108, 136, 137, 204, 1000]),
    segment_ms=st.sampled_from([1, 5, 100, 2**63 - 1]),
    segment_index_bytes=st.sampled_from([12, 24, 48, 1200]),
    index_interval_bytes=st.sampled_from([0, 60, 4096]),
)


@given(logs(), CONFIGS, st.lists(st.integers(1, 4), min_size=10, max_size=10))
def test_a_segment_takes_batches_up_to_where_a_broker_rolls(
    log: bytes, config: LogConfig, runs: list[int]
) -> None:
    twin = log_twin.Segment(7, config)
    fits = []
    for batch in reference.read_batches(log)[0]:
        if twin.should_roll(batch):
            break
        twin.append(batch, log[batch.position : batch.position + batch.size], [])
        fits.append(batch)
    folder = TemporaryDirectory()
    segment = NewSegment(lambda name: Path(folder.name, name), 7, config)
    batches = frame(as_bytes(log)).batches
    row = 0
    for count in runs:
        run = batches[row : row + count]
        taken = segment.take(run)
        row += taken
        if taken < len(run):
            break
    assert row == len(fits)
    assert segment.is_empty == (row == 0)
    segment.abandon()
    folder.cleanup()


def test_its_files_are_those_of_a_segment(tmp_path: Path) -> None:
    config = LogConfig(index_interval_bytes=0)
    log = b"".join(kt.batch([kt.Record()], base_offset=7 + place) for place in range(3))
    twin = log_twin.Segment(7, config)
    for batch in reference.read_batches(log)[0]:
        content = log[batch.position : batch.position + batch.size]
        twin.append(batch, content, [(1, 5, batch.base_offset, 6)])
    segment = NewSegment(tmp_path.joinpath, 7, config)
    batches = frame(as_bytes(log)).batches
    for row in range(3):
        aborted = np.zeros(1, dtype=ABORTED)
        aborted[0] = (0, 1, 5, 7 + row, 6)
        segment.take(batches[row : row + 1])
        segment.write(as_bytes(log)[68 * row : 68 * (row + 1)], aborted)
    segment.close()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == twin.files()


def test_without_aborted_transactions_there_is_no_index_of_them(tmp_path: Path) -> None:
    segment = NewSegment(tmp_path.joinpath, 7, LogConfig())
    segment.write(as_bytes(b""), NONE)
    segment.close()
    stem = f"{7:020}"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{stem}{suffix}" for suffix in (".index", ".log", ".timeindex")
    ]


def test_the_batch_for_which_it_was_rolled_is_in_it_in_any_case(tmp_path: Path) -> None:
    # An index of this size is full before it has an entry.
    segment = NewSegment(tmp_path.joinpath, 7, LogConfig(segment_index_bytes=12))
    batches = frame(as_bytes(kt.batch([kt.Record()], base_offset=7))).batches
    assert segment.take(batches) == 0
    assert segment.is_empty
    segment.take_first(batches)
    assert not segment.is_empty
    segment.close()
    assert (tmp_path / f"{7:020}.timeindex").stat().st_size == 12


@pytest.mark.parametrize(
    ("timestamps", "config", "taken"),
    [
        ([0, 0, 0], LogConfig(segment_bytes=204), 3),
        ([0, 0, 0], LogConfig(segment_bytes=203), 2),
        ([0, 5, 6, 5], LogConfig(segment_ms=5), 2),
        ([10, 0, 15, 16], LogConfig(segment_ms=5), 3),
        # a first record without a timestamp, and later ones
        ([-1, 0, 2**62], LogConfig(segment_ms=5), 3),
        ([-(2**63), 0, 2**62], LogConfig(segment_ms=5), 3),
        ([5, -1, -(2**63), 10, 11], LogConfig(segment_ms=5), 4),
        ([0, 2**63 - 1], LogConfig(segment_ms=2**63 - 2), 1),
    ],
)
def test_a_segment_is_rolled_before_it_is_too_large_or_too_late(
    timestamps: list[int], config: LogConfig, taken: int, tmp_path: Path
) -> None:
    log = b"".join(
        kt.batch([kt.Record()], base_offset=7 + place, max_timestamp=timestamp)
        for place, timestamp in enumerate(timestamps)
    )
    segment = NewSegment(lambda name: tmp_path / name, 7, config)
    assert segment.take(frame(as_bytes(log)).batches) == taken
    segment.abandon()
