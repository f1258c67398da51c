"""Sums by key, and distributions of sizes, are those of a loop over all values."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.report import tally
from kafkajit.report.tally import Sizes, Tally

rows = st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 2**40)), max_size=50)


@given(st.lists(rows, max_size=5), st.integers(0, 60))
def test_sums_are_those_of_a_loop_whenever_they_are_added_up(
    parts: list[list[tuple[int, int]]], pending: int
) -> None:
    found, expected = Tally(1), Counter[int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally, "_PENDING", pending)
        patch.setattr(tally, "_FEW", 3)
        for part in parts:
            found.add(np.array([key for key, _ in part]), np.array([each for _, each in part]))
            for key, weight in part:
                expected[key] += weight
        keys, sums = found.sums().tolist()
    assert keys == sorted(set(keys))
    assert dict(zip(keys, sums, strict=True)) == {key: expected[key] for key in keys}
    assert set(keys) == {key for part in parts for key, _ in part}


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=200))
def test_percentiles_are_off_by_less_than_half_a_percent(sizes: list[int]) -> None:
    found = Sizes()
    found.add(np.array(sizes))
    document = found.document()
    assert document is not None
    assert document["max"] == max(sizes)
    assert document["mean"] == pytest.approx(sum(sizes) / len(sizes), abs=0.001)
    ordered = sorted(sizes)
    for percent in (50, 90, 99):
        exact = ordered[-(-len(sizes) * percent // 100) - 1]
        assert document[f"p{percent}"] == pytest.approx(exact, rel=0.004)


@given(st.lists(st.integers(0, 2**40)), st.lists(st.integers(0, 2**40)))
def test_distributions_are_added_to_one(some: list[int], more: list[int]) -> None:
    whole, joined, own = Sizes(), Sizes(), Sizes()
    whole.add(np.array(some + more, np.int64))
    joined.add(np.array(some, np.int64))
    own.add(np.array(more, np.int64))
    joined.add_all(pickle.loads(pickle.dumps(own)))
    assert joined.document() == whole.document()


def test_a_pickled_tally_is_added_up() -> None:
    tally = Tally(1)
    for _ in range(1000):
        tally.add(np.array([1, 2]), np.array([1, 1]))
    pickled = pickle.dumps(tally)
    assert len(pickled) < 1000
    assert pickle.loads(pickled).sums().tolist() == [[1, 2], [1000, 1000]]


def test_what_waits_can_be_added_up_before_the_sums_are_asked_for() -> None:
    sums, sizes = Tally(1), Sizes()
    for _ in range(100):
        sums.add(np.array([1, 2]), np.array([1, 1]))
        sizes.add(np.array([5, 6]))
    before, document = len(pickle.dumps(sums.__dict__)), sizes.document()
    sums.add_up()
    sizes.add_up()
    assert len(pickle.dumps(sums.__dict__)) < before / 5
    assert sums.sums().tolist() == [[1, 2], [100, 100]]
    assert sizes.document() == document


def test_small_sizes_are_exact() -> None:
    found = Sizes()
    found.add(np.arange(256))
    document = found.document()
    assert document == {"mean": 127.5, "p50": 127, "p90": 230, "p99": 253, "max": 255}


def test_without_a_size_there_is_no_distribution() -> None:
    assert Sizes().document() is None
