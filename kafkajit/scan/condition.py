"""A condition on a table's rows as an Arrow expression: the rows that meet it, and a scan's limits.

Arrow judges both. To know whether a condition leaves any row of a topic, or any offset up to 100,
it gets a dataset of one fragment that is guaranteed to have no others, and drops that fragment or
not. So every expression that an engine pushes down narrows the scan as far as Arrow understands it,
and nothing here has to read expressions.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.acero import Declaration, FilterNodeOptions, TableSourceNodeOptions
from pyarrow.fs import LocalFileSystem

from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.scan.predicates import Predicate
from kafkajit.schema import check_columns

# Conditions as pyarrow.parquet.read_table takes them: an expression, a list of conditions such as
# ("offset", ">=", 5) that must all hold, or a list of such lists of which one must hold.
Filters = Any

# Columns that a file's path gives, by which a scan drops files.
_OF_FILES = ("topic", "partition", "path", "baseOffset", "suffix", "name", "length")
# Columns of which a scan reads a range, by segments' names and indexes and by batches' headers.
_RANGES = ("offset", "baseOffset", "lastOffset", "timestamp", "maxTimestamp")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND = datetime.timedelta(seconds=1)
# The whole seconds that Python's datetime has.
_SECONDS = (
    (datetime.datetime.min.replace(tzinfo=datetime.UTC) - _EPOCH) // _SECOND,
    (datetime.datetime.max.replace(tzinfo=datetime.UTC) - _EPOCH) // _SECOND,
)
# How a number is rounded without changing a test of whole numbers.
_ROUNDED: dict[str, Callable[[Any], int]] = {
    "=": math.floor,
    "==": math.floor,
    "!=": math.floor,
    "<": math.ceil,
    "<=": math.floor,
    ">": math.floor,
    ">=": math.ceil,
}
# The format and the name of a fragment that is never opened.
_UNREAD = ds.IpcFileFormat()
_HERE = LocalFileSystem()


@dataclass(frozen=True)
class Condition:
    """An Arrow expression that rows of a table must meet."""

    expression: pc.Expression
    schema: pa.Schema  # of the table

    @classmethod
    def of(cls, filters: Filters, schema: pa.Schema) -> Condition:
        """Parse filters; raise a ValueError if they do not fit the table.

        >>> schema = pa.schema([("topic", pa.string()), ("offset", pa.int64())])
        >>> Condition.of([("offset", ">=", 5)], schema).expression
        <pyarrow.compute.Expression (offset >= 5)>
        """
        names = dict.fromkeys(_names_in(filters))
        if names:
            check_columns(names, schema.names)
        try:
            condition = cls(pq.filters_to_expression(_exact(filters, schema)), schema)
            condition._filtered(pa.RecordBatch.from_pylist([], schema=schema))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            reason = _on_one_line(error)
            raise ValueError(
                f"filters: {reason}; pass a list such as [('topic', '==', 'orders'), "
                "('offset', '>=', 100)] or an expression of pyarrow.compute"
            ) from None
        return condition

    def __and__(self, other: Condition) -> Condition:
        return Condition(self.expression & other.expression, self.schema)

    @property
    def columns(self) -> list[str]:
        """The columns that the expression reads.

        Arrow tells them only by the expression's text. A name that stands in a literal costs
        reading one column more.
        """
        text = str(self.expression)
        return [name for name in self.schema.names if name in text]

    def rows_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that meet the condition, in order."""
        try:
            return self._filtered(batch)
        except pa.ArrowException as error:
            raise ValueError(
                f"filters: {_on_one_line(error)}; Arrow cannot compare such values in the "
                f"expression {self.expression}: compare whole numbers with whole numbers"
            ) from None

    def _filtered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        kept = Declaration.from_sequence(
            [
                Declaration("table_source", TableSourceNodeOptions(pa.Table.from_batches([batch]))),
                Declaration("filter", FilterNodeOptions(self.expression)),
            ]
        ).to_table(use_threads=False)
        batches = kept.combine_chunks().to_batches()
        return batches[0] if batches else batch.slice(0, 0)

    def may_hold(self, guarantee: pc.Expression) -> bool:
        """Whether a row that meets the guarantee can meet the condition, as far as Arrow sees."""
        fragment = _UNREAD.make_fragment("unread", _HERE, guarantee)
        dataset = ds.FileSystemDataset([fragment], self.schema, _UNREAD)
        try:
            return any(True for _ in dataset.get_fragments(filter=self.expression))
        except pa.ArrowException:  # it cannot compare them, as an int64 with 1.5
            return True

    def predicates(self) -> list[Predicate]:
        """Conditions on single columns that follow, by which a scan skips files and batches."""
        used = self.columns
        found: list[Predicate] = []
        for name in used:
            # No Predicate holds for NULL, so one that NULL may meet cannot be expressed.
            if name not in (*_OF_FILES, *_RANGES) or self.may_hold(pc.field(name).is_null()):
                continue
            if name in _OF_FILES:
                found.append(Predicate(name, "allowed by", cache(partial(self._allows, name))))
            if name in _RANGES:
                found.extend(self._range_of(name))
        return found

    def _allows(self, name: str, value: Any) -> bool:
        return self.may_hold(pc.field(name) == pa.scalar(value, self.schema.field(name).type))

    def _range_of(self, name: str) -> Iterable[Predicate]:
        """The first and the last value of a column that the condition leaves."""
        column, type_ = pc.field(name), self.schema.field(name).type
        is_time = pa.types.is_timestamp(type_)
        least, most = _SECONDS if is_time else (MIN_INT64, MAX_INT64)

        def scalar(value: int) -> pa.Scalar:
            return pa.scalar(value, pa.timestamp("s", "UTC")).cast(type_) if is_time else value

        def literal(value: int) -> Any:
            return _EPOCH + value * _SECOND if is_time else value

        below = _last(least, most, lambda value: not self.may_hold(column <= scalar(value)))
        if below is not None:
            yield Predicate(name, ">", literal(below))
        above = _last(-most, -least, lambda value: not self.may_hold(column >= scalar(-value)))
        if above is not None:
            yield Predicate(name, "<", literal(-above))


