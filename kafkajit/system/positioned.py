"""Reads at a position of an open file, for several threads at once.

POSIX has calls for that. Windows moves the file's only position, so one thread at a time reads.
"""

from __future__ import annotations

import errno
import os
import threading

_moving = threading.Lock()
# What the system answers on a file system that cannot copy a range by itself.
_NO_COPY_RANGE = (errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM)


def read_at(file: int, count: int, position: int) -> bytes:
    """Read `count` bytes from a position on, or fewer at the file's end."""
    if hasattr(os, "pread"):
        return os.pread(file, count, position)
    with _moving:
        os.lseek(file, position, os.SEEK_SET)
        return os.read(file, count)


def read_into(file: int, memory: memoryview, position: int) -> int:
    """Fill memory with the bytes from a position on; return how many there are."""
    if hasattr(os, "preadv"):
        return os.preadv(file, [memory], position)
    content = read_at(file, len(memory), position)
    memory[: len(content)] = content
    return len(content)


def copy_range(source: int, target: int, count: int, position: int) -> int:
    """Copy some bytes from a position on to the target's end, and return their number.

    The file system does it alone if it can: some share the bytes instead of copying them.
    """
    if hasattr(os, "copy_file_range"):
        try:
            return os.copy_file_range(source, target, count, position)
        except OSError as error:
            if error.errno not in _NO_COPY_RANGE:
                raise
    return os.write(target, read_at(source, count, position))
