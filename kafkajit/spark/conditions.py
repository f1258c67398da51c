"""The conditions of one scan, as the bridge passes them."""

from __future__ import annotations

import datetime
import json
from typing import Any

from kafkajit.scan.predicates import Predicate

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def conditions_of(text: str) -> list[Predicate]:
    """The conditions that can drop files, batches or rows; Spark judges all of them too.

    >>> conditions_of('[["offset", ">=", 5, false]]')
    [Predicate(column='offset', test='>=', value=5, negated=False)]
    """
    found = []
    for column, test, value, negated in json.loads(text):
        values = value if isinstance(value, list) else [value]
        try:
            known = [_value(each) for each in values]
        except OverflowError:
            continue  # Python's datetime ends at the year 9999, Spark's TIMESTAMP at 294247
        found.append(Predicate(column, test, known if test == "in" else known[0], negated))
    return found


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return _EPOCH + datetime.timedelta(microseconds=value["microseconds"])
    return value
