"""How many keys there are, and which are the hottest."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.report import keys as module
from kafkajit.report.keys import Keys

some_keys = st.lists(st.none() | st.binary(max_size=20) | st.sampled_from([b"a", b"b"]))


@given(st.lists(some_keys, max_size=4))
def test_few_keys_are_counted_exactly(parts: list[list[bytes | None]]) -> None:
    found = Keys()
    for part in parts:
        found.add(pa.array(part, pa.binary()), 0)
    counts = Counter(key for part in parts for key in part if key is not None)
    assert found.all.number == len(counts)
    assert found.all.error == 0
    assert found.hottest(100) == sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:100]


@given(st.lists(some_keys, max_size=4))
def test_sketches_are_added_to_one(parts: list[list[bytes | None]]) -> None:
    whole, joined = Keys(), Keys()
    for part in parts:
        own = Keys()
        own.add(pa.array(part, pa.binary()), 0)
        joined.add_all(own)
        whole.add(pa.array(part, pa.binary()), 0)
    assert joined.all.number == whole.all.number
    assert joined.hottest(100) == whole.hottest(100)


def test_estimates_are_those_of_one_sketch() -> None:
    whole, joined = Keys(), Keys()
    for first in range(0, 200_000, 50_000):
        keys = pa.array([b"key-%d" % number for number in range(first, first + 60_000)])
        own = Keys()
        own.add(keys, 0)
        joined.add_all(own)
        whole.add(keys, 0)
    assert joined.all.number == whole.all.number
    assert len(joined._counts) == len(joined._names) <= 2 * module._COUNTED


def test_of_a_long_key_the_beginning_is_kept() -> None:
    found = Keys()
    found.add(pa.array([b"x" * 1000 + b"1", b"x" * 1000 + b"2"]), 0)
    assert found.all.number == 2
    assert found.hottest(2) == [(b"x" * 400, 1)] * 2


@given(st.lists(st.binary(max_size=40)))
def test_hashes_are_those_of_the_slow_twin(keys: list[bytes]) -> None:
    hashes = module._hashes(pa.array([b"before", *keys], pa.large_binary())[1:])
    assert hashes.tolist() == [reference.key_hash(key) for key in keys]


def test_many_keys_are_estimated_within_a_few_standard_errors() -> None:
    found = Keys()
    for first in range(0, 200_000, 50_000):
        found.add(pa.array([b"key-%d" % number for number in range(first, first + 60_000)]), 0)
    assert 0 < found.all.error < 0.01
    assert found.all.number == pytest.approx(210_000, rel=4 * found.all.error)


def test_the_hottest_keys_are_kept_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COUNTED", 10)
    found = Keys()
    for part in range(20):
        found.add(pa.array([b"hot"] * 5 + [b"%d-%d" % (part, number) for number in range(8)]), 0)
    assert found.hottest(1) == [(b"hot", 100)]
    assert len(found.hottest(1000)) <= 20
