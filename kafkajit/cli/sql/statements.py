r"""Text → statements, with strings, names and comments as in Spark's lexer (SqlBaseLexer.g4).

>>> split("SELECT ';' -- one; still\n; SELECT 2")
([Statement(text="SELECT ';' -- one; still", line=1)], Statement(text='SELECT 2', line=2))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Statement(NamedTuple):
    """A statement without its semicolon, and the line on which it begins."""

    text: str
    line: int


class Token(NamedTuple):
    """A piece of SQL.

    Its kind is word, name (in backquotes), string, number, symbol, comment or space. `open` is an
    unterminated string, name or comment.
    """

    kind: str
    text: str
    start: int

    @property
    def name(self) -> str:
        """The token as a name in lower case; empty if it cannot be a name."""
        if self.kind == "name":
            return self.text[1:-1].replace("``", "`").lower()
        return self.text.lower() if self.kind == "word" else ""


_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--(?:\\\n|[^\r\n])* | /\*\+.*?\*/)  # hints too: they name nothing
    | (?P<string>[rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*"
        | \$(?P<tag>[A-Za-z]*)\$ .*? \$(?P=tag)\$)
    | (?P<name>`(?:[^`]|``)*`)
    | (?P<nested>/\*)
    | (?P<open>[rR]?['"].* | `.* | \$[A-Za-z]*\$.*)
    | (?P<number>\d[\w.]*)
    | (?P<word>[^\W\d]\w*)
    | (?P<symbol>\|>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_BLANK = ("space", "comment")


def tokens(text: str) -> Iterator[Token]:
    """Split the text into tokens, which joined give the text again."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None, "a symbol is any character"
        kind, piece = found.lastgroup or "", found.group()
        if kind == "nested":
            end = _end_of_comment(text, at)
            kind, piece = ("comment", text[at:end]) if end else ("open", text[at:])
        yield Token(kind, piece, at)
        at += len(piece)


def _end_of_comment(text: str, start: int) -> int | None:
    """The position behind the comment that begins at `start`; comments nest."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return None


def split(text: str) -> tuple[list[Statement], Statement | None]:
    """The statements that end with a semicolon, and the rest behind the last of them.

    Blanks and comments around a statement are left out, and so are empty statements. A script
    (BEGIN … END) is one statement.
    """
    whole: list[Statement] = []
    pending: list[Token] = []
    depth = 0  # of BEGIN … END and CASE … END in a script
    previous = ""
    for token in tokens(text):
        if not pending and token.kind in _BLANK:
            continue
        if token.text == ";" and token.kind == "symbol" and depth <= 0:
            if pending:
                whole.append(_statement(text, pending))
            pending, depth, previous = [], 0, ""
            continue
        pending.append(token)
        if token.kind in _BLANK:
            continue
        if pending[0].name == "begin":
            depth += _deeper(token.name, previous)
        previous = token.name
    return whole, _statement(text, pending) if pending else None


def _deeper(word: str, previous: str) -> int:
    """By how much a word of a script changes the depth of its blocks."""
    if previous == "end":
        # END has closed a block. A block that begins with this word was not counted.
        return 1 if word in ("if", "loop", "while", "repeat", "for") else 0
    return {"begin": 1, "case": 1, "end": -1}.get(word, 0)


def _statement(text: str, pieces: list[Token]) -> Statement:
    start = pieces[0].start
    end = max(piece.start + len(piece.text) for piece in pieces)
    return Statement(text[start:end].rstrip(), text.count("\n", 0, start) + 1)


def on_one_line(text: str) -> str:
    r"""The statement without comments and line ends, for the history.

    >>> on_one_line("SELECT 1, -- one\n       'a\nb'")
    "SELECT 1, 'a\\nb'"
    """
    parts: list[str] = []
    for token in tokens(text):
        if token.kind in _BLANK and not token.text.startswith("/*+"):
            parts.extend([" "] if parts and parts[-1] != " " else [])
        elif "\n" in token.text and token.kind == "string" and token.text[0] in "'\"":
            parts.append(token.text.replace("\n", r"\n"))
        else:
            parts.append(token.text.replace("\n", " "))
    return "".join(parts).strip()


def names_in(text: str) -> set[str]:
    """Every word and quoted name of a statement, in lower case."""
    return {token.name for token in tokens(text)} - {""}


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """The line and the column of a character, both counted from 0."""
    before = text[:position]
    return before.count("\n"), position - (before.rfind("\n") + 1)


def lists_views(text: str) -> bool:
    """Whether a statement lists all views: SHOW TABLES or SHOW VIEWS."""
    names = names_in(text)
    return "show" in names and bool(names & {"tables", "views"})


def mentioned(text: str, views: Iterable[str]) -> list[str]:
    """The views that a statement may use: those that it names, or all if it lists views."""
    if lists_views(text):
        return list(views)
    names = names_in(text)
    return [view for view in views if view.lower() in names]


def created(text: str) -> str:
    """The name, in lower case, of the view or table that a statement creates; else empty.

    >>> created("CREATE OR REPLACE TEMP VIEW Mine AS SELECT 1")
    'mine'
    """
    words = [token for token in tokens(text) if token.kind not in _BLANK]
    if not words or words[0].name != "create":
        return ""
    kinds = [at for at, word in enumerate(words) if word.name in ("view", "table")]
    rest = words[kinds[0] + 1 :] if kinds else []
    if [word.name for word in rest[:3]] == ["if", "not", "exists"]:
        rest = rest[3:]
    return rest[0].name if rest else ""
