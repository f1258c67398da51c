"""The parts that a command could not read, or has left out: lines on stderr, and the exit code.

One rule holds for all commands: the exit code is 0 only if everything that was asked for is done.
Whatever is left out is named once, the rest is done, and then the command ends with its error code.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from kafkajit.cli.error_text import reason
from kafkajit.cli.look import complain

# Lines about damage, in a log that may have thousands of damaged batches.
MOST_LINES = 20


class Problems:
    """Names problems on stderr, each once, as they are found."""

    def __init__(self, command: str, hide: Callable[[], None] = lambda: None) -> None:
        self._command = command
        self._hide = hide  # the progress on the terminal
        self._named: set[str] = set()
        self._lock = Lock()  # threads may list and read

    def __bool__(self) -> bool:
        return bool(self._named)

    def add(self, error: Exception) -> None:
        """Name an error; whoever calls this goes on."""
        self.say(reason(error))

    def say(self, text: str) -> None:
        """Name a problem."""
        with self._lock:
            if text not in self._named:
                self._named.add(text)
                self._hide()
                complain(self._command, text)

    def code(self, otherwise: int = 0) -> int:
        """The exit code: 1 if there was a problem."""
        return 1 if self._named else otherwise


def shortened(lines: list[str], noun: str) -> list[str]:
    """The first lines, and one with the number of the others.

    >>> shortened([str(number) for number in range(22)], "places are damaged")[-1]
    '2 more places are damaged'
    """
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"{more:,} more {noun}"]
