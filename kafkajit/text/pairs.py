"""Pairs of offsets in little memory: a log of a few kilobytes may have a hundred million."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kafkajit.format.limits import MAX_INT32
from kafkajit.storage.source import Int64s

Pair = tuple[int, int]


class OffsetPairs:
    """Pairs of offsets in the order in which they were added.

    >>> pairs = OffsetPairs()
    >>> pairs.add(np.array([1, 7]), np.array([3, 9]))
    >>> list(pairs), list(reversed(pairs))
    ([(1, 3), (7, 9)], [(7, 9), (1, 3)])
    """

    def __init__(self) -> None:
        # Offsets of a chunk are near each other: the lowest, and the differences to it.
        self._blocks: list[tuple[int, npt.NDArray[np.int32] | Int64s]] = []

    def add(self, first: Int64s, second: Int64s) -> None:
        """Add pairs of the offsets in two arrays."""
        if not first.size:
            return
        both = np.stack([first, second], axis=1)
        least, most = int(both.min()), int(both.max())
        if most - least <= MAX_INT32:
            self._blocks.append((least, (both - least).astype(np.int32)))
        else:
            self._blocks.append((0, both))

    def extend(self, others: OffsetPairs) -> None:
        """Add other pairs behind these."""
        self._blocks += others._blocks

    def __len__(self) -> int:
        return sum(len(block) for _, block in self._blocks)

    def __iter__(self) -> Iterator[Pair]:
        return (pair for least, block in self._blocks for pair in _pairs(least, block))

    def __reversed__(self) -> Iterator[Pair]:
        for least, block in reversed(self._blocks):
            yield from _pairs(least, block[::-1])


def _pairs(least: int, block: npt.NDArray[np.int32] | Int64s) -> Iterator[Pair]:
    return ((first + least, second + least) for first, second in block.tolist())
