from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.format.sequence import decrement_sequence, increment_sequence

MOST = 2**31 - 1
SEQUENCES = st.integers(0, MOST) | st.integers(MOST - 5, MOST) | st.integers(0, 5)


def decremented(sequence: int, decrement: int) -> int:
    """DefaultRecordBatch.decrementSequence, in Java's ints."""
    if sequence < decrement:
        return reference.int32(MOST - (decrement - sequence) + 1)
    return sequence - decrement


@given(st.lists(st.tuples(SEQUENCES, SEQUENCES), max_size=10))
def test_sequences_are_counted_as_kafka_does(pairs: list[tuple[int, int]]) -> None:
    sequences, steps = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    assert increment_sequence(sequences, steps).tolist() == [
        reference.increment_sequence(*pair) for pair in pairs
    ]
    assert decrement_sequence(sequences, steps).tolist() == [decremented(*pair) for pair in pairs]


@given(SEQUENCES, SEQUENCES)
def test_counting_down_undoes_counting_up(sequence: int, step: int) -> None:
    up = increment_sequence(np.array([sequence]), np.array([step]))
    assert 0 <= up[0] <= MOST
    assert decrement_sequence(up, np.array([step])).tolist() == [sequence]


@pytest.mark.parametrize(
    ("sequence", "step", "expected"),
    [(MOST, 1, 0), (MOST, 0, MOST), (MOST - 1, 1, MOST), (0, MOST, MOST), (1, MOST, 0), (5, 4, 9)],
)
def test_behind_the_last_sequence_number_is_0(sequence: int, step: int, expected: int) -> None:
    kinds = [np.int32, np.int64]
    for kind in kinds:
        found = increment_sequence(np.array([sequence], kind), np.array([step], kind))
        assert found.tolist() == [expected]
        assert found.dtype == np.int32
