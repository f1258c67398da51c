"""Files that survive a power failure: the only module that knows how each system syncs.

POSIX syncs a file's bytes and, apart from them, a folder's names. On macOS `fsync` only hands the
bytes to the disk, and F_FULLFSYNC has the disk write them, as Java's FileChannel.force does.
Windows syncs a file that is open for writing, and no folder: logs are not changed there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kafkajit.system.acting import as_owner_of, is_acting

_posix: Any = None
with contextlib.suppress(ImportError):
    import fcntl as _posix

_IS_WINDOWS = sys.platform == "win32"
_FULL_SYNC: int | None = getattr(_posix, "F_FULLFSYNC", None)
# The number of files synced at a time, if there are more than a few.
_SYNCS = 16
_FEW = 32


def check_folders_are_durable(folder: Path) -> None:
    """Raise an OSError on a system that cannot sync the names of a folder."""
    if _IS_WINDOWS:
        raise OSError(
            errno.ENOTSUP,
            "this system cannot sync a folder, and a change of a log might not survive a power "
            "failure: change the log on Linux or macOS",
            str(folder),
        )


def sync(path: Path) -> None:
    """Sync a file's bytes, or a folder's names, to the disk."""
    if _IS_WINDOWS and path.is_dir():
        return
    opened = _open(path, os.O_RDWR if _IS_WINDOWS else os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        sync_opened(opened)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(opened)


def _open(path: Path, flags: int) -> int:
    # A user's link in the place of a file must not lead root to a device.
    if is_acting():
        return os.open(path, flags)
    return as_owner_of(path.parent, os.open, path, flags)


def sync_opened(opened: int) -> None:
    """Sync the bytes of an open file, or the names of an open folder."""
    if _FULL_SYNC is not None:
        with contextlib.suppress(OSError):  # a file system that does not have it, such as NFS
            _posix.fcntl(opened, _FULL_SYNC)
            return
    os.fsync(opened)


def sync_all(paths: Iterable[Path]) -> None:
    """Sync many files or folders, in any order.

    A file system's journal takes all waiting files at once: 2,000 small files take 1.1 s to 4.5 s
    one after the other, and 0.2 s with 16 threads (ext4).
    """
    waiting = list(paths)
    if len(waiting) < _FEW:
        for path in waiting:
            sync(path)
        return
    with ThreadPoolExecutor(_SYNCS) as pool:
        for _ in pool.map(sync, waiting):
            pass  # raises the error of a thread


def sync_around(paths: Iterable[Path]) -> None:
    """Sync the folders around these files, whose names have changed."""
    folders = {path.parent for path in paths}
    sync_all(folder for folder in sorted(folders) if folder.exists())
