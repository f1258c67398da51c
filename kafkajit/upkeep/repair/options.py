"""The options of `repair`: the topic's configuration, and what may be cut away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kafkajit.log.config import LogConfig


class Producers(NamedTuple):
    """The producers whose transactions get a marker."""

    all: bool = False  # of which a marker is lost, or probably
    named: frozenset[int] = frozenset()  # even if it is only possible that a marker is lost

    @classmethod
    def of(cls, given: bool | Iterable[int]) -> Producers:
        """All or no producers, or these."""
        return cls(given) if isinstance(given, bool) else cls(False, frozenset(given))


NO_PRODUCERS = Producers()


@dataclass(frozen=True)
class RepairOptions:
    """The options of `repair`, the same for every partition."""

    config: LogConfig
    salvage: bool = False
    truncate_to: int | None = None
    discard: frozenset[Path] = frozenset()  # files that are not logs
    # The transactions for which lost markers are written.
    abort: Producers = NO_PRODUCERS
    commit: Producers = NO_PRODUCERS

    @property
    def producers(self) -> frozenset[int]:
        """The producers that are named to get markers."""
        return self.abort.named | self.commit.named

    def __post_init__(self) -> None:
        if self.truncate_to is not None and self.truncate_to < 0:
            raise ValueError(f"Cannot truncate to a negative offset ({self.truncate_to})")
        if (any(self.abort) or any(self.commit)) and not self.salvage:
            raise ValueError("lost markers are written only if the log is salvaged: ask for that")
        if (any(self.abort) or any(self.commit)) and self.truncate_to is not None:
            raise ValueError(
                "lost markers are not written while a log is truncated: they would be at offsets "
                "that are cut away"
            )
        if self.abort.all and self.commit.all:
            raise ValueError(
                "transactions cannot be aborted and committed: name the producers of one kind"
            )
        both = self.abort.named & self.commit.named
        if both:
            raise ValueError(f"producer {min(both)} cannot be aborted and committed")
