"""The prompt's commands, which begin with a dot."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kafkajit.cli.sql.error_report import meant
from kafkajit.cli.sql.shell import Shell
from kafkajit.cli.sql.table import width_of
from kafkajit.cli.sql.view_names import BINARY, TEXT, TOPICS_DOC, VIEW_DOCS
from kafkajit.cli.sql.views import VIEWS, Logs
from kafkajit.spark.catalogue import FUNCTIONS, TABLE_FUNCTION

_TRY = """\
  SELECT topic, partition, count(*), max(timestamp) FROM records GROUP BY ALL;
  SELECT offset, value FROM records WHERE topic = 'orders' AND offset >= 20;
  SELECT * FROM corruption;
  SELECT * FROM indexes WHERE problems > 0;
  SELECT explode(kafka_records(content)) FROM binaryFile;"""

# The names of these commands in other prompts.
_WITHOUT_DOT = {"help": ".help", "quit": ".quit", "exit": ".quit"}
_OF_PSQL = {
    "\\?": ".help",
    "\\h": ".help",
    "\\d": ".tables",
    "\\dt": ".tables",
    "\\dv": ".tables",
    "\\df": ".functions",
    "\\timing": ".timing",
    "\\q": ".quit",
}


class Leave(Exception):
    """Raised by the command that ends the prompt."""


class Command(NamedTuple):
    """A command's arguments and description, and the function that turns its words into text."""

    arguments: str
    doc: str
    run: Callable[[list[str]], str]


class Commands:
    """The commands by name, and what they change."""

    def __init__(self, shell: Shell, logs: Logs | None) -> None:
        self._shell = shell
        self._logs = logs
        self.by_name = {
            ".help": Command("", "show this help", self._help),
            ".tables": Command(
                "", "list the views over the logs, and views of yours", self._tables
            ),
            ".schema": Command(
                "[VIEW]", "list a view's columns: name, type, meaning", self._schema
            ),
            ".functions": Command("", "list the functions that read segments", self._functions),
            ".format": Command("[FORMAT]", f"print {', '.join(TEXT)}", self._format),
            ".rows": Command("[N]", "set how many rows table and line show", self._rows),
            ".timing": Command("[on|off]", "show how long each statement takes", self._timing),
            ".quit": Command("", "leave the prompt, as Ctrl-D does", self._quit),
        }

    def named_in(self, line: str) -> str | None:
        """The line as a command that begins with a dot, or None if it is not a command."""
        line = line.strip()
        if line.startswith("\\"):  # no statement begins with one
            return _as_dotted(line)
        return line if line.startswith(".") else _WITHOUT_DOT.get(line.rstrip("; ").lower())

    def run(self, line: str) -> str:
        """Run a command, and return the text to print.

        Raises:
            Leave: the prompt is to end.
            ValueError: the command or an argument does not exist.
        """
        name, *arguments = line.rstrip(";").split()
        command = self.by_name.get(name.lower())
        if command is None:
            hint = meant(name, self.by_name) or "; .help lists them"
            raise ValueError(f"there is no command {name}{hint}")
        return command.run(arguments)

    def _help(self, _: list[str]) -> str:
        timing = "on" if self._shell.timing else "off"
        now = {".format": self._shell.format, ".rows": self._shell.rows, ".timing": timing}
        commands = [
            (
                f"  {name} {command.arguments}",
                command.doc + (f" (now {now[name]})" if name in now else ""),
            )
            for name, command in self.by_name.items()
        ]
        views = [(f"  {view}", doc) for view, doc in (*VIEW_DOCS.items(), TOPICS_DOC)]
        return "\n".join(
            [
                "A statement ends with a semicolon and may take several lines.",
                "Ctrl-C cancels it, Tab completes names and keywords.",
                "",
                _aligned(commands, 20),
                "",
                "Views over the logs:",
                _aligned(views, 20),
                "",
                "Try:",
                _TRY,
            ]
        )

    def _tables(self, _: list[str]) -> str:
        rows = list(VIEW_DOCS.items()) if self._logs else []
        topics = self._logs.topics(anew=True) if self._logs else []
        rows += [(topic, "the records of the topic") for topic in topics]
        spark = self._shell.engine.started
        known = {view.lower() for view in (*VIEWS, *topics)}
        for table in spark.catalog.listTables() if spark else ():
            if table.name.lower() not in known:
                rows.append((table.name, "of yours"))
        return (
            _aligned(rows)
            if rows
            else "There are no views: name the logs with kafkajit sql --path."
        )

    def _schema(self, views: list[str]) -> str:
        topics = self._logs.topics() if self._logs else []
        known = {topic.lower(): "records" for topic in topics}
        known |= {view.lower(): view for view in VIEWS}
        parts = []
        for given in views or VIEWS:
            view = known.get(given.lower())
            if view is None:
                raise ValueError(f"there is no view {given}{meant(given, known, list(VIEWS))}")
            columns = self._logs.columns_of(view) if self._logs else VIEWS[view]
            rows = [
                (name, _spark_type(column.type), column.doc) for name, column in columns.items()
            ]
            parts.append(_aligned(rows) if len(views) == 1 else f"{view}:\n{_aligned(rows)}")
        return "\n\n".join(parts)

    def _functions(self, _: list[str]) -> str:
        from kafkajit.spark.descriptions import header, summary

        rows = []
        for name in [*FUNCTIONS, TABLE_FUNCTION]:
            if not name.startswith("try_"):
                fields = header(name) or {"signature": name}
                rows.append((fields["signature"], summary(name).removeprefix("Returns ")))
        return (
            f"{_stacked(rows)}\n\ntry_kafka_records and its like return NULL for damaged bytes.\n"
            "SHOW FUNCTIONS; lists Spark's own functions."
        )

    def _format(self, words: list[str]) -> str:
        if not words:
            return self._shell.format
        if words[0] in BINARY:
            raise ValueError(
                f"{words[0]} is for files: kafkajit sql --format {words[0]} -o FILE SQL"
            )
        if words[0] not in TEXT:
            raise ValueError(f"there is no format {words[0]}; there are: {', '.join(TEXT)}")
        self._shell.format = words[0]
        return ""

    def _rows(self, words: list[str]) -> str:
        if not words:
            return str(self._shell.rows)
        if not words[0].isdecimal() or int(words[0]) < 1:
            raise ValueError(f"expected a number of at least 1, not {words[0]}")
        self._shell.rows = int(words[0])
        return ""

    def _timing(self, words: list[str]) -> str:
        if not words:
            return "on" if self._shell.timing else "off"
        if words[0] not in ("on", "off"):
            raise ValueError(f"expected on or off, not {words[0]}")
        self._shell.timing = words[0] == "on"
        return ""

    def _quit(self, _: list[str]) -> str:
        raise Leave


