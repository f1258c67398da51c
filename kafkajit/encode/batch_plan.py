"""The records to write, and the batches that they become.

Rows point into memory that is already there: Arrow's buffers, or a segment that was decoded. So
whoever rewrites a batch copies its keys and values once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.errors import InvalidOffsetError
from kafkajit.format.layout import (
    MAX_RECORD_OVERHEAD,
    MESSAGE_OVERHEAD_V1,
    NATIVE_BATCH_HEADER,
    RECORD_BATCH_OVERHEAD,
)
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.varint import varlong_size, zigzag
from kafkajit.kernel import inlined, kernel
from kafkajit.storage.source import Int64s, Mask

# The most that a record or a message takes in addition to its fixed size.
MAX_OVERHEAD = max(MAX_RECORD_OVERHEAD, MESSAGE_OVERHEAD_V1)
# The length of a record whose fixed size is in this range takes two bytes.
_TWO_BYTES, _MOST_TWO_BYTES = 1 << 6, (1 << 13) - MAX_RECORD_OVERHEAD


class ByteStrings(NamedTuple):
    """Byte strings, wherever they are in `data`; a size of -1 is null."""

    data: npt.NDArray[np.uint8]
    starts: Int64s
    sizes: Int64s


class RecordSpans(NamedTuple):
    """The rows as kernels take them."""

    offset: Int64s
    timestamp: Int64s
    fixed_sizes: Int64s
    key: ByteStrings
    value: ByteStrings
    headers: ByteStrings


@dataclass(frozen=True)
class RecordRows:
    """The contents of each record.

    `headers` holds a record's headers as they are laid out in it, beginning with their count; a
    size of 0 means no headers.
    """

    offset: Int64s
    timestamp: Int64s
    key: ByteStrings
    value: ByteStrings
    headers: ByteStrings

    @cached_property
    def fixed_sizes(self) -> Int64s:
        """Bytes of each record that do not depend on its batch: all but its length and deltas."""
        sizes = np.empty(self.offset.size, dtype=np.int64)
        _fixed_sizes(self.key.sizes, self.value.sizes, self.headers.sizes, sizes)
        return sizes

    @cached_property
    def bound(self) -> int:
        """An upper bound of the bytes that the records take."""
        return int(self.fixed_sizes.sum()) + self.offset.size * MAX_OVERHEAD

    @property
    def spans(self) -> RecordSpans:
        """The rows as kernels take them."""
        return RecordSpans(
            self.offset, self.timestamp, self.fixed_sizes, self.key, self.value, self.headers
        )


class BatchPlan(NamedTuple):
    """Batches to write: their headers, and the rows of each.

    The headers' batchLength and crc are set when the batch is written.
    """

    header: npt.NDArray[np.void]  # NATIVE_BATCH_HEADER
    first_row: Int64s  # one more than headers: the last is the number of rows
    position: Int64s | None = None  # of each batch in the log that its records come from


def first_rows(
    rows: RecordRows,
    begins: Mask,
    *,
    batch_size: int,
    batch_records: int,
    base_timestamp: int | None = None,
    sizes: Int64s | None = None,
) -> Int64s:
    """The first row of each batch, and after the last batch the number of rows.

    A batch begins wherever `begins` is set, and where the batch before it is full. A batch of
    several records is at most `batch_size` bytes, uncompressed and with its header, and its offsets
    are within an int32 of each other.

    Args:
        rows: the records
        begins: rows that must begin a batch
        batch_size: the most bytes of a batch
        batch_records: the most records of a batch
        base_timestamp: what timestamps count from; the batch's first timestamp if None
        sizes: the rows' sizes if they are not written as v2 records; `rows.fixed_sizes` if None
    """
    firsts = np.empty(rows.offset.size + 1, dtype=np.int64)
    count, row = _split(
        rows.offset,
        rows.timestamp,
        rows.fixed_sizes if sizes is None else sizes,
        begins,
        batch_size,
        batch_records,
        base_timestamp is not None,
        base_timestamp or 0,
        firsts,
    )
    if row < rows.offset.size:
        raise not_increasing(rows.offset[row], rows.offset[row - 1], row)
    firsts[count] = row
    return firsts[: count + 1]


def not_increasing(offset: int, before: int, row: int) -> InvalidOffsetError:
    """The error for an offset that is not larger than the one before it."""
    return InvalidOffsetError(
        f"offset {offset} is not behind {before} of the record before it: offsets must increase "
        "from record to record",
        row=int(row),
    )


def plain_headers(rows: RecordRows, first_row: Int64s) -> npt.NDArray[np.void]:
    """Headers as a producer without idempotence writes them, all fields taken from the records."""
    headers = np.zeros(first_row.size - 1, dtype=NATIVE_BATCH_HEADER)
    first, last = first_row[:-1], first_row[1:] - 1
    headers["magic"] = 2
    headers["baseOffset"] = rows.offset[first]
    headers["lastOffsetDelta"] = rows.offset[last] - rows.offset[first]
    headers["baseTimestamp"] = rows.timestamp[first]
    headers["recordsCount"] = last + 1 - first
    for name in ("producerId", "producerEpoch", "baseSequence"):
        headers[name] = -1
    if first.size:
        # Leave out rows after the last batch.
        headers["maxTimestamp"] = np.maximum.reduceat(rows.timestamp[: last[-1] + 1], first)
    return headers


@kernel
def _fixed_sizes(key_sizes, value_sizes, headers_sizes, sizes):
    for row in range(sizes.size):
        sizes[row] = (
            np.int64(1)
            + _int32_size(key_sizes[row])
            + max(key_sizes[row], np.int64(0))
            + _int32_size(value_sizes[row])
            + max(value_sizes[row], np.int64(0))
            + max(headers_sizes[row], np.int64(1))
        )


@inlined
def _int32_size(value):
    """The size of a varint, without branches: the processor computes several at a time."""
    rest = zigzag(value)
    return (
        np.int64(1)
        + np.int64(rest >= np.uint64(1 << 7))
        + np.int64(rest >= np.uint64(1 << 14))
        + np.int64(rest >= np.uint64(1 << 21))
        + np.int64(rest >= np.uint64(1 << 28))
    )


@kernel
def _split(
    offset, timestamp, fixed_sizes, begins,
    most_bytes, most_records, has_base_timestamp, base_timestamp, firsts,
):  # fmt: skip
    """(batches, the row whose offset does not follow the one before it, else the row count)."""
    count, row = 0, 0
    while row < offset.size:
        first, first_offset = row, offset[row]
        first_timestamp = base_timestamp if has_base_timestamp else timestamp[row]
        firsts[count] = first
        count += 1
        size, before = np.int64(RECORD_BATCH_OVERHEAD), np.int64(0)
        if row > 0:
            before = offset[row - 1]
            if first_offset <= before:
                return count, row
        while row < offset.size:
            at = np.uint64(row)  # of an int64, numba tests whether it counts from the end
            here = offset[at]
            # The difference wraps if it does not fit an int64.
            delta = here - first_offset
            if row > first and (here <= before or begins[at] or not 0 <= delta <= MAX_INT32):
                break
            body, timestamp_delta = fixed_sizes[at], timestamp[at] - first_timestamp
            large = zigzag(timestamp_delta) | zigzag(delta)
            if large < np.uint64(0x4000) and _TWO_BYTES <= body < _MOST_TWO_BYTES:
                # As below, for most records: without branches.
                size += np.int64(4) + body
                size += np.int64(zigzag(timestamp_delta) >= np.uint64(0x80))
                size += np.int64(zigzag(delta) >= np.uint64(0x80))
            else:
                body += varlong_size(timestamp_delta) + varlong_size(delta)
                size += varlong_size(body) + body
            if row > first and (size > most_bytes or row - first >= most_records):
                break
            before = here
            row += 1
    return count, row
