"""Columns → a program: the rows of numbers by which the kernel reads values."""

from __future__ import annotations

import re
import secrets
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kafkajit.kernel.intrinsics import WIDE
from kafkajit.storage.source import Int64s
from kafkajit.values.block import Block
from kafkajit.values.json.strings import hash_of
from kafkajit.values.json.types import (
    DECIMAL,
    INTEGER,
    LIST,
    MAP,
    NUMBER,
    SKIP,
    STRUCT,
    Column,
    column_layout,
)
from kafkajit.values.layout import Node

# The columns of a row. FIRST is the first field of a struct, the elements of a list or a map.
# TABLE is where a struct's hash table begins, MASK its size less one.
(
    CODE, BASE, VALID, SPACE, FIRST, COUNT, TABLE, MASK, LOW, HIGH, KEY, INSIDE, WIDTH,
) = range(13)  # fmt: skip
SHIFT = 4  # of a row: 16 numbers
# A field has the place of its name, the bytes of that, the row of its column, and the bytes of the
# name with the quote and the colon behind it.
NAME, SIZE, ROW, QUICK = range(4)
FIELD_SHIFT = 2
_UNUSED = -1
_NEVER = 1 << 40  # more bytes than a value has


_ODD = re.compile(r'["\\\x00-\x1f]')


Array = TypeVar("Array", bound=npt.NDArray[Any])


class Program(NamedTuple):
    """The rows of columns, those of fields, their names, and a hash table of these.

    `follows` remembers the field that came after each field the last time. A struct has its own
    number there, for its first one.
    """

    rows: Int64s
    fields: Int64s
    names: npt.NDArray[np.uint8]
    table: Int64s
    follows: Int64s
    seed: np.uint64


class Compiler:
    """The program of a column, for a block of its layout."""

    def __init__(self, root: Column) -> None:
        self.layout, self.root = column_layout(root)
        self._rows: list[list[int]] = []
        self._nodes: list[Node | None] = []
        self._fields: list[list[int]] = []
        self._names = bytearray()
        self._table: list[int] = []
        self._seed = np.uint64(secrets.randbits(64))
        self._row(None, SKIP)
        self._add(self.root)

    def _row(self, node: Node | None, code: int) -> int:
        self._rows.append([code] + [0] * ((1 << SHIFT) - 1))
        self._nodes.append(node)
        return len(self._rows) - 1

    def _add(self, node: Node) -> int:
        column: Column = node.schema
        number = self._row(node, column.kind)
        row = self._rows[number]
        row[SPACE] = node.space
        if column.kind in (INTEGER, DECIMAL):
            row[LOW], row[HIGH] = _limits(column)
        if column.kind in (INTEGER, NUMBER):
            row[WIDTH] = self.layout.cells[node.cell].width
        if column.kind == STRUCT:
            row[FIRST], row[COUNT] = len(self._fields), len(column.names)
            self._fields += [[0, 0, 0, 0] for _ in column.names]
            for i, name in enumerate(column.names):
                encoded = name.encode()
                place = len(self._names)
                self._names += encoded + b'":'
                inside = self._add(node.children[i])
                # A name that JSON cannot write as it is must not be taken for its text.
                is_plain = not _ODD.search(name)
                quick = len(encoded) + 2 if is_plain else _NEVER
                self._fields[row[FIRST] + i] = [place, len(encoded), inside, quick]
            self._index(row, column)
        elif column.kind in (LIST, MAP):
            row[INSIDE] = node.children[0].space
            row[FIRST] = self._add(node.children[-1])
        return number

    def _index(self, row: list[int], column: Column) -> None:
        """Add a hash table of a struct's fields, at most half full."""
        size = 1 << max(2 * len(column.names), 1).bit_length()
        row[TABLE], row[MASK] = len(self._table), size - 1
        table = [_UNUSED] * size
        for i, name in enumerate(column.names):
            encoded = name.encode()
            content = np.frombuffer(encoded + bytes(8), dtype=np.uint8)
            place = hash_of(content, np.int64(0), np.int64(len(encoded)), self._seed) & size - 1
            while table[place] != _UNUSED:
                place = place + 1 & size - 1
            table[place] = row[FIRST] + i
        self._table += table

    def program(self, block: Block) -> Program:
        """The program with the places of a block's cells."""
        rows = np.array(self._rows, dtype=np.int64)
        bases = block.bases
        for number, node in enumerate(self._nodes):
            if node is None or node.form == "null":
                continue
            rows[number, VALID] = bases[node.valid]
            if node.cell >= 0:
                rows[number, BASE] = bases[node.cell]
            if rows[number, CODE] == MAP:
                rows[number, KEY] = bases[node.children[0].cell]
        fields = np.array(self._fields or [[0] * 4], dtype=np.int64)
        first = np.array([row[FIRST] for row in self._rows], dtype=np.int64)
        # A field is followed by the next one, unless the values have another order.
        follows = np.concatenate([np.arange(1, len(fields) + 1), first])
        for row in self._rows:
            if row[CODE] == STRUCT and row[COUNT]:
                follows[row[FIRST] + row[COUNT] - 1] = row[FIRST]
        return Program(
            _frozen(rows.reshape(-1)),
            _frozen(fields.reshape(-1)),
            _frozen(np.frombuffer(bytes(self._names) + bytes(WIDE), dtype=np.uint8)),
            _frozen(np.array(self._table or [_UNUSED], dtype=np.int64)),
            follows,
            self._seed,
        )


def _limits(column: Column) -> tuple[int, int]:
    if column.kind == INTEGER:
        return column.limits
    # A kernel reads decimals of up to 18 digits.
    digits = min(column.type.precision, 18)
    return column.type.scale, 10**digits


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array
