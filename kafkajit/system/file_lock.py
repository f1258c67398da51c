"""Locks of files between processes: the only module that knows how each system locks.

POSIX systems have two kinds, which do not see each other. `flock` belongs to an open file, and
works on folders, too; kafkajit's own processes wait for each other with it. `lockf` belongs to a
process; Java's FileChannel.tryLock takes it, and so does a broker. Windows has one kind, which
covers bytes of a file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from pathlib import Path
from typing import Any

_posix: Any = None
_windows: Any = None
with contextlib.suppress(ImportError):
    import fcntl as _posix
with contextlib.suppress(ImportError):
    import msvcrt as _windows

# What a system answers if another process holds the lock.
_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
# Seconds between two attempts, on Windows: its own waiting ends after ten.
_BETWEEN_ATTEMPTS = 0.05
# Stands for a folder on Windows, which cannot open one.
_OF_FOLDER = ".kafkajit-lock"


def open_folder(folder: str | os.PathLike[str]) -> int:
    """Open what `try_lock` locks for a folder: the folder; on Windows, an empty file in it."""
    if _posix is not None or _windows is None:
        return os.open(folder, os.O_RDONLY)
    return os.open(Path(folder) / _OF_FOLDER, os.O_RDWR | os.O_CREAT, 0o644)


def try_lock(file: int) -> bool:
    """Take the lock of an open file until it is closed; return False if another process has it.

    Raises:
        OSError: the system or its file system has no locks
    """
    if _posix is None:
        return _try_lock_byte(file)
    try:
        _posix.flock(file, _posix.LOCK_EX | _posix.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(file: int) -> None:
    """Wait for the lock of an open file, and hold it until the file is closed."""
    if _posix is not None:
        _posix.flock(file, _posix.LOCK_EX)
        return
    while not _try_lock_byte(file):
        time.sleep(_BETWEEN_ATTEMPTS)


def try_lock_as_java(file: int) -> bool:
    """Take the lock of Java's FileChannel.tryLock; return False if another process has it."""
    if _posix is None:
        return _try_lock_byte(file)
    try:
        _posix.lockf(file, _posix.LOCK_EX | _posix.LOCK_NB)
    except OSError as error:
        if error.errno not in _HELD:
            raise
        return False
    return True


def _try_lock_byte(file: int) -> bool:
    """Lock the first byte of a file on Windows. It may lie behind the file's end."""
    if _windows is None:
        raise OSError(errno.ENOTSUP, "this system has no locks of files")
    os.lseek(file, 0, os.SEEK_SET)
    try:
        _windows.locking(file, _windows.LK_NBLCK, 1)
    except OSError as error:
        if error.errno not in _HELD:
            raise
        return False
    return True
