"""The number of keys, and the keys with the most records: estimates in little memory."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.kernel import kernel
from kafkajit.storage.source import Int64s

# The smallest hashes that are kept. Up to this number of keys the count is exact; above, its
# standard error is 1 / sqrt(16384), 0.8 %.
_KEPT = 1 << 14
# How often hashes come before they are merged into those.
_MOST_LATER = 100
# Keys that are counted one by one; when there are twice as many, the rarer half is forgotten.
_COUNTED = 1 << 16
# The first bytes of a key that are kept to show it.
_NAMED = 400

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_FIRST = np.uint64(0x9E3779B97F4A7C15)

Hashes: TypeAlias = npt.NDArray[np.uint64]


class Distinct:
    """A sketch of the number of different hashes."""

    def __init__(self) -> None:
        self._smallest = np.empty(0, np.uint64)
        self._later: list[Hashes] = []  # that are merged into these later

    def add(self, hashes: Hashes) -> None:
        """Add different hashes. Merging each few into all would take long."""
        if self._smallest.size == _KEPT:
            hashes = hashes[hashes < self._smallest[-1]]
        if hashes.size:
            self._later.append(hashes)
        if sum(map(len, self._later)) >= _KEPT or len(self._later) >= _MOST_LATER:
            self._merged()

    def add_all(self, other: Distinct) -> None:
        """Add the hashes of another sketch."""
        self.add(other._merged())

    def _merged(self) -> Hashes:
        """The smallest hashes."""
        if self._later:
            self._smallest = np.unique(np.concatenate([self._smallest, *self._later]))[:_KEPT]
            self._later = []
        return self._smallest

    @property
    def number(self) -> int:
        """The number of different hashes; an estimate above 16,384."""
        smallest = self._merged()
        if smallest.size < _KEPT:
            return int(smallest.size)
        return round((_KEPT - 1) * 2.0**64 / float(smallest[-1]))

    @property
    def error(self) -> float:
        """The standard error of `number`, as a share of it."""
        return 0.0 if self._merged().size < _KEPT else 1 / math.sqrt(_KEPT)


class Keys:
    """A sketch of the keys of a topic's records.

    >>> keys = Keys()
    >>> keys.add(pa.array([b"a", b"b", None, b"a"], pa.binary()), partition=0)
    >>> keys.add(pa.array([b"a"], pa.binary()), partition=1)
    >>> keys.all.number, keys.by_partition.number, keys.hottest(1)
    (2, 3, [(b'a', 3)])
    """

    def __init__(self) -> None:
        self.all = Distinct()
        self.by_partition = Distinct()  # a key in two partitions counts twice
        self._counts: dict[int, int] = {}
        self._names: dict[int, bytes] = {}

    def add(self, keys: pa.Array, partition: int) -> None:
        """Count these keys of a partition, or of a copy of one, without NULLs."""
        keys = keys.drop_null().cast(pa.large_binary())
        if not len(keys):
            return
        hashes, rows, counts = np.unique(_hashes(keys), return_index=True, return_counts=True)
        self.all.add(hashes)
        placed = np.empty_like(hashes)
        _place(hashes, partition, placed)
        self.by_partition.add(placed)
        for hash_, row, count in zip(hashes.tolist(), rows.tolist(), counts.tolist(), strict=True):
            if hash_ in self._counts:
                self._counts[hash_] += count
            else:
                self._counts[hash_] = count
                self._names[hash_] = keys[row].as_py()[:_NAMED]
        if len(self._counts) > 2 * _COUNTED:
            self._forget()

    def add_all(self, other: Keys) -> None:
        """Count the keys of another sketch."""
        self.all.add_all(other.all)
        self.by_partition.add_all(other.by_partition)
        for hash_, count in other._counts.items():
            self._counts[hash_] = self._counts.get(hash_, 0) + count
            self._names.setdefault(hash_, other._names[hash_])
        if len(self._counts) > 2 * _COUNTED:
            self._forget()

    def hottest(self, most: int) -> list[tuple[bytes, int]]:
        """The first bytes of the keys with the most records, and how many were counted."""
        ranked = sorted(self._counts.items(), key=lambda each: (-each[1], self._names[each[0]]))
        return [(self._names[hash_], count) for hash_, count in ranked[:most]]

    def _forget(self) -> None:
        kept = sorted(self._counts.items(), key=lambda each: -each[1])[:_COUNTED]
        self._counts = dict(kept)
        self._names = {hash_: self._names[hash_] for hash_ in self._counts}


def _hashes(keys: Any) -> Hashes:
    _, offsets, content = keys.buffers()
    places: Int64s = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    bytes_ = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    hashes = np.empty(len(keys), np.uint64)
    _hash(bytes_, places, hashes)
    return hashes


@kernel
def _hash(content, places, hashes):
    """A hash of each value: its bytes in words of eight, each mixed in as in SplitMix64."""
    for row in range(hashes.size):
        start, end = places[row], places[row + 1]
        state = _FIRST ^ np.uint64(end - start)
        word = np.uint64(0)
        for position in range(start, end):
            word = (word << np.uint64(8)) | np.uint64(content[position])
            if (position - start) & 7 == 7:
                state = _mixed(state ^ word)
                word = np.uint64(0)
        hashes[row] = _mixed(state ^ word)


@kernel
def _place(hashes, partition, placed):
    """Another hash for each, in which the partition is mixed."""
    mark = _mixed(np.uint64(partition) + _FIRST)
    for row in range(hashes.size):
        placed[row] = _mixed(hashes[row] ^ mark)


@kernel
def _mixed(word):
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))
