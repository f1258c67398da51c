"""Open paths as the user who decides to what they lead, and not through /proc.

The links below /proc/PID lead to what that process has: its folder, its root, its open files. A
link of a user that leads to /proc/self/cwd would show root's own folder, to which the user may not
find the way, and /proc/self/environ has root's environment. So while root acts as another user
(kafkajit/system/acting.py), no path goes there. That takes Linux 5.6.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from functools import cache
from typing import Any

from kafkajit.system.acting import is_acting

_OPENAT2 = 437
_AT_FDCWD = -100
_CLOSES = getattr(os, "O_CLOEXEC", 0)
_NO_MAGIC_LINKS = 2
_HOW = struct.Struct("=QQQ")  # flags, mode, what is resolved
_PROC = 0x9FA0  # the type of its file system
_STATUS_BYTES = 256  # more than a statfs takes


def open_path(
    path: str | os.PathLike[str], flags: int, mode: int = 0o777, *, folder: int | None = None
) -> int:
    """Open a path as os.open does; while root acts as another user, not through /proc.

    Args:
        path: the path, or a name in `folder`.
        flags: as those of os.open.
        mode: the permissions of a new file.
        folder: an open folder.
    """
    if not is_acting() or not _has_openat2():
        return os.open(path, flags, mode, dir_fd=folder)
    at = _AT_FDCWD if folder is None else folder
    opened = _openat2(path, flags | _CLOSES, mode if flags & os.O_CREAT else 0, at)
    if opened < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), os.fspath(path))
    status = ctypes.create_string_buffer(_STATUS_BYTES)
    if _system().fstatfs(opened, status) == 0 and _type_of(status.raw) == _PROC:
        os.close(opened)
        raise PermissionError(errno.EACCES, "it leads into /proc", os.fspath(path))
    return opened


def _openat2(path: str | os.PathLike[str], flags: int, mode: int, at: int) -> int:
    how = _HOW.pack(flags, mode, _NO_MAGIC_LINKS)
    return int(_system().syscall(_OPENAT2, at, os.fsencode(path), how, len(how)))


@cache
def _system() -> Any:
    return ctypes.CDLL(None, use_errno=True)


@cache
def _has_openat2() -> bool:
    if sys.platform != "linux":
        return False
    # The place alone: the user may not read the folder.
    opened = _openat2("/", getattr(os, "O_PATH", 0) | _CLOSES, 0, _AT_FDCWD)
    if opened >= 0:
        os.close(opened)
    # Filters of system calls answer EPERM to what they do not know.
    return opened >= 0 or ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM)


def _type_of(status: bytes) -> int:
    """The type of a file system: the first field of a statfs, a long."""
    return int.from_bytes(status[: struct.calcsize("l")], sys.byteorder)
