"""Translates the filters that Spark pushes down into predicates."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from pyspark.sql.types import VariantVal

from kafkajit.scan.predicates import Predicate

_TESTS = {
    EqualTo: "=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    In: "in",
    StringStartsWith: "startswith",
    StringEndsWith: "endswith",
    StringContains: "contains",
}


def predicate_of(pushed: Filter) -> Predicate | None:
    """The predicate, or None if only Spark can evaluate the filter.

    >>> predicate_of(Not(EqualTo(("topic",), "orders")))
    Predicate(column='topic', test='=', value='orders', negated=True)
    """
    if isinstance(pushed, Not):
        inner = predicate_of(pushed.child)
        return None if inner is None or inner.negated else inner._replace(negated=True)
    test = _TESTS.get(type(pushed))
    if test is None:
        return None
    # Fields of a struct are left to Spark.
    column = pushed.attribute  # type: ignore[attr-defined]
    value = pushed.value  # type: ignore[attr-defined]
    if len(column) != 1 or value is None or (test == "in" and None in value):
        return None
    return Predicate(column[0], test, value)


# The module of Spark's worker that makes filters, and its name for the class of their values.
_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
_VALUE = "VariantVal"


class _Value(VariantVal):
    """A filter's value, which is None if Python cannot hold it."""

    def toPython(self) -> Any:  # noqa: N802
        try:
            return super().toPython()
        except OverflowError:
            return None


def accept_far_timestamps() -> Callable[[], None]:
    """Let Spark's worker make filters with timestamps that Python cannot hold.

    Python's datetime ends at the year 9999, Spark's TIMESTAMP at the year 294247. Spark's worker
    makes filters after it has made the reader, and fails with an OverflowError at such a timestamp.
    From this call until you call the function that it returns, the value is None instead, and
    `predicate_of` leaves such a filter to Spark. The patch must end, because the worker may serve
    other data sources later.
    """
    worker = sys.modules.get(_WORKER, sys.modules["__main__"])  # __main__ without a daemon
    if getattr(worker, _VALUE, None) is not VariantVal:
        return lambda: None
    setattr(worker, _VALUE, _Value)
    return lambda: setattr(worker, _VALUE, VariantVal)
