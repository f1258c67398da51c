"""Numbers of JSON: their text → an integer or the nearest float64.

A decimal of up to 19 digits becomes the nearest double with one or two multiplications of 64 bits
by a power of five, as Lemire describes in "Number Parsing at a Gigabyte per Second" (2021). The few
that this cannot decide are left to the careful reader.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import multiply_high

MOST_DIGITS = 19  # that always fit a uint64
_LEAST, _MOST = -342, 308  # exponents of ten of a double
_EXACT = 22  # 10**22 and all smaller powers are doubles
_INDEX = (1 << 62) - 1  # an index that LLVM knows not to count from the end
UNDECIDED = np.uint64(0xFFFFFFFFFFFFFFFF)  # the bits of a NaN
_MANTISSA = 52
_DROPPED = 64 - _MANTISSA - 3
_LOW_BITS = np.uint64(2 ** (64 - _MANTISSA - 3) - 1)
_HIDDEN = np.uint64(1 << _MANTISSA)
_SIGN = np.uint64(1 << 63)


@functools.cache
def powers() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64]]:
    """The upper 128 bits of the powers of five from -342 on; the powers of ten that are exact."""
    table = []
    for exponent in range(_LEAST, _MOST + 1):
        power = 5 ** abs(exponent)
        if exponent >= 0:
            bits = power << 128 >> power.bit_length()
        else:
            # Rounded up; the bits are those of the reciprocal.
            z = (power - 1).bit_length()
            bits = (1 << z + 127) // power + 1
            if exponent < -27:
                bits = (1 << 2 * z + 128) // power + 1
                bits >>= bits.bit_length() - 128
        table += [bits >> 64, bits & (1 << 64) - 1]
    found = np.array(table, dtype=np.uint64)
    found.setflags(write=False)
    tens = np.array([10.0**exponent for exponent in range(_EXACT + 1)])
    tens.setflags(write=False)
    return found, tens


@kernel
def scan_number(content, p, end):
    """A number: (position behind it, digits as uint64, how many, exponent of ten, is it whole).

    The position is negative, minus that of the fault, if it is not a number. Digits beyond 19 are
    not among those returned, but they are counted. "Whole" is a number without a fraction and an
    exponent.
    """
    digits = np.uint64(0)
    count = np.int64(0)
    exponent = np.int64(0)
    if content[p] == 0x2D:
        p += 1
    if p >= end:
        return -p, digits, count, exponent, False
    first = np.int64(content[p & _INDEX]) - 0x30
    if first == 0:
        p += 1
    elif 0 < first <= 9:
        while p < end:
            digit = np.int64(content[p & _INDEX]) - 0x30
            if digit < 0 or digit > 9:
                break
            digits = digits * np.uint64(10) + np.uint64(digit)
            count += 1
            p += 1
            if count == MOST_DIGITS:
                break
        while p < end and 0x30 <= content[p & _INDEX] <= 0x39:
            count += 1
            p += 1
    else:
        return -p, digits, count, exponent, False
    is_whole = True
    if p < end and content[p] == 0x2E:
        is_whole = False
        p += 1
        start = p
        while p < end:
            digit = np.int64(content[p & _INDEX]) - 0x30
            if digit < 0 or digit > 9:
                break
            if count < MOST_DIGITS:
                digits = digits * np.uint64(10) + np.uint64(digit)
            count += np.int64(digits != 0 or count > 0)
            p += 1
        if p == start:
            return -p, digits, count, exponent, False
        exponent = start - p
    if p < end and content[p & _INDEX] | 0x20 == 0x65:
        is_whole = False
        p += 1
        is_negative = False
        if p < end and (content[p] == 0x2B or content[p] == 0x2D):
            is_negative = content[p] == 0x2D
            p += 1
        start = p
        power = np.int64(0)
        while p < end:
            digit = np.int64(content[p & _INDEX]) - 0x30
            if digit < 0 or digit > 9:
                break
            if power < 1_000_000_000:
                power = power * 10 + digit
            p += 1
        if p == start:
            return -p, digits, count, exponent, False
        exponent += -power if is_negative else power
    return p, digits, count, exponent, is_whole


@kernel
def double_bits(digits, exponent, is_negative, fives):
    """The bits of the double nearest to digits * 10**exponent, or UNDECIDED."""
    sign = _SIGN if is_negative else np.uint64(0)
    if digits == 0:
        return sign
    if exponent < _LEAST or exponent > _MOST:
        return UNDECIDED
    zeros = _leading_zeros(digits)
    digits <<= np.uint64(zeros)
    at = (exponent - _LEAST) << 1 & _INDEX
    low = digits * fives[at]
    high = multiply_high(digits, fives[at])
    if high & _LOW_BITS == _LOW_BITS:
        more = multiply_high(digits, fives[at + 1])
        low += more
        high += np.uint64(1) if more > low else np.uint64(0)
        if low == UNDECIDED:
            return UNDECIDED
    upper = high >> np.uint64(63)
    shift = upper + np.uint64(_DROPPED)
    mantissa = high >> shift
    power = ((217706 * exponent) >> 16) + 63 + np.int64(upper) - zeros + 1023
    if power <= 0 or power >= 0x7FE:
        return UNDECIDED
    is_near = low <= np.uint64(1) and -4 <= exponent <= 23
    if is_near and mantissa & np.uint64(3) == np.uint64(1) and mantissa << shift == high:
        # Halfway between two doubles: the even one.
        mantissa &= ~np.uint64(1)
    mantissa += mantissa & np.uint64(1)
    mantissa >>= np.uint64(1)
    if mantissa >= _HIDDEN << np.uint64(1):
        mantissa = _HIDDEN
        power += 1
    return sign | np.uint64(power) << np.uint64(_MANTISSA) | mantissa & (_HIDDEN - np.uint64(1))


@inlined
def _leading_zeros(number):
    """The zero bits above the highest one of a uint64 that is not 0."""
    zeros = np.int64(0)
    for bits in (32, 16, 8, 4, 2, 1):
        if number >> np.uint64(64 - bits) == 0:
            zeros += bits
            number <<= np.uint64(bits)
    return zeros
