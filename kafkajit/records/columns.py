"""The columns that a reader asks for, and the memory that the records are written to.

Offsets, timestamps, keys, values and headers go straight into Arrow's layout: reading and copying
in one pass takes two thirds of the time of finding the fields first and gathering them afterwards.
Everything else is found later from `fields`, which holds the positions of a record's parts.

The memory for a binary column's data is sized by the previous chunk, and so is the room for
headers. If that is not enough, the chunk is read again with as much room as it has bytes.

Messages of v0 and v1 in compressed sets are found first and gathered afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.varint import varint_before
from kafkajit.kernel import inlined
from kafkajit.kernel.intrinsics import WIDE, copy_wide
from kafkajit.records.gather import copy_binary, plan_binary, write_validity, write_views
from kafkajit.storage.source import Bytes, Int64s, Mask

# The positions of a record's parts. A size is -1 for null; the position is then that of the next
# part. A message of v0 or v1 has the position of its entry in place of that of headers.
RECORD = np.dtype(
    [
        ("offset", np.int64),
        ("timestamp", np.int64),
        ("key", np.int32),
        ("keySize", np.int32),
        ("value", np.int32),
        ("valueSize", np.int32),
        ("headers", np.int32),
        ("headersCount", np.int32),
    ]
)

Allocate = Callable[[int, Any], npt.NDArray[Any]]
# Which stretches of bytes, with the plain records of a batch each, may hold a record that is asked
# for: the reader skips the records of all others.
MayHold = Callable[[Bytes, Int64s, Int64s], Mask]


class BinaryColumn(NamedTuple):
    """A column of byte strings in Arrow's layout; arrays of length 0 if it is not asked for."""

    offsets: npt.NDArray[np.int32]
    data: npt.NDArray[np.uint8]  # with WIDE bytes of room behind the last
    validity: npt.NDArray[np.uint8]  # a bit for each row, least significant first
    # Arrow's binary views, two words each, in place of offsets and data.
    views: npt.NDArray[np.int64]


class HeaderColumns(NamedTuple):
    """Headers, record by record, in Arrow's layout of a list."""

    offsets: npt.NDArray[np.int32]  # where each record's headers begin in `keys` and `values`
    keys: BinaryColumn  # never null
    values: BinaryColumn


class Columns(NamedTuple):
    """The columns to fill; an array of length 0 if a column is not asked for."""

    offset: Int64s
    timestamp: Int64s
    fields: npt.NDArray[np.void]  # RECORD
    key: BinaryColumn
    value: BinaryColumn
    headers: HeaderColumns
    has_nulls: npt.NDArray[np.uint8]  # whether there may be nulls in key, value, headers' values


class Wanted(NamedTuple):
    """The columns that are asked for."""

    offset: bool = False
    timestamp: bool = False
    fields: bool = False
    key: bool = False
    value: bool = False
    headers: bool = False
    key_views: bool = False
    value_views: bool = False

    @property
    def points(self) -> bool:
        """Whether columns point into the bytes that hold the records."""
        return self.fields or self.key_views or self.value_views


@dataclass(frozen=True)
class Reading:
    """The records read, batch by batch, and the error that stopped the reading, if any."""

    columns: Columns
    rows: int  # how many are filled in the columns
    counts: Int64s  # of records in each batch
    status: int
    a: int
    b: int
    batch: int  # the batch of the record that was not read


