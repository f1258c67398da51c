"""How far long work is, on a terminal's stderr and nowhere else."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_SECONDS_BETWEEN = 0.2
_WORTH_SHOWING = 64 << 20  # bytes


class Progress:
    """A line that is written over: `00000000000000000000.log  45% of 479 MB`.

    Silent in a pipe, for small files, and where the output itself goes to the terminal.
    """

    def __init__(self, name: str, total: int) -> None:
        self._name = name
        self._total = total
        self._shown_at = time.monotonic()
        self._shown = False
        self._on = sys.stderr.isatty() and not sys.stdout.isatty() and total >= _WORTH_SHOWING

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
