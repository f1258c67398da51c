"""The .timeindex file: the largest timestamp so far, and whose offset it is (TimeIndex).

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

from kafkajit.errors import CorruptIndexError, InvalidOffsetError
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
    """A time index, to look timestamps up or, writable, to be written as a broker writes it.

    >>> index = TimeIndex(bytes.fromhex("000000000000006400000009"), base_offset=100)
    >>> index.lookup(150)
    TimestampOffset(timestamp=100, offset=109)
    >>> index.lookup(99)
    TimestampOffset(timestamp=-1, offset=100)
    """

    ENTRY = ENTRY
    NAME = "Time index file"

    @property
    def is_full(self) -> bool:
        """Whether only the entry is left that is written when the segment is rolled."""
        return self._count >= self.max_entries - 1

    def entry(self, row: int) -> TimestampOffset:
        """The entry of that row."""
        timestamp, relative = self._row(row)
        return TimestampOffset(timestamp, self.base_offset + relative)

    @property
    def last_entry(self) -> TimestampOffset:
        """The last one; (-1, base offset) where there is none."""
        return (
            self.entry(self._count - 1)
            if self._count
            else TimestampOffset(NO_TIMESTAMP, self.base_offset)
        )

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry of that timestamp or an earlier one; below the first (-1, base offset)."""
        return self._entry_or_none(bisect_right(self.entries["timestamp"], timestamp) - 1)

    def before(self, timestamp: int) -> TimestampOffset:
        """The last entry of an earlier timestamp: no record up to its offset is of this one."""
        return self._entry_or_none(bisect_left(self.entries["timestamp"], timestamp) - 1)

    def is_in_order_at(self, entry: TimestampOffset) -> bool:
        """Whether it grows from the first entry to that one, and from there to the next.

        Only what is looked at: the first, that one where a bisection finds it, and those beside it.
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
        """For each timestamp the row of the last entry at or before it; -1 below the first."""
        keys = self.entries["timestamp"].astype(np.int64)
        return index_slots(keys, timestamps)

    def lookup_all(self, timestamps: npt.ArrayLike) -> tuple[Int64s, Int64s]:
        """`lookup` of a whole array: timestamps and offsets."""
        slots = self.slots(timestamps)
        none = np.array([(NO_TIMESTAMP, 0)], ENTRY)
        entries = np.concatenate([none, self.entries])[slots + 1]
        offsets = entries["relativeOffset"].astype(np.int64) + self.base_offset
        return entries["timestamp"].astype(np.int64), offsets

    def sanity_check(self) -> None:
        """What a broker asks of an index when it starts; one that fails is built again."""
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

    def maybe_append(self, timestamp: int, offset: int, *, skip_full_check: bool = False) -> None:
        """Add an entry, if its timestamp is later than the last one's."""
        self._must_be_writable()
        if not skip_full_check and self.is_full:
            raise ValueError(f"Attempt to append to a full time index (size = {self._count}).")
        last = self.last_entry
        if self._count and offset < last.offset:
            raise InvalidOffsetError(
                f"Attempt to append an offset ({offset}) to slot {self._count} no larger than the "
                f"last offset appended ({last.offset})",
                path=self.path,
            )
        if self._count and timestamp < last.timestamp:
            raise ValueError(
                f"Attempt to append a timestamp ({timestamp}) to slot {self._count} no larger "
                f"than the last timestamp appended ({last.timestamp}) to {self.path}"
            )
        if timestamp > last.timestamp:
            self._append(timestamp, self._relative(offset))

    def _entry_or_none(self, row: int) -> TimestampOffset:
        return self.entry(row) if row >= 0 else TimestampOffset(NO_TIMESTAMP, self.base_offset)


def read_time_index(source: Any, base_offset: int | None = None) -> pa.Table:
    """All entries of a .timeindex file, in the columns of `kafkajit.schema.TIME_INDEX_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.
        base_offset: the segment's, which offsets count from; that of the name by default.

    >>> table = read_time_index(bytes.fromhex("000000000000006400000009"), base_offset=100)
    >>> table["offset"].to_pylist()
    [109]
    """
    return parse_time_index(*whole(source), base_offset)


def parse_time_index(
    content: Bytes, path: str | None = None, base_offset: int | None = None
) -> pa.Table:
    """The same of bytes and the path that they came from."""
    base_offset = base_offset_of(path) if base_offset is None else base_offset
    entries = time_entries(content, path)
    timestamps = pa.array(entries["timestamp"].astype(np.int64))
    offsets = entries["relativeOffset"].astype(np.int64) + base_offset
    schema = table_schema(TIME_INDEX_COLUMNS)
    return pa.Table.from_arrays([timestamps.cast(schema.field(0).type), offsets], schema=schema)


def time_entries(content: Bytes, path: str | None = None) -> npt.NDArray[np.void]:
    """All entries, each looked at; what is wrong with one is an error that names it.

    >>> time_entries(np.frombuffer(bytes.fromhex("000000000000006400000009"), np.uint8)).tolist()
    [(100, 9)]
    """
    return sound_entries(content, ENTRY, path, timestamp=1, relativeOffset=0)
