"""The rows of a file: their columns, and the place of each row in words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.format.printable import printable
from kafkajit.storage.source import Int64s, Mask

# The first letter of a JSON value decides its kind. A missing member has none.
MISSING, STRING, NULL = 0, ord('"'), ord("n")
OBJECT, ARRAY = ord("{"), ord("[")
TRUE, FALSE = ord("t"), ord("f")
MOST_ROWS = 1 << 16  # of a batch
MOST_RECORD = 256 << 20  # bytes of a row


class JsonCells(NamedTuple):
    """A member of each line of JSON: its text, and the letter that decides its kind.

    The text of a string has no quotes and no escapes. Any other value stands as in the line.
    """

    texts: pa.Array
    letters: npt.NDArray[np.uint8]


# A column of Arrow's, or of JSON lines. A column of CSV is text.
Column: TypeAlias = "pa.Array | JsonCells"


@dataclass(frozen=True)
class Rows:
    """Some rows of a file.

    Args:
        columns: those that were asked for.
        count: how many rows there are.
        names: the names of all columns that the file has had so far.
        place: the place of a row in the file, such as "line 7".
    """

    columns: Mapping[str, Column]
    count: int
    names: Collection[str]
    place: Callable[[int], str]


def line_of(lines: Int64s, row: int) -> str:
    """The line of a row."""
    return f"line {lines[row]}"


def row_from(first: int, inside: str, row: int) -> str:
    """The number of a row of a batch whose first row has the number `first`, from 1 on."""
    return f"row {first + row}{inside}"


class BadInputError(Exception):
    """A file, or a cell of a batch, is wrong; `row` counts in the batch, `place` is in words."""

    def __init__(self, words: str, *, row: int | None = None, place: str | None = None) -> None:
        super().__init__(words)
        self.words, self.row, self.place = words, row, place


def refuse(is_bad: Mask, words: Callable[[int], str]) -> None:
    """Raise an error about the first row that is bad; `words` gets its number."""
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise BadInputError(words(row), row=row)


def check_names(names: Collection[str]) -> None:
    """Raise if two columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInputError(f"there are several columns {name!r:.80}: rename or remove one")
        seen.add(name)


@contextmanager
def in_file(path: str, rows: Rows | None = None) -> Iterator[None]:
    """Turn an error about an input into one that names the file, and perhaps the row."""
    try:
        yield
    except BadInputError as error:
        place = error.place
        if place is None and rows is not None and error.row is not None:
            place = rows.place(error.row)
        where = path if place is None else f"{path}, {place}"
        raise ValueError(f"{where}: {printable(error.words)}") from None


def separator_hint(names: Collection[str]) -> str:
    """A remedy if the names look like those of a file that has no commas."""
    (first, *others) = [*names] or [""]
    if first.startswith("sep="):
        return "; remove the first line, which is for Excel alone"
    for sign, words in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")):
        if not others and sign in first:
            return f"; the file has {words} between its fields: write it with commas"
    return ""


@contextmanager
def in_column(name: str) -> Iterator[None]:
    """Name the column in an error for one of its cells."""
    try:
        yield
    except BadInputError as error:
        error.words = f"column {name!r}: {error.words}"
        raise


def is_null(column: Column) -> Mask:
    """Whether each cell is NULL, or missing."""
    if isinstance(column, JsonCells):
        is_null: Mask = (column.letters == NULL) | (column.letters == MISSING)
        return is_null
    return column.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
