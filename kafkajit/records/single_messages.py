"""Reads messages of v0 and v1 that are not compressed: checksums and columns in one pass.

A message is a batch of its own, and most are small. To make a header of each, to check all of them
and to read them afterwards takes two and a half times as long. `message_sets` describes the layout
and reads all others, and those at which this kernel stops.
"""

from __future__ import annotations

import numpy as np

from kafkajit.format.layout import (
    KEY_SIZE_OFFSET_V0,
    KEY_SIZE_OFFSET_V1,
    MAGIC_OFFSET,
    MAGIC_V0,
    MESSAGE_CRC_OFFSET,
    MESSAGE_TIMESTAMP_OFFSET,
)
from kafkajit.format.message_checksum import crc32
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import LINE, WIDE, copy_bytes, prefetch, read_int32, read_int64
from kafkajit.records.columns import ColumnMemory, Columns
from kafkajit.records.gather import put_view
from kafkajit.storage.source import Bytes, Int64s

# A message's bytes are loaded this long before it is read: 32 ms instead of 38 for 143 MB.
_AHEAD = 2048


def read_single_messages(
    content: Bytes, positions: Int64s, ends: Int64s, memory: ColumnMemory, check_crcs: bool
) -> tuple[Columns, int]:
    """Read messages into columns, up to the first that is not sound; and count them."""
    size = int(ends[-1] - positions[0])
    for roomy in (False, True):
        columns = memory.columns(positions.size, size, roomy=roomy, has_headers=False)
        count = int(_read_messages(content, positions, ends, np.int64(check_crcs), columns))
        if count == positions.size:
            break
    memory.learn(columns, count, size)
    return columns, count


@kernel
def _read_messages(content, positions, ends, check_crcs, columns):
    """Read messages; return how many, up to the first that is not sound or does not fit."""
    offsets, timestamps, fields = columns.offset, columns.timestamp, columns.fields
    key_offsets, key_data, key_validity, key_views = columns.key
    value_offsets, value_data, value_validity, value_views = columns.value
    wants_offset, wants_timestamp = offsets.size > 0, timestamps.size > 0
    wants_key, wants_value = key_offsets.size > 0, value_offsets.size > 0
    views_key, views_value = key_views.size > 0, value_views.size > 0
    wants_fields = fields.size > 0
    key_room = np.int64(key_data.size - WIDE)
    value_room = np.int64(value_data.size - WIDE)
    key_end, value_end = np.int64(0), np.int64(0)
    for row in range(positions.size):
        position, end = positions[row], ends[row]
        prefetch(content, position + _AHEAD)
        prefetch(content, position + _AHEAD + LINE)
        if check_crcs:
            stored = read_int32(content, position + MESSAGE_CRC_OFFSET) & 0xFFFFFFFF
            if np.int64(crc32(content, position + MAGIC_OFFSET, end)) != stored:
                return row
        is_v0 = content[position + MAGIC_OFFSET] == MAGIC_V0
        p = position + (KEY_SIZE_OFFSET_V0 if is_v0 else KEY_SIZE_OFFSET_V1)
        if p + 4 > end:
            return row
        offset = read_int64(content, position)
        timestamp = np.int64(-1)
        if not is_v0:
            timestamp = read_int64(content, position + MESSAGE_TIMESTAMP_OFFSET)
        if wants_offset:
            offsets[row] = offset
        if wants_timestamp:
            timestamps[row] = timestamp

        size = read_int32(content, p)
        p += 4
        if wants_fields:
            fields[row]["offset"] = offset
            fields[row]["timestamp"] = timestamp
            fields[row]["key"] = p
            fields[row]["keySize"] = max(size, np.int64(-1))
        if size > end - p:
            return row
        if views_key:
            put_view(content, p, size, key_views, row)
        if size > 0:
            if wants_key:
                if size > key_room - key_end:
                    return row
                copy_bytes(key_data, key_end, content, p, size)
                key_end += size
            p += size
        elif size < 0 and (wants_key or views_key):
            columns.has_nulls[0] = 1
            key_validity[row >> 3] &= ~(np.uint8(1) << np.uint8(row & 7))
        if wants_key:
            key_offsets[row + 1] = key_end

        if p + 4 > end:
            return row
        size = read_int32(content, p)
        p += 4
        if wants_fields:
            fields[row]["value"] = p
            fields[row]["valueSize"] = max(size, np.int64(-1))
            fields[row]["headers"] = position  # no headers: its entry's position
            fields[row]["headersCount"] = 0
        if size > end - p:
            return row
        if views_value:
            put_view(content, p, size, value_views, row)
        if size > 0:
            if wants_value:
                if size > value_room - value_end:
                    return row
                copy_bytes(value_data, value_end, content, p, size)
                value_end += size
        elif size < 0 and (wants_value or views_value):
            columns.has_nulls[1] = 1
            value_validity[row >> 3] &= ~(np.uint8(1) << np.uint8(row & 7))
        if wants_value:
            value_offsets[row + 1] = value_end
    return positions.size
