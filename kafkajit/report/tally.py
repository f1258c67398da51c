"""Sums by key over arrays, in little memory: bytes by hour, batches by size."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kafkajit.storage.source import Int64s

# Entries that wait to be added up, at most.
_PENDING = 1 << 18
# Up to this number of entries are added up later, with others.
_FEW = 256
# Sizes are counted with this number of significant bits, so a percentile is off by 0.4 % at most.
_SIGNIFICANT_BITS = 8


class Tally:
    """Columns of weights, added up by key.

    >>> tally = Tally(1)
    >>> tally.add(np.array([7, 5, 7]), np.array([10, 20, 30]))
    >>> [column.tolist() for column in tally.sums()]
    [[5, 7], [20, 40]]
    """

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._parts: list[Int64s] = []  # rows: the keys, then the columns
        self._pending = 0

    def add(self, keys: npt.NDArray[np.integer], *weights: npt.NDArray[np.integer]) -> None:
        """Add rows; there is one array of weights for each column."""
        if keys.size:
            rows = np.array([keys, *weights], np.int64)
            if keys.size > _FEW:
                rows = _added_up(rows)
            self._parts.append(rows)
            self._pending += rows.shape[1]
            if self._pending > _PENDING:
                self.add_up()

    def add_all(self, other: Tally) -> None:
        """Add all rows of another tally."""
        for part in other._parts:
            self.add(*part)

    def __getstate__(self) -> dict[str, Any]:
        # What a task returns is small: added up.
        self.add_up()
        return self.__dict__

    def sums(self) -> Int64s:
        """The keys in order, and the sums of each column."""
        self.add_up()
        return self._parts[0]

    def add_up(self) -> None:
        """Add up the rows that wait, which take more memory than their sums."""
        nothing = np.empty((1 + self._columns, 0), np.int64)
        self._parts = [_added_up(np.concatenate([nothing, *self._parts], axis=1))]
        self._pending = 0


def _added_up(rows: Int64s) -> Int64s:
    order = np.argsort(rows[0], kind="stable")
    rows = rows[:, order]
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = rows[0, 1:] != rows[0, :-1]
    starts = np.flatnonzero(is_first)
    if starts.size == order.size:
        return rows
    return np.concatenate([rows[:1, starts], np.add.reduceat(rows[1:], starts, axis=1)])


class Sizes:
    """The distribution of sizes or counts.

    >>> sizes = Sizes()
    >>> sizes.add(np.array([1, 2, 3, 1000]))
    >>> sizes.document()
    {'mean': 251.5, 'p50': 2, 'p90': 1000, 'p99': 1000, 'max': 1000}
    """

    def __init__(self) -> None:
        self._counts = Tally(1)
        self._sum = 0
        self._max = 0

    def add(self, sizes: npt.NDArray[np.integer]) -> None:
        """Count these sizes, none of which is negative."""
        if sizes.size:
            exact: Int64s = sizes.astype(np.int64)
            self._sum += int(exact.sum())
            self._max = max(self._max, int(exact.max()))
            self._counts.add(_rounded(exact), np.ones(exact.size, np.int64))

    def add_all(self, other: Sizes) -> None:
        """Count all sizes of another distribution."""
        self._counts.add_all(other._counts)
        self._sum += other._sum
        self._max = max(self._max, other._max)

    def add_up(self) -> None:
        """Add up the sizes that wait."""
        self._counts.add_up()

    def document(self) -> dict[str, float] | None:
        """The mean, percentiles and maximum; None without any size."""
        sizes, counts = self._counts.sums()
        total = int(counts.sum())
        if not total:
            return None
        up_to = np.cumsum(counts)
        found: dict[str, float] = {"mean": round(self._sum / total, 3)}
        for percent in (50, 90, 99):
            row = int(np.searchsorted(up_to, -(-total * percent // 100)))
            found[f"p{percent}"] = min(int(sizes[row]), self._max)
        return found | {"max": self._max}


def _rounded(sizes: Int64s) -> Int64s:
    """Each size with the significant bits that are counted, rounded to the nearest."""
    bits = np.frexp(sizes.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(bits - _SIGNIFICANT_BITS, 0)
    half = (np.int64(1) << shift) >> 1
    rounded: Int64s = (sizes + half) >> shift << shift
    return rounded
