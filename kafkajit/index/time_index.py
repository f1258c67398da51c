"""The .timeindex file: the largest timestamp so far, and the offset that has it (TimeIndex).

An entry is 12 bytes: the timestamp, int64, and the offset relative to the base offset, int32. No
record up to that offset has a later timestamp.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import CorruptIndexError
from kafkajit.index.bisect import index_slots
from kafkajit.index.index_file import IndexFile, base_offset_of, sound_entries
from kafkajit.schema import TIME_INDEX_COLUMNS, table_schema
from kafkajit.storage.source import Bytes, Int64s, whole

ENTRY = np.dtype([("timestamp", ">i8"), ("relativeOffset", ">i4")])
NO_TIMESTAMP = -1


class TimestampOffset(NamedTuple):
    """The largest timestamp up to an offset, in milliseconds."""

    timestamp: int
    offset: int


class TimeIndex(IndexFile):
    """A time index, in which timestamps are looked up.

    The source is bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.

    >>> index = TimeIndex(bytes.fromhex("000000000000006400000009"), base_offset=100)
    >>> index.lookup(150)
    TimestampOffset(timestamp=100, offset=109)
    >>> index.lookup(99)
    TimestampOffset(timestamp=-1, offset=100)
    """

    ENTRY = ENTRY
    NAME = "Time index file"

    def entry(self, row: int) -> TimestampOffset:
        """The entry in that row."""
        timestamp, relative = self._row(row)
        return TimestampOffset(timestamp, self.base_offset + relative)

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; (-1, base offset) if the index is empty."""
        return (
            self.entry(self._count - 1)
            if self._count
            else TimestampOffset(NO_TIMESTAMP, self.base_offset)
        )

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry at or before that timestamp; (-1, base offset) if every one is later."""
        return self._entry_or_none(bisect_right(self.entries["timestamp"], timestamp) - 1)

    def before(self, timestamp: int) -> TimestampOffset:
        """The last entry with an earlier timestamp: no record up to its offset has this one."""
        return self._entry_or_none(bisect_left(self.entries["timestamp"], timestamp) - 1)

    def is_in_order_at(self, entry: TimestampOffset) -> bool:
        """Whether entries grow from the first one to that one, and on to the next.

        Looks only at the first entry, that entry where a bisection finds it, and its neighbours.
        """
        row = bisect_left(self.entries["timestamp"], entry.timestamp)
        near = [
            self.entry(at) for at in sorted({0, *range(row - 1, row + 2)}) if 0 <= at < len(self)
        ]
        return all(
            one.timestamp < next_.timestamp and one.offset <= next_.offset
            for one, next_ in pairwise(near)
        )

    def slots(self, timestamps: npt.ArrayLike) -> Int64s:
        """The row of the last entry at or before each timestamp; -1 if every entry is later."""
        keys = self.entries["timestamp"].astype(np.int64)
        return index_slots(keys, timestamps)

    def lookup_all(self, timestamps: npt.ArrayLike) -> tuple[Int64s, Int64s]:
        """`lookup` for an array of timestamps: the entries' timestamps and offsets."""
        slots = self.slots(timestamps)
        none = np.array([(NO_TIMESTAMP, 0)], ENTRY)
        entries = np.concatenate([none, self.entries])[slots + 1]
        offsets = entries["relativeOffset"].astype(np.int64) + self.base_offset
        return entries["timestamp"].astype(np.int64), offsets

    def sanity_check(self) -> None:
        """Check what a broker checks when it starts; it rebuilds an index that fails."""
        where = f"Corrupt time index found, time index file ({self.path or 'given'}) has non-zero"
        entries = self.whole_file
        if entries.size:
            first, _ = entries[0].tolist()
            last, relative = entries[-1].tolist()
            if last < first:
                raise CorruptIndexError(
                    f"{where} size but the last timestamp is {last} which is less than the first "
                    f"timestamp {first}"
                )
            if relative < 0:
                raise CorruptIndexError(
                    f"{where} size but the last offset is {self.base_offset + relative} which is "
                    f"less than the first offset {self.base_offset}"
                )
        self.check_size()

    def _entry_or_none(self, row: int) -> TimestampOffset:
        return self.entry(row) if row >= 0 else TimestampOffset(NO_TIMESTAMP, self.base_offset)


def read_time_index(source: Any, base_offset: int | None = None) -> pa.Table:
    """Read all entries of a .timeindex file, in `kafkajit.schema.TIME_INDEX_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.
        base_offset: the segment's base offset; by default the one in the file's name.

    >>> table = read_time_index(bytes.fromhex("000000000000006400000009"), base_offset=100)
    >>> table["offset"].to_pylist()
    [109]
    """
    return parse_time_index(*whole(source), base_offset)


def parse_time_index(
    content: Bytes, path: str | None = None, base_offset: int | None = None
) -> pa.Table:
    """As `read_time_index`, from bytes and the path that they came from."""
    base_offset = base_offset_of(path) if base_offset is None else base_offset
    entries = time_entries(content, path)
    timestamps = pa.array(entries["timestamp"].astype(np.int64))
    offsets = entries["relativeOffset"].astype(np.int64) + base_offset
    schema = table_schema(TIME_INDEX_COLUMNS)
    return pa.Table.from_arrays([timestamps.cast(schema.field(0).type), offsets], schema=schema)


def time_entries(content: Bytes, path: str | None = None) -> npt.NDArray[np.void]:
    """All entries, after a check of each one; an error names the first that fails.

    >>> time_entries(np.frombuffer(bytes.fromhex("000000000000006400000009"), np.uint8)).tolist()
    [(100, 9)]
    """
    return sound_entries(content, ENTRY, path, timestamp=1, relativeOffset=0)
