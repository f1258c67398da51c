"""A folder is listed as it was at one moment, although others add files meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow.fs import FileInfo, FileType

from kafkajit.system import whole_listing as module
from kafkajit.system.whole_listing import whole_listing, whole_pages

LONG_AGO = 1_700_000_000 * 10**9


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "0").touch()
    os.utime(tmp_path, ns=(LONG_AGO, LONG_AGO))
    return tmp_path


def looking(folder: Path, changes: list[Callable[[], object]]) -> tuple[list[str], int]:
    """What is listed while changes are made, one after each look, and how many looks that took."""
    looks = []

    def look() -> list[str]:
        looks.append(sorted(path.name for path in folder.iterdir()))
        if changes:
            changes.pop(0)()
        return looks[-1]

    return whole_listing(str(folder), look), len(looks)


def test_a_folder_at_rest_is_listed_once(folder: Path) -> None:
    assert looking(folder, []) == (["0"], 1)


def test_a_folder_that_changes_meanwhile_is_listed_again(folder: Path) -> None:
    found, looks = looking(folder, [(folder / "1").touch, (folder / "2").touch])
    assert found == ["0", "1", "2"]
    assert 3 <= looks <= 4  # the last change may have been within a tick


def test_a_change_within_a_tick_of_the_clock_is_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add() -> None:
        (folder / "1").touch()
        os.utime(folder, ns=(now, now))

    monkeypatch.setattr(module, "_TICK_NS", 500_000_000)
    now = time.time_ns()
    os.utime(folder, ns=(now, now))
    assert looking(folder, [add]) == (["0", "1"], 2)


def test_a_folder_that_never_rests_is_listed_all_the_same(folder: Path) -> None:
    names = [str(number) for number in range(1, 100)]
    found, looks = looking(folder, [(folder / name).touch for name in names])
    assert (len(found), looks) == (module._LOOKS, module._LOOKS)


def test_a_time_that_has_not_come_yet_is_not_waited_for(folder: Path) -> None:
    later = time.time_ns() + 10**12
    os.utime(folder, ns=(later, later))
    assert looking(folder, []) == (["0"], 1)


def object_at(path: str, modified_ns: int | None = LONG_AGO) -> FileInfo:
    return FileInfo(path, type=FileType.File, size=1, mtime_ns=modified_ns)


def listed_in_pages(lists: list[list[FileInfo]], page: int) -> tuple[list[str], int]:
    """What is listed of a bucket that gives these lists, and how many it took."""
    count = len(lists)
    lists = lists[:]
    found = whole_pages(lambda: lists.pop(0), page)
    return [info.path for info in found], count - len(lists)


def test_a_list_of_several_pages_with_a_new_object_counts_when_the_next_one_is_the_same() -> None:
    late = object_at("2", time.time_ns())  # and 1 came before it, to a page that was listed already
    torn = [object_at("0"), late]
    whole = [object_at("0"), object_at("1", late.mtime_ns), late]
    assert listed_in_pages([torn, whole, whole, torn], 2) == (["0", "1", "2"], 3)


def test_a_bucket_at_rest_is_listed_once() -> None:
    folder = FileInfo("1", type=FileType.Directory)
    objects = [object_at("0"), folder, object_at("2")]
    assert listed_in_pages([objects, []], 2) == (["0", "1", "2"], 1)


def test_a_list_of_one_page_is_of_one_moment() -> None:
    assert listed_in_pages([[object_at("0", time.time_ns())], []], 2) == (["0"], 1)


def test_objects_whose_age_is_not_known_count_as_new() -> None:
    objects = [object_at("0", None), object_at("1")]
    assert listed_in_pages([objects, objects, []], 2) == (["0", "1"], 2)


def test_a_bucket_that_never_rests_is_listed_all_the_same() -> None:
    lists = [[object_at(str(n), time.time_ns()) for n in range(count)] for count in range(2, 99)]
    assert listed_in_pages(lists, 2)[1] == module._LOOKS
