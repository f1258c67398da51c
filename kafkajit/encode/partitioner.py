"""Keys → the partitions that Kafka's producers put their records in.

A key's hash is murmur2 without its sign bit, and the partition what is left over when it is divided
by their number: the same in every client that keeps to Java's. Records without a key have no
partition of their own; producers spread them, each in its way. Answers to
BuiltInPartitioner.partitionForKey and Utils.murmur2 of Kafka 4.1.1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.encode.record_writer import Field
from kafkajit.kernel import kernel

NO_KEY = -1

_SEED = np.uint64(0x9747B28C)
_FACTOR = np.uint64(0x5BD1E995)
_LOW = np.uint64(0xFFFFFFFF)
_POSITIVE = np.uint64(0x7FFFFFFF)


def partitions_of(keys: Field, partitions: int | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The partition of each key among so many, of all or of each; NO_KEY where there is none.

    >>> from kafkajit.encode.rows import field_of
    >>> import pyarrow as pa
    >>> partitions_of(field_of(pa.array(["a", "b", None]), "key"), 10).tolist()
    [4, 6, -1]
    """
    hashes = np.empty(keys.sizes.size, dtype=np.int64)
    _hash(*keys, hashes)
    return np.where(hashes < 0, NO_KEY, hashes % partitions)


@kernel
def _hash(data, starts, sizes, hashes):
    """Of each key, positive; NO_KEY where there is none."""
    for row in range(sizes.size):
        if sizes[row] < 0:
            hashes[row] = NO_KEY
        else:
            hashes[row] = np.int64(_murmur2(data, starts[row], sizes[row]) & _POSITIVE)


@kernel
def _murmur2(data, start, size):
    """Java's int in the lower half: products of two of its size fit the whole."""
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
