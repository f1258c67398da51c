"""Displays of notebooks: an object's text with a table or lines below it, and progress.

Texts of a log are shown and never run. A notebook keeps what it shows, so long ones are cut.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

from kafkajit.format.progress import Progress, Step, ignored

_WAIT = 1.0  # seconds before progress is shown
_SECONDS_BETWEEN = 0.2

_MOST_ROWS = 40
_MOST_LINES = 100


def html_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A title and a table: numbers on the right, and a row that stands for those in the middle.

    >>> html_table("<Log>", ["column"], [["offset"]]).count("offset")
    1
    """
    first = rows[0] if rows else columns
    sides = ["right" if isinstance(cell, int) else "left" for cell in first]
    head = _row("th", columns, sides)
    if len(rows) > _MOST_ROWS:
        half = _MOST_ROWS // 2
        left_out = f"… {len(rows) - 2 * half:,} more"
        rows = [*rows[:half], [left_out, *[""] * (len(columns) - 1)], *rows[-half:]]
    body = "".join(_row("td", row, sides) for row in rows)
    return f"{_title(title)}<table>{head}{body}</table>"


def html_lines(title: str, text: str) -> str:
    """A title and the lines of a text, indented as they are.

    >>> html_lines("<Plan>", "orders-0:")
    '<p><code>&lt;Plan&gt;</code></p><pre>orders-0:</pre>'
    """
    lines = text.splitlines()
    more = len(lines) - _MOST_LINES
    if more > 0:
        lines[_MOST_LINES:] = [f"… {more:,} more lines: print() shows all of them"]
    return f"{_title(title)}<pre>{escape(chr(10).join(lines))}</pre>"


def _title(title: str) -> str:
    return f"<p><code>{escape(title)}</code></p>"


def _row(tag: str, cells: Sequence[object], sides: Sequence[str]) -> str:
    """Cells with their side as a style: Jupyter puts all of them on the right."""
    texts = [f"{cell:,}" if isinstance(cell, int) else escape(str(cell)) for cell in cells]
    each = zip(sides, texts, strict=True)
    shown = (f'<{tag} style="text-align: {side}">{text}</{tag}>' for side, text in each)
    return f"<tr>{''.join(shown)}</tr>"


@contextmanager
def in_notebook() -> Iterator[Progress]:
    """A `Progress` that a notebook shows below its cell until the work is done.

    Outside of notebooks it shows nothing. IPython is used if it runs, and never imported.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):  # a terminal's IPython, or Python alone
        yield ignored
        return
    display = _Display()
    try:
        yield display.update
    finally:
        display.clear()


class _Display:
    """An output of a notebook's cell, which is written again and again."""

    def __init__(self) -> None:
        self._step = Step("", 0, 0)
        self._due = time.monotonic() + _WAIT
        self._handle: Any = None

    def update(self, name: str, done: int, total: int) -> None:
        """Show a step, a moment after the last time."""
        self._step = self._step.updated(name, done, total)
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _SECONDS_BETWEEN
            self._show(self._step.forms()[0], self._step.part)

    def clear(self) -> None:
        """Empty the output."""
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)

    def _show(self, text: str, part: float | None) -> None:
        bar = "" if part is None else f'<progress max="1" value="{part:.4f}"></progress> '
        shown = {"text/plain": text, "text/html": f"<div>{bar}{escape(text)}</div>"}
        if self._handle is None:
            display = sys.modules["IPython"].display.display
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
