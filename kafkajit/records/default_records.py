"""Records of format v2: where each one's key, value and headers stand, its offset and timestamp.

Answers to Kafka's DefaultRecord.readFrom and DefaultRecordBatch's iterators: the same reading
order, the same checks, the same words when a check fails.

    length          varint    of everything after this field
    attributes      int8      unused
    timestampDelta  varlong   to the batch's baseTimestamp
    offsetDelta     varint    to the batch's baseOffset
    keyLength       varint    negative: null
    key
    valueLength     varint    negative: null
    value
    headersCount    varint
    headers         keyLength varint, key, valueLength varint (negative: null), value; each

Nothing is copied here: a record is eight numbers (RECORD), and the columns that somebody asked for
are gathered from them afterwards. Two kernels do the reading. `_read_plain` goes from record to
record without looking back as long as everything is as expected; where it is not, or the bytes'
end is near, `_read_checked` reads that one record exactly as Java would and says what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafkajit.errors import (
    HEADER_COUNT_PAST_END,
    INVALID_STRUCTURE,
    LENGTH_VARINT_TOO_LONG,
    NEGATIVE_HEADER_COUNT,
    NEGATIVE_HEADER_KEY_SIZE,
    NEGATIVE_RECORDS_COUNT,
    OK,
    PREMATURE_EOF,
    RECORD_PAST_BATCH,
    RECORD_PAST_STREAM,
    RECORDS_REMAINING,
    WRONG_RECORD_SIZE,
)
from kafkajit.format.layout import MAX_RECORD_OVERHEAD, MIN_RECORD_SIZE
from kafkajit.format.varint import (
    MAX_VARINT_SIZE,
    TOO_LONG,
    read_varint,
    read_varlong,
    varint_rest,
    varlong_rest,
    varlong_size,
)
from kafkajit.kernel import kernel
from kafkajit.source import Bytes

# What the kernels need to know of a batch. Positions are in the array that holds its records.
EXTENT = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("count", np.int64),
        ("baseOffset", np.int64),
        ("baseTimestamp", np.int64),
        ("logAppendTime", np.int64),  # for every record, where isLogAppendTime
        ("isLogAppendTime", np.int8),
        ("isCompressed", np.int8),
        ("magic", np.int8),
    ],
    align=True,
)

# What they find. A size is -1 for null, the position then that of the next field.
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

# The plain reader wants this much behind a record's start and again behind its key.
_ROOM_BEFORE_KEY = MAX_RECORD_OVERHEAD + MAX_VARINT_SIZE
_ROOM_BEFORE_VALUE = 2 * MAX_VARINT_SIZE


@dataclass(frozen=True)
class Reading:
    """Records read, batch by batch, and what stopped the reading, if anything did."""

    buffer: npt.NDArray[np.void]  # RECORD, to be used again
    records: npt.NDArray[np.void]  # the part of it that holds the good ones
    counts: npt.NDArray[np.int64]  # of them in each batch
    status: int
    a: int
    b: int
    batch: int  # of the record that was not read


def read_default_records(
    content: Bytes, extents: npt.NDArray[np.void], records: npt.NDArray[np.void] | None = None
) -> Reading:
    """Every record of the batches, in order, into `records` where that is large enough.

    Stops at the first record that Kafka would refuse; those before it stand.
    """
    room = (extents["end"] - extents["start"]) // MIN_RECORD_SIZE + 1
    capacity = int(np.clip(extents["count"], 0, room).sum())
    if records is None or records.size < capacity:
        records = np.empty(max(capacity, 1), dtype=RECORD)
    counts = np.zeros(extents.size, dtype=np.int64)
    found, status, a, b, batch = _read_batches(content, extents, records, counts)
    return Reading(records, records[:found], counts, status, a, b, batch)


def record_size_in_bytes(
    offset_delta: npt.ArrayLike,
    timestamp_delta: npt.ArrayLike,
    key_size: npt.ArrayLike,
    value_size: npt.ArrayLike,
    headers_count: npt.ArrayLike = 0,
    headers_size: npt.ArrayLike = 0,
) -> npt.NDArray[np.int32]:
    """DefaultRecord.sizeInBytes of each row: the record with its length.

    Sizes are those of the bytes, negative for null. `headers_size` is what the headers take
    without their count (see `header_size_in_bytes`).

    >>> record_size_in_bytes([0, 1], [0, 7], [3, -1], [100, 0]).tolist()
    [112, 7]
    """
    columns = np.broadcast_arrays(
        offset_delta, timestamp_delta, key_size, value_size, headers_count, headers_size
    )
    table = np.stack([np.ravel(column) for column in columns]).astype(np.int64)
    sizes = np.empty(table.shape[1], dtype=np.int32)
    _record_sizes(table, sizes)
    return sizes.reshape(columns[0].shape)


def header_size_in_bytes(
    key_size: npt.ArrayLike, value_size: npt.ArrayLike
) -> npt.NDArray[np.int32]:
    """What each header takes inside a record; a negative value size is null.

    >>> header_size_in_bytes([5, 5], [3, -1]).tolist()
    [10, 7]
    """
    columns = np.broadcast_arrays(key_size, value_size)
    table = np.stack([np.ravel(column) for column in columns]).astype(np.int64)
    sizes = np.empty(table.shape[1], dtype=np.int32)
    _header_sizes(table, sizes)
    return sizes.reshape(columns[0].shape)


@kernel
def _read_batches(content, extents, records, counts):
    """(records found, status, a, b, batch where it stopped)."""
    batch, record, found = np.int64(0), np.int64(0), np.int64(0)
    position = np.int64(0)
    while batch < extents.size:
        if record == 0:
            position = extents[batch]["start"]
        batch, record, found, position = _read_plain(
            content, extents, batch, record, found, position, records, counts
        )
        if batch == extents.size:
            break
        extent = extents[batch]
        if extent["count"] < 0:
            return found, NEGATIVE_RECORDS_COUNT, extent["count"], np.int64(extent["magic"]), batch
        after, status, a, b = _read_checked(content, position, extent, records, found)
        if status == OK and record == extent["count"] - 1 and after != extent["end"]:
            status = RECORDS_REMAINING
        if status != OK:
            return found, status, a, b, batch
        found += 1
        record += 1
        counts[batch] = record
        position = after
        if record == extent["count"]:
            batch += 1
            record = np.int64(0)
    return found, OK, np.int64(0), np.int64(0), batch


@kernel
def _read_plain(content, extents, batch, record, found, position, records, counts):
    """Read on from a record of a batch; stop before the first that is not plain.

    Reads a bounded way past a record's end, never past `content`: `stop` is compared afterwards.
    """
    last_start = content.size - _ROOM_BEFORE_KEY
    last_value = content.size - _ROOM_BEFORE_VALUE
    while batch < extents.size:
        end = extents[batch]["end"]
        count = extents[batch]["count"]
        base_offset = extents[batch]["baseOffset"]
        base_timestamp = extents[batch]["baseTimestamp"]
        append_time = extents[batch]["logAppendTime"]
        is_append_time = extents[batch]["isLogAppendTime"] != 0
        if count < 0:
            return batch, record, found, position
        while record < count:
            p = position
            if p > last_start:
                return batch, record, found, position

            length = np.int64(content[p])
            p += 1
            if length >= 0x80:
                length, p = varint_rest(content, p, length)
                if p < 0:
                    return batch, record, found, position
            stop = p + ((length >> 1) ^ -(length & 1))
            p += 1  # attributes

            delta = np.int64(content[p])
            p += 1
            if delta >= 0x80:
                delta, p = varlong_rest(content, p, delta)
                if p < 0:
                    return batch, record, found, position
            timestamp_delta = ((delta >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(delta & 1)

            delta = np.int64(content[p])
            p += 1
            if delta >= 0x80:
                delta, p = varint_rest(content, p, delta)
                if p < 0:
                    return batch, record, found, position
            offset_delta = (delta >> 1) ^ -(delta & 1)

            size = np.int64(content[p])
            p += 1
            if size >= 0x80:
                size, p = varint_rest(content, p, size)
                if p < 0:
                    return batch, record, found, position
            key = p
            key_size = (size >> 1) ^ -(size & 1)
            if key_size > 0:
                p += key_size
            if p > last_value:
                return batch, record, found, position

            size = np.int64(content[p])
            p += 1
            if size >= 0x80:
                size, p = varint_rest(content, p, size)
                if p < 0:
                    return batch, record, found, position
            value = p
            value_size = (size >> 1) ^ -(size & 1)
            if value_size > 0:
                p += value_size
            if stop > end or p >= stop:
                return batch, record, found, position

            headers_count = np.int64(content[p])
            p += 1
            headers = p
            if headers_count != 0:
                headers_count, headers, p = _skip_headers(content, p, stop, headers_count)
            if p != stop or (record == count - 1 and stop != end):
                return batch, record, found, position

            records[found]["offset"] = base_offset + offset_delta
            records[found]["timestamp"] = (
                append_time if is_append_time else base_timestamp + timestamp_delta
            )
            records[found]["key"] = key
            records[found]["keySize"] = max(key_size, np.int64(-1))
            records[found]["value"] = value
            records[found]["valueSize"] = max(value_size, np.int64(-1))
            records[found]["headers"] = headers
            records[found]["headersCount"] = headers_count
            found += 1
            record += 1
            counts[batch] = record
            position = stop
        batch += 1
        record = np.int64(0)
        if batch < extents.size:
            position = extents[batch]["start"]
    return batch, record, found, position


@kernel
def _skip_headers(content, position, stop, first):
    """(count, where the first header is, where the last ends); -1 for that where not plain."""
    count, p = first, position
    if count >= 0x80:
        if stop - p < MAX_VARINT_SIZE:
            return np.int64(0), np.int64(0), np.int64(-1)
        count, p = varint_rest(content, p, count)
        if p < 0:
            return np.int64(0), np.int64(0), np.int64(-1)
    count = (count >> 1) ^ -(count & 1)
    headers = p
    if count < 0:
        return np.int64(0), np.int64(0), np.int64(-1)
    for _ in range(count):
        size, p = read_varint(content, p, stop)
        if p < 0 or size < 0 or size > stop - p:
            return np.int64(0), np.int64(0), np.int64(-1)
        p += size
        size, p = read_varint(content, p, stop)
        if p < 0 or size > stop - p:
            return np.int64(0), np.int64(0), np.int64(-1)
        p += max(size, np.int64(0))
    return count, headers, p


@kernel
def _read_checked(content, position, extent, records, found):
    """(position behind the record, status, a, b): DefaultRecord.readFrom, check for check.

    An uncompressed record is read from the batch's buffer, so its fields may run past its length
    before that is noticed; a compressed one is read from a buffer of just its length.
    """
    zero = np.int64(0)
    end = extent["end"]
    compressed = extent["isCompressed"] != 0
    length, p = read_varint(content, position, end)
    if p == TOO_LONG:
        return zero, PREMATURE_EOF if compressed else LENGTH_VARINT_TOO_LONG, zero, zero
    if p < 0 or (compressed and length < 0):
        return zero, PREMATURE_EOF, zero, zero
    if length > end - p:
        return zero, RECORD_PAST_STREAM if compressed else RECORD_PAST_BATCH, length, end - p
    start = p
    limit = start + length if compressed else end

    p += 1  # attributes
    if p > limit:
        return zero, INVALID_STRUCTURE, zero, zero
    timestamp_delta, p = read_varlong(content, p, limit)
    if p < 0:
        return zero, INVALID_STRUCTURE, zero, zero
    offset_delta, p = read_varint(content, p, limit)
    if p < 0:
        return zero, INVALID_STRUCTURE, zero, zero
    key_size, key = read_varint(content, p, limit)
    if key < 0 or key_size > limit - key:
        return zero, INVALID_STRUCTURE, zero, zero
    value_size, value = read_varint(content, key + max(key_size, zero), limit)
    if value < 0 or value_size > limit - value:
        return zero, INVALID_STRUCTURE, zero, zero
    headers_count, p = read_varint(content, value + max(value_size, zero), limit)
    if p < 0:
        return zero, INVALID_STRUCTURE, zero, zero
    if headers_count < 0:
        return zero, NEGATIVE_HEADER_COUNT, headers_count, zero
    if headers_count > limit - p:
        return zero, HEADER_COUNT_PAST_END, headers_count, zero
    headers = p
    for _ in range(headers_count):
        size, p = read_varint(content, p, limit)
        if p >= 0 and size < 0:
            return zero, NEGATIVE_HEADER_KEY_SIZE, size, zero
        if p < 0 or size > limit - p:
            return zero, INVALID_STRUCTURE, zero, zero
        size, p = read_varint(content, p + size, limit)
        if p < 0 or size > limit - p:
            return zero, INVALID_STRUCTURE, zero, zero
        p += max(size, zero)
    if p - start != length:
        return zero, WRONG_RECORD_SIZE, length, p - start

    records[found]["offset"] = extent["baseOffset"] + offset_delta
    if extent["isLogAppendTime"] != 0:
        records[found]["timestamp"] = extent["logAppendTime"]
    else:
        records[found]["timestamp"] = extent["baseTimestamp"] + timestamp_delta
    records[found]["key"] = key
    records[found]["keySize"] = max(key_size, np.int64(-1))
    records[found]["value"] = value
    records[found]["valueSize"] = max(value_size, np.int64(-1))
    records[found]["headers"] = headers
    records[found]["headersCount"] = headers_count
    return p, OK, zero, zero


@kernel
def _record_sizes(table, sizes):
    for i in range(sizes.size):
        body = 1 + varlong_size(table[1, i]) + varlong_size(table[0, i])
        body += _sized(table[2, i]) + _sized(table[3, i])
        body += varlong_size(table[4, i]) + table[5, i]
        sizes[i] = varlong_size(body) + body


@kernel
def _header_sizes(table, sizes):
    for i in range(sizes.size):
        sizes[i] = _sized(table[0, i]) + _sized(table[1, i])


@kernel
def _sized(size):
    """Bytes of a field with its length in front; null is a length of -1."""
    return varlong_size(max(size, np.int64(-1))) + max(size, np.int64(0))
