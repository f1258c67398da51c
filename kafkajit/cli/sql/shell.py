"""Runs statements and writes their results, for the prompt, files and the command line."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

from kafkajit.cli.look import HEADING, QUIET, painted
from kafkajit.cli.progress import TaskProgress
from kafkajit.cli.sql.cancellable import run_cancellable
from kafkajit.cli.sql.error_report import Known, pointed_at, report_of
from kafkajit.cli.sql.query import Engine, Result
from kafkajit.cli.sql.statements import Statement
from kafkajit.cli.sql.table import ASCII, BOX, as_lines, as_report, as_table
from kafkajit.cli.sql.view_names import BINARY
from kafkajit.format.amounts import number_of

# A cell of a table is never wider than a terminal; a letter of UTF-8 has up to four bytes.
_BYTES_OF_LETTER = 4


class Failed(Exception):
    """A statement has failed; the text is what the user reads."""


class Shell:
    """Runs statements one by one, and writes their results."""

    def __init__(
        self,
        engine: Engine,
        out: IO[bytes],
        format_: str,
        rows: int,
        *,
        in_prompt: bool = False,
        debug: bool = False,
    ) -> None:
        self.engine = engine
        self.out = out
        self.format = format_
        self.rows = rows
        self.has_header = True  # of csv
        self.timing = False
        self._options = "." if in_prompt else "--"
        self._debug = debug
        self._results = 0

    def run(self, statement: Statement) -> None:
        """Run a statement; raise `Failed` if it is wrong.

        An interrupt cancels the statement and is raised again. If Spark does not start, its error
        is raised.
        """
        stopped = threading.Event()
        begun = time.monotonic()
        with TaskProgress(lambda: self.engine.started) as progress:

            def work() -> None:
                if self.engine.is_ready(stopped):
                    result = self.engine.run(statement.text)
                    if result.names and not stopped.is_set():
                        self._write(result, progress, begun, stopped)

            def cancel() -> None:
                stopped.set()
                self.engine.cancel()

            try:
                run_cancellable(work, cancel)
            except (BrokenPipeError, MemoryError):
                raise
            except Exception as error:
                if self._debug or error is self.engine.failure:
                    raise
                progress.stop()
                raise Failed(self._what_failed(error, statement)) from None

    def _what_failed(self, error: Exception, statement: Statement) -> str:
        known = Known(self.engine.views(), self.engine.functions())
        report = report_of(error, statement.text, known)
        if report.start is None:
            return report.message
        where = pointed_at(statement.text, report.start, report.length, _error_width())
        return "\n".join([report.message, *where])

    def _write(
        self, result: Result, progress: TaskProgress, begun: float, stopped: threading.Event
    ) -> None:
        if self.format not in ("table", "line"):
            self._results += 1
            if self.format in BINARY and self._results > 1:
                raise ValueError(
                    f"{self.format} holds only one result: pass a single statement that has one"
                )
            if self.is_terminal:
                progress.stop()
            result.write(self.format, self.out, progress.add_rows, has_header=self.has_header)
            return
        width = self._width()
        cut_at = None
        if width is not None and self.format == "table" and not result.is_command:
            cut_at = width * _BYTES_OF_LETTER
        rows, has_more = result.few(self.rows, cut_at)
        if result.is_command and (report := as_report(rows)):
            lines, columns = report, 1
        elif self.format == "line":
            lines, columns = as_lines(rows), len(result.names)
        else:
            lines, columns = as_table(rows, width, BOX if self._knows("│…") else ASCII)
            if self.out is sys.stdout.buffer:  # names, and their types below
                lines[1:3] = [painted(lines[1], HEADING), painted(lines[2], QUIET)]
        seconds = f" in {time.monotonic() - begun:.2f} s" if self.timing else ""
        footer = self._footer(rows.table.num_rows, has_more, len(result.names), columns, seconds)
        progress.stop()
        if not stopped.is_set():
            self.print([*lines, *footer])

    def _footer(
        self, count: int, has_more: bool, columns: int, shown: int, seconds: str
    ) -> list[str]:
        """The line below a table: the result's size, and the parts that are not shown."""
        if count == 1 and shown == columns and not has_more and not seconds:
            return []
        text = number_of(count, "row")
        if has_more:
            text = f"the first {text}, more with {self._options}rows N"
        if shown < columns:
            text += f"; {shown} of {columns} columns, all with {self._options}format line"
        return [f"{text}{seconds}"]

    @property
    def is_terminal(self) -> bool:
        """Whether results go to a terminal."""
        return self.out is sys.stdout.buffer and sys.stdout.isatty()

    def _width(self) -> int | None:
        """The terminal's width; None, which cuts nothing, in a pipe unless COLUMNS is set."""
        if self.is_terminal or (self.out is sys.stdout.buffer and os.environ.get("COLUMNS")):
            return shutil.get_terminal_size().columns
        return None

    def _knows(self, letters: str) -> bool:
        try:
            letters.encode(self._encoding)
        except UnicodeEncodeError:
            return False
        return True

    @property
    def _encoding(self) -> str:
        return sys.stdout.encoding if self.out is sys.stdout.buffer else "utf-8"

    def print(self, lines: Sequence[str]) -> None:
        """Write lines of text to the output of results."""
        text = "".join(f"{line}\n" for line in lines)
        self.out.write(text.encode(self._encoding, "backslashreplace"))
        self.out.flush()


def _error_width() -> int:
    return shutil.get_terminal_size().columns
