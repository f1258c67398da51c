"""The progress of the reading of a partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kafkajit.format.ranges import Range
from kafkajit.log.resumption import ReadBatch
from kafkajit.scan.export.journal import Journal
from kafkajit.scan.export.known_damage import KnownDamage


@dataclass
class Passed:
    """The progress of a reading, with the damage and the malformed records on the way."""

    next_offset: int | None = None  # behind the last record
    last: ReadBatch | None = None  # which the last record of an earlier run is in
    position: int | None = None  # of the batch of the last record that this run has read
    lost: list[str] = field(default_factory=list)  # offsets that the log lacks
    missing: list[Range] = field(default_factory=list)  # between segments, in this run or earlier
    behind: list[KnownDamage] = field(default_factory=list)  # damage behind that record
    gaps: list[dict[str, Any]] = field(default_factory=list)  # damage that this run has found
    malformed: int = 0  # records
    examples: list[str] = field(default_factory=list)

    _EXAMPLES = 3

    def journal(self) -> Journal:
        """The progress to keep for a later run."""
        behind = -1 if self.next_offset is None else self.next_offset
        missing = tuple(one for one in self.missing if one.last < behind)
        return Journal(self.next_offset, gaps=tuple(self.behind), missing=missing)

    def add_malformed(self, rows: pa.RecordBatch, errors: list[str], name: str) -> None:
        """Count rows with malformed keys or values, and keep the first of them."""
        self.malformed += rows.num_rows
        for row in range(min(rows.num_rows, self._EXAMPLES - len(self.examples))):
            why = next(rows[error][row].as_py() for error in errors if rows[error][row].is_valid)
            self.examples.append(f"{name} at offset {rows['offset'][row]}: {why}")
