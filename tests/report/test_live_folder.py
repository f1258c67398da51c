"""A report of a folder that a running broker changes between the listing and the reading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from partitions import data
from scanning import write_partition

import kafkajit.testing as kt
from kafkajit.log.live_segments import as_now
from kafkajit.log.missing_segments import MissingSegments
from kafkajit.log.segment import Segment
from kafkajit.report import headers, info, take, trouble
from kafkajit.report.folder import Folder, look_at
from kafkajit.report.take import ALL, ReportOptions

Change = Callable[[Path], object]


def name(offset: int, suffix: str = ".log") -> str:
    return f"{offset:020}{suffix}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three segments of ten batches of two records."""
    segments = {first: b"".join(data(first + 2 * at) for at in range(10)) for first in (0, 20, 40)}
    return write_partition(tmp_path, segments)


def retention(folder: Path) -> None:
    (folder / name(0)).rename(folder / name(0, ".log.deleted"))


def compaction(folder: Path) -> None:
    """The first two segments become one, which is smaller than either."""
    replace(folder, data(4) + data(38))


def large_compaction(folder: Path) -> None:
    """The first two segments become one, which is larger than either."""
    replace(folder, (folder / name(0)).read_bytes() + (folder / name(20)).read_bytes()[:-93])


def other_compaction(folder: Path) -> None:
    """The first two segments become one, whose batches are larger."""
    large = kt.batch([kt.Record(value=bytes(2000)), kt.Record()], base_offset=38)
    replace(folder, data(4) + data(36) + large)


def replace(folder: Path, cleaned: bytes) -> None:
    """Replace the first two segments as a broker's cleaner does."""
    (folder / name(0, ".log.swap")).write_bytes(cleaned)
    for offset in (0, 20):
        (folder / name(offset)).rename(folder / name(offset, ".log.deleted"))
    (folder / name(0, ".log.swap")).rename(folder / name(0))


def roll(folder: Path) -> None:
    with (folder / name(40)).open("ab") as log:
        log.write(data(60))
    (folder / name(62)).write_bytes(data(62))


def deletion(folder: Path) -> None:
    folder.rename(folder.with_name("orders-0.deadbeefdeadbeefdeadbeefdeadbeef-delete"))


def changed_at(
    monkeypatch: pytest.MonkeyPatch, module: Any, turn: int, change: Change, folder: Path
) -> None:
    """Change the folder just before the n-th segment is opened."""
    turns = 0

    def opened(segment: Segment) -> Segment:
        nonlocal turns
        turns += 1
        if turns == turn:
            change(folder)
        return as_now(segment)

    monkeypatch.setattr(module, "as_now", opened)


def document_of(folder: Path) -> dict[str, Any]:
    return take.take(ReportOptions((str(folder.parent),), depth=ALL, now=1_700_000_000_000))


