"""Files and folders are synced, as each system does it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkajit.change.lock import FolderLock
from kafkajit.system import durable
from kafkajit.system.durable import sync, sync_all, sync_around


def test_a_disk_that_fails_is_told_with_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    opened = os.open(tmp_path, os.O_RDONLY)
    os.close(opened)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=rf"^\[Errno 5\] Input/output error: '{tmp_path}'$"):
        sync(tmp_path)
    again = os.open(tmp_path, os.O_RDONLY)
    os.close(again)
    assert again == opened, "a file was left open"


@pytest.mark.parametrize("count", [0, 3, 200])
def test_all_of_many_files_are_synced_and_the_folders_around_them(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{number}" / "file" for number in range(count)]
    for path in paths:
        path.parent.mkdir()
        path.touch()
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda opened: synced.append(os.fstat(opened).st_ino))
    sync_all(paths)
    assert sorted(synced) == sorted(path.stat().st_ino for path in paths)
    synced.clear()
    sync_around([*paths, *paths, tmp_path / "not there" / "file"])
    assert sorted(synced) == sorted(path.parent.stat().st_ino for path in paths)


def test_one_of_many_files_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{number}" for number in range(200)]
    for path in paths:
        path.touch()
    bad = paths[150].stat().st_ino

    def fail(opened: int) -> None:
        if os.fstat(opened).st_ino == bad:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=rf"No space left on device: '{tmp_path}/150'$"):
        sync_all(paths)


def test_macos_has_the_disk_write_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    synced: list[int] = []
    monkeypatch.setattr(durable, "_FULL_SYNC", 51)
    monkeypatch.setattr(durable._posix, "fcntl", lambda _, command: asked.append(command))
    monkeypatch.setattr(os, "fsync", synced.append)
    sync(tmp_path)
    assert (asked, synced) == ([51], [])

    def unknown(*_: object) -> None:
        raise OSError(45, "Operation not supported")

    monkeypatch.setattr(durable._posix, "fcntl", unknown)
    sync(tmp_path)
    assert len(synced) == 1


def test_windows_syncs_files_that_are_open_for_writing_and_no_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.touch()
    opened: list[tuple[Path, int]] = []
    real = os.open
    monkeypatch.setattr(durable, "_IS_WINDOWS", True)
    monkeypatch.setattr(
        os, "open", lambda path, flags: opened.append((path, flags)) or real(path, flags)
    )
    sync_all([path, tmp_path])
    assert opened == [(path, os.O_RDWR)]


def test_no_log_is_changed_if_folders_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "_IS_WINDOWS", True)
    with pytest.raises(OSError, match=r"change the log on Linux or macOS: '.*/orders-0'"):
        FolderLock(tmp_path / "orders-0", force=True)
    assert list(tmp_path.iterdir()) == []
