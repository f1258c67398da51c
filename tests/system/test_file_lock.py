"""Locks exclude other processes, and Windows' way has the same effects."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkajit.system import file_lock
from kafkajit.system.file_lock import lock, open_folder, try_lock, try_lock_as_java

HOLDER = """
import os, sys
from kafkajit.system.file_lock import {name} as take
print(take(os.open(sys.argv[1], os.O_RDWR)), flush=True)
sys.stdin.read()
"""


class Windows:
    """msvcrt's lock of a byte, made of POSIX's: it also excludes other files of this process."""

    LK_NBLCK = 2

    def __init__(self, answer: int = errno.EACCES) -> None:
        self.answer = answer
        self.stretches: list[tuple[int, int]] = []

    def locking(self, file: int, mode: int, count: int) -> None:
        assert mode == self.LK_NBLCK
        self.stretches.append((os.lseek(file, 0, os.SEEK_CUR), count))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(self.answer, "Permission denied") from None


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Windows:
    locks = Windows()
    monkeypatch.setattr(file_lock, "_posix", None)
    monkeypatch.setattr(file_lock, "_windows", locks)
    return locks


@contextmanager
def opened(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        yield file
    finally:
        os.close(file)


@pytest.mark.parametrize("name", ["try_lock", "try_lock_as_java"])
def test_one_process_at_a_time_has_a_lock(name: str, tmp_path: Path) -> None:
    take = getattr(file_lock, name)
    path = tmp_path / "lock"
    path.touch()
    command = [sys.executable, "-c", HOLDER.format(name=name), path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"True\n"
        with opened(path) as file:
            assert take(file) is False
        holder.stdin.close()
    with opened(path) as file:
        assert take(file) is True


def test_a_folder_is_locked_without_a_file_in_it(tmp_path: Path) -> None:
    first, second = open_folder(tmp_path), open_folder(tmp_path)
    assert try_lock(first)
    assert not try_lock(second)
    os.close(first)
    assert try_lock(second)
    os.close(second)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("take", [try_lock, try_lock_as_java])
def test_windows_locks_the_first_byte(take: object, windows: Windows, tmp_path: Path) -> None:
    assert callable(take)
    with opened(tmp_path / "lock") as first, opened(tmp_path / "lock") as second:
        os.write(first, b"moves the position")
        assert take(first) is True
        assert take(second) is False
    assert windows.stretches == [(0, 1), (0, 1)]


def test_windows_waits_for_a_lock(
    windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    with opened(tmp_path / "lock") as second, opened(tmp_path / "lock") as first:
        assert try_lock(first)
        release = os.dup(first)
        fcntl.flock(release, fcntl.LOCK_EX)

        def wait(seconds: float) -> None:
            waits.append(seconds)
            fcntl.flock(release, fcntl.LOCK_UN)

        monkeypatch.setattr("time.sleep", wait)
        lock(second)
        os.close(release)
    assert len(waits) == 1
    assert len(windows.stretches) == 3


def test_windows_locks_a_folder_by_a_file_in_it(windows: Windows, tmp_path: Path) -> None:
    file = open_folder(tmp_path)
    assert try_lock(file)
    os.close(file)
    assert [path.name for path in tmp_path.iterdir()] == [".kafkajit-lock"]


def test_an_error_that_is_no_lock_is_raised(windows: Windows, tmp_path: Path) -> None:
    windows.answer = errno.EIO
    with opened(tmp_path / "lock") as first, opened(tmp_path / "lock") as second:
        assert try_lock(first)
        with pytest.raises(OSError, match="Permission denied"):
            try_lock(second)


def test_a_system_without_locks_is_reported(
    tmp_path: Path, windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lock, "_windows", None)
    for take in (try_lock, lock, try_lock_as_java):
        with opened(tmp_path / "lock") as file, pytest.raises(OSError, match="has no locks"):
            take(file)
    assert windows.stretches == []
