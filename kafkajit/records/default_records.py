"""Reads the records of format v2: offset, timestamp, key, value and headers of each.

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
    headers         each: keyLength varint, key, valueLength varint (negative: null), value

One kernel reads, and fills the columns that the caller asked for as it goes. `read_plain` goes
from record to record without looking back, as long as everything is as expected; it reads the last
records of a file in a copy with room behind it. Where it stops, `_read_checked` reads one record
exactly as Java does, and reports what is wrong. That kernel is compiled when a record is wrong.

Over 400 lines because `read_plain` is one loop: a call for each field costs
a tenth of the time, as its docstring says.
"""

from __future__ import annotations

from dataclasses import replace

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
    varint_before,
    varint_rest,
    varlong_rest,
)
from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import WIDE, copy_wide
from kafkajit.records.columns import (
    ColumnMemory,
    Columns,
    Reading,
    put_headers,
)
from kafkajit.records.gather import SHORT_VIEW, put_view
from kafkajit.storage.source import Bytes

# What the kernels need to know about a batch. Positions are in the array that holds its records.
EXTENT = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("count", np.int64),
        ("baseOffset", np.int64),
        ("baseTimestamp", np.int64),
        ("logAppendTime", np.int64),  # the timestamp of every record, if isLogAppendTime
        ("isLogAppendTime", np.int8),
        ("isCompressed", np.int8),
        ("magic", np.int8),
    ],
    align=True,
)

# The plain reader needs this much room behind a record's start, and again behind its key.
_ROOM_BEFORE_KEY = MAX_RECORD_OVERHEAD + MAX_VARINT_SIZE
_ROOM_BEFORE_VALUE = 2 * MAX_VARINT_SIZE
# With this much room behind a batch, it never stops for lack of room.
ROOM_BEHIND = _ROOM_BEFORE_KEY + WIDE


def read_default_records(
    content: Bytes, extents: npt.NDArray[np.void], memory: ColumnMemory
) -> Reading:
    """Read every record of the batches, or of those that `memory` asks for, into columns.

    Stops at the first record that Kafka would refuse; the columns hold those before it.
    """
    if memory.may_hold is None:
        return _read_records(content, extents, memory)
    places = (np.ascontiguousarray(extents[name]) for name in ("start", "end"))
    asked = np.flatnonzero(memory.may_hold(content, *places))
    reading = _read_records(content, extents[asked], memory)
    counts = np.zeros(extents.size, dtype=np.int64)
    counts[asked] = reading.counts
    batch = int(asked[reading.batch]) if reading.batch < asked.size else extents.size
    return replace(reading, counts=counts, batch=batch)


