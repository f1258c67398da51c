from __future__ import annotations

from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.index.bisect import index_slots

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