def _on_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _exact(filters: Any, schema: pa.Schema) -> Any:
    """Lists of filters whose tests of whole numbers have whole numbers that mean the same.

    Arrow would convert the column to a float of 32 or 64 bits, which refuses large offsets.
    """
    if isinstance(filters, tuple) and len(filters) == 3 and isinstance(filters[0], str):
        name, test, value = filters
        is_whole = name in schema.names and pa.types.is_integer(schema.field(name).type)
        return _whole(name, test, value) if is_whole else filters
    if isinstance(filters, (list, tuple)):
        return type(filters)(_exact(each, schema) for each in filters)
    return filters


def _whole(name: str, test: str, value: Any) -> tuple[str, str, Any]:
    """A test of a column of whole numbers, with a whole number that Arrow's int64 holds.

    >>> _whole("offset", ">", 1.5), _whole("offset", "<=", 2.0), _whole("offset", "<", 2**63)
    (('offset', '>', 1), ('offset', '<=', 2), ('offset', '>=', -9223372036854775808))
    """
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if not is_number or test not in _ROUNDED:
        return name, test, value
    always, never = (name, ">=", MIN_INT64), (name, "<", MIN_INT64)
    if value != value:  # NaN
        return always if test == "!=" else never
    if value in (math.inf, -math.inf) or not MIN_INT64 <= value <= MAX_INT64:
        is_met = test == "!=" or (value > 0 and test[0] == "<") or (value < 0 and test[0] == ">")
        return always if is_met else never
    rounded = _ROUNDED[test](value)
    if test[0] in "=!" and rounded != value:
        return always if test == "!=" else never
    return name, test, min(rounded, MAX_INT64)


def _last(least: int, most: int, holds: Callable[[int], bool]) -> int | None:
    """The last integer at which `holds`, if that holds up to a limit; None if it never does.

    >>> _last(-10, 10, lambda value: value <= 7)
    7
    """
    if not holds(least):
        return None
    while least < most:
        middle = least + (most - least + 1) // 2
        if holds(middle):
            least = middle
        else:
            most = middle - 1
    return least


def _names_in(filters: Any) -> Iterable[str]:
    """The columns that lists of filters name; Arrow reports other forms."""
    for each in filters if isinstance(filters, (list, tuple)) else ():
        if isinstance(each, (list, tuple)) and each and isinstance(each[0], str):
            yield each[0]
        else:
            yield from _names_in(each)
