"""Strings of JSON: their ends, escapes, base64, dates and times."""

from __future__ import annotations

import numpy as np

from kafkajit.format.utf8 import sequence_size
from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import read_word, trailing_zeros

_INDEX = (1 << 62) - 1  # an index that LLVM knows not to count from the end
_ONES = np.int64(0x0101010101010101)
_HIGH_BITS = np.int64(-0x7F7F7F7F7F7F7F80)  # 0x80 in each byte
_QUOTES = np.int64(0x2222222222222222)
_BACKSLASHES = np.int64(0x5C5C5C5C5C5C5C5C)
_SPACES = np.int64(0x2020202020202020)
_QUOTE, _BACKSLASH, _U = 0x22, 0x5C, 0x75
_ESCAPES = (_QUOTE, _BACKSLASH, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74)
# What a string may be found to have; negative: minus the position of a fault.
PLAIN, ESCAPED = range(2)
MOST_FRACTION = 9


@kernel
def end_of_string(content, p, end):
    """(position of the closing quote, PLAIN or ESCAPED) of a string that begins at p.

    The position is negative, minus that of the fault, if the string is not valid: it has no end, a
    control character, a wrong escape, or bytes that are not UTF-8.
    """
    form = np.int64(PLAIN)
    while p < end:
        word = read_word(content, p)
        quotes = word ^ _QUOTES
        backslashes = word ^ _BACKSLASHES
        # The lowest bit that is set is exact; those above it may not be.
        found = (
            (quotes - _ONES & ~quotes)
            | (backslashes - _ONES & ~backslashes)
            | (word - _SPACES & ~word)
            | word
        ) & _HIGH_BITS
        if found == 0:
            p += 8
            continue
        p += trailing_zeros(found) >> 3
        if p >= end:
            break
        byte = content[p & _INDEX]
        if byte == _QUOTE:
            return p, form
        if byte == _BACKSLASH:
            form = np.int64(ESCAPED)
            size = _escape_size(content, p, end)
            if size < 0:
                return -p, form
            p += size
        elif byte < 0x20:
            return -p, form
        else:
            size = sequence_size(content, p, end)
            if size < 0:
                return -p, form
            p += size
    return -end, form


@kernel
def _escape_size(content, p, end):
    """The bytes of an escape, -1 if it is wrong."""
    if p + 1 >= end:
        return np.int64(-1)
    byte = content[p + 1]
    if byte == _U:
        if p + 6 > end or _hex(content, p + 2) < 0:
            return np.int64(-1)
        return np.int64(6)
    return np.int64(2 if byte in _ESCAPES else -1)


@kernel
def _hex(content, p):
    """Four hexadecimal digits, -1 if they are not."""
    number = np.int64(0)
    for i in range(4):
        byte = np.int64(content[p + i])
        digit = byte - 0x30
        if digit < 0 or digit > 9:
            digit = (byte | 0x20) - 0x61 + 10
            if digit < 10 or digit > 15:
                return np.int64(-1)
        number = number << 4 | digit
    return number


@kernel
def unescape(content, p, end, out, w):
    """Write a string without its escapes: where the output goes on, -1 at half a surrogate pair.

    The string is valid. It takes no more bytes than it has with its escapes.
    """
    while p < end:
        byte = content[p]
        if byte != _BACKSLASH:
            out[w] = byte
            w += 1
            p += 1
            continue
        byte = content[p + 1]
        if byte != _U:
            if byte == 0x62:
                byte = np.uint8(8)
            elif byte == 0x66:
                byte = np.uint8(12)
            elif byte == 0x6E:
                byte = np.uint8(10)
            elif byte == 0x72:
                byte = np.uint8(13)
            elif byte == 0x74:
                byte = np.uint8(9)
            out[w] = byte
            w += 1
            p += 2
            continue
        letter = _hex(content, p + 2)
        p += 6
        if 0xD800 <= letter < 0xE000:
            low = np.int64(0)
            if p + 6 <= end and content[p] == _BACKSLASH and content[p + 1] == _U:
                low = _hex(content, p + 2)
            if letter >= 0xDC00 or low < 0xDC00 or low >= 0xE000:
                return np.int64(-1)
            letter = 0x10000 + ((letter - 0xD800) << 10) + (low - 0xDC00)
            p += 6
        if letter < 0x80:
            out[w] = letter
            w += 1
        elif letter < 0x800:
            out[w] = 0xC0 | letter >> 6
            out[w + 1] = 0x80 | letter & 0x3F
            w += 2
        elif letter < 0x10000:
            out[w] = 0xE0 | letter >> 12
            out[w + 1] = 0x80 | letter >> 6 & 0x3F
            out[w + 2] = 0x80 | letter & 0x3F
            w += 3
        else:
            out[w] = 0xF0 | letter >> 18
            out[w + 1] = 0x80 | letter >> 12 & 0x3F
            out[w + 2] = 0x80 | letter >> 6 & 0x3F
            out[w + 3] = 0x80 | letter & 0x3F
            w += 4
    return w


