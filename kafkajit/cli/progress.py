"""Shows the progress of long work, only on a terminal's stderr.

The line comes after a second, is rewritten in place and vanishes at the end. It always fits the
terminal, also after a resize.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from kafkajit.cli.readable import cut
from kafkajit.format.amounts import number_of
from kafkajit.format.progress import Step, adding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS_BETWEEN = 0.2
_BAR = 20  # columns
_COLUMNS = 80  # if the terminal does not know


class _Line:
    """A line that a thread of its own rewrites, several times a second, with a text."""

    def __init__(self, text: Callable[[], list[str]], wait: float, *, is_wanted: bool) -> None:
        self._text = text
        self._wait = wait
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._is_shown = False
        self._hidden_at = 0.0
        self._thread: threading.Thread | None = None
        if is_wanted and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def hide(self) -> None:
        """Clear the line, so that something else can be printed; it comes again a moment later."""
        if self._thread is not None:
            with self._lock:
                self._hidden_at = time.monotonic()
                self._clear()

    def stop(self) -> None:
        """Clear the line for good."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        wait = self._wait
        while not self._stopped.wait(wait):
            wait = _SECONDS_BETWEEN
            try:
                texts = self._text()
            except Exception:
                break  # the work has ended, and reports its end itself
            with self._lock:
                if time.monotonic() - self._hidden_at >= wait and not self._stopped.is_set():
                    self._draw(texts)
        with self._lock:
            self._clear()

    def _draw(self, texts: list[str]) -> None:
        """Write the longest of these texts that fits, if there is something to show."""
        if not texts[0]:
            return
        width = _width()
        text = next((text for text in texts if len(text) <= width), texts[-1])
        self._is_shown = True
        print(f"\r{cut(text, width):{width}}", end="", file=sys.stderr, flush=True)

    def _clear(self) -> None:
        if self._is_shown:
            self._is_shown = False
            print(f"\r{'':{_width()}}\r", end="", file=sys.stderr, flush=True)


class Progress:
    """The progress of a command: ` 45% ▕█████████           ▏ orders-0: 215 MB of 479 MB`.

    Nothing is shown in a pipe. With `before_output` the output comes only after the work; without,
    nothing is shown while the output itself goes to the terminal.
    """

    _WAIT = 1.0  # seconds before it is shown

    def __init__(self, *, before_output: bool = True) -> None:
        self._step = Step("", 0, 0)
        self._whole: tuple[int, int, str] | None = None
        self._source: Callable[[], tuple[str, int, int]] | None = None
        self._line = _Line(
            self._texts, self._WAIT, is_wanted=before_output or not sys.stdout.isatty()
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._line.stop()

    def count(self, done: int, total: int, noun: str) -> None:
        """Show the number of things that are done, as `1,234 of 3,000 partitions`."""
        self._whole = (done, total, noun)

    def update(self, name: str, done: int, total: int, noun: str = "") -> None:
        """Show the part of a step that is done: bytes, or things with this noun."""
        self._step = self._step.updated(name, done, total, noun)

    def adding(self, name: str, total: int) -> Callable[[int], None]:
        """Begin a step; the function is called with the number of bytes since its last call."""
        return adding(self.update, name, total)

    def watch(self, source: Callable[[], tuple[str, int, int]]) -> None:
        """Ask for the name of the step, its bytes that are done, and all of them."""
        self._source = source

    def hide(self) -> None:
        """Clear the line, so that something else can be printed."""
        self._line.hide()

    def stop(self) -> None:
        """Show no more."""
        self._line.stop()

    def _texts(self) -> list[str]:
        """The line, from its longest form to its shortest."""
        if self._source is not None:
            self.update(*self._source())
        step, whole = self._step, self._whole
        before = ""
        part = step.part
        if whole is not None and whole[1] > 1:
            done, total, noun = whole
            before = f"{done:,} of {total:,} {noun}"
            part = (done + (part or 0)) / total
        forms = [", ".join(filter(None, (before, text))) for text in step.forms()]
        head = "" if part is None else f"{int(100 * part):3}% "
        if before:
            forms.append(before)
        if part is None:
            return forms
        drawn = bar(part)
        # The speed and the time left are worth more than the bar.
        return [text for form in forms for text in (f"{head}{drawn} {form}", f"{head}{form}")]


class TaskProgress:
    """Shows how many tasks of a query are done: ` 37% ▕███████▍            ▏ 12 of 32 tasks, 7 s`.

    A thread of its own asks Spark. Nothing is shown if stderr is not a terminal.
    """

    _WAIT = 0.5  # seconds before it is shown, so that quick answers do not flicker

    def __init__(self, session: Callable[[], SparkSession | None]) -> None:
        self._session = session
        self._rows = 0
        self._begun = time.monotonic()
        self._line: _Line | None = None

    def __enter__(self) -> TaskProgress:
        self._begun = time.monotonic()
        self._line = _Line(self._texts, self._WAIT, is_wanted=True)
        return self

    def add_rows(self, rows: int) -> None:
        """Count rows that have been written."""
        self._rows += rows

    def stop(self) -> None:
        """Show no more, so that something else can be written."""
        if self._line is not None:
            self._line.stop()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _texts(self) -> list[str]:
        seconds = time.monotonic() - self._begun
        session = self._session()
        if session is None:
            return [f" starting Spark, {seconds:.0f} s"]
        tracker = session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        total = sum(stage.numTasks for stage in stages if stage)
        if not total:
            return [f" planning, {seconds:.0f} s" if not self._rows else f" {self._rows:,} rows"]
        done = sum(stage.numCompletedTasks for stage in stages if stage)
        rows = f", {self._rows:,} rows" if self._rows else ""
        tasks = f"{done} of {number_of(total, 'task')}{rows}, {seconds:.0f} s"
        percent = f"{100 * done // total:3}%"
        return [f"{percent} {bar(done / total)} {tasks}", f"{percent} {tasks}"]


def bar(part: float) -> str:
    """A bar of which this part is full, of ASCII if stderr knows no more."""
    eighths = int(part * _BAR * 8 + 0.5)
    full = "█" * (eighths // 8)
    rest = "▏▎▍▌▋▊▉"[eighths % 8 - 1] if eighths % 8 else ""
    text = f"▕{full + rest:{_BAR}}▏"
    try:
        text.encode(sys.stderr.encoding)
    except UnicodeEncodeError:
        return f"[{'#' * (eighths // 8):{_BAR}}]"
    return text


def _width() -> int:
    """The columns of stderr's terminal but the last, behind which some terminals wrap."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return max((columns or int(os.environ.get("COLUMNS") or _COLUMNS)) - 1, 1)
