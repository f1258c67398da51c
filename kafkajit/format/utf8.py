"""Makes bytes valid UTF-8 as Java's `new String(bytes, UTF_8)` does.

Kafka decodes header keys so, and kafka-dump-log keys and values. Java replaces each maximal
malformed part with one U+FFFD, as Python does, with two exceptions. An encoded surrogate (ED A0 80)
counts as one part of three bytes, where Python sees three; and a sequence cut short by the string's
end takes everything with it.
"""

from __future__ import annotations

import numpy as np

from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import copy_bytes

# U+FFFD takes three bytes, and can replace one.
MAX_GROWTH = 3


def java_string(raw: bytes) -> str:
    r"""Decode bytes as Java's `new String(raw, UTF_8)` does.

    >>> java_string(b"caf\xc3\xa9 \xff|\xed\xa0\x80|\xe2\x82")
    'café �|�|�'
    """
    source = np.frombuffer(raw, dtype=np.uint8)
    target = np.empty(MAX_GROWTH * source.size, dtype=np.uint8)
    size = write_replaced(source, 0, source.size, target, 0)
    return target[:size].tobytes().decode()


@kernel
def is_ascii(content, position, size):
    """Whether every byte is ASCII."""
    bits = np.uint8(0)
    for i in range(position, position + size):
        bits |= content[i]
    return bits < 0x80


@kernel
def write_string(content, position, size, target, t):
    """Write bytes as Java would print them, and return where the target goes on."""
    if is_ascii(content, position, size):
        copy_bytes(target, t, content, position, size)
        return t + size
    return write_replaced(content, position, position + size, target, t)


@kernel
def write_replaced(content, position, end, target, t):
    """As write_string, one character at a time."""
    p = position
    while p < end:
        p, t = write_character(content, p, end, target, t)
    return t


@inlined
def write_character(content, p, end, target, t):
    """Write the character at p or its replacement: (position of the next one, where to go on)."""
    size = sequence_size(content, p, end)
    if size > 0:
        for i in range(size):
            target[t + i] = content[p + i]
        t += size
        p += size
    else:
        target[t] = 0xEF
        target[t + 1] = 0xBF
        target[t + 2] = 0xBD
        t += 3
        p -= size
    return p, t


@kernel
def sequence_size(content, p, end):
    """The bytes of the character at p; negative: the bytes that one U+FFFD replaces."""
    first = np.int64(content[p])
    left = end - p
    if first < 0x80:
        return np.int64(1)
    if first < 0xC2 or first > 0xF4:
        return np.int64(-1)
    if left == 1:
        return np.int64(-1)
    second = np.int64(content[p + 1])
    if second & 0xC0 != 0x80:
        return np.int64(-1)
    if first < 0xE0:
        return np.int64(2)

    if first < 0xF0:
        if first == 0xE0 and second < 0xA0:
            return np.int64(-1)
        if left == 2:
            return np.int64(-2)
        if content[p + 2] & 0xC0 != 0x80:
            return np.int64(-2)
        if first == 0xED and second >= 0xA0:
            return np.int64(-3)
        return np.int64(3)

    if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second >= 0x90):
        return np.int64(-1)
    for i in range(2, 4):
        if left == i or content[p + i] & 0xC0 != 0x80:
            return np.int64(-i)
    return np.int64(4)


@kernel
def is_text(content, p, end):
    """Whether bytes are UTF-8."""
    while p < end:
        size = sequence_size(content, p, end)
        if size < 0:
            return False
        p += size
    return True
