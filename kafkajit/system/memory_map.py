"""Mapped memory: the only module that knows what a process may ask of its pages on each system.

Linux and macOS take hints: what is read in order, and which pages are not used again. Windows takes
none. There, pages that were read stay in memory as long as the system has room, and a mapped file
can be neither removed nor cut.
"""

from __future__ import annotations

import contextlib
import mmap
import platform
import sys

Map = mmap.mmap
PAGE = mmap.PAGESIZE

# Anonymous memory that is given back: Darwin only swaps out what is MADV_DONTNEED.
_UNUSED = "MADV_FREE" if sys.platform == "darwin" else "MADV_DONTNEED"

# MAP_NORESERVE, which Pythons before 3.13 do not name: without it, Linux refuses to reserve much
# more than it has, although pages exist only once they are written.
_IS_NUMBERED = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if _IS_NUMBERED else 0)


def map_file(file: int, size: int, *, leaps: bool = False) -> Map:
    """Map the first `size` bytes of an open file for reading.

    With `leaps` the reader jumps about, so the system does not read ahead.
    """
    mapped = mmap.mmap(file, size, access=mmap.ACCESS_READ)
    _advise(mapped, "MADV_RANDOM" if leaps else "MADV_SEQUENTIAL")
    return mapped


def reserve(size: int, *, is_filled: bool) -> Map:
    """Memory of `size` bytes, one at least, whose pages exist once they are written.

    Args:
        size: bytes to reserve. On Windows, the page file must have room for all of them.
        is_filled: most of the memory will be written. With huge pages, 210 MB of a local file take
            0.1 s instead of 0.3. A short range would touch more memory than it needs.
    """
    flags = getattr(mmap, "MAP_PRIVATE", None)
    if flags is None:
        return mmap.mmap(-1, max(size, 1))
    flags |= mmap.MAP_ANONYMOUS | _NO_RESERVE
    reserved = mmap.mmap(-1, max(size, 1), flags=flags)
    if is_filled:
        with contextlib.suppress(OSError):  # the system may have no huge pages
            _advise(reserved, "MADV_HUGEPAGE")
    return reserved


def give_back(memory: Map, start: int, length: int, *, is_file: bool) -> None:
    """Give whole pages back to the system: their bytes are not used again."""
    _advise(memory, "MADV_DONTNEED" if is_file else _UNUSED, start, length)


def _advise(memory: Map, name: str, *stretch: int) -> None:
    hint = getattr(mmap, name, None)
    if hint is not None:
        memory.madvise(hint, *stretch)
