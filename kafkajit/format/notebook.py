"""HTML that notebooks show for an object: its text, and a table or lines below it.

Texts of a log are shown and never run. A notebook keeps what it shows, so long ones are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

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
