"""Shows the progress of long work, only on a terminal's stderr."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS_BETWEEN = 0.2
_WORTH_SHOWING = 64 << 20  # bytes


class Progress:
    """A line that is rewritten in place: `00000000000000000000.log  45% of 479 MB`.

    Nothing is shown in a pipe, for small files, or while the output itself goes to the terminal.
        With `before_output` the output comes only after the work.
    """

    def __init__(self, name: str, total: int, *, before_output: bool = False) -> None:
        self._name = name
        self._total = total
        self._shown_at = time.monotonic()
        self._shown = False
        is_seen = sys.stderr.isatty() and (before_output or not sys.stdout.isatty())
        self._on = is_seen and total >= _WORTH_SHOWING

    def __enter__(self) -> Progress:
        return self

    def update(self, done: int) -> None:
        now = time.monotonic()
        if self._on and now - self._shown_at >= _SECONDS_BETWEEN:
            self._shown_at = now
            self._shown = True
            percent = 100 * done // self._total
            line = f"{self._name} {percent:3}% of {self._total / 1e6:.0f} MB"
            print(f"\r{line[:79]}", end="", file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._shown:
            print("\r" + " " * 79 + "\r", end="", file=sys.stderr, flush=True)


class CountProgress:
    """Shows how many things are done, on a terminal: `1,234 of 3,000 partitions`."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._shown_at = time.monotonic()
        self._shown = False
        self._on = sys.stderr.isatty()

    def update(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._on and now - self._shown_at >= _SECONDS_BETWEEN:
            self._shown_at = now
            self._shown = True
            line = f"{done:,} of {total:,} {self._noun}"
            print(f"\r{line:79}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Clear the line, so that another can be written."""
        if self._shown:
            self._shown = False
            print("\r" + " " * 79 + "\r", end="", file=sys.stderr, flush=True)


class TaskProgress:
    """Shows how many tasks of a query are done: ` 37% ▕███████▍            ▏ 12 of 32 tasks, 7 s`.

    A thread of its own asks Spark. Nothing is shown if stderr is not a terminal.
    """

    _WAIT = 0.5  # seconds before it is shown, so that quick answers do not flicker
    _BAR = 20

    def __init__(self, session: Callable[[], SparkSession | None]) -> None:
        self._session = session
        self._rows = 0
        self._shown = False
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> TaskProgress:
        if self._thread is not None:
            self._thread.start()
        return self

    def add_rows(self, rows: int) -> None:
        """Count rows that have been written."""
        self._rows += rows

    def stop(self) -> None:
        """Show no more, so that something else can be written."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        begun = time.monotonic()
        wait = self._WAIT
        while not self._stopped.wait(wait):
            wait = _SECONDS_BETWEEN
            try:
                text = self._text(time.monotonic() - begun)
            except Exception:
                break  # Spark has ended, which the caller that waits for rows reports
            if not self._stopped.is_set():
                self._shown = True
                width = shutil.get_terminal_size().columns - 1
                print(f"\r{text[:width]:{width}}", end="", file=sys.stderr, flush=True)
        if self._shown:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{'':{width}}\r", end="", file=sys.stderr, flush=True)

    def _text(self, seconds: float) -> str:
        session = self._session()
        if session is None:
            return f" starting Spark, {seconds:.0f} s"
        tracker = session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        total = sum(stage.numTasks for stage in stages if stage)
        if not total:
            return f" planning, {seconds:.0f} s" if not self._rows else f" {self._rows:,} rows"
        done = sum(stage.numCompletedTasks for stage in stages if stage)
        rows = f", {self._rows:,} rows" if self._rows else ""
        tasks = "task" if total == 1 else "tasks"
        bar = self._bar(done / total)
        return f"{100 * done // total:3}% {bar} {done} of {total} {tasks}{rows}, {seconds:.0f} s"

    def _bar(self, part: float) -> str:
        eighths = round(part * self._BAR * 8)
        full = "█" * (eighths // 8)
        rest = "▏▎▍▌▋▊▉"[eighths % 8 - 1] if eighths % 8 else ""
        bar = f"▕{full + rest:{self._BAR}}▏"
        try:
            bar.encode(sys.stderr.encoding)
        except UnicodeEncodeError:
            return f"[{'#' * (eighths // 8):{self._BAR}}]"
        return bar
