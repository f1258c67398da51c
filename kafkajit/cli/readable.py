"""Tables and texts that fit the terminal."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence

from kafkajit.cli.look import DAMAGE, HEADING, QUIET, WARNING, painted
from kafkajit.format.printable import printable

_LEAST_NAME = 12
# Expressions are compiled when they are first used: all commands import this module.
_BEHIND = r" *(?:\S+ {2,})?"
# The meaning of the first of these that begins a line, or of the group in it.
_MEANINGS = (
    (r"([^ :]+:)", HEADING),  # a partition's name
    (r"  note:", WARNING),
    (r"(?:[^ ]+: )?\d[\d,]* partitions? left alone:", WARNING),
    (r"  done", QUIET),
    (r" +[^ ]+ +(cut (?:off|out)\b.*)", DAMAGE),
    (r"  [\d,]+ sound batch", DAMAGE),
)


def _width() -> int | None:
    """The columns of the terminal; None in a pipe: nothing is cut there."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: str) -> list[str]:
    """The lines of a table; `left` names the columns whose cells begin at the left.

    If the lines would be wider than the terminal, the cells of the first column are cut, and those
    of the last one if that does not suffice.

    >>> table(["topic", "bytes"], [["orders", "12"]], left="topic")
    ['topic   bytes', 'orders     12']
    """
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    most = _width()
    if most is not None:
        for column in (0, len(widths) - 1):
            over = sum(widths) + 2 * (len(widths) - 1) - most
            least = min(widths[column], max(len(head[column]), _LEAST_NAME))
            widths[column] = max(widths[column] - max(over, 0), least)
    is_left = [name in left.split() for name in head]
    lines = []
    for row in zip(*columns, strict=True):
        cells = [
            f"{cut(cell, size):<{size}}" if at_left else f"{cell:>{size}}"
            for cell, size, at_left in zip(row, widths, is_left, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def cut(text: str, size: int) -> str:
    """The text if it fits, or its beginning and end.

    >>> cut("orders-by-customer", 11), cut("orders", 11)
    ('order…tomer', 'orders')
    """
    if len(text) <= size:
        return text
    half = size // 2
    return f"{text[: size - half - 1]}…{text[-half:]}"


def print_line(line: str) -> None:
    """Print a line, whatever names in it have; wrap it on a terminal that is too narrow for it.

    The wrapped lines are indented like the first one, or, if it begins with a name and two spaces,
    like the text behind them, or a little if the first one is not.
    """
    line = printable(line)
    match, meaning = _meaning(line)
    start, end = match.span(match.re.groups) if match else (0, 0)
    rest = len(line) - end
    if sys.stdout.isatty():
        behind = line[: re.match(_BEHIND, line).end()]  # type: ignore[union-attr]
        line = textwrap.fill(
            line[len(behind) :],
            max(shutil.get_terminal_size().columns, len(behind) + 20),
            initial_indent=behind,
            subsequent_indent=" " * (len(behind) or 4),
            break_on_hyphens=False,
        )
        if match and not rest:
            end = len(line)
    print(f"{line[:start]}{painted(line[start:end], meaning)}{line[end:]}")


def _meaning(line: str) -> tuple[re.Match[str] | None, str]:
    """The part of a line that has a meaning of its own, and that meaning."""
    for pattern, meaning in _MEANINGS:
        match = re.match(pattern, line)
        if match is not None:
            return match, meaning
    return None, HEADING
