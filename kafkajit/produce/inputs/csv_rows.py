"""Files of CSV → rows of text. The first line has the names of the columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from kafkajit.arrow.arrays import allocate, bits
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.produce.inputs.csv_fields import (
    ANY_COUNT,
    BEHIND_QUOTE,
    DONE,
    LONE_RETURN,
    NOT_UTF8,
    QUOTE_INSIDE,
    SHORT,
    UNCLOSED,
    WRONG_COUNT,
    read_fields,
    write_fields,
)
from kafkajit.produce.inputs.rows import MOST_ROWS, BadInputError, Rows, check_names, line_of
from kafkajit.produce.inputs.text_blocks import TextBlocks
from kafkajit.storage.source import Bytes, Int64s

_MOST_COLUMNS = 100_000
_WORDS = {
    QUOTE_INSIDE: 'a field has a quote inside, and is not quoted itself: write it as "a ""b"" c"',
    BEHIND_QUOTE: "text follows the closing quote of a field: double the quotes inside of it",
    LONE_RETURN: "a carriage return has no newline behind it, and is not in quotes",
    NOT_UTF8: "the text is not UTF-8: convert it, as with iconv, or pass bytes as base64",
    UNCLOSED: "the quote of a field is not closed",
}


def csv_rows(text: TextBlocks, wanted: Collection[str]) -> Iterator[Rows]:
    """The rows of a file; `wanted` are the names of the columns that are read."""
    if text.is_taken:
        return
    names, line = _header(text)
    check_names(names)
    used = [name for name in names if name in wanted]
    columns = np.array([used.index(name) if name in wanted else -1 for name in names])
    cells = _Cells(len(used), MOST_ROWS)
    for rows, _ in _records(text, len(names), columns, cells, line):
        lines = cells.lines[:rows].copy()
        found = {name: cells.column(text.content, at, rows) for at, name in enumerate(used)}
        yield Rows(found, rows, names, partial(line_of, lines))


def _header(text: TextBlocks) -> tuple[list[str], int]:
    """The names of the columns, and the line behind them."""
    cells = _Cells(_MOST_COLUMNS, 1)
    every = np.arange(_MOST_COLUMNS)
    for _, (line, count) in _records(text, ANY_COUNT, every, cells, 1):
        if count > _MOST_COLUMNS:
            raise BadInputError(f"there are more than {_MOST_COLUMNS:,} columns", place="line 1")
        names = [cells.column(text.content, at, 1)[0].as_py() or "" for at in range(count)]
        if names == [""]:
            raise BadInputError("the line is blank, and must name the columns", place="line 1")
        return names, line
    return [], 1


def _records(
    text: TextBlocks, expected: int, columns: Int64s, cells: _Cells, line: int
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield (rows, (the next line, a record's fields)) whenever cells point to some records."""
    row = 0
    while True:
        status, row, line, position, number = read_fields(
            text.content, text.start, text.end, text.is_last, expected, columns, cells.cells,
            row, line,
        )  # fmt: skip
        if status == WRONG_COUNT:
            raise BadInputError(
                f"the record has {number:,} field{'' if number == 1 else 's'}, and the line of "
                f"names {expected:,}",
                place=f"line {line}",
            )
        if status in _WORDS:
            raise BadInputError(_WORDS[status], place=f"line {number}")
        text.take(position)
        if row:
            yield row, (line, number)
        row = 0
        if text.is_taken:
            return
        if status in (DONE, SHORT):
            text.more(f"line {line}")


class _Cells:
    """The places of a batch's cells in the text."""

    def __init__(self, columns: int, rows: int) -> None:
        starts = np.zeros(columns * rows, dtype=np.int64)
        forms = np.zeros(columns * rows, dtype=np.uint8)
        self.lines: Int64s = np.zeros(rows, dtype=np.int64)
        self.cells = (starts, np.zeros_like(starts), forms, self.lines)
        self._rows = rows

    def column(self, content: Bytes, number: int, rows: int) -> pa.Array:
        """The text of a column."""
        span = slice(number * self._rows, number * self._rows + rows)
        starts, sizes, forms = (array[span] for array in self.cells[:3])
        has_text = sizes >= 0
        out = allocate(int(sizes[has_text].sum()) + WIDE, np.uint8)
        offsets = allocate(rows + 1, np.int64)
        size = write_fields(content, starts, sizes, forms, offsets, out)
        buffers = [bits(has_text), pa.py_buffer(offsets), pa.py_buffer(out).slice(0, size)]
        return pa.Array.from_buffers(pa.large_string(), rows, buffers)
