"""The least that any reader has to read of a segment of v2: the varints of every record.

Their values only decide where to go on. Nothing is copied, kept or checked; the segment is sound.
"""

from __future__ import annotations

import numba
import numpy as np


# Not a kernel of kafkajit, whose cache does not cover files outside the package.
@numba.njit(nogil=True, error_model="numpy", _nrt=False)
def walk_varints(content, starts, counts):
    """Return (the number of records, a number that depends on all of their varints)."""
    found, sink = np.int64(0), np.int64(0)
    for batch in range(starts.size):
        position = starts[batch]
        for _ in range(counts[batch]):
            if position < 0:  # never true, but LLVM needs the hint: see default_records
                break
            length, position = _varint(content, position)
            end = position + length  # known before the rest is: the next record need not wait
            timestamp_delta, position = _varint(content, position + 1)  # behind the attributes
            offset_delta, position = _varint(content, position)
            key, position = _varint(content, position)
            if key > 0:
                position += key
            value, position = _varint(content, position)
            if value > 0:
                position += value
            headers, position = _varint(content, position)
            sink += timestamp_delta + offset_delta + key + value + headers
            for _ in range(headers):
                name, position = _varint(content, position)
                value, position = _varint(content, position + name)
                if value > 0:
                    position += value
                sink += name + value
            position = end
            found += 1
    return found, sink


# One and two bytes are decoded in place: three times as fast as a call for more than one byte.
@numba.njit(inline="always", error_model="numpy")
def _varint(content, position):
    first = np.int64(content[position])
    if first < 0x80:
        return (first >> 1) ^ -(first & 1), position + 1
    second = np.int64(content[position + 1])
    if second < 0x80:
        raw = (first & 0x7F) | (second << 7)
        return (raw >> 1) ^ -(raw & 1), position + 2
    raw, position = _rest(content, position + 2, (first & 0x7F) | ((second & 0x7F) << 7))
    return (raw >> 1) ^ -(raw & 1), position


@numba.njit(error_model="numpy")
def _rest(content, position, raw):
    shift = np.int64(14)
    while True:
        byte = np.int64(content[position])
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw, position
        shift += 7
