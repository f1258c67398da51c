"""Kafka's variable-length integers: 7 bits a byte, least significant first, zigzag signed.

A varint is an int32 in 1 to 5 bytes, a varlong an int64 in 1 to 10 (Kafka's ByteUtils). Encodings
longer than needed are accepted, as in Java; a last byte that asks for one more is an error.

Kernels come in two forms. `read_varint` checks every byte against the end. `varint_rest` finishes,
unchecked, a varint whose first byte announced more: fast kernels read the first byte themselves,
because most varints in a log have only that one.
"""

from __future__ import annotations

import numpy as np

from kafkajit.kernel import inlined, kernel

MAX_VARINT_SIZE = 5
MAX_VARLONG_SIZE = 10

# Returned instead of the position behind a varint.
PAST_END = -1
TOO_LONG = -2


@kernel
def varlong_size(value):
    """The bytes of one varlong; for an int32, also those of its varint."""
    rest = zigzag(value)
    if rest < np.uint64(0x4000):
        return np.int64(1) + np.int64(rest >= np.uint64(0x80))
    size = np.int64(2)
    rest >>= np.uint64(14)
    while rest != np.uint64(0):
        rest >>= np.uint64(7)
        size += 1
    return size


@inlined
def zigzag(value):
    """Map small numbers of both signs to small unsigned ones."""
    return np.uint64((value << np.int64(1)) ^ (value >> np.int64(63)))


@kernel
def read_varint(content, position, end):
    """(value, position behind it); the position is PAST_END or TOO_LONG if there is no varint."""
    raw = np.int64(0)
    for i in range(MAX_VARINT_SIZE):
        if position >= end:
            return np.int64(0), np.int64(PAST_END)
        byte = np.int64(content[position])
        position += 1
        raw |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            raw &= 0xFFFFFFFF  # bits of the 5th byte above bit 31 are lost, as in Java
            return (raw >> 1) ^ -(raw & 1), position
    return np.int64(0), np.int64(TOO_LONG)


@kernel
def read_varlong(content, position, end):
    """As read_varint, for an int64."""
    raw = np.uint64(0)
    for i in range(MAX_VARLONG_SIZE):
        if position >= end:
            return np.int64(0), np.int64(PAST_END)
        byte = np.uint64(content[position])
        position += 1
        raw |= (byte & np.uint64(0x7F)) << np.uint64(7 * i)
        if byte < np.uint64(0x80):
            return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1)), position
    return np.int64(0), np.int64(TOO_LONG)


@inlined
def varint_before(content, position, end):
    """As read_varint, with a fast path for a single byte."""
    if 0 <= position < end and content[position] < 0x80:
        raw = np.int64(content[position])
        return (raw >> 1) ^ -(raw & 1), position + 1
    return read_varint(content, position, end)


@kernel
def varint_rest(content, position, first):
    """(unsigned value, position behind it), for a varint whose `first` byte was 0x80 or more.

    Returns early on purpose: with one exit LLVM turns the branches into selects, and the cursor of
    the record loop then waits for every byte (3 times slower over a segment).
    """
    raw = first & 0x7F
    shift = np.int64(7)
    while shift < 35:
        byte = np.int64(content[position])
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw & 0xFFFFFFFF, position
        shift += 7
    return raw, np.int64(TOO_LONG)


@kernel
def varlong_rest(content, position, first):
    """As varint_rest, for an int64; the value's 64 bits are returned as an int64."""
    raw = np.uint64(first & 0x7F)
    shift = np.uint64(7)
    while shift < np.uint64(70):
        byte = np.uint64(content[position])
        position += 1
        raw |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(raw), position
        shift += np.uint64(7)
    return np.int64(raw), np.int64(TOO_LONG)


@inlined
def put_varint(out, w, value):
    """Write a varint or a varlong, unchecked, and return the position behind it."""
    rest = zigzag(value)
    if rest < np.uint64(0x80):  # most are that small, and a loop takes half as long again
        out[w] = np.uint8(rest)
        return w + 1
    if rest < np.uint64(0x4000):
        out[w] = np.uint8(rest & np.uint64(0x7F) | np.uint64(0x80))
        out[w + 1] = np.uint8(rest >> np.uint64(7))
        return w + 2
    while rest >= np.uint64(0x80):
        out[w] = np.uint8(rest & np.uint64(0x7F) | np.uint64(0x80))
        w += 1
        rest >>= np.uint64(7)
    out[w] = np.uint8(rest)
    return w + 1