def _read_records(content: Bytes, extents: npt.NDArray[np.void], memory: ColumnMemory) -> Reading:
    sizes = extents["end"] - extents["start"]
    rows = int(np.minimum(np.maximum(extents["count"], 0), sizes // MIN_RECORD_SIZE + 1).sum())
    for roomy in (False, True):
        columns = memory.columns(rows, int(sizes.sum()), roomy=roomy)
        batch, record, found, position = _read_all(content, extents, columns)
        if batch == extents.size:
            break
    memory.learn(columns, found, int(sizes.sum()))
    counts = np.zeros(extents.size, dtype=np.int64)
    counts[:batch] = extents["count"][:batch]
    status, a, b = OK, 0, 0
    if batch < extents.size:
        counts[batch] = record
        status, a, b = _complaint(content, extents[batch], record, position)
    return Reading(columns, found, counts, status, a, b, batch)


def _read_all(
    content: Bytes, extents: npt.NDArray[np.void], columns: Columns
) -> tuple[int, int, int, int]:
    """(batch, record in it, records found, position): where the reading stopped."""
    if not extents.size:
        return 0, 0, 0, 0
    batch, record, found, position = read_plain(
        content, extents, 0, 0, 0, int(extents["start"][0]), columns
    )
    if batch < extents.size and extents["end"][batch] + ROOM_BEHIND > content.size:
        return _read_last(content, extents, batch, record, found, position, columns)
    return batch, record, found, position


def _complaint(content: Bytes, extent: np.void, record: int, position: int) -> tuple[int, int, int]:
    """(status, a, b) for a record that read_plain refused although it had room."""
    if extent["count"] < 0:
        return NEGATIVE_RECORDS_COUNT, int(extent["count"]), int(extent["magic"])
    after, status, a, b = _read_checked(content, position, extent)
    if status == OK:
        assert record == extent["count"] - 1
        assert after != extent["end"]
        return RECORDS_REMAINING, 0, 0
    return int(status), int(a), int(b)


def _read_last(
    content: Bytes,
    extents: npt.NDArray[np.void],
    batch: int,
    record: int,
    found: int,
    position: int,
    columns: Columns,
) -> tuple[int, int, int, int]:
    """As read_plain, for records near the end of the bytes: from a copy with room behind it."""
    copy = np.zeros(max(content.size - position, 0) + ROOM_BEHIND, dtype=np.uint8)
    copy[:-ROOM_BEHIND] = content[position:]
    copy.flags.writeable = False  # like content: else numba compiles the kernel once more
    moved = extents[batch:].copy()
    moved["start"] -= position
    moved["end"] -= position
    whole, record, last, after = read_plain(copy, moved, 0, record, found, 0, columns)
    move_places(columns, found, last, position)
    return batch + whole, record, last, position + after


def move_places(columns: Columns, first: int, behind: int, by: int) -> None:
    """Add to the positions in the bytes that some rows hold."""
    if columns.fields.size:
        for name in ("key", "value", "headers"):
            columns.fields[name][first:behind] += np.int32(by)
    for views in (columns.key.views[first:behind], columns.value.views[first:behind]):
        is_long = (views[:, 0] & 0xFFFFFFFF) > SHORT_VIEW
        views[is_long, 1] += by << 32


@kernel
def read_plain(content, extents, batch, record, found, position, columns):
    """Read on from a record of a batch; stop before the first record that is not plain.

    Writes each field as soon as it is read: a row counts once its record has been read whole, and
    is overwritten until then. Reads a bounded way past a record's end, but never past `content`:
    `stop` is compared afterwards. Varints of two bytes, which most lengths and deltas are, are
    decoded in place: calling varint_rest for them takes 10 % longer over a segment.
    """
    last_start = content.size - _ROOM_BEFORE_KEY
    last_value = content.size - _ROOM_BEFORE_VALUE
    last_wide = content.size - WIDE
    # Short names. Kernels count no references, so looking into the tuple in the loop costs the
    # same: 131 against 123 ms for 2.7 M records, 72 against 75 ms for 0.8 M larger ones.
    offsets, timestamps, fields = columns.offset, columns.timestamp, columns.fields
    key_offsets, key_data, key_validity, key_views = columns.key
    value_offsets, value_data, value_validity, value_views = columns.value
    has_nulls = columns.has_nulls
    wants_offset, wants_timestamp = offsets.size > 0, timestamps.size > 0
    wants_key, wants_value = key_offsets.size > 0, value_offsets.size > 0
    views_key, views_value = key_views.size > 0, value_views.size > 0
    wants_fields = fields.size > 0
    header_offsets = columns.headers.offsets
    wants_headers = header_offsets.size > 0
    header = np.int64(header_offsets[found]) if wants_headers else np.int64(0)
    key_end = np.int64(key_offsets[found]) if wants_key else np.int64(0)
    value_end = np.int64(value_offsets[found]) if wants_value else np.int64(0)
    key_room = np.int64(key_data.size - WIDE)
    value_room = np.int64(value_data.size - WIDE)
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
            # These are never negative, but LLVM has to know: otherwise it checks every index for
            # counting from the array's end, as in Python, which takes a fifth of the time.
            if p < 0 or found < 0 or p > last_start:
                return batch, record, found, position

            length = np.int64(content[p])
            p += 1
            if length >= 0x80:
                second = np.int64(content[p])
                if second < 0x80:
                    length = (length & 0x7F) | (second << 7)
                    p += 1
                else:
                    length, p = varint_rest(content, p, length)
                    if p < 0:
                        return batch, record, found, position
            stop = p + ((length >> 1) ^ -(length & 1))
            if stop > end or stop > last_wide:
                return batch, record, found, position
            p += 1  # attributes

            delta = np.int64(content[p])
            p += 1
            if delta >= 0x80:
                second = np.int64(content[p])
                if second < 0x80:
                    delta = (delta & 0x7F) | (second << 7)
                    p += 1
                else:
                    delta, p = varlong_rest(content, p, delta)
                    if p < 0:
                        return batch, record, found, position
            timestamp = base_timestamp + (((delta >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(delta & 1))
            if is_append_time:
                timestamp = append_time
            if wants_timestamp:
                timestamps[found] = timestamp

            delta = np.int64(content[p])
            p += 1
            if delta >= 0x80:
                second = np.int64(content[p])
                if second < 0x80:
                    delta = (delta & 0x7F) | (second << 7)
                    p += 1
                else:
                    delta, p = varint_rest(content, p, delta)
                    if p < 0:
                        return batch, record, found, position
            offset = base_offset + ((delta >> 1) ^ -(delta & 1))
            if wants_offset:
                offsets[found] = offset

            size = np.int64(content[p])
            p += 1
            if size >= 0x80:
                second = np.int64(content[p])
                if second < 0x80:
                    size = (size & 0x7F) | (second << 7)
                    p += 1
                else:
                    size, p = varint_rest(content, p, size)
                    if p < 0:
                        return batch, record, found, position
            size = (size >> 1) ^ -(size & 1)
            if wants_fields:
                fields[found]["offset"] = offset
                fields[found]["timestamp"] = timestamp
                fields[found]["key"] = p
                fields[found]["keySize"] = max(size, np.int64(-1))
            key_after = key_end
            if views_key:
                if size > stop - p:
                    return batch, record, found, position
                put_view(content, p, size, key_views, found)
            if size > 0:
                if size > stop - p:
                    return batch, record, found, position
                if wants_key:
                    if size > key_room - key_end:
                        return batch, record, found, position
                    _copy(content, p, size, key_data, key_end)
                    key_after += size
                    key_offsets[found + 1] = key_after
                p += size
            elif wants_key or views_key:
                if wants_key:
                    key_offsets[found + 1] = key_end
                if size < 0:
                    has_nulls[0] = 1
                    key_validity[found >> 3] &= ~(np.uint8(1) << np.uint8(found & 7))
            if p > last_value:
                return batch, record, found, position

            size = np.int64(content[p])
            p += 1
            if size >= 0x80:
                second = np.int64(content[p])
                if second < 0x80:
                    size = (size & 0x7F) | (second << 7)
                    p += 1
                else:
                    size, p = varint_rest(content, p, size)
                    if p < 0:
                        return batch, record, found, position
            size = (size >> 1) ^ -(size & 1)
            if wants_fields:
                fields[found]["value"] = p
                fields[found]["valueSize"] = max(size, np.int64(-1))
            value_after = value_end
            if views_value:
                if size > stop - p:
                    return batch, record, found, position
                put_view(content, p, size, value_views, found)
            if size > 0:
                if size > stop - p:
                    return batch, record, found, position
                if wants_value:
                    if size > value_room - value_end:
                        return batch, record, found, position
                    _copy(content, p, size, value_data, value_end)
                    value_after += size
                    value_offsets[found + 1] = value_after
                p += size
            elif wants_value or views_value:
                if wants_value:
                    value_offsets[found + 1] = value_end
                if size < 0:
                    has_nulls[1] = 1
                    value_validity[found >> 3] &= ~(np.uint8(1) << np.uint8(found & 7))
            if p >= stop:
                return batch, record, found, position

            headers_count = np.int64(content[p])
            p += 1
            headers, last_header = p, header
            if headers_count != 0:
                headers_count, headers = _headers_count(content, p, headers_count)
                if headers_count < 0:
                    return batch, record, found, position
                if wants_headers:
                    p, last_header = put_headers(
                        content, headers, stop, headers_count, columns, header
                    )
                else:
                    p = _behind_headers(content, headers, stop, headers_count)
            if wants_headers:
                header_offsets[found + 1] = last_header
            if wants_fields:
                fields[found]["headers"] = headers
                fields[found]["headersCount"] = headers_count
            if p != stop or (record == count - 1 and stop != end):
                return batch, record, found, position

            found += 1
            record += 1
            position = stop
            key_end = key_after
            value_end = value_after
            header = last_header
        batch += 1
        record = np.int64(0)
        if batch < extents.size:
            position = extents[batch]["start"]
    return batch, record, found, position


@inlined
def _copy(content, position, size, target, t):
    """Copy in wide steps; source and target both have room behind the last byte."""
    done = np.int64(0)
    while done < size:
        copy_wide(target, t + done, content, position + done)
        done += WIDE


@kernel
def _headers_count(content, position, first):
    """(count, position of the first header), from the count's first byte; -1 if not plain."""
    count, p = first, position
    if count >= 0x80:
        count, p = varint_rest(content, p, count)
        if p < 0:
            return np.int64(-1), p
    return (count >> 1) ^ -(count & 1), p


@kernel
def _behind_headers(content, position, stop, count):
    """The end of the last of `count` headers; -1 if one of them is not plain."""
    p = position
    for _ in range(count):
        size, p = varint_before(content, p, stop)
        if p < 0 or size < 0 or size > stop - p:
            return np.int64(-1)
        p += size
        size, p = varint_before(content, p, stop)
        if p < 0 or size > stop - p:
            return np.int64(-1)
        p += max(size, np.int64(0))
    return p


@kernel
def _read_checked(content, position, extent):
    """(position behind the record, status, a, b): DefaultRecord.readFrom, check for check.

    An uncompressed record is read from the batch's buffer, so its fields may run past its length
    before that is noticed. A compressed one is read from a buffer of exactly its length.
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
    _, p = read_varlong(content, p, limit)  # timestampDelta
    if p < 0:
        return zero, INVALID_STRUCTURE, zero, zero
    _, p = read_varint(content, p, limit)  # offsetDelta
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

    return p, OK, zero, zero
