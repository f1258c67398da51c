"""The progress of the reading of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kafkajit.format.ranges import Range
from kafkajit.log.footing import Footing, ReadBatch, epochs_before
from kafkajit.log.resumption import footing_of
from kafkajit.log.segment import Segment
from kafkajit.scan.export.ground import Ground
from kafkajit.scan.export.journal import Journal
from kafkajit.scan.export.known_damage import KnownDamage, LeftOut


@dataclass
class Passed:
    """The progress of a reading, with the damage and the malformed records on the way."""

    next_offset: int | None = None  # behind the last record
    position: int | None = None  # of the batch of the last record that this run has read
    # What the earlier runs' position stands on; its start is that of the log when they began.
    read: Footing = field(default_factory=Footing)
    now: Footing = field(default_factory=Footing)  # what positions in the log stand on now
    ground: Ground = field(default_factory=lambda: Ground([], Footing()))
    lost: list[str] = field(default_factory=list)  # offsets that the log lacks
    missing: list[Range] = field(default_factory=list)  # between segments, in this run or earlier
    left_out: list[LeftOut] = field(default_factory=list)  # before the last record
    behind: list[KnownDamage] = field(default_factory=list)  # damage behind that record
    gaps: list[dict[str, Any]] = field(default_factory=list)  # damage that this run has found
    malformed: int = 0  # records
    examples: list[str] = field(default_factory=list)
    _segments: Sequence[Segment] = ()

    _EXAMPLES = 3

    def identify(self, segments: Sequence[Segment]) -> None:
        """Note which log is exported from where on, unless an earlier run has done it."""
        self._segments = segments
        self.now = footing_of(segments)
        self.ground = Ground(segments, self.now)
        if self.next_offset is None:
            self.read = Footing()
        if self.read.log_start is None:
            self.read = self.read._replace(log_start=self.now.log_start)

    def pass_record(self, before: int, offset: int) -> None:
        """Go on to a record; damage behind the one before it has taken the offsets between them."""
        lost = Range(before + 1, offset - 1)
        if self.behind and lost:
            self.left_out.append(LeftOut.of(lost, self.behind, self._segments))
        self.behind.clear()

    def last_batch(self) -> ReadBatch | None:
        """The batch of the last record: a later run looks whether the log still has it."""
        if self.next_offset is None or self.position is None:
            return self.read.last
        return self.ground.last_batch(self.next_offset - 1, self.position)

    def journal(self, last: ReadBatch | None = None) -> Journal:
        """The progress to keep for a later run, with the batch of the last record."""
        if self.next_offset is None:
            return Journal(gaps=tuple(self.behind))
        return Journal(
            self.next_offset,
            self._footing(self.next_offset, last),
            gaps=tuple(self.behind),
            missing=tuple(one for one in self.missing if one.last < self.next_offset),
            left_out=tuple(self.left_out),
        )

    def _footing(self, offset: int, last: ReadBatch | None) -> Footing:
        # A copy may lack the files that tell, and get them later, or lose them.
        known = (epochs_before(one.epochs, offset, last) for one in (self.now, self.read))
        id_ = self.read.topic_id or self.now.topic_id
        return Footing(id_, last, next(filter(None, known), ()), self.read.log_start)

    def add_malformed(self, offsets: pa.Array, reasons: pa.Array, name: str) -> None:
        """Count malformed records, and keep the first of them."""
        self.malformed += len(offsets)
        count = max(self._EXAMPLES - len(self.examples), 0)
        for offset, why in zip(offsets[:count], reasons[:count], strict=True):
            self.examples.append(f"{name} at offset {offset}: {why}")
