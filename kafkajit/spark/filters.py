"""Translates the filters that Spark pushes down into predicates."""

from __future__ import annotations

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
