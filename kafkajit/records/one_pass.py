"""Reads batches of v2 in one pass: checks, decompresses and reads a few batches at a time.

Their bytes come from memory once, and what they decompress to stays in the processor's second-level
cache. To check all batches of a chunk, then to decompress and then to read them takes 1.25
times as long, 1.05 times with a codec.

The kernel stops before the first batch that is not as expected: at a wrong checksum, at a batch
that `decompressors` or `read_plain` leaves to others, and if the columns have no room. `decode`
takes the steps one by one and finds out why.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.batch_checksum import crc32c
from kafkajit.format.decompressors import UNCHECKED, CompressedBatches, decompress, functions_of
from kafkajit.format.layout import ATTRIBUTES_OFFSET, MIN_RECORD_SIZE, RECORD_BATCH_OVERHEAD
from kafkajit.kernel import kernel
from kafkajit.records.batches import Batches
from kafkajit.records.columns import ColumnMemory, Columns
from kafkajit.records.default_records import EXTENT, ROOM_BEHIND, move_places, read_plain
from kafkajit.storage.source import Bytes, Int64s

# The bytes of records that are checked before they are read.
_GROUP = 64 << 10


class OnePass(NamedTuple):
    """The columns, and how much one pass has read."""

    columns: Columns
    batches: int
    records: int
    size: int  # of the records' bytes, not compressed


class _Packed(NamedTuple):
    """Compressed batches, and where they are decompressed to."""

    batches: CompressedBatches
    out: Bytes
    places: Int64s  # a row for each batch: where its records begin and end
    keeps: int  # whether the columns point into `out`, so all of it has to stay
    limit: int  # the most bytes of a batch
    enough: int  # bytes of all


def read_checked(
    content: Bytes,
    extents: npt.NDArray[np.void],
    crcs: npt.NDArray[np.uint32],
    memory: ColumnMemory,
) -> OnePass:
    """Read batches that are not compressed; `crcs` are compared, if there are any."""
    sizes = extents["end"] - extents["start"]
    most = np.minimum(np.maximum(extents["count"], 0), sizes // MIN_RECORD_SIZE + 1)
    rows = int(most.sum())
    columns = memory.columns(rows, int(sizes.sum()))
    batch, found = _read_run(content, content, extents, crcs, (0, rows), columns, *_NOT_PACKED)
    if batch < extents.size and extents["end"][batch] + ROOM_BEHIND > content.size:
        # The last batches of a file: in a copy with room behind it.
        start = int(extents["start"][batch]) - RECORD_BATCH_OVERHEAD
        copy = np.zeros(content.size - start + ROOM_BEHIND, dtype=np.uint8)
        copy[:-ROOM_BEHIND] = content[start:]
        copy.flags.writeable = False  # like content: else numba compiles the kernel once more
        moved = extents[batch:].copy()
        moved["start"] -= start
        moved["end"] -= start
        before, rest = found, crcs[batch:] if crcs.size else crcs
        last, found = _read_run(copy, copy, moved, rest, (found, rows), columns, *_NOT_PACKED)
        move_places(columns, before, found, start)
        batch += last
    size = int(sizes[:batch].sum())
    memory.learn(columns, found, size)
    return OnePass(columns, batch, found, size)


_NOT_PACKED = (None,) * 6


class Room(NamedTuple):
    """Memory for the records of compressed batches."""

    out: Bytes
    plain: Bytes  # the same, read-only
    limit: int  # the most bytes of a batch
    enough: int  # bytes of all
    expected: int  # bytes that there is room for in the columns


def read_compressed(
    content: Bytes,
    batches: CompressedBatches,
    extents: npt.NDArray[np.void],
    memory: ColumnMemory,
    room: Room,
) -> OnePass | None:
    """Read batches of one codec; None if it has no function."""
    codec = functions_of(int(batches.codecs[0]))
    if codec is None:
        return None
    claimed = int(np.maximum(extents["count"], 0).sum(dtype=np.int64))
    rows = min(claimed, room.expected // MIN_RECORD_SIZE + 1)
    columns = memory.columns(rows, room.expected)
    places = np.zeros((extents.size, 2), dtype=np.int64)
    keeps = int(memory.wanted.points)
    packed = _Packed(batches, room.out, places, keeps, room.limit, room.enough)
    batch, found = _read_run(
        content, room.plain, extents, batches.crcs, (0, rows), columns, packed, *codec
    )
    size = int((places[:batch, 1] - places[:batch, 0]).sum())
    memory.learn(columns, found, size)
    return OnePass(columns, batch, found, size)


def compressed_batches(
    batches: Batches, starts: Int64s, ends: Int64s, crcs: npt.NDArray[np.uint32] = UNCHECKED
) -> CompressedBatches:
    """The fields of batches that the decompressing kernel uses."""
    return CompressedBatches(
        starts,
        ends,
        np.ascontiguousarray(batches.codec),
        np.ascontiguousarray(batches.field("magic")),
        np.ascontiguousarray(batches.field("recordsCount")),
        crcs,
    )


def extents_of(batches: Batches, starts: Int64s, ends: Int64s) -> npt.NDArray[np.void]:
    """The fields that the reading kernel uses of batches with records at these positions."""
    extents = np.empty(len(batches), dtype=EXTENT)
    extents["start"] = starts
    extents["end"] = ends
    extents["count"] = batches.field("recordsCount")
    extents["baseOffset"] = batches.field("baseOffset")
    extents["baseTimestamp"] = batches.field("baseTimestamp")
    extents["logAppendTime"] = batches.field("maxTimestamp")
    extents["isLogAppendTime"] = batches.timestamp_type
    extents["isCompressed"] = batches.codec != 0
    extents["magic"] = batches.field("magic")
    return extents


@kernel
def _read_run(
    content, plain, extents, crcs, rows, columns, packed, snappy, lz4, zstd, gzip, workspace
):
    """Return (batches read, records found).

    `rows` are the rows of the columns to fill: the first, and the one behind the last. The last
    arguments are None if nothing is compressed.
    """
    found, rows_end = rows
    row, written, total = np.int64(0), np.int64(0), np.int64(0)
    while row < extents.size:
        first = row
        if packed is not None:
            if total > packed.enough:
                return row, found
            if not packed.keeps:
                written = np.int64(0)
            places = packed.places
            places[row, 0] = written
            row = decompress(
                content, packed.batches, packed.out, places, row, packed.limit, written + _GROUP,
                snappy, lz4, zstd, gzip, workspace,
            )  # fmt: skip
            for i in range(first, row):
                extents[i]["start"] = places[i, 0]
                extents[i]["end"] = places[i, 1]
                total += places[i, 1] - written
                written = places[i, 1]
        else:
            group_end = extents[first]["start"] + _GROUP
            while row < extents.size and (row == first or extents[row]["end"] <= group_end):
                if crcs.size > 0:
                    start = extents[row]["start"] - (RECORD_BATCH_OVERHEAD - ATTRIBUTES_OFFSET)
                    if crc32c(content, start, extents[row]["end"]) != crcs[row]:
                        break
                row += 1
        # No more records than there are rows for, whatever the headers claim.
        rows_left, last = rows_end - found, first
        while last < row and extents[last]["count"] <= rows_left:
            rows_left -= max(extents[last]["count"], np.int64(0))
            last += 1
        if last == first:
            return first, found
        batch, record, found, _ = read_plain(
            plain, extents[:last], first, np.int64(0), found, extents[first]["start"], columns
        )
        if batch < row:
            return batch, found - record
    return row, found
