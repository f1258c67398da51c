"""The column that fits all of some values, without a schema.

The first values are looked at one by one. The kernel then reads the others into the columns of
these. It gives up at values that have something new, and only these are looked at again. A
malformed value decides nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kafkajit.values.json.careful import MalformedError, check
from kafkajit.values.json.reading import Bodies, KernelReader, parts
from kafkajit.values.json.types import (
    BOOLEAN,
    INTEGER,
    JSON,
    JSON_TEXT,
    LIST,
    MAP,
    NULL,
    NUMBER,
    STRING,
    STRUCT,
    Column,
    list_of,
    map_of,
    struct_of,
)
from kafkajit.values.layout import TEXT

_FIRST = 64  # values that are looked at one by one
MOST_KEYS = 1_000  # of an object that becomes a struct
_MOST_COLUMNS = 4_000
_MOST_LEVELS = 32  # deeper parts become JSON text
_BEYOND = object()  # a number that neither an int64 nor a float64 holds as it is

_PLAIN = {
    BOOLEAN: Column(BOOLEAN, pa.bool_()),
    INTEGER: Column(INTEGER, pa.int64()),
    NUMBER: Column(NUMBER, pa.float64()),
    STRING: Column(STRING, TEXT),
    JSON: JSON_TEXT,
}


def infer_column(bodies: Bodies) -> Column:
    """The column that fits all values.

    Integers and floats become float64; objects a struct of all their keys in the order in which
    they come, or a map of JSON text if there are more than 1,000; everything else that is mixed
    becomes JSON text. So do numbers that fit neither int64 nor float64. Text stays text.
    """
    shape = _Shape()
    for row in range(min(_FIRST, bodies.starts.size)):
        _look_at(bodies, row, shape)
    for part, first in parts(bodies):
        start = max(_FIRST - first, 0)
        while start < part.starts.size:
            start = _look_on(part, start, shape)
    return _final(shape.column())


def _look_on(part: Bodies, start: int, shape: _Shape) -> int:
    """Look at values until there is something new: the row to go on with."""
    column = shape.column()
    for _, after, troubles in KernelReader(column, is_strict=True).blocks(part, None, start):
        if troubles.size:
            for row in troubles.tolist():
                _look_at(part, row, shape)
            if shape.column() != column:
                return after
    return part.starts.size


def _look_at(bodies: Bodies, row: int, shape: _Shape) -> None:
    if bodies.ends[row] < bodies.starts[row]:
        return
    body = bodies.body(row)
    try:
        check(body)
        value = json.loads(body, parse_int=_integer, parse_float=_float)
    except (MalformedError, RecursionError):
        return
    shape.add(value, 0)


def _integer(text: str) -> Any:
    if len(text) > 20:
        return _BEYOND
    number = int(text)
    return number if -(2**63) <= number < 2**63 else _BEYOND


def _float(text: str) -> Any:
    number = float(text)
    return _BEYOND if number in (float("inf"), float("-inf")) else number


_KINDS = {bool: BOOLEAN, int: INTEGER, float: NUMBER, str: STRING, object: JSON}


@dataclass
class _Shape:
    """The kinds of values that came in one place."""

    kinds: set[int] = field(default_factory=set)
    fields: dict[str, _Shape] = field(default_factory=dict)
    items: _Shape | None = None

    def add(self, value: Any, depth: int) -> None:
        if value is None or self.is_mixed:
            return
        if isinstance(value, (dict, list)) and depth == _MOST_LEVELS:
            self.kinds.add(JSON)
        elif isinstance(value, dict):
            self.kinds.add(STRUCT)
            if MAP not in self.kinds:
                for name, inside in value.items():
                    self._field(name).add(inside, depth + 1)
                if len(self.fields) > MOST_KEYS:
                    self.make_map()
        elif isinstance(value, list):
            self.kinds.add(LIST)
            if self.items is None:
                self.items = _Shape()
            for inside in value:
                self.items.add(inside, depth + 1)
        else:
            self.kinds.add(_KINDS[type(value)])
        if self.is_mixed:
            self.fields, self.items = {}, None

    def _field(self, name: str) -> _Shape:
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            return _Shape()  # half a surrogate pair cannot be the name of a column
        return self.fields.setdefault(name, _Shape())

    def make_map(self) -> None:
        self.kinds.add(MAP)
        self.fields = {}

    @property
    def is_mixed(self) -> bool:
        return len(self.kinds - {MAP}) > 1 and self.kinds != {INTEGER, NUMBER}

    def column(self) -> Column:
        """The column; the objects with the most keys become maps if there are too many columns."""
        most = MOST_KEYS
        while most and self._count() > _MOST_COLUMNS:
            most //= 4
            self._limit(most)
        return self._column()

    def _count(self) -> int:
        items = self.items._count() if self.items else 0
        return 1 + items + sum(shape._count() for shape in self.fields.values())

    def _limit(self, most: int) -> None:
        if len(self.fields) > most:
            self.make_map()
        for shape in self.fields.values():
            shape._limit(most)
        if self.items:
            self.items._limit(most)

    def _column(self) -> Column:
        if self.is_mixed:
            return JSON_TEXT
        if MAP in self.kinds:
            return map_of(JSON_TEXT)
        if STRUCT in self.kinds:
            return struct_of({name: shape._column() for name, shape in self.fields.items()})
        if self.items is not None:
            return list_of(self.items._column())
        for kind in (NUMBER, *self.kinds):
            if kind in self.kinds:
                return _PLAIN[kind]
        return Column(NULL, pa.null())


def _final(column: Column) -> Column:
    """The column, with JSON text for objects that never had a key."""
    if column.kind == STRUCT:
        if not column.names:
            return JSON_TEXT
        children = map(_final, column.children)
        return struct_of(dict(zip(column.names, children, strict=True)))
    return list_of(_final(column.children[0])) if column.kind == LIST else column
