"""CRC-32 of messages, zlib's: v0 and v1 have one for each message or compressed set.

Messages are small, and a call of zlib's costs as much as 500 bytes of one, so a kernel goes over
all of them. Where the processor can multiply without carries, it folds sixteen bytes at a time into
the next sixteen, until only those are left (Gopal and others, Intel, 2009); they and what is no
whole block are taken in eight bytes at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.format.crc import over_zero_bits, slicing_tables, take_bytes, take_word
from kafkajit.format.layout import MAGIC_OFFSET
from kafkajit.kernel import HAS_CRC32_FOLD, crc32_fold, kernel
from kafkajit.source import Bytes

POLYNOMIAL = 0xEDB88320  # reflected


def message_checksums(
    content: Bytes, positions: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    """Computed CRC-32 of each message, from its magic to its end."""
    computed = np.empty(positions.size, dtype=np.uint32)
    _checksums(content, positions + MAGIC_OFFSET, ends, computed)
    return computed


_TABLES = slicing_tables(POLYNOMIAL)
# x to the power of 160 and of 96, modulo the polynomial: what moves the first and the second half
# of a block of 128 bits over the next. A reflected product is one bit short, hence the shift.
_ONE = 1 << 31
_LOW_OVER = np.uint64(over_zero_bits(POLYNOMIAL, _ONE, 128 + 32) << 1)
_HIGH_OVER = np.uint64(over_zero_bits(POLYNOMIAL, _ONE, 128 - 32) << 1)
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
        crc = take_word(take_word(np.uint64(0), low, _TABLES), high, _TABLES)
        position += blocks * _BLOCK
    return np.uint32(take_bytes(crc, content, position, end, _TABLES) ^ np.uint64(0xFFFFFFFF))
