"""A planned micro-batch has all of its records, or those that it lacks are reported.

Between the look at a folder, the plan and the task others write, replace and delete. And another
process may read a plan that was stored, perhaps with other options.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from partitions import data, log_name, transactional
from scanning import far_away
from streaming import Query, append, finish, started

import kafkajit.testing as kt
from kafkajit.errors import CorruptRecordError, LeftOutError, OffsetOutOfRangeError
from kafkajit.scan.stream import listing, tasks
from kafkajit.scan.stream.folders import Folders
from kafkajit.scan.stream.followed import Followed
from kafkajit.storage.live_file import LiveFile


def old(offsets: list[int], mark: str = "", codec: str = "gzip") -> bytes:
    """A compressed set of messages of v1."""
    first = offsets[0]
    messages = [
        kt.message(kt.Record(value=f"{mark}{at}".encode()), offset=at - first, magic=1)
        for at in offsets
    ]
    return kt.message_set(
        messages, base_offset=first, wrapper_offset=offsets[-1], codec=codec, magic=1
    )


def left_by(query: Query) -> Query:
    """The query whose micro-batch is planned and not read, in a new process."""
    query.trigger()
    assert query.plan()
    return query.restart()


# A copy in the making


@pytest.mark.parametrize("strict", [True, False])
def test_a_segment_that_grows_in_a_folder_that_rests_is_read_whole(
    tmp_path: Path, *, strict: bool
) -> None:
    """A copier that runs in parallel: a write to a file leaves its folder's time as it is."""
    folder = tmp_path / "orders-0"
    append(folder, data(100, 5), 100)
    append(folder, data(0, 10))
    finish(folder)
    query = started(tmp_path, failOnDataLoss=strict)
    assert query.offsets() == list(range(10))
    append(folder, data(10, 10))
    assert query.offsets() == list(range(10, 20))
    append(folder, data(20, 80))
    assert query.offsets() == [*range(20, 105)]


