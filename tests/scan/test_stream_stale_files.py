"""Streams over copies that still have a file of an earlier log, or lack one for a moment."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from partitions import data, log_name, marker, transactional
from streaming import Query, append, finish

from kafkajit.errors import OffsetOutOfRangeError
from kafkajit.state.checkpoints import CLEANER_OFFSETS
from kafkajit.state.leader_epochs import LEADER_EPOCHS, leader_epochs_text
from kafkajit.state.partition_metadata import PARTITION_METADATA


@pytest.fixture
def beside_overlap(tmp_path: Path) -> Path:
    """Offsets 2 to 19 are missing, and a segment lies within the one behind them."""
    folder = tmp_path / "orders-0"
    append(folder, data(0, 2))
    append(folder, data(20, 20), base_offset=20)
    append(folder, data(29, 5), base_offset=29)
    return folder


def test_a_query_fails_at_a_segment_that_is_missing_beside_an_overlap(beside_overlap: Path) -> None:
    finish(beside_overlap)
    query = Query(beside_overlap.parent)
    query.trigger()
    assert query.offsets() == [0, 1]
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match="offsets 2 to 19 are missing"):
            query.restart().offsets()


def test_a_query_waits_for_a_copy_of_a_segment_that_is_missing_beside_an_overlap(
    beside_overlap: Path,
) -> None:
    query = Query(beside_overlap.parent, failOnDataLoss=False)
    query.trigger()
    assert [query.offsets() for _ in range(3)] == [[0, 1], [], []]
    append(beside_overlap, data(2, 18), base_offset=2)
    assert query.offsets() == list(range(2, 40))


def test_a_query_passes_a_segment_that_is_missing_beside_an_overlap_once_the_copy_rests(
    beside_overlap: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    finish(beside_overlap)
    monkeypatch.setattr("kafkajit.scan.stream.gaps.COPIED_NS", 0)
    query = Query(beside_overlap.parent, failOnDataLoss=False)
    query.trigger()
    assert [one for _ in range(3) for one in query.offsets()] == [0, 1, *range(20, 40)]
    assert "offsets 2 to 19 are missing" in caplog.text


@pytest.mark.parametrize("epochs", [True, False])
def test_a_last_segment_of_an_earlier_log_does_not_vouch_for_the_log(
    epochs: bool, tmp_path: Path
) -> None:
    """A copy is refreshed after a truncation, and what is gone from its source is still there."""
    folder = tmp_path / "orders-0"
    append(folder, data(0, 5) + data(5, 5))
    append(folder, data(10, 5), base_offset=10)
    note = folder / LEADER_EPOCHS
    (folder / PARTITION_METADATA).write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    if epochs:
        note.write_bytes(leader_epochs_text([(0, 0)]))
    query = Query(tmp_path)
    query.trigger()
    assert query.offsets() == list(range(15))
    first = min(folder.glob("*.log"))
    first.write_bytes(data(0, 5) + data(5, 15, partition_leader_epoch=1))
    if epochs:
        note.write_bytes(leader_epochs_text([(0, 0), (1, 5)]))
    why = "truncated to offset 5" if epochs else "is not the one that was read"
    with pytest.raises(OffsetOutOfRangeError, match=why):
        query.restart().offsets()
    lenient = Query(tmp_path, failOnDataLoss=False)
    lenient.planned, lenient.committed = query.planned[:2], 2
    assert lenient.offsets() == list(range(5 if epochs else 0, 20))


def test_epochs_are_known_after_a_copy_lacked_their_file(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    note = folder / LEADER_EPOCHS
    append(folder, data(0, 5))
    note.write_bytes(leader_epochs_text([(0, 0)]))
    query = Query(tmp_path)
    query.trigger()
    assert query.offsets() == list(range(5))
    note.unlink()
    append(folder, data(5, 5))
    assert query.offsets() == list(range(5, 10))
    # Truncated to 5, written again, and cleaned: no batch with offset 9 is left.
    cleaned = data(5, 2, partition_leader_epoch=1) + data(10, 5, partition_leader_epoch=1)
    (log,) = folder.glob("*.log")
    log.write_bytes(data(0, 5) + cleaned)
    append(folder, data(15, 1, partition_leader_epoch=1), base_offset=15)
    (tmp_path / CLEANER_OFFSETS).write_text("0\n1\norders 0 15\n")
    note.write_bytes(leader_epochs_text([(0, 0), (1, 5)]))
    with pytest.raises(OffsetOutOfRangeError, match="truncated to offset 5 and written again"):
        query.restart().offsets()


@pytest.mark.parametrize("torn", [0, 1])
def test_a_segment_that_grew_in_place_between_two_rare_triggers_is_looked_at_again(
    torn: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder's time rests, and the time of its last change in the listing is long past."""
    folder = tmp_path / "orders-0"
    end = marker(2, 7, control_type=torn)
    append(folder, transactional(0, 7) + end[:-20])
    append(folder, transactional(3, 7, 2) + marker(5, 7, control_type=1 - torn), base_offset=3)
    append(folder, data(6), base_offset=3)
    query = Query(tmp_path, isolationLevel="read_committed")
    query.trigger()
    assert query.offsets() == []
    append(folder, end[-20:])
    monkeypatch.setattr("kafkajit.scan.stream.gaps.COPIED_NS", 0)
    assert [one for _ in range(3) for one in query.offsets()] == [
        *((0, 1) if torn else (3, 4)),
        6,
        7,
    ]


