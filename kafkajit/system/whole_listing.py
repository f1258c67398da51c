"""List a folder to which others add files meanwhile.

A system lists a folder piece by piece: the list may have a file that was made late, and lack one
that was made before it. So a list counts only if the folder has not changed since it was begun. A
bucket has no such sign: there a list counts if none of its files was made since, or if the next
list is the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from pyarrow.fs import FileInfo, FileType

# The clock of a file system may stand still for so long: two changes then have one time.
_TICK_NS = 10_000_000
_LOOKS = 5
# The clocks of this machine and of a store may differ by so much.
_LATELY_NS = 60 * 10**9

Found = TypeVar("Found")


def whole_listing(folder: str, look: Callable[[], Found]) -> Found:
    """Return what `look` finds in a local folder at one moment.

    In a folder that changes all the time, the last of several looks counts.

    >>> whole_listing("/no/such/folder", lambda: os.listdir("/no/such/folder"))
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: '/no/such/folder'
    """
    for left in reversed(range(_LOOKS)):
        begun = time.time_ns()
        before = _modified_ns(folder)
        found = look()
        age = begun - before
        is_same = _modified_ns(folder) == before
        if not left or (is_same and not 0 <= age <= _TICK_NS):
            break
        if is_same:
            time.sleep((_TICK_NS - age) / 1e9)
    return found


def whole_pages(look: Callable[[], list[FileInfo]], page: int) -> list[FileInfo]:
    """Return what `look` finds in a remote folder at one moment.

    Args:
        look: lists the folder.
        page: the names in one answer of the store: a shorter list is of one moment.

    >>> whole_pages(list, 1000)
    []
    """
    begun = time.time_ns()
    found = look()
    for _ in range(_LOOKS - 1):
        times = (info.mtime_ns or begun for info in found if info.type == FileType.File)
        if len(found) < page or all(at < begun - _LATELY_NS for at in times):
            break
        before, begun, found = found, time.time_ns(), look()
        if list(map(_look_of, found)) == list(map(_look_of, before)):
            break
    return found


def _look_of(info: FileInfo) -> tuple[str, int, int | None]:
    return info.path, info.size, info.mtime_ns


def _modified_ns(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - a trigger asks for thousands
    except OSError:
        return 0  # the look tells why
