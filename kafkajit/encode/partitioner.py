"""Keys → the partitions that Kafka's producers put their records in.

The partition is the key's murmur2 hash without its sign bit, modulo the number of partitions. Every
client that follows Java's computes the same. Records without a key have no such partition: each
client spreads them in its own way. Answers to BuiltInPartitioner.partitionForKey and Utils.murmur2
of Kafka 4.1.1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.encode.batch_plan import ByteStrings
from kafkajit.kernel import kernel

NO_KEY = -1

_SEED = np.uint64(0x9747B28C)
_FACTOR = np.uint64(0x5BD1E995)
_LOW = np.uint64(0xFFFFFFFF)
_POSITIVE = np.uint64(0x7FFFFFFF)


def partitions_of(
    keys: ByteStrings, partitions: int | npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The partition of each key, given one number of partitions or one per key; NO_KEY for null.

    >>> from kafkajit.encode.rows import byte_strings_of
    >>> import pyarrow as pa
    >>> partitions_of(byte_strings_of(pa.array(["a", "b", None]), "key"), 10).tolist()
    [4, 6, -1]
    """
    hashes = np.empty(keys.sizes.size, dtype=np.int64)
    _hash(*keys, hashes)
    return np.where(hashes < 0, NO_KEY, hashes % partitions)


@kernel
def _hash(data, starts, sizes, hashes):
    """The positive hash of each key; NO_KEY for null."""
    for row in range(sizes.size):
        if sizes[row] < 0:
            hashes[row] = NO_KEY
        else:
            hashes[row] = np.int64(_murmur2(data, starts[row], sizes[row]) & _POSITIVE)


@kernel
def _murmur2(data, start, size):
    """murmur2 in uint64, whose lower half is Java's int: a product of two ints fits."""
    hashed = _SEED ^ np.uint64(size) & _LOW
    end = start + (size & ~np.int64(3))
    for position in range(start, end, 4):
        word = np.uint64(data[position]) | np.uint64(data[position + 1]) << np.uint64(8)
        word |= np.uint64(data[position + 2]) << np.uint64(16)
        word |= np.uint64(data[position + 3]) << np.uint64(24)
        word = word * _FACTOR & _LOW
        word ^= word >> np.uint64(24)
        hashed = hashed * _FACTOR & _LOW ^ word * _FACTOR & _LOW
    rest = size & np.int64(3)
    if rest > 0:
        for byte in range(rest):
            hashed ^= np.uint64(data[end + byte]) << np.uint64(8 * byte)
        hashed = hashed * _FACTOR & _LOW
    hashed ^= hashed >> np.uint64(13)
    hashed = hashed * _FACTOR & _LOW
    return hashed ^ hashed >> np.uint64(15)
