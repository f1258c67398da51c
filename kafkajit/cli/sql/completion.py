"""Completes keywords, views, columns, functions and the prompt's commands at Tab."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from kafkajit.cli.sql.query import Engine
from kafkajit.cli.sql.view_names import TEXT
from kafkajit.cli.sql.views import VIEWS, Logs

KEYWORDS = tuple(
    """
    ALL AND ANTI ANY AS ASC BETWEEN BY CASE CAST CREATE CROSS CURRENT DESC DESCRIBE DISTINCT DROP
    ELSE END EXCEPT EXISTS EXPLAIN FALSE FILTER FIRST FOLLOWING FROM FULL FUNCTIONS GROUP HAVING IN
    INNER INTERSECT INTERVAL IS JOIN LAST LATERAL LEFT LIKE LIMIT NATURAL NOT NULL NULLS OFFSET ON
    OR ORDER OUTER OVER PARTITION PIVOT PRECEDING QUALIFY RANGE REPLACE RIGHT RLIKE ROW ROWS SELECT
    SEMI SET SHOW TABLE TABLES TEMPORARY THEN TIMESTAMP TRUE UNBOUNDED UNION USING VALUES VIEW
    VIEWS WHEN WHERE WINDOW WITH
    """.split()  # noqa: SIM905
)

# The letters that end a word. A dot does not: commands begin with one.
_DELIMITERS = " \t\n()[]<>=!,;+-*/%|'\"`"
# Seconds that Tab waits for Spark to list its functions, once.
_PATIENCE = 1.5


class Completer:
    """Candidates for the word before the cursor."""

    def __init__(self, logs: Logs | None, engine: Engine, commands: Sequence[str]) -> None:
        self._engine = engine
        self._commands = commands
        self._views = [*VIEWS, *logs.topics()] if logs is not None else []
        self._columns = sorted(
            {column for view in VIEWS if logs for column in logs.columns_of(view)}
        )
        self._functions: list[str] = []  # Spark's own, once it has listed them
        self._asked: threading.Event | None = None
        self._found: list[str] = []
        self._readline: Any = None

    def install(self, readline: Any) -> None:
        """Install the completer in readline."""
        self._readline = readline
        readline.set_completer_delims(_DELIMITERS)
        readline.set_completer(self.complete)
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")

    def complete(self, word: str, state: int) -> str | None:
        """Return one candidate after the other, then None, as readline expects."""
        if state == 0:
            line = self._readline.get_line_buffer()[: self._readline.get_begidx()]
            try:
                self._found = self.candidates(line, word)
            except Exception:  # readline would print a traceback into the line
                self._found = []
        return self._found[state] if state < len(self._found) else None

    def candidates(self, before: str, word: str) -> list[str]:
        """The completions of a word, given the text before it on its line."""
        if before.startswith("."):
            arguments = {".format": TEXT, ".schema": self._views, ".timing": ("on", "off")}
            return _beginning_with(word, arguments.get(before.split()[0], ()))
        if word.startswith(".") and not before.strip():
            return _beginning_with(word, self._commands)
        qualifier, dot, rest = word.rpartition(".")
        if dot:
            return [f"{qualifier}.{name}" for name in _beginning_with(rest, self._columns)]
        if not word:
            return []
        names = [*_beginning_with(word, [*self._views, *self._columns])]
        functions = _beginning_with(word, self._known_functions())
        # Keywords and functions follow the case of the word's beginning.
        keywords = [
            keyword.lower() if word.islower() else keyword
            for keyword in _beginning_with(word, KEYWORDS)
        ]
        return list(dict.fromkeys([*names, *(f"{name}(" for name in functions), *keywords]))

    def _known_functions(self) -> Iterable[str]:
        spark = self._engine.started
        if spark is not None and self._asked is None:
            self._asked = threading.Event()
            threading.Thread(target=self._ask, args=(spark, self._asked), daemon=True).start()
            self._asked.wait(_PATIENCE)
        return self._functions or self._engine.functions()

    def _ask(self, spark: Any, asked: threading.Event) -> None:
        names = [row[0] for row in spark.sql("SHOW FUNCTIONS").collect()]
        self._functions = [*self._engine.functions(), *(n for n in names if n.isidentifier())]
        asked.set()


def _beginning_with(word: str, candidates: Iterable[str]) -> list[str]:
    return [name for name in candidates if name.lower().startswith(word.lower())]
