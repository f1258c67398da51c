"""Prints a few rows for people: as a table that fits the terminal, or as a line for each value."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from kafkajit.values.arrow_text import text_of

# Texts are cut down to this width before whole columns of the table are left out.
_LEAST_TEXT = 12
_BETWEEN = 3  # the width of a border and its blanks


class Border(NamedTuple):
    """The characters of a table's lines."""

    horizontal: str
    vertical: str
    top: str
    middle: str
    bottom: str
    more: str


BOX = Border("─", "│", "┌┬┐", "├┼┤", "└┴┘", "…")
ASCII = Border("-", "|", "+++", "+++", "+++", "~")


class ShownRows(NamedTuple):
    """The rows to show."""

    table: pa.Table
    types: Sequence[str]  # Spark's names of the columns' types
    cut_at: int | None = None  # bytes of this size may have been cut, in the middle of a letter


class _Column(NamedTuple):
    name: str
    type: str
    cells: list[str]
    to_the_right: bool  # numbers
    can_shrink: bool  # text
    end_counts: bool = False  # a cut keeps the end of each text

    @property
    def width(self) -> int:
        return max(map(width_of, (self.name, self.type, *self.cells)))

    @property
    def least(self) -> int:
        return min(self.width, _LEAST_TEXT) if self.can_shrink else self.width


def as_table(
    rows: ShownRows, width: int | None = None, border: Border = BOX
) -> tuple[list[str], int]:
    r"""The lines of a table no wider than this, and how many of its columns are shown.

    >>> table = pa.table({"topic": ["orders"], "offset": [42]})
    >>> print(*as_table(ShownRows(table, ["string", "bigint"]))[0], sep="\n")
    ┌────────┬────────┐
    │ topic  │ offset │
    │ string │ bigint │
    ├────────┼────────┤
    │ orders │     42 │
    └────────┴────────┘
    """
    columns = _columns(rows)
    shown = columns if width is None else _fitting(columns, width, border)
    widths = [column.width for column in shown]
    if width is not None:
        widths = _shared(shown, width - 1 - _BETWEEN * len(shown))
    bars = [
        bar[0] + bar[1].join(border.horizontal * (size + 2) for size in widths) + bar[2]
        for bar in (border.top, border.middle, border.bottom)
    ]
    lines = [bars[0]]
    lines.append(_line([column.name for column in shown], shown, widths, border))
    lines.append(_line([column.type for column in shown], shown, widths, border))
    if rows.table.num_rows:
        lines.append(bars[1])
    lines.extend(
        _line([column.cells[row] for column in shown], shown, widths, border)
        for row in range(rows.table.num_rows)
    )
    lines.append(bars[2])
    # If columns were left out, one of those shown has only dots.
    return lines, len(columns) if shown is columns else len(shown) - 1


def as_lines(rows: ShownRows) -> list[str]:
    """A line for each value, uncut, and an empty line between rows.

    >>> as_lines(ShownRows(pa.table({"topic": ["orders"], "offset": [42]}), ["string", "bigint"]))
    [' topic = orders', 'offset = 42']
    """
    columns = _columns(rows)
    widest = max((width_of(column.name) for column in columns), default=0)
    lines: list[str] = []
    for row in range(rows.table.num_rows):
        lines.extend([""] if row else [])
        for column in columns:
            name = " " * (widest - width_of(column.name)) + column.name
            lines.append(f"{name} = {column.cells[row]}".rstrip())
    return lines


def as_report(rows: ShownRows) -> list[str] | None:
    r"""The lines of a result that is a single text of several lines, as of EXPLAIN; else None.

    >>> as_report(ShownRows(pa.table({"plan": ["Project\n+- Scan"]}), ["string"]))
    ['Project', '+- Scan']
    """
    table = rows.table
    if table.shape != (1, 1) or not pa.types.is_string(table.schema.types[0]):
        return None
    text = table[0][0].as_py() or ""
    return [escaped(line) for line in text.strip().split("\n")] if "\n" in text else None


