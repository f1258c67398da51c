"""The progress of the reading of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kafkajit.format.ranges import Range
from kafkajit.log.resumption import ReadBatch, topic_id_of
from kafkajit.log.segment import Segment
from kafkajit.scan.export.journal import Journal
from kafkajit.scan.export.known_damage import KnownDamage
from kafkajit.scan.export.losses import start_of


@dataclass
class Passed:
    """The progress of a reading, with the damage and the malformed records on the way."""

    next_offset: int | None = None  # behind the last record
    last: ReadBatch | None = None  # which the last record of an earlier run is in
    position: int | None = None  # of the batch of the last record that this run has read
    topic_id: str | None = None  # if it is known
    log_start: int | None = None  # when the export began
    lost: list[str] = field(default_factory=list)  # offsets that the log lacks
    missing: list[Range] = field(default_factory=list)  # between segments, in this run or earlier
    behind: list[KnownDamage] = field(default_factory=list)  # damage behind that record
    gaps: list[dict[str, Any]] = field(default_factory=list)  # damage that this run has found
    malformed: int = 0  # records
    examples: list[str] = field(default_factory=list)

    _EXAMPLES = 3

    def identify(self, segments: Sequence[Segment]) -> None:
        """Note which log is exported from where on, unless an earlier run has done it."""
        if self.next_offset is None or self.topic_id is None:
            self.topic_id = topic_id_of(segments)
        if self.next_offset is None or self.log_start is None:
            self.log_start = start_of(segments)

    def journal(self) -> Journal:
        """The progress to keep for a later run."""
        if self.next_offset is None:
            return Journal(gaps=tuple(self.behind))
        return Journal(
            self.next_offset,
            topic_id=self.topic_id,
            log_start=self.log_start,
            gaps=tuple(self.behind),
            missing=tuple(one for one in self.missing if one.last < self.next_offset),
        )

    def add_malformed(self, offsets: pa.Array, reasons: pa.Array, name: str) -> None:
        """Count malformed records, and keep the first of them."""
        self.malformed += len(offsets)
        count = max(self._EXAMPLES - len(self.examples), 0)
        for offset, why in zip(offsets[:count], reasons[:count], strict=True):
            self.examples.append(f"{name} at offset {offset}: {why}")
