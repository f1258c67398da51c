"""Kernels that read the primitive types of Kafka's protocol, and the reasons why they may fail.

A kernel returns what it read, the position after it, and a reason, or -1 if all is well.
"""

from __future__ import annotations

import numpy as np

from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import read_int32
from kafkajit.topics.programs import STRING

# Why a message is malformed.
UNDERFLOW = 0
VARINT = 1
NULL = 2
STRING_SIZE = 3
BYTES_SIZE = 4
COUNT = 5
NEGATIVE_SIZE = 6
WRONG_TAG = 7
NEWER = 8
DEPTH = 9


@inlined
def read_size(content, p, end, is_compact, code):
    """(size, p, reason, number) of a string, bytes or an array; a size of -1 is null."""
    if is_compact != 0:
        size, p, reason = read_unsigned_varint(content, p, end)
        if reason >= 0:
            return np.int64(0), p, reason, size
        return to_int32(size - 1), p, reason, np.int64(0)
    width = 2 if code == STRING else 4
    if p + width > end:
        return np.int64(0), p, np.int64(UNDERFLOW), np.int64(0)
    size = read_int16(content, p) if width == 2 else read_int32(content, p)
    return size, p + width, np.int64(-1), np.int64(0)


@kernel
def read_unsigned_varint(content, p, end):
    """(value as Java's int, position after it, reason)."""
    if p < end and content[p] < 0x80:
        return np.int64(content[p]), p + 1, np.int64(-1)
    value = np.int64(0)
    for i in range(5):
        if p >= end:
            return value, p, np.int64(UNDERFLOW)
        byte = np.int64(content[p])
        p += 1
        if i == 4 and byte >= 0x80:
            # Java sign-extends the byte.
            return (value | (byte - 0x100) << 28) & 0xFFFFFFFF, p, np.int64(VARINT)
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            break
    return to_int32(value), p, np.int64(-1)


@inlined
def to_int32(value):
    """The low 32 bits, with their sign."""
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@inlined
def to_int16(value):
    """The low 16 bits, with their sign."""
    return ((value & 0xFFFF) ^ 0x8000) - 0x8000


@inlined
def read_int16(content, p):
    """A big-endian int16, as an int64, unchecked."""
    number = np.int64(content[p]) << 8 | np.int64(content[p + 1])
    return (number ^ 0x8000) - 0x8000
