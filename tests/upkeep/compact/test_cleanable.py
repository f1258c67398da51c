from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kafkajit.testing as kt
from kafkajit.format.log_path import LogPath
from kafkajit.format.ranges import Range
from kafkajit.log.config import LogConfig
from kafkajit.log.log import Log
from kafkajit.log.segment import Segment
from kafkajit.storage.stored_file import StoredFile
from kafkajit.upkeep.compact.cleanable import Cleanable, find_cleanable

NOW = 1_700_000_000_000
HOUR = 3_600_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Segments at 0, 10 and 20 with one batch of ten records each, and the active one at 30."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for place, base in enumerate((0, 10, 20, 30)):
        write(folder, base, base_timestamp=NOW + place * HOUR)
    return folder


def write(folder: Path, base: int, **fields: Any) -> None:
    records = [kt.Record(b"k")] * 10
    path = folder / f"{base:020d}.log"
    path.write_bytes(kt.batch(records, base_offset=base, **fields))


def checkpoint(folder: Path, name: str, offset: int) -> None:
    (folder.parent / name).write_text(f"0\n2\norders 1 99\norders 0 {offset}\n")


def cleanable_of(folder: Path, **config: Any) -> Cleanable:
    return find_cleanable(folder, Log(folder), LogConfig(**config), NOW + 3 * HOUR)


def found(folder: Path, **config: Any) -> tuple[int, int]:
    cleanable = cleanable_of(folder, **config)
    assert all(s.base_offset < cleanable.first_uncleanable_offset for s in cleanable.segments)
    return cleanable.first_dirty_offset, cleanable.first_uncleanable_offset


def test_all_but_the_active_segment_may_be_compacted(folder: Path) -> None:
    assert found(folder) == (0, 30)


def test_what_is_dirty_begins_where_the_cleaner_s_checkpoint_says(folder: Path) -> None:
    checkpoint(folder, "cleaner-offset-checkpoint", 20)
    assert found(folder) == (20, 30)


def test_a_checkpoint_of_no_offset_of_the_log_is_not_believed(folder: Path) -> None:
    checkpoint(folder, "cleaner-offset-checkpoint", 41)
    assert found(folder) == (0, 30)
    checkpoint(folder, "cleaner-offset-checkpoint", 40)
    assert found(folder) == (40, 30)
    checkpoint(folder, "cleaner-offset-checkpoint", 3)
    checkpoint(folder, "log-start-offset-checkpoint", 5)
    assert found(folder) == (5, 30)


def test_a_segment_with_an_open_transaction_is_left(folder: Path) -> None:
    write(folder, 20, producer_id=7, is_transactional=True, base_sequence=0)
    assert found(folder) == (0, 20)


def snapshot(folder: Path, offset: int, *entries: kt.Producer) -> None:
    (folder / f"{offset:020d}.snapshot").write_bytes(kt.producer_snapshot(list(entries)))


def test_an_open_transaction_counts_although_a_snapshot_does_not_have_it(folder: Path) -> None:
    write(folder, 20, producer_id=7, is_transactional=True, base_sequence=0)
    snapshot(folder, 30)
    assert Log(folder).last_stable_offset == 40
    assert found(folder) == (0, 20)


def test_an_open_transaction_counts_that_only_a_snapshot_has(folder: Path) -> None:
    snapshot(folder, 30, kt.Producer(7, current_txn_first_offset=15))
    assert found(folder) == (0, 10)


def test_a_segment_with_what_is_not_replicated_is_left(folder: Path) -> None:
    checkpoint(folder, "replication-offset-checkpoint", 15)
    assert found(folder) == (0, 10)
    checkpoint(folder, "replication-offset-checkpoint", 30)
    assert found(folder) == (0, 30)


def test_the_first_segment_that_is_too_young_ends_it(folder: Path) -> None:
    # It is three hours later: the segments are 3, 2 and 1 hours old.
    assert found(folder, min_compaction_lag_ms=HOUR) == (0, 30)
    assert found(folder, min_compaction_lag_ms=HOUR + 1) == (0, 20)
    assert found(folder, min_compaction_lag_ms=3 * HOUR + 1) == (0, 0)
    # A segment that has been compacted may be young.
    write(folder, 0, base_timestamp=NOW + 9 * HOUR)
    checkpoint(folder, "cleaner-offset-checkpoint", 10)
    assert found(folder, min_compaction_lag_ms=HOUR) == (10, 30)


def test_a_young_segment_is_left_although_its_time_index_has_lost_its_end(folder: Path) -> None:
    log = folder / f"{10:020d}.log"
    records = [kt.Record(b"k")] * 5
    log.write_bytes(
        kt.batch(records, base_offset=10, base_timestamp=NOW)
        + kt.batch(records, base_offset=15, base_timestamp=NOW + 3 * HOUR)
    )
    log.with_suffix(".index").touch()
    log.with_suffix(".timeindex").write_bytes(kt.time_index([(NOW, 0)]))
    assert found(folder, min_compaction_lag_ms=HOUR) == (0, 10)


def test_a_segment_without_timestamps_is_as_old_as_its_file(folder: Path) -> None:
    write(folder, 10, base_timestamp=-1)
    for hours, expected in ((1, 30), (2.5, 10)):
        moment = NOW // 1000 + hours * 3600
        os.utime(folder / f"{10:020d}.log", (moment, moment))
        assert found(folder, min_compaction_lag_ms=HOUR) == (0, expected)


