"""Values → JSON as Jackson writes it: strings, base64, UUIDs, and numbers with a fraction.

Kernels write into an array of bytes and return the position after what they wrote. Each documents
the room it needs, which the caller has to provide.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from kafkajit.format.utf8 import write_character
from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import WIDE, copy_bytes, copy_wide, read_int64

# A control character becomes six bytes.
MAX_JSON_GROWTH = 6
UUID_TEXT = 24  # its 22 characters in quotes

_QUOTE = ord('"')
_BACKSLASH = ord("\\")
_EACH = 0x0101010101010101  # a byte, in each of a word's
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_STANDARD = np.frombuffer(_BASE64 + b"+/", dtype=np.uint8)
_URL_SAFE = np.frombuffer(_BASE64 + b"-_", dtype=np.uint8)
_HEX = np.frombuffer(b"0123456789ABCDEF", dtype=np.uint8)


def _escapes() -> npt.NDArray[np.uint8]:
    """The letter after each byte's backslash; 0 if it is not escaped, u if four digits follow."""
    table = np.zeros(256, dtype=np.uint8)
    table[:32] = ord("u")
    for character, letter in {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}.items():
        table[ord(character)] = ord(letter)
    table[_QUOTE] = _QUOTE
    table[_BACKSLASH] = _BACKSLASH
    return table


_ESCAPES = _escapes()
_UNICODE = ord("u")


@inlined
def is_plain(content, position, size):
    """Whether bytes are ASCII that JSON does not escape.

    It checks eight bytes at a time, the last eight overlapping: 4 ns for a topic's name; byte by
    byte took 12.
    """
    end = position + size
    odd = np.uint8(0)
    if size >= 8:
        bits = np.uint64(0)
        while position < end:
            if position > end - 8:
                position = end - 8
            word = np.uint64(read_int64(content, position))
            quote = word ^ np.uint64(_EACH * _QUOTE)
            backslash = word ^ np.uint64(_EACH * _BACKSLASH)
            # The subtraction sets the high bit of a byte that is too small.
            bits |= word | (word - np.uint64(_EACH * 32)) & ~word
            bits |= (quote - np.uint64(_EACH)) & ~quote
            bits |= (backslash - np.uint64(_EACH)) & ~backslash
            position += 8
        return bits & np.uint64(_EACH * 0x80) == 0
    for i in range(position, end):
        byte = content[i]
        odd |= (
            np.uint8(np.uint8(byte - np.uint8(32)) >= 96)
            | np.uint8(byte == _QUOTE)
            | np.uint8(byte == _BACKSLASH)
        )
    return odd == 0


@inlined
def write_json_string(content, position, size, out, w):
    """Write bytes as a JSON string; malformed UTF-8 is decoded as Java does.

    It needs room for MAX_JSON_GROWTH times the size, two quotes, and WIDE bytes after those.
    """
    out[w] = _QUOTE
    w += 1
    if is_plain(content, position, size):
        copy_bytes(out, w, content, position, size)
        w += size
    else:
        w = _write_escaped(content, position, position + size, out, w)
    out[w] = _QUOTE
    return w + 1


@kernel
def _write_escaped(content, p, end, out, w):
    while p < end:
        byte = content[p]
        if byte < 0x80:
            letter = _ESCAPES[byte]
            if letter == 0:
                out[w] = byte
                w += 1
            else:
                out[w] = _BACKSLASH
                out[w + 1] = letter
                w += 2
                if letter == _UNICODE:
                    out[w] = 0x30
                    out[w + 1] = 0x30
                    out[w + 2] = _HEX[byte >> 4]
                    out[w + 3] = _HEX[byte & 0xF]
                    w += 4
            p += 1
            continue
        p, w = write_character(content, p, end, out, w)
    return w


@kernel
def write_base64(content, position, size, out, w):
    """Write bytes as base64 in quotes: four characters for each three bytes, rounded up."""
    out[w] = _QUOTE
    w += 1
    p, end = position, position + size
    while p + 3 <= end:
        group = np.int64(content[p]) << 16 | np.int64(content[p + 1]) << 8 | content[p + 2]
        out[w] = _STANDARD[group >> 18]
        out[w + 1] = _STANDARD[group >> 12 & 63]
        out[w + 2] = _STANDARD[group >> 6 & 63]
        out[w + 3] = _STANDARD[group & 63]
        w += 4
        p += 3
    if p < end:
        group = np.int64(content[p]) << 16
        if p + 1 < end:
            group |= np.int64(content[p + 1]) << 8
        out[w] = _STANDARD[group >> 18]
        out[w + 1] = _STANDARD[group >> 12 & 63]
        out[w + 2] = _STANDARD[group >> 6 & 63] if p + 1 < end else 0x3D
        out[w + 3] = 0x3D
        w += 4
    out[w] = _QUOTE
    return w + 1


