"""Transactions whose commit or abort marker may be among what a log loses.

Without the marker, the producer's next marker decides: consumers with read_committed may then get
records that were aborted, or miss records that were committed. If the producer never writes again,
these consumers wait at the transaction's start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkajit.format.amounts import number_of
from kafkajit.format.limits import MAX_INT64
from kafkajit.records.control_records import ABORT, COMMIT
from kafkajit.upkeep.repair.damaged_batches import DamagedBatch

WORDS = {ABORT: "aborted", COMMIT: "committed"}
NAMES = {ABORT: "ABORT", COMMIT: "COMMIT"}
_OPEN = "open"

# How sure it is that the marker is lost.
CERTAIN, LIKELY, POSSIBLE = "certain", "likely", "possible"


class Hole(NamedTuple):
    """Offsets that are missing in the repaired log; the last is None at the log's end."""

    first: int
    last: int | None
    batches: list[DamagedBatch]  # all that the offsets belonged to, or none if that is unknown
    segment: int | None = None  # the base offset of the segment that had them
    is_taken: bool = False  # whether another batch has the offsets

    def has(self, offset: int) -> bool:
        """Whether the offset is missing."""
        return self.first <= offset and (self.last is None or offset <= self.last)

    @property
    def size(self) -> int:
        """The number of offsets."""
        return MAX_INT64 if self.last is None else self.last - self.first + 1


@dataclass
class Transaction:
    """A transaction up to some batch."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    records: int
    first_ms: int
    last_ms: int
    last_sequence: int
    coordinator_epoch: int
    leader_epoch: int


@dataclass
class LostEnd:
    """A transaction whose marker may be lost."""

    transaction: Transaction
    hole: Hole  # the last one before the producer's next batch or marker
    since: int  # the first missing offset that its marker may have had
    certainty: str
    was: int | None  # COMMIT or ABORT; None if nothing tells it
    evidence: list[str]
    becomes: int | None  # COMMIT or ABORT; None: it stays open
    decided_at: int | None  # the offset of the marker that decides then
    marker_offset: int | None  # of the lost marker, if something tells it
    marker_epoch: int  # the producer epoch of the lost marker
    coordinator_epoch: int
    written: tuple[int, int] | None = field(default=None)  # offset and type of the new marker
    problem: str | None = None  # why no marker can be written

    @property
    def _becomes(self) -> int | None:
        return self.becomes if self.written is None else self.written[1]

    @property
    def changes(self) -> bool | None:
        """Whether consumers see another outcome than before; None if that is unknown."""
        if self._becomes is None:  # it had ended, if its marker is lost
            return True if self.certainty == CERTAIN else None
        return None if self.was is None else self._becomes != self.was

    @property
    def text(self) -> str:
        """A line about it."""
        one = self.transaction
        offsets = f"offsets {one.first_offset} to {one.last_offset}"
        if one.first_offset == one.last_offset:
            offsets = f"offset {one.first_offset}"
        return (
            f"transaction of producer {one.producer_id}, epoch {one.producer_epoch}, "
            f"{number_of(one.records, 'record')} from {offsets}: {self._lost}{self._was}"
            f"{self._after}"
        )

    @property
    def _lost(self) -> str:
        first, last = self.since, self.hole.last
        if self.marker_offset is not None:
            where = f"at offset {self.marker_offset}"
        elif first == last:
            where = f"at offset {first}"
        else:
            where = f"from offset {first} on" if last is None else f"in offsets {first} to {last}"
        verb = {CERTAIN: "is lost", LIKELY: "is probably lost", POSSIBLE: "may be lost"}
        evidence = f" ({'; '.join(self.evidence)})" if self.evidence else ""
        return f"its end {verb[self.certainty]} {where}{evidence}"

    @property
    def _was(self) -> str:
        was = "nothing tells its outcome" if self.was is None else f"it was {WORDS[self.was]}"
        return f"; if so, {was}" if self.certainty == POSSIBLE else f"; {was}"

    @property
    def _after(self) -> str:
        after, problem = self._becomes, "" if self.problem is None else f"; {self.problem}"
        if after is None:
            return f", and it is open then: consumers with read_committed stop before it{problem}"
        verb = "stays" if after == self.was else "becomes"
        marker = f"the producer's next marker, at offset {self.decided_at}"
        if self.written is not None:
            marker = f"a new marker at offset {self.written[0]}"
        text = f", and it {verb} {WORDS[after]} by {marker}"
        if self.changes:
            text += ": CHANGED for consumers with read_committed"
        elif self.changes is None and self.written is None:
            text += ": it may CHANGE for consumers with read_committed"
        return text + problem

    def document(self) -> dict[str, Any]:
        """The transaction as a JSON object."""
        one = self.transaction
        return {
            "producerId": one.producer_id,
            "producerEpoch": one.producer_epoch,
            "firstOffset": one.first_offset,
            "lastOffset": one.last_offset,
            "records": one.records,
            "firstMissingOffset": self.since,
            "lastMissingOffset": self.hole.last,
            "certainty": self.certainty,
            "evidence": self.evidence,
            "was": None if self.was is None else WORDS[self.was],
            "becomes": _OPEN if self._becomes is None else WORDS[self._becomes],
            "decidedAt": self.decided_at if self.written is None else self.written[0],
            "changes": self.changes,
            "markerWritten": None if self.written is None else NAMES[self.written[1]],
            "problem": self.problem,
        }


def outcomes_text(ends: Sequence[LostEnd]) -> str:
    """The numbers of transactions whose outcomes change, as the end of a line."""
    changed = sum(end.changes is True for end in ends)
    unknown = sum(end.changes is None and end.written is None for end in ends)
    counts = (
        (changed, "changes", "change"),
        (unknown, "may change", "may change"),
    )
    text = ""
    for count, one, many in counts:
        if count:
            outcomes = (
                "the outcome of 1 transaction"
                if count == 1
                else (f"the outcomes of {count:,} transactions")
            )
            text += f"; {outcomes} {one if count == 1 else many}"
    return text
