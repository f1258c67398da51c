"""Open paths as the user who decides to what they lead, and not through /proc.

The links below /proc/PID lead to what that process has: its folder, its root, its open files. A
link of a user that leads to /proc/self/cwd would show root's own folder, to which the user may not
find the way, and /proc/self/environ has root's environment. So while root acts as another user
(kafkajit/system/acting.py), no path goes there. Linux does that since 5.6, by openat2; where it is
missing, or a filter of system calls refuses it, the path is gone name by name.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from functools import cache
from typing import Any

from kafkajit.system.acting import is_acting

_OPENAT2 = 437
_AT_FDCWD = -100
_CLOSES = getattr(os, "O_CLOEXEC", 0)
_PLACE = getattr(os, "O_PATH", 0) | _CLOSES  # of a file or folder, without what it has
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_MAGIC_LINKS = 2
_MOST_LINKS = 40  # as in Linux
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
    if not is_acting() or sys.platform != "linux":
        return os.open(path, flags, mode, dir_fd=folder)
    if _has_openat2():
        at = _AT_FDCWD if folder is None else folder
        opened = _openat2(path, flags | _CLOSES, mode if flags & os.O_CREAT else 0, at)
        if opened < 0:
            raise _error(ctypes.get_errno(), path)
    else:
        opened = _walked(path, flags, mode, folder)
    if _is_of_proc(opened):
        os.close(opened)
        raise PermissionError(errno.EACCES, "it leads into /proc", os.fspath(path))
    return opened


def _walked(path: str | os.PathLike[str], flags: int, mode: int, folder: int | None) -> int:
    """Open a path name by name: a link is read, and then gone in the same way."""
    names = _names(path)
    top = "/" if os.fspath(path).startswith("/") else "."
    place = os.open(top, _PLACE, dir_fd=folder)
    links = 0
    try:
        while True:
            name = names.pop() if names else "."
            try:
                found = os.open(name, _PLACE | _NO_LINK, dir_fd=place)
            except FileNotFoundError:
                if names or not flags & os.O_CREAT:
                    raise
                return os.open(name, flags | _NO_LINK, mode, dir_fd=place)
            is_link = stat.S_ISLNK(os.fstat(found).st_mode)
            if not names and (flags & (_NO_LINK | os.O_EXCL) or not is_link):
                os.close(found)
                return os.open(name, flags | _NO_LINK, mode, dir_fd=place)
            if not is_link:
                os.close(place)
                place = found
                continue
            links += 1
            try:
                if links > _MOST_LINKS or _is_of_proc(found):
                    raise _error(errno.ELOOP, path)
                target = os.readlink("", dir_fd=found)
            finally:
                os.close(found)
            if target.startswith("/"):
                above, place = place, os.open("/", _PLACE)
                os.close(above)
            names += _names(target)
    except OSError as error:
        error.filename = os.fspath(path)
        raise
    finally:
        os.close(place)


def _names(path: str | os.PathLike[str]) -> list[str]:
    """The names on a path, the last one first."""
    return [name for name in reversed(os.fspath(path).split("/")) if name not in ("", os.curdir)]


def _error(code: int, path: str | os.PathLike[str]) -> OSError:
    text = os.strerror(code)
    if code == errno.ELOOP:
        text = "it leads through too many links, or through one of /proc"
    return OSError(code, text, os.fspath(path))


def _openat2(path: str | os.PathLike[str], flags: int, mode: int, at: int) -> int:
    how = _HOW.pack(flags, mode, _NO_MAGIC_LINKS)
    return int(_system().syscall(_OPENAT2, at, os.fsencode(path), how, len(how)))


@cache
def _system() -> Any:
    return ctypes.CDLL(None, use_errno=True)


@cache
def _has_openat2() -> bool:
    # The place alone: the user may not read the folder.
    opened = _openat2("/", _PLACE, 0, _AT_FDCWD)
    if opened >= 0:
        os.close(opened)
    # Filters of system calls answer EPERM to what they do not know.
    return opened >= 0 or ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM)


def _is_of_proc(opened: int) -> bool:
    status = ctypes.create_string_buffer(_STATUS_BYTES)
    if _system().fstatfs(opened, status) != 0:
        return False
    kind = status.raw[: struct.calcsize("l")]  # the first field
    return int.from_bytes(kind, sys.byteorder) == _PROC
