from __future__ import annotations

import logging
import struct
from pathlib import Path

import pytest
from corpus import DATA
from scanning import FOLDERS, far_away, logs_of, records_by_segment, write_partition

import kafkajit.log.open_segment
import kafkajit.testing as kt
from kafkajit.format.ranges import Range
from kafkajit.log.open_segment import OpenSegment
from kafkajit.log.segment import Segment, segments_of
from kafkajit.places.locations import find_segments
from kafkajit.walk.damage import Stretch
from kafkajit.walk.selection import Selection

# The segments with entries in their indexes.
INDEXED = [
    folder
    for folder in FOLDERS
    if any(log.with_suffix(".index").exists() for log in logs_of(folder))
    and max(log.with_suffix(".index").stat().st_size for log in logs_of(folder)) > 0
]
by_place = pytest.mark.parametrize("is_far", [False, True], ids=["mapped", "in ranges"])
by_indexed_folder = pytest.mark.parametrize("folder", INDEXED, ids=lambda folder: folder.name)


def segments_at(location: str) -> list[Segment]:
    return segments_of(*find_segments([location]))


def opened(location: str | Path) -> list[OpenSegment]:
    return [OpenSegment(segment) for segment in segments_at(str(location))]


def rows_of(folder: Path) -> list[tuple[int, int, int]]:
    """Offset, timestamp and position of each record's batch."""
    table = records_by_segment(folder)
    names = ("offset", "timestamp", "position")
    columns = (table[name].cast("int64").to_pylist() for name in names)
    rows = zip(*columns, strict=True)
    return [(offset, micros // 1000, position) for offset, micros, position in rows]


@pytest.fixture(autouse=True)
def _indexes_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafkajit.log.open_segment, "_SMALL", 0)


def test_the_corpus_has_folders_with_indexes() -> None:
    assert len(INDEXED) > 10


@by_indexed_folder
@by_place
def test_nothing_that_is_asked_for_lies_outside_the_stretch(
    folder: Path,
    is_far: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    location = far_away(monkeypatch, folder) if is_far else str(folder)
    rows = rows_of(folder)
    offsets = sorted({row[0] for row in rows})
    step = max(1, len(offsets) // 8)
    for segment in opened(location):
        own = segment.segment.offsets
        mine = [row for row in rows if own.first <= row[0] <= own.last]
        for at in range(0, len(offsets), step):
            first, last = offsets[at], offsets[min(at + 3, len(offsets) - 1)]
            start, end = segment.stretch(Selection(offsets=Range(first, last)))
            assert 0 <= start <= end <= segment.segment.log.size
            wanted = [position for offset, _, position in mine if first <= offset <= last]
            assert all(start <= position < end for position in wanted)
            earliest = rows[at][1]
            start, end = segment.stretch(Selection(timestamps=Range(earliest)))
            wanted = [position for _, timestamp, position in mine if timestamp >= earliest]
            assert all(start <= position < end for position in wanted)
    assert not caplog.records


@by_place
def test_the_stretch_of_one_offset_is_one_or_two_entries_long(
    is_far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DATA / "v2" / "segments-0"
    location = far_away(monkeypatch, folder) if is_far else str(folder)
    for segment in opened(location):
        index = segment.offset_index
        assert index is not None
        cuts = [0, *index.entries["position"].tolist(), segment.segment.log.size]
        for offset, _, position in rows_of(folder):
            if offset not in range(segment.segment.base_offset, segment.segment.base_offset + 48):
                continue
            stretch = segment.stretch(Selection(offsets=Range(offset, offset)))
            assert stretch.start in cuts
            assert stretch.end in cuts
            assert cuts.index(stretch.end) - cuts.index(stretch.start) <= 2
            assert stretch.start <= position < stretch.end


def test_a_later_timestamp_skips_what_the_time_index_says_is_earlier() -> None:
    (segment, *_) = opened(DATA / "v2" / "segments-0")
    index = segment.time_index
    assert index is not None
    last = index.last_entry
    assert segment.first_offset_at(last.timestamp) <= last.offset
    assert segment.first_offset_at(last.timestamp + 1) == last.offset + 1
    assert segment.stretch(Selection(timestamps=Range(last.timestamp + 1))).start > 0
    assert segment.first_offset_at(0) == segment.segment.base_offset


def changed_folder(tmp_path: Path, suffix: str, content: bytes) -> Path:
    """The first segment of a folder, with an index of these bytes."""
    source = DATA / "v2" / "segments-0"
    folder = tmp_path / source.name
    folder.mkdir()
    for path in source.glob(f"{0:020}.*"):
        if path.suffix in (".log", ".index", ".timeindex"):
            (folder / path.name).write_bytes(path.read_bytes())
    (folder / f"{0:020}{suffix}").write_bytes(content)
    return folder


INDEX = (DATA / "v2" / "segments-0" / f"{0:020}.index").read_bytes()
TIME_INDEX = (DATA / "v2" / "segments-0" / f"{0:020}.timeindex").read_bytes()
LATE = Selection(timestamps=Range(2_000_000_000_000))


@pytest.mark.parametrize(
    ("suffix", "content", "asked", "message"),
    [
        (".index", b"\0\0\0\x05\0\0\0\x11", Range(20, 21), "names position 17 for offset 5"),
        (".index", b"\0\0\0\x05\xff\0\0\0", Range(20, 21), "names position -16777216 for offset"),
        (
            ".index",
            INDEX[:-3],
            Range(20, 21),
            "neither positive nor a multiple of 8",
        ),
        (".index", INDEX[:8] + b"\0\0\0\x7f\0\0\0\x7f", Range(0, 1), "names position"),
        # There are sound batches at both, but the first does not have that offset.
        (
            ".index",
            struct.pack(">iiii", 47, 144, 48, 288),
            Range(0, 20),
            "names position 144 for offset 47",
        ),
        (".timeindex", TIME_INDEX[:-1], LATE, "neither positive nor a multiple of 12"),
        (".timeindex", bytes(7) + b"\x01\0\0\0\x05", LATE, "names timestamp 1 for offset 5"),
        (".timeindex", bytes(7) + b"\x01\x7f\0\0\0", LATE, "names timestamp 1 for offset 21307"),
        (
            ".timeindex",
            TIME_INDEX[12:24] + TIME_INDEX[:12],
            LATE,
            "has entries out of order around",
        ),
    ],
)
def test_a_wrong_index_is_told_and_the_whole_log_is_read(
    suffix: str,
    content: bytes,
    asked: Range | Selection,
    message: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (segment,) = opened(changed_folder(tmp_path, suffix, content))
    selection = Selection(offsets=asked) if isinstance(asked, Range) else asked
    assert segment.stretch(selection) == Stretch(0, segment.segment.log.size)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert message in record.getMessage()
    assert f"{0:020}{suffix}" in record.getMessage()


@by_place
def test_a_large_header_within_a_record_is_not_taken_for_a_batch(
    is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = bytearray(kt.batch([kt.Record(value=bytes(20_000))], base_offset=0))
    struct.pack_into(">i", inner, 23, 1000)  # its last offset's delta
    outer = kt.batch([kt.Record(value=bytes(inner[:-1]))], base_offset=0)
    position = outer.index(inner[:-1])
    # The last byte is the outer record's: that it has no headers.
    log = outer + kt.batch([kt.Record()], base_offset=1)
    index = struct.pack(">ii", 1, position)
    folder = write_partition(tmp_path, {0: log})
    (folder / f"{0:020}.index").write_bytes(index)
    (segment,) = opened(far_away(monkeypatch, folder) if is_far else folder)
    assert segment.stretch(Selection(offsets=Range(1))) == Stretch(0, len(log))


def test_without_an_index_the_whole_log_is_read(tmp_path: Path) -> None:
    folder = changed_folder(tmp_path, ".index", b"")
    for path in folder.glob("*.*index"):
        path.unlink()
    (segment,) = opened(folder)
    for asked in (Selection(offsets=Range(20, 21)), LATE):
        assert segment.stretch(asked) == Stretch(0, segment.segment.log.size)


@by_place
@pytest.mark.parametrize(
    ("suffix", "content", "asked"),
    [(".index", INDEX, Selection(offsets=Range(20, 21))), (".timeindex", TIME_INDEX, LATE)],
    ids=["index", "timeindex"],
)
@pytest.mark.parametrize("is_gone", [False, True], ids=["cut", "gone"])
def test_an_index_that_a_broker_has_changed_since_it_was_listed_is_no_error(
    is_gone: bool,
    suffix: str,
    content: bytes,
    asked: Selection,
    is_far: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = changed_folder(tmp_path, suffix, content)
    (sound,) = opened(folder)
    whole = Stretch(0, sound.segment.log.size)
    found = sound.stretch(asked)
    assert found != whole
    index = folder / f"{0:020}{suffix}"
    index.write_bytes(content + bytes(1 << 20))  # preallocated
    (segment,) = opened(far_away(monkeypatch, folder) if is_far else folder)
    if is_gone:
        index.unlink()
    else:
        index.write_bytes(content)
    assert segment.stretch(asked) == (whole if is_gone else found)
    assert not caplog.records
