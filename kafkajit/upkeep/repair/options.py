"""The options of `repair`: the topic's configuration, and what may be cut away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kafkajit.log.config import LogConfig


@dataclass(frozen=True)
class RepairOptions:
    """The options of `repair`, the same for every partition."""

    config: LogConfig
    salvage: bool = False
    truncate_to: int | None = None
    discard: frozenset[Path] = frozenset()  # files that are not logs

    def __post_init__(self) -> None:
        if self.truncate_to is not None and self.truncate_to < 0:
            raise ValueError(f"Cannot truncate to a negative offset ({self.truncate_to})")
