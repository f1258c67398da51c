"""The progress of long work: its report, and the text of that.

Functions that take long call a `Progress`. Commands show it on a terminal (`cli/progress.py`), the
package's functions in notebooks (`format/notebook.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kafkajit.format.amounts import duration_text, size_text

# Called with the name of a step, the bytes of it that are done, and all of its bytes.
Progress = Callable[[str, int, int], None]


def ignored(_name: str, _done: int, _total: int) -> None:
    """Show nothing: the default of functions that take a `Progress`."""


def adding(progress: Progress, name: str, total: int) -> Callable[[int], None]:
    """Begin a step; the function is called with the number of bytes since its last call.

    >>> done = []
    >>> add = adding(lambda *step: done.append(step), "orders-0", 30)
    >>> add(10), add(25), done[-1]
    (None, None, ('orders-0', 30, 30))
    """
    done = 0

    def add(count: int) -> None:
        nonlocal done
        done = min(done + count, total)
        progress(name, done, total)

    progress(name, 0, total)
    return add


@dataclass(frozen=True)
class Step:
    """A step of long work, and the part of it that is done: bytes, or things with a noun."""

    name: str
    done: int
    total: int
    noun: str = ""
    first: int = 0  # of `done`, when the step began
    begun: float = field(default_factory=time.monotonic)

    def updated(self, name: str, done: int, total: int, noun: str = "") -> Step:
        """The step with other numbers, or the next one."""
        if total != self.total or done < self.done or noun != self.noun:
            return Step(name, done, total, noun, done)
        return Step(name, done, total, noun, self.first, self.begun)

    @property
    def part(self) -> float | None:
        """The part that is done, from 0 to 1; None if that is not known."""
        return min(self.done / self.total, 1.0) if self.total else None

    def forms(self, now: float | None = None) -> list[str]:
        """The text, from its longest form to its shortest.

        >>> Step("orders-0", 100_000_000, 400_000_000, begun=10).forms(12)[0]
        'orders-0: 100 MB of 400 MB, 50.0 MB/s, 6 s left'
        >>> Step("savings", 3, 4, "topics", begun=10).forms(12)
        ['savings: 3 of 4 topics, 1 s left', 'savings: 3 of 4 topics', '3 of 4 topics']
        """
        seconds = (time.monotonic() if now is None else now) - self.begun
        if not self.total:
            amount = f": {self.done:,} {self.noun}" if self.noun else ""
            return [f"{self.name}{amount}, {duration_text(seconds)}"] if self.name else [""]
        if self.noun:
            amount = f"{self.done:,} of {self.total:,} {self.noun}"
        else:
            amount = f"{size_text(self.done)} of {size_text(self.total)}"
        base = f"{self.name}: {amount}" if self.name else amount
        since = self.done - self.first
        if since <= 0 or seconds <= 0 or self.done >= self.total:
            return [base, amount]
        left = f"{duration_text((self.total - self.done) * seconds / since)} left"
        forms = [f"{base}, {left}", base, amount]
        if not self.noun:
            forms.insert(0, f"{base}, {size_text(int(since / seconds))}/s, {left}")
        return forms
