"""Micro-batches whose files change once they have been planned, without Spark."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from partitions import data, log_name
from streaming import Query, append, finish, started

import kafkajit.scan.stream.tasks
from kafkajit.errors import OffsetOutOfRangeError
from kafkajit.scan.stream.offsets import READ

STRICTNESS = pytest.mark.parametrize("strict", ["true", "false"])


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders of log.dirs: orders-0 is in the first, in two segments of ten records."""
    here, there = tmp_path / "disk1", tmp_path / "disk2"
    append(here / "orders-0", data(0, 5) + data(5, 5))
    append(here / "orders-0", data(10, 5) + data(15, 5), base_offset=10)
    append(there / "others-0", data(0, 2))
    finish(here / "orders-0")
    return here, there


@pytest.fixture
def read_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[Query, Callable[[], object]], Any]:
    """Plan all records, change files, and return the offsets of orders that the tasks read."""

    def read(query: Query, change: Callable[[], object]) -> list[int]:
        query.plan()
        tasks = query.stream.tasks(*query.planned[-2:])
        change()
        monkeypatch.setattr(query.stream, "tasks", lambda *_: tasks)
        rows = query.read(["topic", "offset"]).to_pylist()
        return sorted(row["offset"] for row in rows if row["topic"] == "orders")

    return read


