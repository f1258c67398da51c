"""The .index file: for every few kilobytes of log, an offset and its position (OffsetIndex).

An entry is 8 bytes: the offset relative to the base offset, and the position of a batch, both
int32. The offset is the last one of the append that begins at that position.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import CorruptIndexError
from kafkajit.index.bisect import index_slots
from kafkajit.index.index_file import IndexFile, base_offset_of, sound_entries
from kafkajit.schema import OFFSET_INDEX_COLUMNS, table_schema
from kafkajit.storage.source import Bytes, Int64s, whole

ENTRY = np.dtype([("relativeOffset", ">i4"), ("position", ">i4")])


class OffsetPosition(NamedTuple):
    """An offset, and the position in the segment where a search for it begins."""

    offset: int
    position: int


class OffsetIndex(IndexFile):
    """An offset index, in which offsets are looked up.

    The source is bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.

    >>> index = OffsetIndex(bytes.fromhex("0000000900001000" "0000001500002000"), base_offset=100)
    >>> index.lookup(120)
    OffsetPosition(offset=109, position=4096)
    >>> index.lookup(50)
    OffsetPosition(offset=100, position=0)
    """

    ENTRY = ENTRY
    NAME = "Index file"

    def entry(self, row: int) -> OffsetPosition:
        """The entry in that row."""
        relative, position = self._row(row)
        return OffsetPosition(self.base_offset + relative, position)

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset if the index is empty."""
        return self.entry(self._count - 1).offset if self._count else self.base_offset

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry at or before that offset; (base offset, 0) if every entry is later."""
        row = bisect_right(self.entries["relativeOffset"], offset - self.base_offset) - 1
        return self.entry(row) if row >= 0 else OffsetPosition(self.base_offset, 0)

    def slots(self, offsets: npt.ArrayLike) -> Int64s:
        """The row of the last entry at or before each offset; -1 if every entry is later."""
        keys = self.entries["relativeOffset"].astype(np.int32)
        return index_slots(keys, np.asarray(offsets, dtype=np.int64) - self.base_offset)

    def lookup_all(self, offsets: npt.ArrayLike) -> tuple[Int64s, Int64s]:
        """`lookup` for an array of offsets: the entries' offsets and positions."""
        slots = self.slots(offsets)
        entries = np.concatenate([np.zeros(1, ENTRY), self.entries])[slots + 1]
        found = entries["relativeOffset"].astype(np.int64) + self.base_offset
        return found, entries["position"].astype(np.int64)

    def upper_bound(self, offset: int) -> OffsetPosition | None:
        """The first entry at or behind that offset; None if every entry is earlier."""
        row = bisect_left(self.entries["relativeOffset"], offset - self.base_offset)
        return self.entry(row) if row < self._count else None

    def leave_out_from(self, position: int) -> None:
        """Ignore the entries that lead to this position or behind it; the file is not changed."""
        self._count = bisect_left(self.entries["position"], position)

    def sanity_check(self) -> None:
        """Check what a broker checks when it starts; it rebuilds an index that fails."""
        last = self.whole_file[-1:]
        if (last["relativeOffset"] < 0).any():
            raise CorruptIndexError(
                f"Corrupt index found, index file {self.path or 'given'} has non-zero size but the "
                f"last offset is {self.base_offset + int(last['relativeOffset'][0])} which is less "
                f"than the base offset {self.base_offset}"
            )
        self.check_size()


def read_offset_index(source: Any, base_offset: int | None = None) -> pa.Table:
    """Read all entries of an .index file, in `kafkajit.schema.OFFSET_INDEX_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.
        base_offset: the segment's base offset; by default the one in the file's name.

    >>> read_offset_index(bytes.fromhex("0000000900001000"), base_offset=100).to_pylist()
    [{'offset': 109, 'position': 4096}]
    """
    return parse_offset_index(*whole(source), base_offset)


def parse_offset_index(
    content: Bytes, path: str | None = None, base_offset: int | None = None
) -> pa.Table:
    """As `read_offset_index`, from bytes and the path that they came from."""
    base_offset = base_offset_of(path) if base_offset is None else base_offset
    entries = offset_entries(content, path)
    offsets = entries["relativeOffset"].astype(np.int64) + base_offset
    columns = [offsets, entries["position"].astype(np.int32)]
    return pa.Table.from_arrays(columns, schema=table_schema(OFFSET_INDEX_COLUMNS))


def offset_entries(content: Bytes, path: str | None = None) -> npt.NDArray[np.void]:
    """All entries, after a check of each one; an error names the first that fails.

    >>> offset_entries(np.frombuffer(bytes.fromhex("0000000900001000") + bytes(8), np.uint8))
    array([(9, 4096)], dtype=[('relativeOffset', '>i4'), ('position', '>i4')])
    """
    return sound_entries(content, ENTRY, path, relativeOffset=1, position=1)
