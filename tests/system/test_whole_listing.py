"""A folder is listed as it was at one moment, although others add files meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkajit.system import whole_listing as module
from kafkajit.system.whole_listing import whole_listing

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