def test_a_plan_ends_where_its_own_list_of_a_growing_segment_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The segment grows again between the second list and the look for gaps."""
    folder = tmp_path / "orders-0"
    append(folder, data(100, 5), 100)
    append(folder, data(0, 10))
    finish(folder)
    query = started(tmp_path)
    monkeypatch.setattr(Followed, "again", lambda *_, **__: True)
    assert query.offsets() == list(range(10))
    append(folder, data(10, 90))
    assert query.offsets() == []
    monkeypatch.undo()
    assert query.offsets() == list(range(10, 105))


# A plan of an earlier process


def test_a_last_look_does_not_cut_a_planned_micro_batch(tmp_path: Path) -> None:
    """A folder that is gone for a moment, when a query with trigger AvailableNow starts again."""
    append(tmp_path / "orders-0", data(0, 10))
    append(tmp_path / "other-0", data(0, 1))
    query = left_by(Query(tmp_path))
    (tmp_path / "orders-0").rename(tmp_path / "away")
    query.stream.freeze()
    (tmp_path / "away").rename(tmp_path / "orders-0")
    assert query.read(["offset"])["offset"].to_pylist() == [*range(10), 0]


def test_a_last_look_at_a_busy_log_does_not_cut_a_planned_micro_batch(tmp_path: Path) -> None:
    bad = bytearray(data(3, 2))
    bad[8:12] = b"\x7f\xff\xff\xff"  # its length
    folder = tmp_path / "orders-0"
    append(folder, data(0, 3) + bytes(bad) + data(5, 5))
    finish(folder)
    query = left_by(Query(tmp_path, mode="DROPMALFORMED"))
    append(folder, data(10, 1))  # a broker writes: damaged bytes may become a batch
    query.stream.freeze()
    assert query.read(["offset"])["offset"].to_pylist() == [0, 1, 2, *range(5, 10)]


@pytest.mark.parametrize("strict", [True, False])
def test_a_planned_transaction_that_may_not_be_read_now_is_a_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, strict: bool
) -> None:
    append(tmp_path / "orders-0", data(0, 5) + transactional(5, 9) + data(7, 4))
    planned = left_by(Query(tmp_path))
    query = Query(tmp_path, isolationLevel="read_committed", failOnDataLoss=strict)
    query.planned = planned.planned
    lost = "offsets 5 to 10 of orders-0 were planned, and cannot be read now"
    if strict:
        with pytest.raises(OffsetOutOfRangeError, match=lost):
            query.read()
    else:
        with caplog.at_level(logging.WARNING, "kafkajit"):
            assert query.read(["offset"])["offset"].to_pylist() == [0, 1, 2, 3, 4]
        assert lost in caplog.text


@pytest.mark.parametrize("strict", [True, False])
def test_a_planned_micro_batch_waits_for_a_swap(tmp_path: Path, *, strict: bool) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 10))
    query = left_by(Query(tmp_path, failOnDataLoss=strict))
    swap = folder / log_name(0, ".log.swap")
    swap.write_bytes(data(0, 10))
    with pytest.raises(LeftOutError, match="segments are being swapped"):
        query.read()
    other = threading.Timer(0.3, lambda: swap.rename(folder / log_name(0)))
    other.start()
    assert query.restart().read(["offset"])["offset"].to_pylist() == list(range(10))
    other.join()


# Transactions whose records are gone


@pytest.mark.parametrize("is_decided", [True, False])
def test_a_transaction_before_the_logs_start_is_open_as_long_as_snapshots_say(
    tmp_path: Path, *, is_decided: bool
) -> None:
    """Retention has removed its records, and then compaction its marker."""
    folder = tmp_path / "orders-0"
    append(folder, data(100, 5) + data(107, 3), 100)
    append(folder, data(110, 5), 110)
    for offset, first in ((100, 80), (110, -1 if is_decided else 80)):
        entry = kt.Producer(9, 0, 0, 89, 0, current_txn_first_offset=first)
        content = kt.producer_snapshot([entry])
        (folder / log_name(offset, ".snapshot")).write_bytes(content)
    query = started(tmp_path, isolationLevel="read_committed")
    everything = [*range(100, 105), *range(107, 115)]
    assert query.offsets() == (everything if is_decided else [])


# Sets of messages, whose headers lack their first offsets


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("kept", [b"", old([0, 1, 2, 3, 4], "a")], ids=["made again", "truncated"])
def test_another_set_around_the_last_offset_that_was_read_is_another_log(
    tmp_path: Path, kept: bytes, *, is_restarted: bool
) -> None:
    folder = tmp_path / "orders-0"
    append(folder, old([0, 1, 2, 3, 4], "a") + old([5, 6, 7, 8, 9], "a"))
    query = started(tmp_path)
    assert query.offsets() == list(range(10))
    (folder / log_name(0)).unlink()
    append(folder, (kept or old([0, 1, 2, 3, 4], "b")) + old([*range(5, 13)], "b"))
    if is_restarted:
        query.restart()
    with pytest.raises(OffsetOutOfRangeError, match="its batch at offset 9 is not the one"):
        query.plan()


@pytest.mark.parametrize("left", [[6, 8, 9], [5, 9], [5, 6]], ids=str)
def test_what_a_cleaner_leaves_of_the_last_set_that_was_read_is_still_that_log(
    tmp_path: Path, left: list[int]
) -> None:
    folder = tmp_path / "orders-0"
    append(folder, old([0, 1, 2, 3, 4]) + old([5, 6, 7, 8, 9]))
    append(folder, b"", 10)
    query = started(tmp_path)
    assert query.offsets() == list(range(10))
    (folder / log_name(0)).unlink()
    append(folder, old([0, 3]) + old(left))
    append(folder, data(10, 2), 10)
    assert query.offsets() == [10, 11]


# A topic that is made again before it was read


def test_a_topic_that_was_never_read_and_made_again_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 10))
    path = folder / "partition.metadata"
    path.write_text("version: 0\ntopic_id: dGVzdHRlc3R0ZXN0dGVzdA\n")
    query = started(tmp_path)
    (folder / log_name(0)).unlink()
    path.write_text("version: 0\ntopic_id: bm93bm93bm93bm93bm93bm\n")
    append(folder, data(0, 3))
    with caplog.at_level(logging.WARNING, "kafkajit"):
        assert query.offsets() == [0, 1, 2]
    assert "orders-0 was not read, and the records that it had are gone: the topic was made" in (
        caplog.text
    )


# Objects


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
def test_an_object_that_is_replaced_behind_the_plan_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """As by a copy of a compacted segment, in which other batches have the same positions."""
    folder = tmp_path / "orders-0"
    batches = [data(at, 2) for at in range(100, 180, 2)]
    append(folder, b"".join(batches[:10]), 100)
    query = started(far_away(monkeypatch, tmp_path), mode=mode)
    assert query.offsets() == list(range(100, 120))
    append(folder, b"".join(batches[10:20]), 100)
    assert query.plan()
    tasks = query.tasks()
    (folder / log_name(100)).unlink()
    append(folder, b"".join(batches[3:]), 100)
    assert query.read_tasks(tasks, ["offset"])["offset"].to_pylist() == list(range(120, 140))


def test_an_object_with_the_records_of_another_log_is_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 5) + data(5, 5))
    query = started(far_away(monkeypatch, tmp_path))
    assert query.plan()
    tasks = query.tasks()
    (folder / log_name(0)).unlink()
    append(folder, kt.batch([kt.Record(value=b"other")] * 13))
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 9 are gone"):
        query.read_tasks(tasks, ["offset"])


# Damaged batches, whose headers tell anything


def with_delta(batch: bytes, delta: int) -> bytes:
    """A batch whose header has another last offset, and not the checksum of that."""
    return batch[:23] + delta.to_bytes(4) + batch[27:]


@pytest.mark.parametrize("strict", [True, False])
def test_a_position_does_not_stand_on_a_damaged_batch(tmp_path: Path, *, strict: bool) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 5) + with_delta(data(5, 1), 1 << 20))
    append(folder, data(6, 4), 6)
    finish(folder)
    query = started(tmp_path, mode="DROPMALFORMED", failOnDataLoss=strict, maxFilesPerTrigger=1)
    assert query.offsets() == [0, 1, 2, 3, 4]
    assert query.restart().offsets() == [6, 7, 8, 9]
    assert query.restart().offsets() == []


@pytest.mark.parametrize("cut", [30, 61, 70, 80])
@pytest.mark.parametrize(
    "limit", [{"maxBytesPerTrigger": 1}, {"maxRecordsPerTrigger": 1}, {"maxRecordsPerTrigger": 3}]
)
@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_no_micro_batch_ends_within_a_sound_batch_behind_a_torn_one(
    tmp_path: Path, mode: str, limit: dict[str, int], cut: int
) -> None:
    """The torn one's header claims bytes that were never written."""
    folder = tmp_path / "orders-0"
    append(folder, data(0, 3)[:cut] + b"".join(data(at, 2) for at in range(3, 13, 2)))
    finish(folder)
    query = started(tmp_path, mode=mode, **limit)
    found = [at for _ in range(13) for at in query.offsets() if at is not None]
    assert found == list(range(3, 13))


