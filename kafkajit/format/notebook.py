"""HTML that notebooks show for an object: its text, and a table below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A title and a table; what the texts hold is shown, never run.

    >>> html_table("<Log>", ["column"], [["offset"]])
    '<p><code>&lt;Log&gt;</code></p><table><tr><th>column</th></tr><tr><td>offset</td></tr></table>'
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return f"<p><code>{escape(title)}</code></p><table><tr>{head}</tr>{body}</table>"
