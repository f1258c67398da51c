"""Whatever holds a log's bytes → one read-only array of uint8, made once, at the door.

Kernels are compiled for exactly that type (C-contiguous, read-only), so nothing behind this door
ever causes a second compilation.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

# The pages of a file already read are given back in steps of this many bytes.
_FORGET_STEP = 32 << 20


class Source:
    """A log's bytes, with the path they came from, if any.

    A path is memory-mapped: nothing is read before it is looked at, and `forget` gives the pages
    back, so that a reader that moves forward holds a few megabytes of a file of any size.
    """

    def __init__(self, source: Any) -> None:
        self.path: str | None = None
        self._map: mmap.mmap | None = None
        self._forgotten = 0
        if isinstance(source, (str, os.PathLike)):
            self.path = os.fspath(source)
            source = self._map_file(Path(source))
        self.content = as_bytes(source)

    def _map_file(self, path: Path) -> Any:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if hasattr(mmap, "MADV_SEQUENTIAL"):
            self._map.madvise(mmap.MADV_SEQUENTIAL)
        return self._map

    def forget(self, position: int) -> None:
        """Say that the bytes before `position` will not be looked at again."""
        if self._map is None or not hasattr(mmap, "MADV_DONTNEED"):
            return
        length = (position - self._forgotten) // _FORGET_STEP * _FORGET_STEP
        if length > 0:
            self._map.madvise(mmap.MADV_DONTNEED, self._forgotten, length)
            self._forgotten += length


def as_bytes(source: Any) -> Bytes:
    """bytes, memoryview, numpy array, pyarrow Buffer → read-only uint8, without a copy."""
    if isinstance(source, np.ndarray):
        if not source.flags.c_contiguous:
            raise TypeError("a log's bytes must be contiguous; pass numpy.ascontiguousarray(array)")
        content = source.reshape(-1).view(np.uint8)
    else:
        try:
            content = np.frombuffer(source, dtype=np.uint8)
        except (BufferError, ValueError) as error:
            raise TypeError(f"a log's bytes must be contiguous ({error})") from error
        except TypeError as error:
            raise TypeError(
                "source must be bytes, a memoryview, a numpy array, a pyarrow Buffer or a path, "
                f"not {type(source).__name__}"
            ) from error
    content = content[:]  # a view of our own: the caller's array stays writable
    content.flags.writeable = False
    return content