def _columns(rows: ShownRows) -> list[_Column]:
    return [
        _Column(
            escaped(name),
            type_,
            _cells(array, rows.cut_at),
            to_the_right=_is_number(array.type),
            can_shrink=not (_is_number(array.type) or pa.types.is_timestamp(array.type)),
            end_counts=name == "path",  # the folder is the same in all rows
        )
        for name, type_, array in zip(
            rows.table.column_names, rows.types, rows.table.columns, strict=True
        )
    ]


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _cells(array: pa.ChunkedArray, cut_at: int | None) -> list[str]:
    whole = array.combine_chunks()
    if cut_at is not None and pa.types.is_binary(whole.type):
        whole = pa.array([_without_torn_letter(v, cut_at) for v in whole.to_pylist()], whole.type)
    return ["NULL" if text is None else _cell(text) for text in text_of(whole).to_pylist()]


def _without_torn_letter(value: bytes | None, cut_at: int) -> bytes | None:
    """Drop the UTF-8 letter that a cut has left incomplete at the end."""
    if value is None or len(value) < cut_at:
        return value
    for missing in range(1, min(4, len(value) + 1)):
        lead = value[-missing]
        if 0xC2 <= lead <= 0xF4:
            size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return value[:-missing] if size > missing else value
        if lead < 0x80:
            break
    return value


def _cell(text: str) -> str:
    # Quotes tell the text NULL from a NULL.
    return f"'{text}'" if text == "NULL" else escaped(text)


class _Escapes(dict[int, str]):
    """The texts that `escaped` writes for code points, as `str.translate` asks for them."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        return self[code]


_ESCAPES = _Escapes()


def escaped(text: str) -> str:
    r"""The text with control characters and invisible letters escaped, which a terminal would obey.

    >>> escaped("a\n\x1b[31m")
    'a\\n\\x1b[31m'
    """
    if text.isprintable():
        return text
    return text.translate(_ESCAPES)


def width_of(text: str) -> int:
    """The width of a text on a terminal, in columns.

    >>> width_of("naïve"), width_of("日本")
    (5, 4)
    """
    if text.isascii():
        return len(text)
    return sum(map(_width_of_letter, text))


def _width_of_letter(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def fitted(
    text: str,
    width: int,
    more: str = "…",
    *,
    to_the_right: bool = False,
    end_counts: bool = False,
) -> str:
    """The text in exactly this width, cut or padded."""
    missing = width - width_of(text)
    if missing < 0:
        kept, room = "", width - 1
        for letter in reversed(text) if end_counts else text:
            room -= _width_of_letter(letter)
            if room < 0:
                break
            kept += letter
        text = more + kept[::-1] if end_counts else kept + more
        missing = width - width_of(text)
    return " " * missing + text if to_the_right else text + " " * missing


def _line(cells: list[str], columns: list[_Column], widths: list[int], border: Border) -> str:
    parts = (
        fitted(
            cell,
            width,
            border.more,
            to_the_right=column.to_the_right,
            end_counts=column.end_counts,
        )
        for cell, column, width in zip(cells, columns, widths, strict=True)
    )
    edge = border.vertical
    return f"{edge} " + f" {edge} ".join(parts) + f" {edge}"


def _fitting(columns: list[_Column], width: int, border: Border) -> list[_Column]:
    """The columns that fit, with a column of dots if others were left out of the middle."""

    def fits(shown: list[_Column]) -> bool:
        return 1 + sum(column.least + _BETWEEN for column in shown) <= width

    if fits(columns):
        return columns
    dots = _Column(border.more, border.more, [border.more] * len(columns[0].cells), False, False)
    for kept in range(len(columns) - 1, 0, -1):
        # Two thirds of the columns kept are the first ones, which identify a row.
        first = -(-kept * 2 // 3)
        shown = [*columns[:first], dots, *columns[len(columns) - (kept - first) :]]
        if fits(shown) or kept == 1:
            return shown
    return columns


def _shared(columns: list[_Column], room: int) -> list[int]:
    """The columns' widths in the room that they share: the longest texts are cut."""
    widths = [column.width for column in columns]
    excess = sum(widths) - room
    while excess > 0:
        longest = max(
            (width for width, column in zip(widths, columns, strict=True) if column.can_shrink),
            default=0,
        )
        if longest <= 1:
            # Even the numbers alone do not fit, and are cut.
            at = max(range(len(widths)), key=widths.__getitem__)
            if widths[at] <= 1:
                break
            widths[at] -= 1
            excess -= 1
            continue
        for at, column in enumerate(columns):
            if excess > 0 and column.can_shrink and widths[at] == longest:
                widths[at] -= 1
                excess -= 1
    return widths