def test_it_is_said_why_no_more_may_be_compacted(folder: Path) -> None:
    def limit(**config: int) -> str:
        return cleanable_of(folder, **config).limit

    assert limit() == "the active segment begins there"
    write(folder, 20, producer_id=7, is_transactional=True, base_sequence=0)
    assert limit() == "the last stable offset is 20"
    checkpoint(folder, "replication-offset-checkpoint", 15)
    assert limit() == "the high watermark is 15"
    lag = {"min_compaction_lag_ms": 3 * HOUR + 1}
    assert limit(**lag) == "the records behind it are younger than min.compaction.lag.ms"


def test_a_damaged_checkpoint_is_an_error(folder: Path) -> None:
    (folder.parent / "cleaner-offset-checkpoint").write_text("1\n")
    with pytest.raises(ValueError, match="Unrecognised version"):
        found(folder)


def stored(base: int, suffix: str, size: int) -> StoredFile:
    return StoredFile(f"/orders-0/{base:020d}{suffix}", size, 0, "", None)


def segment(base: int, log: int = 100, index: int = 8, time_index: int = 12) -> Segment:
    return Segment(
        stored(base, ".log", log),
        LogPath("orders", 0, base, ".log"),
        Range(base, base),
        stored(base, ".index", index) if index else None,
        stored(base, ".timeindex", time_index) if time_index else None,
        None,
    )


def bases(cleanable: Cleanable, **config: int) -> list[list[int]]:
    return [
        [segment.base_offset for segment in group]
        for group in cleanable.groups(LogConfig(**config))
    ]


def test_dirty_bytes_are_those_of_segments_with_dirty_offsets() -> None:
    segments = [segment(0, 100), segment(10, 200), segment(20, 300)]
    cleanable = Cleanable(segments, 10, 30, "")
    assert cleanable.first_dirty == 1
    assert cleanable.dirty_bytes == 500
    assert cleanable.dirty_ratio == 500 / 600
    # A segment with the first dirty offset in its middle counts as both, as in Kafka.
    assert Cleanable(segments, 15, 30, "").dirty_ratio == 500 / 800
    assert Cleanable(segments, 30, 30, "").dirty_bytes == 0
    assert Cleanable(segments, 30, 30, "").dirty_ratio == 0
    assert Cleanable([], 0, 0, "").dirty_ratio == 0


def test_segments_are_put_together_as_far_as_they_fit() -> None:
    cleanable = Cleanable([segment(base) for base in (0, 10, 20, 30, 40)], 0, 50, "")
    assert bases(cleanable) == [[0, 10, 20, 30, 40]]
    assert bases(cleanable, segment_bytes=300) == [[0, 10, 20], [30, 40]]
    assert bases(cleanable, segment_bytes=299) == [[0, 10], [20, 30], [40]]
    assert bases(cleanable, segment_bytes=14) == [[0], [10], [20], [30], [40]]
    assert bases(cleanable, segment_index_bytes=36) == [[0, 10, 20], [30, 40]]
    assert bases(Cleanable([], 0, 0, "")) == []


def test_only_whole_entries_of_an_index_count() -> None:
    cleanable = Cleanable([segment(0, index=23, time_index=0), segment(10, index=7)], 0, 20, "")
    assert bases(cleanable, segment_index_bytes=15) == [[0], [10]]
    assert bases(cleanable, segment_index_bytes=16) == [[0, 10]]


def test_offsets_of_one_segment_are_within_an_int32_of_its_first() -> None:
    far = 2**31
    for last, together in ((far, True), (far + 1, False)):
        cleanable = Cleanable([segment(0), segment(far - 5)], 0, last, "")
        assert (len(bases(cleanable)) == 1) == together
    # A log without bytes has none.
    cleanable = Cleanable([segment(0), segment(far - 5, log=0)], 0, far + 1, "")
    assert bases(cleanable) == [[0, far - 5]]


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 60), st.integers(0, 30), st.integers(0, 40)),
        max_size=12,
    ),
    st.integers(14, 120),
    st.integers(12, 90),
)
def test_groups_are_those_of_kafka_s_loop(
    sizes: list[tuple[int, int, int, int]], most: int, most_index: int
) -> None:
    segments, base = [], 0
    for step, *of_files in sizes:
        segments.append(segment(base, *of_files))
        base += 1 + step * 2**28
    expected: list[list[int]] = []
    rest = list(range(len(segments)))
    ends = [*(one.base_offset for one in segments[1:]), base]
    while rest:  # groupSegmentsBySize
        group = [rest.pop(0)]
        log, index, times = sizes[group[0]][1:]
        index, times = index // 8 * 8, times // 12 * 12
        while rest:
            more, more_index, more_times = sizes[rest[0]][1:]
            more_index, more_times = more_index // 8 * 8, more_times // 12 * 12
            wide = ends[rest[0]] - 1 - segments[group[0]].base_offset > 2**31 - 1
            if (
                log + more > most
                or index + more_index > most_index
                or times + more_times > most_index
                or (more != 0 and wide)
            ):
                break
            log, index, times = log + more, index + more_index, times + more_times
            group.append(rest.pop(0))
        expected.append([segments[row].base_offset for row in group])
    cleanable = Cleanable(segments, 0, base, "")
    found = bases(cleanable, segment_bytes=most, segment_index_bytes=most_index)
    assert found == expected
