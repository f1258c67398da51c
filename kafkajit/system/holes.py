"""The end of a sparse file's data: what is behind it takes no room on the disk, and is zeros.

A file of a few kilobytes may claim to have terabytes. Reading its zeros takes hours. Smaller files
are read to their end: some file systems have told of holes where bytes had just been written.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

# Stretches of data that are looked at: more are rare, and the system needs some time for each.
_MOST_STRETCHES = 10_000
SMALL = 4 << 30  # twice the size of a segment at most
_BLOCK = 512  # bytes that st_blocks counts


def bytes_on_disk(path: str, size: int) -> int:
    """The bytes of a file that take space: fewer than its size if it has holes."""
    try:
        blocks = getattr(Path(path).stat(), "st_blocks", None)
    except OSError:  # a broker has renamed or removed it
        return size
    return size if blocks is None else min(size, blocks * _BLOCK)


def is_sparse(file: int) -> bool:
    """Whether an open file takes less space than its size, as a preallocated index does."""
    found = os.fstat(file)
    blocks = getattr(found, "st_blocks", None)
    return blocks is not None and blocks * _BLOCK < found.st_size


def data_end(file: int, size: int) -> int:
    """A position behind which the first `size` bytes of an open file are zeros, or `size`.

    The system knows it from the places of the file's blocks, without reading them. Moves the
    position of the file, which nothing here reads from.
    """
    if size <= SMALL or not hasattr(os, "SEEK_DATA"):
        return size
    if not is_sparse(file):
        return size
    end = 0
    for _ in range(_MOST_STRETCHES):
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
            if start >= size:
                return end
            end = os.lseek(file, start, os.SEEK_HOLE)
        except OSError as error:
            # ENXIO: no data follows. Some file systems do not know.
            return min(end, size) if error.errno == errno.ENXIO else size
        if end >= size:
            return size
    return size
