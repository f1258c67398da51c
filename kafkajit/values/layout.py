"""The columns that values are decoded into: a tree of nodes, and the cells that a kernel writes.

A cell is a piece of memory of the same width for each item: a number, a byte, or where a text lies.
Items of the same kind share a space: the values themselves are the items of space 0, the elements
of all their arrays `tags` those of another one. A cell that is not written stays zero, so an item
that is NULL costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from kafkajit.errors import InvalidSchemaError, did_you_mean

Form = Literal[
    "null", "bool", "number", "millis", "nanos", "long decimal", "bytes", "uuid", "duration",
    "struct", "list",
]  # fmt: skip

BYTE, INT, LONG, WIDE_DECIMAL = 1, 4, 8, 16
RECURSION = 4  # how often a type may contain itself, unless a caller says more
MAX_CELLS = 10_000
MAX_NODES = 4 * MAX_CELLS  # a struct or a column of NULL has no cell

TEXT = pa.string()
DURATION = pa.struct([(name, pa.int64()) for name in ("months", "days", "milliseconds")])


class Types(Enum):
    """The types of columns where Arrow, files and Spark differ."""

    OWN = "own"  # Arrow's that fits best
    FILES = "files"  # those of Spark, but for timestamps, which keep their unit
    SPARK = "spark"


class Cell(NamedTuple):
    """The width of a cell in bytes, and the space of its items."""

    width: int
    space: int


@dataclass(eq=False)
class Node:
    """A column, with the cells that hold its values.

    The cell of a list or a map counts the elements, which lie in a space of their own. That of
    bytes holds their place. `schema` is what the values' format knows of the column. `finish` makes
    the column of what the cells have stored, if that is of another type.
    """

    type: pa.DataType
    form: Form
    space: int
    schema: Any = None
    cell: int = -1
    valid: int = -1  # the cell that is 1 if there is a value; -1: there always is
    children: list[Node] = field(default_factory=list)
    is_nullable: bool = False  # by its schema; the value as a whole may be NULL in any case
    stored: pa.DataType | None = None
    finish: Callable[[pa.Array], pa.Array] | None = None


def struct_node(children: Mapping[str, Node], space: int, schema: Any) -> Node:
    """A struct of columns by their names."""
    type_ = pa.struct([(name, child.type) for name, child in children.items()])
    return Node(type_, "struct", space, schema=schema, children=list(children.values()))


class Layout:
    """The cells of a tree of nodes."""

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self.spaces = 1
        self.nodes = 0

    def cell(self, width: int, space: int) -> int:
        self._check(len(self.cells) < MAX_CELLS)
        self.cells.append(Cell(width, space))
        return len(self.cells) - 1

    def count_node(self) -> None:
        self.nodes += 1
        self._check(self.nodes <= MAX_NODES)

    @staticmethod
    def _check(has_room: bool) -> None:
        if not has_room:
            raise InvalidSchemaError(
                f"the schema has more than {MAX_CELLS:,} columns; name those that you need"
            )

    def new_space(self) -> int:
        self.spaces += 1
        return self.spaces - 1


# The fields that are wanted of a struct, each with those of its own; None: all.
Wanted = dict[str, Any] | None


def wanted_fields(paths: Iterable[str] | Wanted) -> Wanted:
    """The fields that paths such as "customer.id" name, or that are given by their names.

    >>> wanted_fields(["id", "customer.id", "customer.name"])
    {'id': None, 'customer': {'id': None, 'name': None}}
    """
    if paths is None or isinstance(paths, dict):
        return paths
    wanted: dict[str, Any] = {}
    for path in paths:
        *parents, name = path.split(".")
        inside: Any = wanted
        for parent in parents:
            inside = inside.setdefault(parent, {})
            if inside is None:  # the whole of it is wanted already
                break
        else:
            inside[name] = None
    return wanted


def check_wanted(wanted: Wanted, names: Iterable[str], owner: str) -> None:
    """Refuse the name of a field that its owner, such as a record, does not have."""
    known = list(names)
    for name in wanted or ():
        if name not in known:
            guess = did_you_mean(name, known)
            hint = f"; {guess}" if guess else ""
            raise InvalidSchemaError(f"{owner} has no field {name!r}{hint}")
