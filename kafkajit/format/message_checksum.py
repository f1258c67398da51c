"""CRC-32 of messages, as zlib computes it: v0 and v1 store one for each message or compressed set.

Messages are small, and a call of zlib's costs as much as 500 bytes of one, so a kernel handles all
of them. If the processor can multiply without carries, the kernel folds sixteen bytes at a time
into the next sixteen, until only those are left (Gopal and others, Intel, 2009). Otherwise it takes
them eight at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.format.crc import over_zero_bits, slicing_tables, take_bytes, take_word
from kafkajit.format.layout import MAGIC_OFFSET
from kafkajit.kernel import kernel
from kafkajit.kernel.checksum_instructions import HAS_CRC32_FOLD, crc32_fold
from kafkajit.storage.source import Bytes, Int64s

POLYNOMIAL = 0xEDB88320  # reflected


def message_checksums(content: Bytes, positions: Int64s, ends: Int64s) -> npt.NDArray[np.uint32]:
    """Compute the CRC-32 of each message, from its magic to its end."""
    computed = np.empty(positions.size, dtype=np.uint32)
    _checksums(content, positions + MAGIC_OFFSET, ends, computed)
    return computed


_TABLES = slicing_tables(POLYNOMIAL)
# x to the power of 160 and of 96, modulo the polynomial: they move the first and the second half of
# a block of 128 bits over the next block. A reflected product is one bit short, hence the shift.
_ONE = 1 << 31
_LOW_OVER = np.uint64(over_zero_bits(POLYNOMIAL, _ONE, 128 + 32) << 1)
_HIGH_OVER = np.uint64(over_zero_bits(POLYNOMIAL, _ONE, 128 - 32) << 1)
_BLOCK = 16


def _heads() -> npt.NDArray[np.uint64]:
    """For each number of bytes before the first that counts: a block of masks, two of flips.

    Zeros at the beginning change nothing. To begin a sum with all bits set is the same as to flip
    the first four bytes.
    """
    rows = []
    for before in range(_BLOCK):
        kept = (1 << 128) - (1 << 8 * before)
        flipped = 0xFFFFFFFF << 8 * before
        rows += [kept, kept >> 64, *(flipped >> 64 * i for i in range(4))]
    return np.array([row & 0xFFFFFFFFFFFFFFFF for row in rows], dtype=np.uint64)


_HEADS = _heads()
_WORDS_OF_HEAD = 6


@kernel
def _checksums(content, starts, ends, computed):
    for row in range(starts.size):
        computed[row] = crc32(content, starts[row], ends[row])


@kernel
def crc32(content, position, end):
    """Compute zlib's CRC-32 of the bytes from `position` to `end`."""
    before = -(end - position) & (_BLOCK - 1)
    all_ones = np.uint64(0xFFFFFFFF)
    if HAS_CRC32_FOLD and position >= before and end - position >= 2 * _BLOCK:
        # In whole blocks that end where the bytes do.
        start = position - before
        head = before * _WORDS_OF_HEAD
        low, high = crc32_fold(
            content, start, (end - start) // _BLOCK, _HEADS, head, _LOW_OVER, _HIGH_OVER
        )
        crc = take_word(take_word(np.uint64(0), low, _TABLES), high, _TABLES)
    else:
        crc = take_bytes(all_ones, content, position, end, _TABLES)
    return np.uint32(crc ^ all_ones)