def check_loss(
    read: Callable[[], list[int]],
    strict: str,
    left: list[int],
    lost: Sequence[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A strict query fails with the first loss; another one reads what is left, and names all."""
    if strict == "true":
        with pytest.raises(OffsetOutOfRangeError, match=f"{lost[0]} are gone"):
            read()
    else:
        assert read() == left
        for offsets in lost:
            assert f"{offsets} are gone" in caplog.text


@STRICTNESS
def test_a_partition_that_moves_is_read(
    strict: str,
    disks: tuple[Path, Path],
    read_after: Callable[..., list[int]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    here, there = disks
    query = started(here, there, failOnDataLoss=strict)
    assert read_after(query, lambda: (here / "orders-0").rename(there / "orders-0")) == [*range(20)]
    assert caplog.text == ""


@STRICTNESS
@pytest.mark.parametrize(
    "content",
    [data(0, 5), data(0, 5) + data(5, 5, base_timestamp=3), b""],
    ids=["shorter", "of other records", "empty"],
)
def test_a_partition_that_moves_is_read_although_another_log_has_its_place(
    strict: str,
    content: bytes,
    disks: tuple[Path, Path],
    read_after: Callable[..., list[int]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    here, there = disks

    def change() -> None:
        (here / "orders-0").rename(there / "orders-0")
        append(here / "orders-0", content)

    query = started(here, there, failOnDataLoss=strict)
    assert read_after(query, change) == [*range(20)]
    assert caplog.text == ""


def test_another_log_in_the_place_of_one_that_went_is_not_read(
    disks: tuple[Path, Path], read_after: Callable[..., list[int]]
) -> None:
    here, there = disks

    def change() -> None:
        shutil.rmtree(here / "orders-0")
        append(there / "orders-0", data(0, 4) + data(4, 7))

    with pytest.raises(OffsetOutOfRangeError, match="are gone"):
        read_after(started(here, there), change)


def test_another_log_is_not_read_although_the_query_stood_on_nothing(
    disks: tuple[Path, Path], read_after: Callable[..., list[int]]
) -> None:
    here, there = disks
    query = started(here, there)
    plan = query.plan

    def plan_as_before() -> bool:
        found = plan()
        del query.planned[-1][READ]
        return found

    def change() -> None:
        shutil.rmtree(here / "orders-0")
        append(there / "orders-0", data(0, 10) + data(10, 10))

    query.plan = plan_as_before  # type: ignore[method-assign,assignment]
    with pytest.raises(OffsetOutOfRangeError, match="are gone"):
        read_after(query, change)


def truncated_and_written_again(folder: Path) -> None:
    """Let a segment that was rolled be the last one, with another batch of the same size."""
    (folder / log_name(10)).unlink()
    kept, other = data(0, 5), data(5, 5, base_timestamp=3)
    os.truncate(folder / log_name(0), len(kept))
    append(folder, other)
    assert (folder / log_name(0)).stat().st_size == len(kept + data(5, 5))


@STRICTNESS
def test_an_earlier_segment_that_was_truncated_and_written_again_is_not_read(
    strict: str,
    disks: tuple[Path, Path],
    read_after: Callable[..., list[int]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    here, _ = disks
    query = started(here, failOnDataLoss=strict)

    def change() -> None:
        truncated_and_written_again(here / "orders-0")

    lost = ["offsets 0 to 9", "offsets 10 to 19"]
    check_loss(lambda: read_after(query, change), strict, [], lost, caplog)


def test_a_segment_that_is_truncated_and_written_again_while_it_is_read_ends_the_task(
    disks: tuple[Path, Path], read_after: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = disks
    read_task = kafkajit.scan.stream.tasks.read_task

    def changing(*given: Any) -> Iterator[pa.RecordBatch]:
        yield from read_task(*given)
        truncated_and_written_again(here / "orders-0")

    monkeypatch.setattr(kafkajit.scan.stream.tasks, "read_task", changing)
    query = started(here, failOnDataLoss="false")
    with pytest.raises(OffsetOutOfRangeError, match="0 to 9 cannot be read: the segment was trunc"):
        read_after(query, lambda: None)


def cut_in_place(log: Path) -> None:
    os.truncate(log, len(data(10, 5)))


def copied_in_part(log: Path) -> None:
    content = log.read_bytes()
    log.unlink()
    log.write_bytes(content[: len(content) // 2])


@STRICTNESS
@pytest.mark.parametrize(
    ("change", "left"),
    [(Path.unlink, []), (cut_in_place, [*range(10, 15)]), (copied_in_part, [*range(10, 15)])],
    ids=["deleted", "cut", "copied again"],
)
def test_a_segment_in_the_middle_that_went_is_a_loss(
    strict: str,
    change: Callable[[Path], None],
    left: list[int],
    disks: tuple[Path, Path],
    read_after: Callable[..., list[int]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    here, _ = disks
    append(here / "orders-0", data(20, 5), base_offset=20)
    query = started(here, failOnDataLoss=strict)

    def changed() -> None:
        change(here / "orders-0" / log_name(10))
        finish(here / "orders-0")  # nobody writes it again

    there = [*range(10), *left, *range(20, 25)]
    lost = [f"offsets {10 + len(left)} to 19"]
    check_loss(lambda: read_after(query, changed), strict, there, lost, caplog)


def test_a_partition_that_moves_while_a_segment_is_swapped_is_read_whole(
    disks: tuple[Path, Path], read_after: Callable[..., list[int]]
) -> None:
    here, there = disks
    append(here / "orders-0", data(20, 5), base_offset=20)
    swapped = there / "orders-0" / f"{log_name(10)}.swap"
    done = threading.Timer(0.5, lambda: swapped.rename(swapped.with_suffix("")))

    def change() -> None:
        (here / "orders-0").rename(there / "orders-0")
        swapped.with_suffix("").rename(swapped)
        done.start()

    assert read_after(started(here, there), change) == [*range(25)]
    done.join()


def test_a_partition_whose_own_path_was_given_is_found_where_it_has_moved(
    disks: tuple[Path, Path], read_after: Callable[..., list[int]]
) -> None:
    here, there = disks
    query = started(here / "orders-0", there)
    assert read_after(query, lambda: (here / "orders-0").rename(there / "orders-0")) == [*range(20)]


@STRICTNESS
def test_a_folder_whose_segments_all_go_is_a_loss(
    strict: str,
    disks: tuple[Path, Path],
    read_after: Callable[..., list[int]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    here, _ = disks

    def change() -> None:
        for path in (here / "orders-0").iterdir():
            path.unlink()

    query = started(here, failOnDataLoss=strict)
    lost = ["offsets 0 to 9", "offsets 10 to 19"]
    check_loss(lambda: read_after(query, change), strict, [], lost, caplog)


def test_a_segment_whose_time_changes_while_it_is_read_is_read(
    disks: tuple[Path, Path], read_after: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = disks
    read_task = kafkajit.scan.stream.tasks.read_task

    def touching(*given: Any) -> Iterator[pa.RecordBatch]:
        yield from read_task(*given)
        (here / "orders-0" / log_name(0)).touch()

    monkeypatch.setattr(kafkajit.scan.stream.tasks, "read_task", touching)
    assert read_after(started(here), lambda: None) == [*range(20)]
