"""Reads the records of formats v0 and v1: single messages, and compressed sets.

Answers to Kafka's LegacyRecord and AbstractLegacyRecordBatch with its DeepRecordsIterator. A
message is an entry of a log:

    offset      int64
    size        int32   of everything after this field
    crc         uint32  CRC-32 of everything from magic to the end
    magic       int8    0 or 1
    attributes  int8    codec, and in v1 the type of timestamp
    timestamp   int64   in v1
    keySize     int32   negative: null
    key
    valueSize   int32   negative: null
    value

The value of a compressed message is a set: more entries, one after the other; a partial entry at
the end is ignored. In v0 their offsets are those of the log. In v1 they count from the first, and
the last one has the offset of the message around them, unless a client wrote 0 there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.errors import (
    EMPTY_MESSAGE_SET,
    INNER_MAGIC,
    INNER_MESSAGE_TOO_SMALL,
    INVALID_MESSAGE,
    NESTED_COMPRESSION,
    OK,
    WRONG_WRAPPER_OFFSET,
)
from kafkajit.format.layout import (
    BATCH_LENGTH_OFFSET,
    COMPRESSION_CODEC_MASK,
    KEY_SIZE_OFFSET_V0,
    KEY_SIZE_OFFSET_V1,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_V0,
    MAGIC_V1,
    MESSAGE_ATTRIBUTES_OFFSET,
    MESSAGE_OVERHEAD_V0,
    MESSAGE_TIMESTAMP_OFFSET,
    MIN_ENTRY_SIZE,
    TIMESTAMP_TYPE_MASK,
)
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import read_int32, read_int64
from kafkajit.records.batches import Batches
from kafkajit.records.columns import ColumnMemory, Reading
from kafkajit.storage.source import Bytes, Int64s

# Returned instead of the position of a value.
IS_NULL = -1
IS_NOWHERE = -2


def read_message_sets(
    content: Bytes,
    batches: Batches,
    starts: Int64s,
    ends: Int64s,
    memory: ColumnMemory,
    *,
    lazy: bool = False,
) -> tuple[Reading, Int64s]:
    """Read every record of messages and sets, in order, into columns; also each one's first offset.

    `starts` and `ends` are the positions of their entries: a message itself, or the messages of its
    set. Stops at the first message that Kafka would refuse; the columns hold those before it.

    With `lazy` neither sizes nor the formats in a set are checked, as Kafka's iterator does not: a
    key or value may end past its message, and is IS_NOWHERE if not even its size is in it.
    """
    rows = np.where(batches.is_message_set, (ends - starts) // MESSAGE_OVERHEAD_V0 + 1, 1)
    records = memory.records(int(rows.sum()))
    first_offsets = np.zeros(starts.size, dtype=np.int64)
    counts = np.zeros(starts.size, dtype=np.int64)
    found, *stopped = _find_records(
        content, batches.header, starts, ends, np.int64(lazy), records, first_offsets, counts
    )
    columns = memory.gathered(content, records[:found])
    return Reading(columns, int(found), counts, *map(int, stopped)), first_offsets


def value_extents(
    content: Bytes, positions: Int64s, ends: Int64s, magic: npt.NDArray[np.integer]
) -> tuple[Int64s, Int64s]:
    """The start and end of each message's value; the start may be IS_NULL or IS_NOWHERE."""
    starts = np.empty(positions.size, dtype=np.int64)
    value_ends = np.empty(positions.size, dtype=np.int64)
    _locate_values(content, positions, ends, magic.astype(np.int64), starts, value_ends)
    return starts, value_ends


@kernel
def _locate_values(content, positions, ends, magic, starts, value_ends):
    for i in range(positions.size):
        _, _, value, size = _locate(content, positions[i], ends[i], magic[i])
        starts[i] = min(value, IS_NULL) if size < 0 else value
        value_ends[i] = value + max(size, np.int64(0))


@kernel
def _locate(content, position, end, magic):
    """(key, its size, value, its size) of a message; the value is IS_NOWHERE if they do not fit."""
    nothing = np.int64(0), np.int64(-1), np.int64(IS_NOWHERE), np.int64(-1)
    p = position + (KEY_SIZE_OFFSET_V0 if magic == MAGIC_V0 else KEY_SIZE_OFFSET_V1)
    if p + 4 > end:
        return nothing
    key_size = max(np.int64(read_int32(content, p)), np.int64(-1))
    key = p + 4
    p = key + max(key_size, np.int64(0))
    if p + 4 > end:
        return nothing
    value_size = max(np.int64(read_int32(content, p)), np.int64(-1))
    if p + 4 + value_size > end:
        return nothing
    return key, key_size, p + 4, value_size


