"""Rows → messages of v0 and v1, plain or compressed in sets (LegacyRecord).

A plain message is a batch of its own. A set is a message that holds compressed messages. In v1
their offsets count from 0, and the set has the latest of their timestamps. In v0 offsets are
absolute, and messages have no timestamps.
"""

from __future__ import annotations

import numpy as np

from kafkajit.format.layout import (
    COMPRESSION_CODEC_MASK,
    KEY_SIZE_OFFSET_V0,
    KEY_SIZE_OFFSET_V1,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_V0,
    MAGIC_V1,
    MESSAGE_ATTRIBUTES_OFFSET,
    MESSAGE_CRC_OFFSET,
    MESSAGE_OVERHEAD_V0,
    MESSAGE_OVERHEAD_V1,
    MESSAGE_TIMESTAMP_OFFSET,
    TIMESTAMP_TYPE_MASK,
)
from kafkajit.format.message_checksum import crc32
from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import copy_bytes, write_int32, write_int64


@kernel
def write_messages(spans, header, first, behind, out, w):
    """Write the messages of one batch; the position after them.

    `out` must have WIDE bytes of room after that position.
    """
    offset, timestamp = spans.offset, spans.timestamp
    key_data, key_starts, key_sizes = spans.key
    value_data, value_starts, value_sizes = spans.value
    magic, attributes = np.int64(header["magic"]), np.int64(header["attributes"])
    base_offset = np.int64(0)
    if attributes & COMPRESSION_CODEC_MASK != 0:
        attributes = np.int64(0)
        if magic == MAGIC_V1:
            base_offset = offset[first]
    is_log_append_time = attributes & TIMESTAMP_TYPE_MASK != 0
    for row in range(first, behind):
        start = w
        stamp = header["maxTimestamp"] if is_log_append_time else timestamp[row]
        w = _put_head(out, w, magic, offset[row] - base_offset, attributes, stamp)
        w = _put_field(out, w, key_data, key_starts[row], key_sizes[row])
        w = _put_field(out, w, value_data, value_starts[row], value_sizes[row])
        _finish_message(out, start, w)
    return w


@kernel
def message_set_overhead(magic):
    """Bytes of a set in addition to its compressed messages."""
    return MESSAGE_OVERHEAD_V0 if magic == MAGIC_V0 else MESSAGE_OVERHEAD_V1


@kernel
def finish_message_set(offset, timestamp, header, first, behind, out, position, end):
    """Write the head of the message that holds a set already written."""
    stamp = header["maxTimestamp"]
    if header["attributes"] & TIMESTAMP_TYPE_MASK == 0:
        for row in range(first, behind):
            stamp = timestamp[row] if row == first else max(stamp, timestamp[row])
    magic, attributes = np.int64(header["magic"]), np.int64(header["attributes"])
    w = _put_head(out, position, magic, offset[behind - 1], attributes, stamp)
    write_int32(out, w, np.int64(-1))  # no key
    write_int32(out, w + 4, end - w - 8)
    _finish_message(out, position, end)


@inlined
def _put_head(out, w, magic, offset, attributes, timestamp):
    """Write everything before the key size, except size and checksum."""
    known = np.int64(COMPRESSION_CODEC_MASK)
    if magic != MAGIC_V0:
        known |= TIMESTAMP_TYPE_MASK
        write_int64(out, w + MESSAGE_TIMESTAMP_OFFSET, timestamp)
    write_int64(out, w, offset)
    out[w + MAGIC_OFFSET] = magic
    out[w + MESSAGE_ATTRIBUTES_OFFSET] = attributes & known
    return w + (KEY_SIZE_OFFSET_V0 if magic == MAGIC_V0 else KEY_SIZE_OFFSET_V1)


@inlined
def _put_field(out, w, data, start, size):
    size = max(size, np.int64(-1))
    write_int32(out, w, size)
    w += 4
    if size > 0:
        copy_bytes(out, w, data, start, size)
        w += size
    return w


@inlined
def _finish_message(out, position, end):
    write_int32(out, position + LOG_OVERHEAD - 4, end - position - LOG_OVERHEAD)
    write_int32(
        out, position + MESSAGE_CRC_OFFSET, np.int64(crc32(out, position + MAGIC_OFFSET, end))
    )
