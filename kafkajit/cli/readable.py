"""Sizes, counts and times as people read them, and tables of them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_STEP = 1000
_TO_THE_MINUTE = len("2025-11-05 00:00")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LEAST_NAME = 12


def size_text(size: int) -> str:
    """A number of bytes in three digits.

    >>> size_text(0), size_text(999), size_text(1000), size_text(123_456_789)
    ('0 bytes', '999 bytes', '1.00 kB', '123 MB')
    """
    value = float(size)
    for unit in _UNITS:
        # 999.5 has four digits once it is rounded.
        if value < _STEP - 0.5 or unit == _UNITS[-1]:
            break
        value /= _STEP
    if unit == _UNITS[0]:
        return f"{size} {unit}"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {unit}"


def time_text(timestamp: int | None) -> str:
    """Kafka's milliseconds as a time to the second, in UTC.

    >>> time_text(1762300800123), time_text(None), time_text(2**62)
    ('2025-11-05 00:00:00', '-', '4611686018427387904')
    """
    if timestamp is None:
        return "-"
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return str(timestamp)
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def minute_text(timestamp: int | None) -> str:
    """As `time_text`, to the minute.

    >>> minute_text(1762300800123)
    '2025-11-05 00:00'
    """
    text = time_text(timestamp)
    return text[:_TO_THE_MINUTE] if ":" in text else text


def number_of(count: int, noun: str, plural: str | None = None) -> str:
    """A count and its noun.

    >>> number_of(1, "topic"), number_of(12_000, "batch", "batches")
    ('1 topic', '12,000 batches')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


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