@kernel
def _locate_sizes(content, position, end, magic):
    """Locate (key, its size, value, its size) of a message; IS_NOWHERE for a place outside of it.

    A size past the end is there as it stands.
    """
    key, value = np.int64(IS_NOWHERE), np.int64(IS_NOWHERE)
    key_size, value_size = np.int64(-1), np.int64(-1)
    p = position + (KEY_SIZE_OFFSET_V0 if magic == MAGIC_V0 else KEY_SIZE_OFFSET_V1)
    if p + 4 <= end:
        key_size = max(np.int64(read_int32(content, p)), key_size)
        key = p + 4
        p = key + max(key_size, np.int64(0))
        if p + 4 <= end:
            value_size = max(np.int64(read_int32(content, p)), value_size)
            value = p + 4
    return key, key_size, value, value_size


@kernel
def _find_records(content, headers, starts, ends, lazy, records, first_offsets, counts):
    """Find records: (records found, status, a, b, batch where it stopped)."""
    found, zero = np.int64(0), np.int64(0)
    for batch in range(starts.size):
        header = headers[batch]
        start, end = starts[batch], ends[batch]
        is_set = header["attributes"] & COMPRESSION_CODEC_MASK != 0
        is_log_append_time = header["attributes"] & TIMESTAMP_TYPE_MASK != 0
        base = zero
        if is_set:
            end, count, last, status = _measure_set(content, start, end)
            if status == OK and count == 0:
                status = EMPTY_MESSAGE_SET
            if status != OK:
                return found, status, zero, zero, batch
            if header["magic"] == MAGIC_V1 and header["baseOffset"] != 0:
                if header["baseOffset"] < last:
                    return found, WRONG_WRAPPER_OFFSET, np.int64(header["baseOffset"]), last, batch
                base = header["baseOffset"] - last
        p = start
        while p < end:
            after = p + LOG_OVERHEAD + read_int32(content, p + BATCH_LENGTH_OFFSET)
            magic = np.int64(np.int8(content[p + MAGIC_OFFSET]))
            if lazy == 0 and magic != MAGIC_V0 and magic != MAGIC_V1:
                return found, INNER_MAGIC, magic, zero, batch
            if is_set and content[p + MESSAGE_ATTRIBUTES_OFFSET] & COMPRESSION_CODEC_MASK:
                return found, NESTED_COMPRESSION, zero, zero, batch
            key, key_size, value, value_size = _locate(content, p, after, magic)
            if value < 0:
                has_timestamp = magic == MAGIC_V0 or p + KEY_SIZE_OFFSET_V1 <= after
                if lazy == 0 or not has_timestamp:
                    return found, INVALID_MESSAGE, after - p, zero, batch
                key, key_size, value, value_size = _locate_sizes(content, p, after, magic)
            record = records[found]
            record["offset"] = read_int64(content, p) + base
            if magic == MAGIC_V0:
                record["timestamp"] = -1
            elif is_log_append_time and magic == MAGIC_V1:
                record["timestamp"] = header["maxTimestamp"]
            else:
                record["timestamp"] = read_int64(content, p + MESSAGE_TIMESTAMP_OFFSET)
            record["key"], record["keySize"] = key, key_size
            record["value"], record["valueSize"] = value, value_size
            record["headers"], record["headersCount"] = p, 0  # no headers: its entry's position
            if counts[batch] == 0:
                first_offsets[batch] = record["offset"]
            counts[batch] += 1
            found += 1
            p = after
    return found, OK, zero, zero, np.int64(starts.size)


@kernel
def _measure_set(content, position, end):
    """(end of the last whole entry of a set, how many there are, the last one's offset, status)."""
    count, last = np.int64(0), np.int64(0)
    while end - position >= LOG_OVERHEAD:
        size = np.int64(read_int32(content, position + BATCH_LENGTH_OFFSET))
        if size < MIN_ENTRY_SIZE:
            return position, count, last, INNER_MESSAGE_TOO_SMALL
        if size > end - position - LOG_OVERHEAD:
            break
        last = read_int64(content, position)
        count += 1
        position += LOG_OVERHEAD + size
    return position, count, last, OK
