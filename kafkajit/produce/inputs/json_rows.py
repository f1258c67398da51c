"""Files of JSON lines → rows: the members of each line as they stand in its text.

No number becomes a double, no text a time, and no value gets members of others. Blank lines are
skipped. A line that is not one JSON object, a name that comes twice in a line and text that is not
UTF-8 are errors, which name the line.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafkajit.arrow.arrays import allocate, bits
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.produce.inputs.json_members import (
    DONE,
    FULL,
    MALFORMED,
    NEW_NAME,
    TWICE,
    WITH_ESCAPES,
    read_members,
    write_texts,
)
from kafkajit.produce.inputs.rows import (
    MISSING,
    MOST_ROWS,
    NULL,
    STRING,
    BadInputError,
    JsonCells,
    Rows,
    line_of,
)
from kafkajit.produce.inputs.text_blocks import TextBlocks
from kafkajit.storage.source import Bytes, Int64s
from kafkajit.values.json.careful import MalformedError, check
from kafkajit.values.json.strings import hash_of
from kafkajit.values.json.types import MAX_DEPTH

_UNWANTED, _WANTED = -1, -2  # columns of names
_MOST_NAMES = 10_000  # that are remembered


def json_rows(text: TextBlocks, wanted: Collection[str]) -> Iterator[Rows]:
    """The rows of a file; `wanted` are the names of the members that are read."""
    names = _Names(wanted)
    cells = _Cells(len(wanted))
    stack = np.zeros(MAX_DEPTH, dtype=np.uint8)
    line, row = 1, 0  # the next ones
    state = np.zeros(4, dtype=np.int64)
    while True:
        state[0] = text.start
        status, row, line = read_members(
            text.content, text.end, text.is_last, names.table, names.used, cells.cells, stack,
            row, line, state,
        )  # fmt: skip
        position = int(state[0])
        name = text.content[int(state[1]) : int(state[2])].tobytes()
        if status == NEW_NAME:
            names.add(name, f"line {line}")
        elif status == TWICE:
            raise BadInputError(
                f"the member {name.decode()!r:.80} comes twice", place=f"line {line}"
            )
        elif status == MALFORMED:
            raise BadInputError(_why(text, position), place=f"line {line}")
        if status in (DONE, FULL):
            # Cells point into the text, which is given up when more is read.
            if row:
                yield _rows(text.content, names, cells, row)
            row = 0
        text.take(position)
        if text.is_taken:
            return
        if status == DONE:
            text.more(f"line {line}")


def _rows(content: Bytes, names: _Names, cells: _Cells, rows: int) -> Rows:
    lines = cells.lines[:rows].copy()
    columns = {}
    for name, number in names.columns.items():
        try:
            columns[name] = cells.column(content, number, rows)
        except BadInputError as error:
            error.place = f"line {lines[error.row]}, column {name!r}"
            raise
    return Rows(columns, rows, names.seen, partial(line_of, lines))


def _why(text: TextBlocks, position: int) -> str:
    """The reason why the line at a position is not an object."""
    line = text.content[position : text.end].tobytes().partition(b"\n")[0]
    if not text.is_last and position + len(line) == text.end:
        return f"a record has more than {len(line):,} bytes"
    try:
        check(line)
    except MalformedError as error:
        hint = ": each line must be a JSON object, as jq -c writes it"
        return f"{error}{hint if line.strip() in (b'{', b'[') else ''}"
    return "the line is not a JSON object: put each record on a line, as jq -c '.[]' does"


class _NameTable(NamedTuple):
    """The names for the kernel: see read_members."""

    places: Int64s
    sizes: Int64s
    columns: Int64s
    slots: Int64s
    follows: Int64s
    texts: Bytes
    seed: np.uint64


class _Names:
    """The names of members; those that are wanted have columns once they have come."""

    def __init__(self, wanted: Collection[str]) -> None:
        self.columns: dict[str, int] = {}
        self.seen: dict[str, None] = {}
        self._wanted = frozenset(wanted)
        self._spelled: dict[bytes, int] = {}  # names as they stand in the text: their numbers
        self._seed = np.uint64(secrets.randbits(64))
        self._texts = bytearray()
        self._rows: list[tuple[int, int, int]] = []  # place, size, column
        self._make_room(64)
        for name in wanted:
            self._spell(json.dumps(name, ensure_ascii=False).encode()[1:-1], _WANTED)

    @property
    def used(self) -> int:
        """The number of columns that have been used."""
        return len(self.columns)

    def add(self, spelled: bytes, place: str) -> None:
        """Add a name as it stands in the text."""
        name = json.loads(b'"' + spelled + b'"')
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise BadInputError("a name has half a surrogate pair", place=place)
        if len(self._spelled) == _MOST_NAMES:
            raise BadInputError(f"there are more than {_MOST_NAMES:,} names", place=place)
        if name in self._wanted:
            self._spell(spelled, self.columns.setdefault(name, len(self.columns)))
        else:
            self._spell(spelled, _UNWANTED)
        self.seen[name] = None

    def _spell(self, spelled: bytes, column: int) -> None:
        number = self._spelled.get(spelled)
        if number is not None:
            self._rows[number] = (*self._rows[number][:2], column)
            self.table.columns[number] = column
            return
        number = self._spelled[spelled] = len(self._rows)
        self._rows.append((len(self._texts), len(spelled), column))
        self._texts += spelled
        if number == self.table.sizes.size or len(self._texts) + WIDE > self.table.texts.size:
            self._make_room(2 * number)
        else:
            self._put(number)

    def _make_room(self, count: int) -> None:
        """Make arrays for this many names, and put all names into them."""
        slots = np.full(1 << (4 * count).bit_length(), -1, dtype=np.int64)
        follows = np.zeros(count + 1, dtype=np.int64)
        texts = np.zeros(2 * len(self._texts) + 16 * count + WIDE, dtype=np.uint8)
        places, sizes, columns = (np.zeros(count, dtype=np.int64) for _ in range(3))
        self.table = _NameTable(places, sizes, columns, slots, follows, texts, self._seed)
        for number in range(len(self._rows)):
            self._put(number)

    def _put(self, number: int) -> None:
        places, sizes, columns, slots, _, texts, seed = self.table
        place, size, column = self._rows[number]
        places[number], sizes[number], columns[number] = place, size, column
        texts[place : place + size] = np.frombuffer(self._texts, np.uint8, size, place)
        slot = hash_of(texts, np.int64(place), np.int64(size), seed) & (slots.size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = number


class _Cells:
    """The places of a batch's cells in the text."""

    def __init__(self, columns: int) -> None:
        starts = np.zeros(columns * MOST_ROWS, dtype=np.int64)
        letters = np.zeros(columns * MOST_ROWS, dtype=np.uint8)
        self.lines: Int64s = np.zeros(MOST_ROWS, dtype=np.int64)
        self.cells = (starts, np.zeros_like(starts), letters, self.lines)

    def column(self, content: Bytes, number: int, rows: int) -> JsonCells:
        """The cells of a column."""
        span = slice(number * MOST_ROWS, number * MOST_ROWS + rows)
        starts, sizes, letters = (array[span] for array in self.cells[:3])
        has_text = (letters != MISSING) & (letters != NULL)
        out = allocate(int(sizes[has_text].sum()) + WIDE, np.uint8)
        offsets = allocate(rows + 1, np.int64)
        row, size = write_texts(content, starts, sizes, letters, offsets, out)
        if row < rows:
            raise BadInputError("a string has half a surrogate pair", row=row)
        texts = pa.Array.from_buffers(
            pa.large_binary(),
            rows,
            [bits(has_text), pa.py_buffer(offsets), pa.py_buffer(out).slice(0, size)],
        )
        kinds = np.where(letters == WITH_ESCAPES, np.uint8(STRING), letters)
        return JsonCells(texts, kinds)