class ColumnMemory:
    """Allocates columns for chunk after chunk, sized by the previous one.

    Memory from `allocate` goes away with the columns; `fields` is kept and reused.
    """

    def __init__(
        self,
        wanted: Wanted,
        allocate: Allocate = np.empty,
        may_hold: MayHold | None = None,
    ) -> None:
        self.wanted = wanted
        self.may_hold = may_hold  # of batches of v2
        self.allocate = self._allocate = allocate
        self._fields = np.empty(0, dtype=RECORD)
        # Shares of a chunk's bytes, with some to spare. Most logs have few headers, or none.
        self._shares = {"key": 1.0, "value": 1.0, "headerKey": 0.05, "headerValue": 0.1}
        self._headers = 0.01  # for each byte

    def records(self, rows: int) -> npt.NDArray[np.void]:
        """Rows for the positions of this many records' parts; the same memory as `fields`."""
        if self._fields.size < rows:
            self._fields = np.empty(rows, dtype=RECORD)
        return self._fields[:rows]

    def columns(
        self, rows: int, content_bytes: int, *, roomy: bool = False, has_headers: bool = True
    ) -> Columns:
        """Columns for `rows` rows out of `content_bytes` bytes; `roomy`: large enough for any."""
        wanted = self.wanted

        def offsets(entries: int) -> npt.NDArray[np.int32]:
            places = self._allocate(entries + 1, np.int32)
            places[0] = 0
            return places

        def binary(name: str, is_wanted: bool, entries: int = rows) -> BinaryColumn:
            if not is_wanted:
                return _NO_BINARY
            room = content_bytes if roomy else int(content_bytes * self._shares[name])
            data = self._allocate(room + WIDE, np.uint8)
            return BinaryColumn(offsets(entries), data, _all_valid(entries), _NO_VIEWS)

        def viewed(name: str, is_wanted: bool, is_viewed: bool) -> BinaryColumn:
            if not is_viewed:
                return binary(name, is_wanted)
            views = self._allocate(2 * rows, np.int64).reshape(rows, 2)
            return _NO_BINARY._replace(validity=_all_valid(rows), views=views)

        def headers() -> HeaderColumns:
            if not has_headers:
                return without_headers(rows)
            if not wanted.headers:
                return _NO_HEADERS
            most = content_bytes // 2  # a header has at least two lengths
            if not roomy:
                most = min(most, int(content_bytes * self._headers))
            return HeaderColumns(
                offsets(rows), binary("headerKey", True, most), binary("headerValue", True, most)
            )

        return Columns(
            self._allocate(rows, np.int64) if wanted.offset else _NO_INT64,
            self._allocate(rows, np.int64) if wanted.timestamp else _NO_INT64,
            self.records(rows) if wanted.fields else _NO_FIELDS,
            viewed("key", wanted.key, wanted.key_views),
            viewed("value", wanted.value, wanted.value_views),
            headers(),
            np.zeros(3, dtype=np.uint8),
        )

    def gathered(self, content: Bytes, records: npt.NDArray[np.void]) -> Columns:
        """Filled columns of `records`, which have no headers."""
        wanted = self.wanted
        has_nulls = np.zeros(3, dtype=np.uint8)

        def numbers(name: str, is_wanted: bool) -> Int64s:
            if not is_wanted:
                return _NO_INT64
            column = self._allocate(records.size, np.int64)
            column[:] = records[name]
            return column

        def binary(name: str, is_wanted: bool, is_viewed: bool, flag: int) -> BinaryColumn:
            if not is_wanted and not is_viewed:
                return _NO_BINARY
            sizes = np.ascontiguousarray(records[f"{name}Size"])
            starts = np.ascontiguousarray(records[name])
            column = _NO_BINARY
            if is_viewed:
                views = self._allocate(2 * records.size, np.int64).reshape(records.size, 2)
                nulls = write_views(content, starts, sizes, views)
                column = column._replace(views=views)
            else:
                offsets = self._allocate(records.size + 1, np.int32)
                data_bytes, nulls = plan_binary(sizes, offsets)
                data = self._allocate(data_bytes + WIDE, np.uint8)
                copy_binary(content, starts, offsets, data)
                column = column._replace(offsets=offsets, data=data)
            validity = np.zeros(records.size // 8 + 1, dtype=np.uint8)
            if nulls:
                has_nulls[flag] = 1
                write_validity(sizes, validity)
            return column._replace(validity=validity)

        return Columns(
            numbers("offset", wanted.offset),
            numbers("timestamp", wanted.timestamp),
            records if wanted.fields else _NO_FIELDS,
            binary("key", wanted.key, wanted.key_views, 0),
            binary("value", wanted.value, wanted.value_views, 1),
            without_headers(records.size),
            has_nulls,
        )

    def learn(self, columns: Columns, rows: int, content_bytes: int) -> None:
        """Remember this chunk's sizes for the next one."""
        if rows == 0:
            return
        headers = int(columns.headers.offsets[rows]) if columns.headers.offsets.size else 0
        for name, column, entries in (
            ("key", columns.key, rows),
            ("value", columns.value, rows),
            ("headerKey", columns.headers.keys, headers),
            ("headerValue", columns.headers.values, headers),
        ):
            if column.offsets.size:
                share = int(column.offsets[entries]) / content_bytes
                self._shares[name] = min(1.0, share * 1.1 + 0.01)
        self._headers = headers / content_bytes * 1.1 + 0.01


_NO_INT64 = np.empty(0, dtype=np.int64)
_NO_FIELDS = np.empty(0, dtype=RECORD)
_NO_VIEWS = np.empty((0, 2), dtype=np.int64)
_NO_BINARY = BinaryColumn(
    np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.uint8), _NO_VIEWS
)
_NO_HEADERS = HeaderColumns(np.empty(0, dtype=np.int32), _NO_BINARY, _NO_BINARY)


def _all_valid(rows: int) -> npt.NDArray[np.uint8]:
    return np.full(rows // 8 + 1, 0xFF, np.uint8)


def without_headers(rows: int) -> HeaderColumns:
    """The headers of records that have none."""
    return _NO_HEADERS._replace(offsets=np.zeros(rows + 1, dtype=np.int32))


@inlined
def _copy_header(target, t, source, s, size):
    """Copy in wide steps, the first of which is all that most need."""
    copy_wide(target, t, source, s)
    done = np.int64(WIDE)
    while done < size:
        copy_wide(target, t + done, source, s + done)
        done += WIDE


@inlined
def put_headers(content, position, stop, count, columns, row):
    """Write headers from row `row` on: (position behind them, the row behind the last).

    The position is -1 if a header is malformed or runs past `stop`, or the columns are full. There
    are WIDE bytes behind `stop`.
    """
    key_offsets, key_data, _, _ = columns.headers.keys
    value_offsets, value_data, validity, _ = columns.headers.values
    nowhere = np.int64(-1), np.int64(-1)
    if row < 0 or count >= key_offsets.size - row:
        return nowhere
    key_end, value_end = np.int64(key_offsets[row]), np.int64(value_offsets[row])
    key_room, value_room = np.int64(key_data.size - WIDE), np.int64(value_data.size - WIDE)
    p = position
    for _ in range(count):
        size, p = varint_before(content, p, stop)
        if p < 0 or size < 0 or size > stop - p or size > key_room - key_end:
            return nowhere
        _copy_header(key_data, key_end, content, p, size)
        key_end += size
        p += size
        size, p = varint_before(content, p, stop)
        if p < 0 or size > stop - p or size > value_room - value_end:
            return nowhere
        if size > 0:
            _copy_header(value_data, value_end, content, p, size)
            value_end += size
            p += size
        elif size < 0:
            columns.has_nulls[2] = 1
            validity[row >> 3] &= ~(np.uint8(1) << np.uint8(row & 7))
        row += 1
        key_offsets[row] = key_end
        value_offsets[row] = value_end
    return p, row
