from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkajit.format.decimal import write_decimal

INT64 = st.integers(-(2**63), 2**63 - 1)
ROUND = st.builds(lambda power, off: 10**power + off, st.integers(0, 18), st.sampled_from([-1, 0]))


def written(value: int) -> bytes:
    out = np.zeros(32, dtype=np.uint8)
    return out[: write_decimal(out, 0, value)].tobytes()


@given(INT64 | ROUND | ROUND.map(lambda value: -value))
@example(-(2**63))
@example(2**63 - 1)
def test_a_number_is_written_as_python_writes_it(value: int) -> None:
    assert written(value) == str(value).encode()


@pytest.mark.parametrize("value", range(-120, 120))
def test_small_numbers_have_no_zeros_in_front(value: int) -> None:
    assert written(value) == str(value).encode()
