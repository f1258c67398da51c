"""CRC-32 of messages, zlib's: v0 and v1 have one for each message or compressed set.

Messages are small, and a call of zlib's costs as much as 500 bytes of one, so a kernel goes over
all of them: eight bytes at a time, with a table for each of the eight (slicing-by-8).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.format.layout import MAGIC_OFFSET
from kafkajit.kernel import kernel
from kafkajit.source import Bytes

_POLYNOMIAL = 0xEDB88320  # reflected


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
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for behind in range(1, 8):
        before = tables[behind - 1]
        tables[behind] = before >> np.uint32(8) ^ tables[0][before & 0xFF]
    return tables


_TABLES = _tables()


@kernel
def _checksums(content, starts, ends, computed):
    for row in range(starts.size):
        computed[row] = crc32(content, starts[row], ends[row])


@kernel
def crc32(content, position, end):
    """Zlib's CRC-32 of these bytes."""
    low, all_ones = np.uint32(0xFF), np.uint32(0xFFFFFFFF)
    crc = all_ones
    while position + 8 <= end:
        crc = (
            _TABLES[7, (crc & low) ^ content[position]]
            ^ _TABLES[6, (crc >> np.uint32(8) & low) ^ content[position + 1]]
            ^ _TABLES[5, (crc >> np.uint32(16) & low) ^ content[position + 2]]
            ^ _TABLES[4, (crc >> np.uint32(24)) ^ content[position + 3]]
            ^ _TABLES[3, content[position + 4]]
            ^ _TABLES[2, content[position + 5]]
            ^ _TABLES[1, content[position + 6]]
            ^ _TABLES[0, content[position + 7]]
        )
        position += 8
    while position < end:
        crc = _TABLES[0, (crc ^ np.uint32(content[position])) & low] ^ (crc >> np.uint32(8))
        position += 1
    return crc ^ all_ones
