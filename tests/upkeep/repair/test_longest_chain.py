from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.upkeep.repair.longest_chain import longest_chain

INTERVALS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 4)).map(lambda pair: (pair[0], sum(pair))),
    max_size=8,
)


def first_longest_chain(intervals: list[tuple[int, int]]) -> list[int]:
    """The first valid choice of rows, tried from the largest on."""
    for size in range(len(intervals), 0, -1):
        for rows in combinations(range(len(intervals)), size):
            pairs = pairwise(rows)
            if all(intervals[one][1] < intervals[two][0] for one, two in pairs):
                return list(rows)
    return []


@given(INTERVALS)
def test_as_many_rows_stay_in_order_as_can(intervals: list[tuple[int, int]]) -> None:
    first = np.array([first for first, _ in intervals], dtype=np.int64)
    last = np.array([last for _, last in intervals], dtype=np.int64)
    assert longest_chain(first, last).tolist() == first_longest_chain(intervals)
