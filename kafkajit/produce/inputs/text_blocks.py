"""Files of text → blocks of bytes, in bounded memory.

A block holds whole records, and the beginning of the next one. It grows if a record does not fit:
to twice its size each time, so that a long record is not read again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from kafkajit.produce.inputs.opened import opened_stream
from kafkajit.produce.inputs.rows import MOST_RECORD, BadInputError
from kafkajit.storage.remote_store import Storage
from kafkajit.storage.source import Bytes

ROOM = 64  # bytes behind the text, which kernels may read
_BLOCK = 8 << 20
_READ = 1 << 20  # at once: a stream that is decompressed returns new memory
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UTF8 = b"\xef\xbb\xbf"
# The longest first: UTF-32 begins as UTF-16 does.
_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


@contextmanager
def text_of(filesystem: Storage, path: str, codec: str | None) -> Iterator[TextBlocks]:
    """The text of a file, which may be compressed with gzip or zstd."""
    with opened_stream(filesystem, path, compression=None) as opened:
        head = opened.read(4)
    if codec is not None and not head:
        raise BadInputError(f"the file is empty, and {codec} of nothing is not: it was cut off")
    if codec is None:
        codec = "gzip" if head[:2] == _GZIP else "zstd" if head == _ZSTD else None
    with opened_stream(filesystem, path, compression=codec) as opened:
        yield TextBlocks(opened)


class TextBlocks:
    """The text of a file: what lies between `start` and `end` of `content` has not been taken."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self._buffer = np.zeros(_BLOCK + ROOM, dtype=np.uint8)
        self.start = self.end = 0
        self.is_last = False
        self._fill()
        self._begin()

    @property
    def content(self) -> Bytes:
        """The memory with the text. It changes when more is read."""
        view = self._buffer[:]
        view.setflags(write=False)
        return view

    @property
    def is_taken(self) -> bool:
        """Whether all of the text has been taken."""
        return self.is_last and self.start == self.end

    def take(self, position: int) -> None:
        """Take the text up to a position."""
        self.start = position

    def more(self, place: str) -> None:
        """Read on, because the record at `start` is not whole; `place` is its place in words."""
        kept = self._buffer[self.start : self.end].copy()
        size = self._buffer.size - ROOM
        if kept.size > size // 2:
            if size >= MOST_RECORD:
                raise BadInputError(f"a record has more than {MOST_RECORD >> 20} MiB", place=place)
            self._buffer = np.zeros(2 * size + ROOM, dtype=np.uint8)
        self._buffer[: kept.size] = kept
        self.start, self.end = 0, kept.size
        self._fill()

    def _fill(self) -> None:
        size = self._buffer.size - ROOM
        while self.end < size:
            piece = self._stream.read(min(size - self.end, _READ))
            if not piece:
                self.is_last = True
                break
            self._buffer[self.end : self.end + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
            self.end += len(piece)
        self._buffer[self.end : self.end + ROOM] = 0

    def _begin(self) -> None:
        """Skip UTF-8's byte order mark, and refuse other encodings."""
        head = self._buffer[: min(self.end, 4)].tobytes()
        for mark, name in _MARKS.items():
            if head.startswith(mark):
                raise BadInputError(f"the text is {name}: convert it to UTF-8, as with iconv")
        if len(head) > 1 and 0 in head[:2] and any(head[:2]):
            raise BadInputError("the text seems to be UTF-16: convert it to UTF-8, as with iconv")
        if head.startswith(_UTF8):
            self.start = len(_UTF8)
