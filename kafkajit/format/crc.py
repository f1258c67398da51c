"""The arithmetic that CRC-32 and CRC-32C share: both are remainders, by different polynomials.

Sums can therefore be combined: the sum of two stretches follows from the sum of each, and the sum
of a stretch from the sums of two beginnings. Zeros change a sum linearly: what they do follows from
what they do to each bit, and twice as many zeros do it twice.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import read_int64

_BYTE = np.uint64(0xFF)
_SIZES = 32  # 2**31 bytes and less

Table = npt.NDArray[np.uint64]


def over_zero_bits(polynomial: int, crc: int, bits: int) -> int:
    """The sum after `bits` zero bits; sum and polynomial are reflected."""
    for _ in range(bits):
        crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
    return crc


def over_zeros(polynomial: int) -> Table:
    """The value of each bit of a sum after 1, 2, 4, … zero bytes: a row for each size."""

    def apply(moved_bits: list[int], value: int) -> int:
        result = 0
        for bit in range(32):
            if value >> bit & 1:
                result ^= moved_bits[bit]
        return result

    rows = [[over_zero_bits(polynomial, 1 << bit, 8) for bit in range(32)]]
    while len(rows) < _SIZES:
        half = rows[-1]
        rows.append([apply(half, value) for value in half])
    return np.array(rows, dtype=np.uint64)


def slicing_tables(polynomial: int) -> Table:
    """The effect of a byte on the sum: at once, and with one to seven bytes behind it."""
    tables = np.zeros((8, 256), dtype=np.uint64)
    tables[0] = [over_zero_bits(polynomial, byte, 8) for byte in range(256)]
    for behind in range(1, 8):
        before = tables[behind - 1]
        tables[behind] = before >> np.uint64(8) ^ tables[0][before & _BYTE]
    return tables


@kernel
def take_bytes(crc, content, position, end, tables):
    """The sum after these bytes, eight at a time (slicing-by-8)."""
    while position + 8 <= end:
        crc = take_word(crc, np.uint64(read_int64(content, position)), tables)
        position += 8
    while position < end:
        byte = np.uint64(content[position])
        crc = tables[0, (crc ^ byte) & _BYTE] ^ crc >> np.uint64(8)
        position += 1
    return crc


@inlined
def take_word(crc, word, tables):
    """The sum after a word of eight bytes, the first byte highest."""
    return (
        tables[7, (word >> np.uint64(56) ^ crc) & _BYTE]
        ^ tables[6, (word >> np.uint64(48) ^ crc >> np.uint64(8)) & _BYTE]
        ^ tables[5, (word >> np.uint64(40) ^ crc >> np.uint64(16)) & _BYTE]
        ^ tables[4, (word >> np.uint64(32) ^ crc >> np.uint64(24)) & _BYTE]
        ^ tables[3, word >> np.uint64(24) & _BYTE]
        ^ tables[2, word >> np.uint64(16) & _BYTE]
        ^ tables[1, word >> np.uint64(8) & _BYTE]
        ^ tables[0, word & _BYTE]
    )


@kernel
def move(crc, size, over):
    """Move a sum over `size` bytes (zlib's crc32_combine).

    `move(a, len(b), over) ^ b` is the sum of a's bytes followed by b's.
    """
    for row in range(over.shape[0]):
        if size >> row & 1:
            moved = np.uint64(0)
            for bit in range(32):
                if crc >> np.uint64(bit) & np.uint64(1):
                    moved ^= over[row, bit]
            crc = moved
    return crc
