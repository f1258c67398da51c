"""Ranges of offsets and of timestamps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.format.ranges import Range

ENDS = st.one_of(st.integers(-3, 3), st.sampled_from([MIN_INT64, MIN_INT64 + 1, MAX_INT64]))
RANGES = st.builds(Range, ENDS, ENDS)
NUMBERS = np.array([MIN_INT64, MIN_INT64 + 1, *range(-4, 5), MAX_INT64 - 1, MAX_INT64])


@given(RANGES, RANGES)
def test_a_range_holds_what_is_between_its_ends(one: Range, other: Range) -> None:
    numbers = NUMBERS.tolist()
    assert one.holds(NUMBERS).tolist() == [one.first <= n <= one.last for n in numbers]
    both = one & other
    assert both.holds(NUMBERS).tolist() == (one.holds(NUMBERS) & other.holds(NUMBERS)).tolist()
    assert bool(both) == (both.first <= both.last)
    assert one.is_everything == one.holds(NUMBERS).all()


def test_a_range_may_end_where_no_int64_is() -> None:
    # WHERE offset > 9223372036854775807 becomes this.
    assert not Range(MAX_INT64 + 1)
    assert not Range(last=MIN_INT64 - 1)
    assert not Range(MAX_INT64 + 1).holds(NUMBERS).any()
    assert not Range(last=MIN_INT64 - 1).holds(NUMBERS).any()
    assert Range(MIN_INT64 - 1, MAX_INT64 + 1).is_everything
