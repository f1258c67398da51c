"""The longest chain of intervals that each lie behind the one before."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.kernel import kernel
from kafkajit.storage.source import Int64s


def longest_chain(first: Int64s, last: Int64s) -> npt.NDArray[np.int64]:
    """The rows of the longest chain of intervals that each lie behind the one before.

    Of several such chains it is the first.

    >>> longest_chain(np.array([0, 90, 5, 7]), np.array([4, 93, 6, 9])).tolist()
    [0, 2, 3]
    >>> longest_chain(np.array([5, 0]), np.array([9, 4])).tolist()
    [0]
    """
    rows = np.empty(first.size, dtype=np.int64)
    lengths = np.empty(first.size, dtype=np.int64)
    first, last = first.astype(np.int64), last.astype(np.int64)
    # Negated and in reverse order, chains are chains again.
    _measure_chains(-last[::-1], -first[::-1], rows, lengths)
    count = _take_chain(first, last, lengths[::-1], rows)
    return rows[:count]


@kernel
def _measure_chains(first, last, ends, lengths):
    """Measure the longest chain that ends with each row.

    `ends` holds the earliest end of all chains of each length so far.
    """
    longest = np.int64(0)
    for row in range(first.size):
        low, high = np.int64(0), longest
        while low < high:
            middle = (low + high) // 2
            if ends[middle] < first[row]:
                low = middle + 1
            else:
                high = middle
        if low == longest or last[row] < ends[low]:
            ends[low] = last[row]
        longest = max(longest, low + 1)
        lengths[row] = low + 1


@kernel
def _take_chain(first, last, lengths, rows):
    """Write the rows of the first of the longest chains, and return their number."""
    left = np.int64(0)
    for row in range(lengths.size):
        left = max(left, lengths[row])
    count = np.int64(0)
    for row in range(lengths.size):
        if lengths[row] == left - count and (count == 0 or first[row] > last[rows[count - 1]]):
            rows[count] = row
            count += 1
    return count
