from __future__ import annotations

from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.index.bisect import index_slots, slots_as_found

SMALL = st.integers(-50, 50)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(st.lists(SMALL, max_size=70), st.lists(SMALL, max_size=70))
def test_it_finds_the_last_key_that_is_no_greater(
    dtype: type, keys: list[int], targets: list[int]
) -> None:
    keys.sort()
    expected = [bisect_right(keys, target) - 1 for target in targets]
    assert index_slots(np.array(keys, dtype=dtype), targets).tolist() == expected


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 33])
def test_any_number_of_targets_is_looked_up_at_any_number_of_keys(count: int) -> None:
    targets = np.arange(-1, count - 1)
    for size in (0, 1, 2, 3, 1000):
        expected = np.minimum(targets // 2, size - 1) if size else np.full(count, -1)
        assert index_slots(2 * np.arange(size), targets).tolist() == expected.tolist()


def test_targets_may_be_beyond_what_the_keys_type_holds() -> None:
    keys = np.array([-(2**31), 0, 2**31 - 1], dtype=np.int32)
    targets = [-(2**63), -(2**31) - 1, -(2**31), 2**31 - 2, 2**31, 2**63 - 1] * 3
    assert index_slots(keys, targets).tolist() == [-1, -1, 0, 1, 2, 2] * 3
    assert index_slots(keys, np.zeros((2, 3))).tolist() == [[1, 1, 1]] * 2


def found_by_kafka(keys: list[int], target: int, last: int) -> int:
    """AbstractIndex.indexSlotRangeFor for the largest lower bound."""

    def search(begin: int, end: int) -> int:
        while begin < end:
            middle = (begin + end + 1) // 2
            if keys[middle] == target:
                return middle
            begin, end = (begin, middle - 1) if keys[middle] > target else (middle, end)
        return begin

    if not keys:
        return -1
    first_hot = max(0, len(keys) - 1 - last)
    if keys[first_hot] < target:
        return search(first_hot, len(keys) - 1)
    return -1 if keys[0] > target else search(0, first_hot)


@given(st.lists(SMALL, max_size=70), st.lists(SMALL, max_size=20), st.integers(0, 80))
def test_among_keys_in_any_order_it_ends_where_kafka_does(
    keys: list[int], targets: list[int], last: int
) -> None:
    expected = [found_by_kafka(keys, target, last) for target in targets]
    found = slots_as_found(np.array(keys, np.int64), np.array(targets, np.int64), last)
    assert found.tolist() == expected


@given(st.lists(SMALL, max_size=70, unique=True), st.lists(SMALL, max_size=20), st.integers(0, 80))
def test_among_keys_in_order_it_ends_where_any_bisection_does(
    keys: list[int], targets: list[int], last: int
) -> None:
    ascending = np.array(sorted(keys), np.int64)
    found = slots_as_found(ascending, np.array(targets, np.int64), last)
    assert found.tolist() == index_slots(ascending, targets).tolist()