# Folders that others move or write while they are looked at


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("is_planned", [True, False])
def test_a_partition_that_moves_behind_the_look_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_planned: bool, strict: bool
) -> None:
    """From a log.dirs folder that is listed later to one that has been listed."""
    append(tmp_path / "1" / "other-0", data(0, 1))
    append(tmp_path / "2" / "orders-0", data(0, 10))
    query = started(tmp_path / "1", tmp_path / "2", failOnDataLoss=strict)
    if is_planned:
        assert query.plan()
    listed = Folders._listed

    def and_moved(self: Folders, folder: str) -> object:
        if (tmp_path / "2" / "orders-0").exists():
            (tmp_path / "2" / "orders-0").rename(tmp_path / "1" / "orders-0")
        return listed(self, folder)

    monkeypatch.setattr(Folders, "_listed", and_moved)
    assert is_planned or query.plan()
    assert sorted(query.read(["offset"])["offset"].to_pylist()) == [0, *range(10)]


def test_a_segment_that_is_written_again_ends_the_task(tmp_path: Path) -> None:
    """A copy that is refreshed: a query that goes on after a loss would pass the rest."""
    folder = tmp_path / "orders-0"
    append(folder, b"".join(data(at, 1) for at in range(100)))
    append(folder, data(100, 5), 100)
    finish(folder)
    query = started(tmp_path, failOnDataLoss=False)
    assert query.plan()
    (folder / log_name(0)).write_bytes(b"".join(data(at, 1) for at in range(40)))
    with pytest.raises(OffsetOutOfRangeError, match="being written again, and has its offsets up"):
        query.read()
    append(folder, b"".join(data(at, 1) for at in range(40, 100)))
    assert query.restart().read(["offset"])["offset"].to_pylist() == list(range(105))


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
def test_old_messages_do_not_hide_a_wrong_base_offset_behind_them(
    tmp_path: Path, mode: str
) -> None:
    """A topic whose format was upgraded: the offsets of messages tell about those of batches."""
    wrong = (78).to_bytes(8) + data(14, 2)[8:]
    folder = tmp_path / "orders-0"
    batches = (data(at, 2) for at in range(16, 30, 2))
    append(folder, old([*range(10)]) + data(10, 4) + wrong + b"".join(batches))
    finish(folder)
    query = started(tmp_path, mode=mode)
    if mode == "FAILFAST":
        with pytest.raises(CorruptRecordError, match="The base offset does not fit"):
            query.offsets()
    else:
        assert query.offsets() == [*range(14), *range(16, 30)]
        append(folder, b"".join(data(at, 2) for at in range(30, 90, 2)))
        assert query.offsets() == list(range(30, 90))