def _as_dotted(line: str) -> str:
    r"""Translate a command of psql into one of ours; other commands stay as they are.

    >>> _as_dotted(r"\dt"), _as_dotted(r"\d records;")
    ('.tables', '.schema records')
    """
    name, _, rest = line.rstrip("; ").partition(" ")
    if name == "\\d" and rest:
        return f".schema {rest}"
    return f"{_OF_PSQL.get(name.lower(), name)} {rest}".rstrip()


def _spark_type(kind: object) -> str:
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind).simpleString()


def _width() -> int:
    return max(shutil.get_terminal_size().columns, 40)


def _aligned(rows: Sequence[tuple[str, ...]], least: int = 0) -> str:
    """Align rows of text in columns, and wrap the last column at the terminal's width."""
    columns = list(zip(*rows, strict=True))[:-1]
    # A type such as array<struct<…>> gets a line of its own, so that it widens no other row.
    widths = [
        max(least, *(width_of(cell) for cell in column if len(cell) <= 24)) for column in columns
    ]
    indent = sum(widths) + 2 * len(widths)
    lines: list[str] = []
    for *cells, last in rows:
        begin = "".join(f"{cell:{width}}  " for cell, width in zip(cells, widths, strict=True))
        wrapped = textwrap.wrap(last, _width() - indent) or [""]
        if len(begin) > indent:
            lines.append(begin)
            begin = " " * indent
        lines += [begin + wrapped[0], *(" " * indent + more for more in wrapped[1:])]
    return "\n".join(line.rstrip() for line in lines)


def _stacked(rows: Sequence[tuple[str, str]]) -> str:
    """Print the second text of each pair below the first."""
    indent = "    "
    wrapped = textwrap.TextWrapper(_width(), initial_indent=indent, subsequent_indent=indent)
    return "\n".join(f"{first}\n{wrapped.fill(second)}" for first, second in rows)
