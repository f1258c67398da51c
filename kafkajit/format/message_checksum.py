"""CRC-32 of messages, zlib's: v0 and v1 have one for each message or compressed set.

Messages are small, and a call of zlib's costs as much as 500 bytes of one, so a kernel goes over
all of them. Where the processor can multiply without carries, it folds sixteen bytes at a time into
the next sixteen, until only those are left (Gopal and others, Intel, 2009); they and what is no
whole block are taken in eight bytes at a time, with a table for each of the eight (slicing-by-8).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.format.layout import MAGIC_OFFSET
from kafkajit.kernel import HAS_CRC32_FOLD, crc32_fold, inlined, kernel, read_int64
from kafkajit.source import Bytes

_POLYNOMIAL = 0xEDB88320  # reflected
_BYTE = np.uint64(0xFF)


def message_checksums(
    content: Bytes, positions: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    """Computed CRC-32 of each message, from its magic to its end."""
    computed = np.empty(positions.size, dtype=np.uint32)
    _checksums(content, positions + MAGIC_OFFSET, ends, computed)
    return computed


def _tables() -> npt.NDArray[np.uint32]:
    """What a byte does to the sum: at once, and with one to seven bytes behind it."""
    tables = np.zeros((8, 256), dtype=np.uint32)
    tables[0] = [_over_zero_bits(byte, 8) for byte in range(256)]
    for behind in range(1, 8):
        before = tables[behind - 1]
        tables[behind] = before >> np.uint32(8) ^ tables[0][before & 0xFF]
    return tables


def _over_zero_bits(crc: int, bits: int) -> int:
    for _ in range(bits):
        crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc


_TABLES = _tables()
# x to the power of 160 and of 96, modulo the polynomial: what moves the first and the second half
# of a block of 128 bits over the next. A reflected product is one bit short, hence the shift.
_ONE = 1 << 31
_LOW_OVER = np.uint64(_over_zero_bits(_ONE, 128 + 32) << 1)
_HIGH_OVER = np.uint64(_over_zero_bits(_ONE, 128 - 32) << 1)
_BLOCK = 16


@kernel
def _checksums(content, starts, ends, computed):
    for row in range(starts.size):
        computed[row] = crc32(content, starts[row], ends[row])


@kernel
def crc32(content, position, end):
    """Zlib's CRC-32 of these bytes."""
    crc = np.uint64(0xFFFFFFFF)
    if HAS_CRC32_FOLD and position + 2 * _BLOCK <= end:
        blocks = (end - position) // _BLOCK
        low, high = crc32_fold(crc, content, position, blocks, _LOW_OVER, _HIGH_OVER)
        crc = _take(_take(np.uint64(0), low), high)
        position += blocks * _BLOCK
    while position + 8 <= end:
        crc = _take(crc, np.uint64(read_int64(content, position)))
        position += 8
    while position < end:
        byte = np.uint64(content[position])
        crc = np.uint64(_TABLES[0, (crc ^ byte) & _BYTE]) ^ crc >> np.uint64(8)
        position += 1
    return np.uint32(crc ^ np.uint64(0xFFFFFFFF))


@inlined
def _take(crc, word):
    """The sum after eight bytes more."""
    return np.uint64(
        _TABLES[7, (word >> np.uint64(56) ^ crc) & _BYTE]
        ^ _TABLES[6, (word >> np.uint64(48) ^ crc >> np.uint64(8)) & _BYTE]
        ^ _TABLES[5, (word >> np.uint64(40) ^ crc >> np.uint64(16)) & _BYTE]
        ^ _TABLES[4, (word >> np.uint64(32) ^ crc >> np.uint64(24)) & _BYTE]
        ^ _TABLES[3, word >> np.uint64(24) & _BYTE]
        ^ _TABLES[2, word >> np.uint64(16) & _BYTE]
        ^ _TABLES[1, word >> np.uint64(8) & _BYTE]
        ^ _TABLES[0, word & _BYTE]
    )