@pytest.fixture
def lacks_markers(tmp_path: Path) -> Path:
    """The markers of two transactions are missing, in front of another transaction of one."""
    folder = tmp_path / "orders-0"
    append(folder, transactional(0, 3) + data(2, 2) + transactional(4, 1))
    append(folder, transactional(10, 3, 2) + marker(12, 3) + data(13, 2), base_offset=10)
    return folder


COMMITTED = {"isolationLevel": "read_committed"}


def test_a_query_fails_at_a_missing_marker_if_nothing_is_left_to_read_before_it(
    lacks_markers: Path,
) -> None:
    finish(lacks_markers)
    query = Query(lacks_markers.parent, **COMMITTED)
    query.trigger()
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match=r"offsets 6 to 9 are missing .* in front"):
            query.restart().offsets()


def test_a_missing_marker_that_is_not_waited_for_is_named_and_read_once_it_comes(
    lacks_markers: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    finish(lacks_markers)
    monkeypatch.setattr("kafkajit.scan.stream.gaps.COPIED_NS", 0)
    query = Query(lacks_markers.parent, failOnDataLoss=False, **COMMITTED)
    query.trigger()
    assert query.offsets() == [2, 3]  # the marker behind the gap aborts those before
    assert "offsets 6 to 9 are missing" in caplog.text
    end = marker(6, 3, control_type=1) + marker(7, 1, control_type=1)
    append(lacks_markers, end + data(8, 2), base_offset=6)
    assert query.offsets() == [4, 5, 8, 9, 13, 14]


def test_a_segment_is_found_though_a_copier_has_set_the_time_of_the_folder_back(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 5))
    long_ago = 1_700_000_000 * 10**9
    os.utime(folder, ns=(long_ago, long_ago))
    query = Query(tmp_path)
    query.trigger()
    assert query.offsets() == list(range(5))
    assert query.offsets() == []
    append(folder, data(5, 5), base_offset=5)
    os.utime(folder, ns=(long_ago, long_ago))
    assert query.offsets() == list(range(5, 10))


def test_a_file_of_epochs_that_is_newer_than_the_log_of_a_copy_is_not_what_was_read(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "orders-0"
    note = folder / LEADER_EPOCHS
    append(folder, data(0, 5) + data(5, 5))
    note.write_bytes(leader_epochs_text([(0, 0), (1, 5)]))
    query = Query(tmp_path)
    query.trigger()
    assert query.offsets() == list(range(10))
    (log,) = folder.glob("*.log")
    log.write_bytes(data(0, 5) + b"".join(data(at, 2, partition_leader_epoch=1) for at in (5, 10)))
    append(folder, data(15, 1, partition_leader_epoch=1), base_offset=15)
    (tmp_path / CLEANER_OFFSETS).write_text("0\n1\norders 0 15\n")
    with pytest.raises(OffsetOutOfRangeError, match="truncated to offset 5 and written again"):
        query.restart().offsets()


def test_records_behind_those_of_a_hidden_segment_are_read(tmp_path: Path) -> None:
    """No segment that a broker serves has 19 to 24."""
    folder = tmp_path / "orders-0"
    for first, behind in ((0, 19), (3, 25), (12, 19), (25, 30)):
        append(folder, data(first, behind - first), base_offset=first)
    finish(folder)
    query = Query(tmp_path)
    query.trigger()
    found = [one for _ in range(3) for one in query.offsets()]
    assert found == [*range(19), *range(25, 30)]


def test_an_epoch_whose_batches_were_compacted_away_is_not_taken_for_another_log_s(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 5))
    append(folder, data(10, 5, partition_leader_epoch=1), base_offset=10)
    append(folder, data(15, 1, partition_leader_epoch=1), base_offset=15)
    (folder / LEADER_EPOCHS).write_bytes(leader_epochs_text([(0, 0), (1, 5)]))
    (folder / PARTITION_METADATA).write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    (tmp_path / CLEANER_OFFSETS).write_text("0\n1\norders 0 15\n")
    query = Query(tmp_path, startingOffsets=json.dumps({"orders": {"0": 10}}))
    query.trigger()
    (folder / log_name(0)).write_bytes(b"")  # a cleaner has removed these, too
    assert query.restart().offsets() == list(range(10, 16))


@pytest.mark.parametrize("is_open", [False, True])
def test_a_short_query_fails_at_a_missing_segment_if_the_files_rest(
    is_open: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "orders-0"
    append(folder, transactional(0, 7) if is_open else data(0, 2))
    append(folder, transactional(10, 7, 2) + marker(12, 7, control_type=1), base_offset=10)
    finish(folder)
    query = Query(tmp_path, **COMMITTED)
    query.trigger()
    if not is_open:
        assert query.restart().offsets() == [0, 1]
    with pytest.raises(OffsetOutOfRangeError, match="offsets 2 to 9 are missing"):
        query.restart().offsets()