@kernel
def _sextet(byte):
    """The six bits that a letter of base64 stands for, -1 if it is another letter."""
    if 0x41 <= byte <= 0x5A:
        return byte - 0x41
    if 0x61 <= byte <= 0x7A:
        return byte - 0x61 + 26
    if 0x30 <= byte <= 0x39:
        return byte - 0x30 + 52
    if byte == 0x2B:
        return np.int64(62)
    return np.int64(63 if byte == 0x2F else -1)


@kernel
def write_base64(content, p, end, out, w):
    """Decode base64 with its padding: where the output goes on, -1 if it is not as it should be."""
    if (end - p) % 4 != 0:
        return np.int64(-1)
    while p < end:
        bits = np.int64(0)
        pads = np.int64(0)
        for i in range(4):
            byte = np.int64(content[p + i])
            if byte == 0x3D and p + 4 == end and i >= 2:
                pads += 1
                bits <<= 6
                continue
            sextet = _sextet(byte)
            if sextet < 0 or pads > 0:
                return np.int64(-1)
            bits = bits << 6 | sextet
        if bits & ((1 << 8 * pads) - 1):
            return np.int64(-1)
        for i in range(3 - pads):
            out[w] = bits >> (16 - 8 * i) & 0xFF
            w += 1
        p += 4
    return w


@inlined
def _two(content, p):
    """Two digits, or a number below zero."""
    high, low = np.int64(content[p]) - 0x30, np.int64(content[p + 1]) - 0x30
    return high * 10 + low if 0 <= high <= 9 and 0 <= low <= 9 else np.int64(-1)


BAD_DAY = np.int64(-(2**62))


@kernel
def read_day(content, p, end):
    """The days from 1970 on of a date such as 2024-12-31, or BAD_DAY."""
    if end - p < 10 or content[p + 4] != 0x2D or content[p + 7] != 0x2D:
        return BAD_DAY
    century, rest = _two(content, p), _two(content, p + 2)
    month, day = _two(content, p + 5), _two(content, p + 8)
    if century < 0 or rest < 0 or month < 1 or month > 12 or day < 1:
        return BAD_DAY
    year = century * 100 + rest
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = np.int64(30 + (month + (month >> 3) & 1))
    if month == 2:
        days = np.int64(29 if is_leap else 28)
    if year < 1 or day > days:
        return BAD_DAY
    # Years begin in March here, so that a leap day is the last of its year.
    year -= np.int64(month <= 2)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + day_of_year - 719468


@kernel
def read_moment(content, p, end):
    """The microseconds from 1970 on of a time such as 2024-12-31T23:59:59.5Z, or BAD_DAY.

    Digits behind the microseconds are cut off.
    """
    if end - p < 20:
        return BAD_DAY
    days = read_day(content, p, p + 10)
    if days == BAD_DAY or content[p + 10] != 0x54:
        return BAD_DAY
    hour, minute, second = _two(content, p + 11), _two(content, p + 14), _two(content, p + 17)
    if content[p + 13] != 0x3A or content[p + 16] != 0x3A:
        return BAD_DAY
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return BAD_DAY
    p += 19
    micros = np.int64(0)
    if content[p] == 0x2E:
        p += 1
        start = p
        unit = np.int64(100_000)
        while p < end and 0x30 <= content[p] <= 0x39:
            micros += (np.int64(content[p]) - 0x30) * unit
            unit //= 10
            p += 1
        if p == start or p - start > MOST_FRACTION:
            return BAD_DAY
    offset = np.int64(0)
    if p + 1 == end and content[p] == 0x5A:
        pass
    elif p + 6 == end and (content[p] == 0x2B or content[p] == 0x2D) and content[p + 3] == 0x3A:
        hours, minutes = _two(content, p + 1), _two(content, p + 4)
        if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
            return BAD_DAY
        offset = hours * 60 + minutes
        if content[p] == 0x2D:
            offset = -offset
    else:
        return BAD_DAY
    seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second
    return seconds * 1_000_000 + micros


@kernel
def is_same(content, p, size, names, at):
    """Whether bytes are a name; both have room for a word behind them."""
    done = np.int64(0)
    while size - done >= 8:
        if read_word(content, p + done) != read_word(names, at + done):
            return False
        done += 8
    rest = size - done
    if rest == 0:
        return True
    mask = np.int64((np.uint64(1) << np.uint64(8 * rest)) - np.uint64(1))
    return (read_word(content, p + done) ^ read_word(names, at + done)) & mask == 0


_MIX = np.uint64(0x9E3779B97F4A7C15)


@kernel
def hash_of(content, p, size, seed):
    """A hash of bytes with room for a word behind them."""
    value = seed ^ np.uint64(size)
    done = np.int64(0)
    while done < size:
        word = np.uint64(read_word(content, p + done))
        rest = size - done
        if rest < 8:
            word &= (np.uint64(1) << np.uint64(8 * rest)) - np.uint64(1)
        value = (value ^ word) * _MIX
        value ^= value >> np.uint64(29)
        done += 8
    return np.int64((value * _MIX) >> np.uint64(33))