def test_a_log_that_a_cleaner_renames_behind_the_list_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old files have gone, and the new one's name comes with the next list."""
    folder = tmp_path / "orders-0"
    append(folder, data(0, 50))
    append(folder, data(50, 50), 50)
    append(folder, data(100, 5), 100)
    swap = folder / log_name(0, ".log.swap")
    looked = listing.live_files

    def swapping(paths: Iterable[str]) -> Iterator[LiveFile]:
        given = list(paths)
        if (folder / log_name(50)).exists():
            swap.write_bytes(data(0, 100))
            (folder / log_name(0)).unlink()
            (folder / log_name(50)).unlink()
        elif swap.exists():
            swap.rename(folder / log_name(0))
        yield from looked(given)

    monkeypatch.setattr(listing, "live_files", swapping)
    assert started(tmp_path).offsets() == list(range(105))


def test_a_log_that_is_renamed_behind_the_last_of_several_lists_is_being_swapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 50))
    append(folder, data(50, 50), 50)
    looked = listing.live_files
    monkeypatch.setattr(listing, "whole_listing", lambda _, look: look())
    assert not listing.list_folder(str(folder)).is_swapping

    def renaming(paths: Iterable[str]) -> Iterator[LiveFile]:
        given = list(paths)
        (folder / log_name(0)).unlink(missing_ok=True)
        return looked(given)

    monkeypatch.setattr(listing, "live_files", renaming)
    assert listing.list_folder(str(folder)).is_swapping


def test_an_object_that_is_replaced_while_it_is_read_ends_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 5) + data(5, 5))
    query = started(far_away(monkeypatch, tmp_path))
    assert query.plan()
    read = tasks.read_task

    def replacing(*arguments: Any) -> Iterator[Any]:
        yield from read(*arguments)
        (folder / log_name(0)).unlink()
        append(folder, kt.batch([kt.Record(value=b"other")] * 13))

    monkeypatch.setattr(tasks, "read_task", replacing)
    with pytest.raises(OffsetOutOfRangeError, match="truncated or replaced meanwhile"):
        query.read()
