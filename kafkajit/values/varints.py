"""Varints of values, for kernels that may read some bytes behind their end."""

from __future__ import annotations

import numpy as np

from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import read_word, trailing_zeros

HIGH_BITS = np.int64(-0x7F7F7F7F7F7F7F80)  # 0x80 in each byte
_LOW_BITS = np.int64(0x7F7F7F7F7F7F7F7F)


@inlined
def zigzag(raw):
    """The signed number of a varint by ZigZag."""
    return np.int64(np.uint64(raw) >> np.uint64(1)) ^ -(raw & 1)


@inlined
def is_int(number):
    """Whether a number fits 32 bits."""
    return -0x80000000 <= number <= 0x7FFFFFFF


@inlined
def word_varint(word, stop):
    """The unsigned value of a varint that ends within a word, at the lowest bit of `stop`."""
    word &= (stop ^ (stop - 1)) & _LOW_BITS
    word = word & 0x007F007F007F007F | (word & 0x7F007F007F007F00) >> 1
    word = word & 0x00003FFF00003FFF | (word & 0x3FFF00003FFF0000) >> 2
    return word & 0x0FFFFFFF | (word & 0x0FFFFFFF00000000) >> 4


@kernel
def longer_varint(content, p):
    """(unsigned value, position behind it) of a varint of more than two bytes.

    The position is negative if the varint has too many bits. Up to eight bytes are read as one
    word, without a branch for each byte: the sizes of numbers are hard to guess.
    """
    word = read_word(content, p)
    stop = ~word & HIGH_BITS
    if stop != 0:
        return word_varint(word, stop), p + (trailing_zeros(stop) >> 3) + 1
    raw = np.int64(0)
    for i in range(10):
        byte = np.int64(content[p + i])
        raw |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return (raw, p + i + 1) if i < 9 or byte <= 1 else (raw, -p - 10)
    return raw, -p - 10


@kernel
def read_varint(content, p, end):
    """A varint, unsigned; minus the position if it is malformed."""
    if p >= end:
        return np.int64(0), -max(p, np.int64(1))
    raw = np.int64(content[p])
    p += 1
    if raw >= 0x80:
        byte = np.int64(content[p])
        raw = raw & 0x7F | (byte & 0x7F) << 7
        p += 1
        if byte >= 0x80:
            raw, p = longer_varint(content, p - 2)
    return (raw, p) if p <= end else (raw, -p)
