from __future__ import annotations

import random
from pathlib import Path

import log_twin
import pytest
import reference
from appends import append
from corpus import NO_JIT

from kafkajit import LogConfig
from kafkajit.append.rolled_segments import RolledSegment, RolledSegments
from kafkajit.records.batches import frame
from kafkajit.storage.source import as_bytes

SEEDS = range(15 if NO_JIT else 60)


def series_of(folder: Path, seed: int, *, suspends: bool) -> list[RolledSegment]:
    """A random log, appended several batches at a time."""
    log, rng = append(seed), random.Random(seed)
    folder.mkdir()
    series = RolledSegments(folder.joinpath, LogConfig.of(log.config))
    series.next_offset = first_offset(log.batches)
    at = 0
    while at < len(log.batches):
        count = rng.choice([1, 2, 7, 100])
        content = as_bytes(b"".join(log.batches[at : at + count]))
        series.append(content, frame(content).batches)
        if suspends:
            series.suspend()
        at += count
    return series.close()


def first_offset(batches: list[bytes]) -> int:
    return reference.read_batches(batches[0])[0][0].base_offset


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("suspends", [False, True])
def test_segments_are_rolled_where_kafkas_are(seed: int, suspends: bool, tmp_path: Path) -> None:
    log = append(seed)
    twin = log_twin.Log(LogConfig.of(log.config), first_offset(log.batches))
    twin.append(b"".join(log.batches))
    written = series_of(tmp_path / "series", seed, suspends=suspends)
    expected = {
        name: content
        for name, content in twin.files().items()
        if name.endswith((".log", ".index", ".timeindex"))
    }
    found = {path.name: path.read_bytes() for path in (tmp_path / "series").iterdir()}
    assert found == expected
    assert [(one.base_offset, one.size) for one in written] == [
        (segment.base, len(segment.log)) for segment in twin.segments
    ]
    bases = [one.base_offset for one in written[1:]]
    assert all(one.next_offset <= base for one, base in zip(written, bases, strict=False))
    assert written[-1].next_offset == twin.end


@pytest.mark.parametrize("seed", SEEDS)
def test_a_segment_reports_whether_it_has_producers(seed: int, tmp_path: Path) -> None:
    for one in series_of(tmp_path / "series", seed, suspends=False):
        log = (tmp_path / "series" / f"{one.base_offset:020}.log").read_bytes()
        ids = [batch.producer_id for batch in reference.read_batches(log)[0]]
        assert one.has_producers == any(producer >= 0 for producer in ids)


def test_without_batches_there_is_no_segment(tmp_path: Path) -> None:
    series = RolledSegments(tmp_path.joinpath, LogConfig())
    series.suspend()
    series.abandon()
    assert series.close() == []
    assert list(tmp_path.iterdir()) == []
