"""A query's conditions on columns, and the files, batches and records that can meet them."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from kafkajit.format.ranges import Range
from kafkajit.places.wanted import Wanted
from kafkajit.state.sidecar_files import PATH_COLUMNS

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, values: value in values,
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": operator.contains,
    "isnotnull": lambda _value, _: True,
    "allowed by": lambda value, may_hold: may_hold(value),
}


class Predicate(NamedTuple):
    """`column test value`, negated or not; a row must meet it. NULL meets none."""

    column: str
    test: str  # a key of _COMPARE
    value: Any
    negated: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a value meets the predicate.

        >>> Predicate("topic", "startswith", "ord").holds("orders")
        True
        """
        return value is not None and _COMPARE[self.test](value, self.value) != self.negated

    def is_exact(self, kind: str) -> bool:
        """Whether a scan of this kind returns only rows that meet the predicate."""
        if kind in PATH_COLUMNS:
            return self.column in PATH_COLUMNS[kind]
        if self.column in ("topic", "partition") or kind == "files":
            return self.column != "modificationTime"
        return (
            kind == "records"
            and self.column == "offset"
            and self.range() != _ANY
            and (self.test != "in")
        )

    def range(self) -> Range:
        """A range that contains all integers that meet the predicate.

        >>> Predicate("offset", "<", 5).range().last
        4
        """
        values = self.value if self.test == "in" else [self.value]
        if self.negated or not all(isinstance(value, int) for value in values):
            return _ANY
        return _range(self.test, self.value, self.value)

    def millisecond_range(self) -> Range:
        """A range that contains all milliseconds that meet the predicate.

        >>> when = datetime.datetime.fromtimestamp(1.5001, datetime.timezone.utc)
        >>> Predicate("timestamp", ">=", when).millisecond_range().first
        1501
        """
        values = self.value if self.test == "in" else [self.value]
        if self.negated or not all(_is_instant(value) for value in values):
            return _ANY
        micros = [(value - _EPOCH) // datetime.timedelta(microseconds=1) for value in values]
        if self.test == "in":
            return _range("in", [m // 1000 for m in micros], [-(-m // 1000) for m in micros])
        return _range(self.test, micros[0] // 1000, -(-micros[0] // 1000))


_ANY = Range()
_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


def _is_instant(value: Any) -> bool:
    return isinstance(value, datetime.datetime) and value.tzinfo is not None


def _range(test: str, floor: Any, ceiling: Any) -> Range:
    """The integers that meet a test; floor and ceiling differ if the value is between two."""
    match test:
        case "=":
            return Range(ceiling, floor)
        case "<":
            return Range(last=ceiling - 1)
        case "<=":
            return Range(last=floor)
        case ">":
            return Range(floor + 1)
        case ">=":
            return Range(ceiling)
        case "in":
            return Range(min(floor), max(ceiling)) if floor else Range(0, -1)
    return _ANY


def meets(values: dict[str, Any], predicates: Iterable[Predicate]) -> bool:
    """Whether these values meet all predicates on their columns; other columns do not count."""
    return all(p.holds(values[p.column]) for p in predicates if p.column in values)


def wanted_by(predicates: Iterable[Predicate]) -> Wanted | None:
    """The conditions on topics and partitions, as a listing of folders takes them."""
    known = [p for p in predicates if p.column in ("topic", "partition")]
    return partial(meets, predicates=known) if known else None


def range_of(column: str, predicates: Iterable[Predicate]) -> Range:
    """The range of a column of integers that the predicates allow."""
    found = Range()
    for predicate in predicates:
        if predicate.column == column:
            found &= predicate.range()
    return found


def millisecond_range_of(column: str, predicates: Iterable[Predicate]) -> Range:
    """The range of milliseconds that the predicates allow in a column of timestamps."""
    found = Range()
    for predicate in predicates:
        if predicate.column == column:
            found &= predicate.millisecond_range()
    return found
