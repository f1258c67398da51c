from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import kafkajit
import kafkajit.testing as kt
from kafkajit.change.change import Change
from kafkajit.log.config import LogConfig
from kafkajit.log.log import Log
from kafkajit.log.segment import Segment
from kafkajit.records.batches import frame
from kafkajit.storage.source import as_bytes
from kafkajit.upkeep.compact.batch_rewriting import COPIED, REWRITTEN
from kafkajit.upkeep.compact.cleaned_segment import CleanedSegment
from kafkajit.upkeep.compact.record_filter import Filtered

CONFIG = LogConfig(index_interval_bytes=0)
TIME = 1_700_000_000
ENTRY = (7, 0, 2, 3)


def batch(offset: int) -> bytes:
    return kt.batch([kt.Record(b"k")], base_offset=offset, base_timestamp=TIME * 1000 + offset)


def filtered(content: bytes, action: int) -> Filtered:
    """One filtered batch."""
    batches = frame(as_bytes(content)).batches
    return Filtered(as_bytes(content), batches, np.full(len(batches), action), len(batches))


@pytest.fixture
def segments(tmp_path: Path) -> list[Segment]:
    """Two segments of three batches, a second apart; the first has aborted transactions."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for place, base in enumerate((0, 3, 6)):
        path = folder / f"{base:020d}.log"
        path.write_bytes(b"".join(batch(base + i) for i in range(3 if base < 6 else 0)))
        path.with_suffix(".index").write_bytes(b"as it was.......")
        os.utime(path, (TIME + place, TIME + place))
    (folder / f"{0:020d}.txnindex").write_bytes(kt.transaction_index([ENTRY]))
    return Log(folder).segments[:2]


def written(
    segments: list[Segment], parts: list[Filtered], aborted: bytes = kt.transaction_index([ENTRY])
) -> CleanedSegment:
    folder = Path(segments[0].log.folder)
    with Change(folder, "compact") as change:
        cleaned = CleanedSegment(segments, CONFIG, change)
        for part in parts:
            cleaned.add(part)
        cleaned.finish(aborted)
        change.commit(keep=False)
    return cleaned


def file_of(segments: list[Segment], suffix: str) -> Path:
    return Path(segments[0].log.path).with_suffix(suffix)


def test_a_segment_that_loses_nothing_is_not_touched(segments: list[Segment]) -> None:
    before = file_of(segments, ".log").stat()
    cleaned = written(segments[:1], [filtered(batch(place), COPIED) for place in range(3)])
    assert not cleaned.is_changed
    assert cleaned.size == before.st_size
    assert file_of(segments, ".log").stat() == before
    assert file_of(segments, ".index").read_bytes() == b"as it was......."


def test_what_comes_before_the_first_change_is_as_it_was(segments: list[Segment]) -> None:
    other = kt.batch([kt.Record(b"other")], base_offset=2)
    parts = [filtered(batch(0) + batch(1), COPIED), filtered(other, REWRITTEN)]
    cleaned = written(segments[:1], parts)
    assert cleaned.is_changed
    assert file_of(segments, ".log").read_bytes() == batch(0) + batch(1) + other
    assert cleaned.size == file_of(segments, ".log").stat().st_size


def test_indexes_are_made_of_what_is_there_now(segments: list[Segment]) -> None:
    written(segments[:1], [filtered(batch(0), REWRITTEN), filtered(batch(2), COPIED)])
    index = kafkajit.index.read_offset_index(file_of(segments, ".index"))
    assert index.select(["offset", "position"]).to_pylist() == [
        {"offset": 2, "position": len(batch(0))}
    ]
    times = kafkajit.index.read_time_index(file_of(segments, ".timeindex"))
    assert times["offset"].to_pylist() == [2]


def test_segments_become_one_that_is_as_old_as_the_last(segments: list[Segment]) -> None:
    cleaned = written(segments, [filtered(batch(0) + batch(4), COPIED)])
    assert cleaned.is_changed
    assert not Path(segments[1].log.path).exists()
    assert file_of(segments, ".log").read_bytes() == batch(0) + batch(4)
    for suffix in (".log", ".index", ".timeindex"):
        assert file_of(segments, suffix).stat().st_mtime == TIME + 1


def test_a_segment_of_which_nothing_stays_is_empty(segments: list[Segment]) -> None:
    nothing = Filtered(as_bytes(b""), frame(as_bytes(b"")).batches, np.zeros(3, np.int64), 0)
    written(segments[:1], [nothing])
    assert file_of(segments, ".log").read_bytes() == b""
    assert file_of(segments, ".timeindex").read_bytes() == b""


def test_another_index_of_transactions_is_a_change_by_itself(segments: list[Segment]) -> None:
    parts = [filtered(batch(place), COPIED) for place in range(3)]
    log = file_of(segments, ".log").read_bytes()
    assert written(segments[:1], parts, b"").is_changed
    assert not file_of(segments, ".txnindex").exists()
    assert file_of(segments, ".log").read_bytes() == log
    other = kt.transaction_index([(8, 0, 1, 2)])
    (before,) = (one for one in Log(segments[0].log.folder).segments if one.base_offset == 0)
    assert written([before], parts, other).is_changed
    assert file_of(segments, ".txnindex").read_bytes() == other


def test_without_a_change_only_sizes_are_found_out(segments: list[Segment]) -> None:
    cleaned = CleanedSegment(segments[:1], CONFIG, None)
    cleaned.add(filtered(batch(1), REWRITTEN))
    cleaned.finish(b"")
    assert (cleaned.is_changed, cleaned.size) == (True, len(batch(1)))
    assert file_of(segments, ".log").stat().st_size == 3 * len(batch(0))