# The end offset, and the records that there are; "at" counts the segments that have been read.
@pytest.mark.parametrize(
    ("change", "at", "records", "end"),
    [
        (retention, 1, 40, 60),
        (retention, 2, 60, 60),
        (compaction, 1, 24, 60),
        (compaction, 2, 20 + 2 + 20, 60),  # behind the first segment, which was read before
        (roll, 3, 62, 62),
        (deletion, 1, 0, 40),
        (deletion, 3, 40, 40),
    ],
)
def test_the_figures_are_those_of_the_segments_that_are_there(
    change: Change,
    at: int,
    records: int,
    end: int,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed_at(monkeypatch, headers, at, change, folder)
    found = document_of(folder)
    assert [one for one in found["trouble"] if one["kind"] != "leftover"] == []
    (topic,) = found["topics"]
    assert (topic["records"], topic["eachPartition"][0]["endOffset"]) == (records, end)


@pytest.mark.parametrize("change", [retention, compaction, large_compaction, roll])
def test_nothing_is_damaged_if_segments_change_before_their_records_are_read(
    change: Change, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read = take._read_headers

    def then_change(*arguments: Any) -> Any:
        found = read(*arguments)
        change(folder)
        return found

    monkeypatch.setattr(take, "_read_headers", then_change)
    found = document_of(folder)
    assert found["trouble"] == []
    assert found["takenFrom"]["sample"]["records"] == 60
    assert not caplog.records


@pytest.mark.parametrize(
    ("change", "start", "end"),
    [(retention, 0, 60), (compaction, 0, 60), (roll, 0, 62)],
)
def test_a_quick_look_finds_the_end_that_there_is(
    change: Change, start: int, end: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_at(monkeypatch, info, 1, change, folder)
    (topic,) = info.info([str(folder.parent)])["topics"]
    (one,) = topic["eachPartition"]
    assert (one["startOffset"], one["endOffset"], one["problem"]) == (start, end, None)


def test_a_quick_look_at_a_last_segment_that_is_gone_lists_the_folder_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def roll_and_delete(folder: Path) -> None:
        roll(folder)
        for offset in (0, 20, 40):
            (folder / name(offset)).unlink()

    changed_at(monkeypatch, info, 1, roll_and_delete, folder)
    (topic,) = info.info([str(folder.parent)])["topics"]
    (one,) = topic["eachPartition"]
    assert (one["startOffset"], one["endOffset"], one["problem"]) == (62, 64, None)


def test_an_index_may_be_newer_than_the_listing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_and_append(*arguments: Any, **options: Any) -> Folder:
        found = look_at(*arguments, **options)
        size = (folder / name(40)).stat().st_size
        with (folder / name(40)).open("ab") as log:
            log.write(data(60))
        (folder / name(40, ".index")).write_bytes(kt.offset_index([(21, size)]))
        return found

    (folder / name(40, ".index")).write_bytes(kt.offset_index([(3, 86)]))
    monkeypatch.setattr(take, "look_at", look_and_append)
    monkeypatch.setattr(headers, "as_now", lambda segment: segment)
    indexes = [one for one in document_of(folder)["trouble"] if "past" in one["problem"]]
    assert indexes == []


@pytest.mark.parametrize("suffix", [".index", ".log"])
def test_an_index_or_its_log_may_be_gone_when_they_are_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    for offset in (0, 20, 40):
        (folder / name(offset, ".index")).write_bytes(bytes(8))
    read = trouble.read_sidecar_files

    def read_late(*given: Any) -> Any:
        (folder / name(20, suffix)).unlink(missing_ok=True)
        return read(*given)

    monkeypatch.setattr(trouble, "read_sidecar_files", read_late)
    assert not [one for one in document_of(folder)["trouble"] if one["kind"] == "index"]


def test_a_log_starts_where_the_checkpoint_says(folder: Path) -> None:
    (folder.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 7\n")
    for document in (document_of(folder), info.info([str(folder)])):
        (topic,) = document["topics"]
        assert topic["eachPartition"][0]["startOffset"] == 7


def test_an_empty_segment_may_begin_behind_the_last_record(folder: Path) -> None:
    (folder / name(99)).touch()
    for document in (document_of(folder), info.info([str(folder)])):
        assert document["topics"][0]["eachPartition"][0]["endOffset"] == 99


def looked_at_before(monkeypatch: pytest.MonkeyPatch, change: Change, folder: Path) -> None:
    """Change the folder right after it was listed."""

    def look_and_change(*given: Any, **options: Any) -> Folder:
        found = look_at(*given, **options)
        change(folder)
        return found

    monkeypatch.setattr(take, "look_at", look_and_change)


@pytest.mark.parametrize(
    ("change", "records"), [(compaction, 24), (large_compaction, 58), (other_compaction, 26)]
)
def test_segments_that_a_cleaner_has_replaced_do_not_overlap(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: Change,
    records: int,
) -> None:
    looked_at_before(monkeypatch, change, folder)
    document = document_of(folder)
    assert document["totals"]["records"] == records
    assert {one["kind"] for one in document["trouble"]} <= {"leftover", "missing"}
    assert not caplog.text


def test_what_a_broker_appends_before_it_rolls_is_not_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*given: Any) -> MissingSegments:
        roll(folder)  # after all headers have been read
        (folder.parent / "replication-offset-checkpoint").write_text("0\n1\norders 0 64\n")
        return MissingSegments(*given)

    monkeypatch.setattr(take, "MissingSegments", missing)
    assert document_of(folder)["trouble"] == []


def test_a_snapshot_that_a_broker_has_deleted_hides_no_other_evidence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / name(20)).unlink()
    (folder.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 40\n")
    snapshot = folder / name(40, ".snapshot")
    snapshot.write_bytes(kt.producer_snapshot([]))
    looked_at_before(monkeypatch, lambda _: snapshot.unlink(), folder)
    (trouble,) = document_of(folder)["trouble"]
    assert (trouble["kind"], trouble["severity"]) == ("missing", "note")
    assert not caplog.text
