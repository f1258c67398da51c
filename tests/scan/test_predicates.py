from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.format.ranges import Range
from kafkajit.scan.predicates import Predicate, meets, millisecond_range_of, range_of

EPOCH = datetime.fromtimestamp(0, UTC)
EVERYTHING = Range()
INTEGERS = st.one_of(
    st.integers(-5, 5), st.sampled_from([2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1])
)
TESTS = st.sampled_from(["=", "<", "<=", ">", ">="])
INSTANTS = st.builds(
    lambda micros, hours: (EPOCH + timedelta(microseconds=micros)).astimezone(
        timezone(timedelta(hours=hours))
    ),
    st.integers(-3000, 3000),
    st.integers(-3, 3),
)


def predicates(column: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Predicate]:
    single = st.builds(Predicate, st.just(column), TESTS, values, st.booleans())
    several = st.lists(values, max_size=3).map(tuple)
    listed = st.builds(Predicate, st.just(column), st.just("in"), several, st.booleans())
    return st.one_of(single, listed)


@given(st.lists(predicates("offset", INTEGERS), max_size=3), INTEGERS)
def test_an_integer_that_meets_all_is_in_the_range(asked: list[Predicate], number: int) -> None:
    range_ = range_of("offset", asked)
    if all(predicate.holds(number) for predicate in asked):
        assert range_.first <= number <= range_.last
    if all(predicate.is_exact("records") for predicate in asked):
        assert all(predicate.holds(number) for predicate in asked) == (
            range_.first <= number <= range_.last
        )
    assert range_of("partition", asked) == EVERYTHING


@given(st.lists(predicates("timestamp", INSTANTS), max_size=3), st.integers(-4, 4))
def test_a_millisecond_that_meets_all_is_in_the_range(asked: list[Predicate], millis: int) -> None:
    range_ = millisecond_range_of("timestamp", asked)
    if all(predicate.holds(EPOCH + timedelta(milliseconds=millis)) for predicate in asked):
        assert range_.first <= millis <= range_.last
    assert millisecond_range_of("maxTimestamp", asked) == EVERYTHING


def at(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


@pytest.mark.parametrize(
    ("test", "value", "expected"),
    [
        ("=", at(5000), Range(5, 5)),
        ("<", at(5000), Range(last=4)),
        ("<=", at(5000), Range(last=5)),
        (">", at(5000), Range(first=6)),
        (">=", at(5000), Range(first=5)),
        ("<", at(5001), Range(last=5)),
        ("<=", at(5001), Range(last=5)),
        (">", at(4999), Range(first=5)),
        (">=", at(4999), Range(first=5)),
        ("<", at(-1), Range(last=-1)),
        (">", at(-1), Range(first=0)),
        ("in", (at(5001), at(9000)), Range(5, 9)),
        ("in", (at(5000), at(9001)), Range(5, 10)),
    ],
)
def test_between_two_milliseconds_the_range_ends_on_the_right_side(
    test: str, value: Any, expected: Range
) -> None:
    assert Predicate("timestamp", test, value).millisecond_range() == expected


def test_no_record_has_a_time_between_two_milliseconds() -> None:
    assert not Predicate("timestamp", "=", at(5001)).millisecond_range()


def test_nothing_is_in_an_empty_list() -> None:
    assert not Predicate("offset", "in", ()).range()
    assert not Predicate("timestamp", "in", ()).millisecond_range()


@pytest.mark.parametrize("value", ["5", 1.5, None, date(2023, 1, 1), datetime(2023, 1, 1)])
def test_what_is_neither_a_number_nor_an_instant_drops_nothing(value: Any) -> None:
    for test in ("=", "<", ">="):
        predicate = Predicate("offset", test, value)
        assert predicate.range() == predicate.millisecond_range() == EVERYTHING
        assert not predicate.is_exact("records")
    assert Predicate("offset", "in", (5, value)).range() == EVERYTHING
    assert Predicate("offset", "in", (at(5), value)).millisecond_range() == EVERYTHING


@pytest.mark.parametrize("test", ["startswith", "endswith", "contains"])
def test_a_test_of_texts_leaves_the_range_of_numbers_open(test: str) -> None:
    assert Predicate("topic", test, "5").range() == EVERYTHING


@pytest.mark.parametrize(
    ("test", "value", "yes", "no"),
    [
        ("=", 5, 5, 6),
        ("<", 5, 4, 5),
        ("<=", 5, 5, 6),
        (">", 5, 6, 5),
        (">=", 5, 5, 4),
        ("in", (1, 5), 5, 6),
        ("startswith", "ord", "orders", "border"),
        ("endswith", "ers", "orders", "orders2"),
        ("contains", "rde", "orders", "payments"),
    ],
)
def test_a_value_meets_a_test_or_its_negation_and_null_neither(
    test: str, value: Any, yes: Any, no: Any
) -> None:
    predicate = Predicate("c", test, value)
    negation = predicate._replace(negated=True)
    assert predicate.holds(yes) and not negation.holds(yes)  # noqa: PT018
    assert negation.holds(no) and not predicate.holds(no)  # noqa: PT018
    assert not predicate.holds(None)
    assert not negation.holds(None)


def test_only_columns_that_are_known_are_judged() -> None:
    topic = Predicate("topic", "=", "orders")
    partition = Predicate("partition", "=", 0)
    assert meets({"topic": "orders"}, [topic, partition])
    assert not meets({"topic": "orders", "partition": 1}, [topic, partition])
    assert not meets({"topic": None}, [topic])
    assert meets({}, [topic, partition])
    assert meets({"topic": "orders"}, [])


FIVE = Predicate("offset", "<", 5)


@pytest.mark.parametrize(
    ("predicate", "kinds"),
    [
        (FIVE, ["records", "files"]),
        (FIVE._replace(test="="), ["records", "files"]),
        (FIVE._replace(negated=True), ["files"]),
        (FIVE._replace(test="in", value=(5,)), ["files"]),
        (FIVE._replace(value=2**63), ["files"]),  # whatever it says, no number is out of it
        (FIVE._replace(column="baseOffset"), ["files"]),
        (FIVE._replace(column="lastOffset"), ["files"]),
        (Predicate("timestamp", "<", at(5000)), ["files"]),
        (Predicate("maxTimestamp", "<", at(5000)), ["files"]),
        (Predicate("modificationTime", "<", at(5000)), []),
        (Predicate("topic", "=", "orders"), ["records", "batches", "files", "corruption"]),
        (Predicate("topic", "contains", "o", True), ["records", "batches", "files", "corruption"]),
        (Predicate("partition", "in", (1,)), ["records", "batches", "files", "corruption"]),
    ],
)
def test_a_predicate_is_exact_if_the_scan_applies_it(
    predicate: Predicate, kinds: list[str]
) -> None:
    all_kinds = ["records", "batches", "files", "corruption"]
    assert [kind for kind in all_kinds if predicate.is_exact(kind)] == kinds