@kernel
def write_uuid(content, position, out, w):
    """Write 16 bytes as Kafka's Uuid.toString does, in quotes: UUID_TEXT bytes."""
    out[w] = _QUOTE
    w += 1
    high = np.uint64(read_int64(content, position))
    low = np.uint64(read_int64(content, position + 8))
    for i in range(10):  # six bits each, of the first 60
        out[w + i] = _URL_SAFE[np.int64(high >> np.uint64(58 - 6 * i)) & 63]
    out[w + 10] = _URL_SAFE[np.int64((high & np.uint64(15)) << np.uint64(2) | low >> np.uint64(62))]
    for i in range(10):
        out[w + 11 + i] = _URL_SAFE[np.int64(low >> np.uint64(56 - 6 * i)) & 63]
    out[w + 21] = _URL_SAFE[np.int64(low << np.uint64(4)) & 63]
    out[w + 22] = _QUOTE
    return w + 23


# Python computes Java's text of a double. A table keeps the texts computed so far: a hash of the
# double's bits is the row, which holds the bits, the text's size and the text.
_DOUBLES = 256
_DOUBLE_ROW = 8 + 1 + WIDE


def new_doubles() -> npt.NDArray[np.uint8]:
    """A new table of the texts of doubles; it has the text of 0."""
    doubles = np.zeros(_DOUBLES * _DOUBLE_ROW, dtype=np.uint8)
    learn_double(doubles, 0)
    return doubles


def learn_double(doubles: npt.NDArray[np.uint8], bits: int) -> None:
    """Put a double's text into the table; it may replace another."""
    raw = (bits & (2**64 - 1)).to_bytes(8)
    text = java_double(struct.unpack(">d", raw)[0]).encode()
    at = double_row(np.int64(bits)) * _DOUBLE_ROW
    row = raw + bytes([len(text)]) + text.ljust(WIDE, b"\0")
    doubles[at : at + _DOUBLE_ROW] = np.frombuffer(row, dtype=np.uint8)


def java_double(value: float) -> str:
    """JSON of a number as Jackson writes it, by Java's Double.toString.

    >>> [java_double(value) for value in (1024.0, 0.001, 1e-4, 1e7, 123456789.5, -0.0)]
    ['1024.0', '0.001', '1.0E-4', '1.0E7', '1.234567895E8', '-0.0']
    """
    if not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else f'"{"-" * (value < 0)}Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = repr(value)
    # Java writes at least two digits, and among those the nearest.
    if len(Decimal(shortest).as_tuple().digits) == 1 and float(f"{value:.1e}") == value:
        shortest = f"{value:.1e}"
    sign, digits, exponent = Decimal(shortest).as_tuple()
    text = "".join(map(str, digits))
    scale = len(text) - 1 + int(exponent)
    return f"{'-' * sign}{text[0]}.{text[1:].rstrip('0') or '0'}E{scale}"


@kernel
def double_row(bits):
    """The row of the table that a double shares with others."""
    mixed = np.uint64(np.int64(bits)) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> np.uint64(56))


@inlined
def write_double(doubles, bits, out, w):
    """Write a double; -1 if the table does not have its text."""
    at = double_row(bits) * _DOUBLE_ROW
    if read_int64(doubles, at) != bits:
        return np.int64(-1)
    copy_wide(out, w, doubles, at + 9)
    return w + np.int64(doubles[at + 8])


@inlined
def write_null(out, w):
    """Write null, unchecked."""
    out[w] = 0x6E
    out[w + 1] = 0x75
    out[w + 2] = 0x6C
    out[w + 3] = 0x6C
    return w + 4


_BOOLS = np.frombuffer(b"falsetrue", dtype=np.uint8)


@kernel
def write_bool(out, w, value):
    """Write true or false, unchecked."""
    first, size = (5, 4) if value else (0, 5)
    for i in range(size):
        out[w + i] = _BOOLS[first + i]
    return w + size
