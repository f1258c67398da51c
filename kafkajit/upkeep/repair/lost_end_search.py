"""Find the transactions whose commit or abort marker may be among what a log loses.

batches of transactions, in order ─┐
holes: missing offsets ────────────┼─▶ open at a hole ─▶ next batch or marker ─▶ what it was,
.txnindex, snapshots, ─────────────┘                     of its producer          and becomes
__transaction_state, damaged bytes
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kafkajit.errors import KafkaJitError
from kafkajit.format.limits import MAX_INT64
from kafkajit.records.control_records import ABORT, COMMIT
from kafkajit.state.producer_snapshot import snapshot_entries
from kafkajit.storage.source import as_bytes
from kafkajit.upkeep.repair.damaged_batches import DamagedMarker, marker_in
from kafkajit.upkeep.repair.indexed_aborts import Abort
from kafkajit.upkeep.repair.lost_ends import (
    CERTAIN,
    LIKELY,
    POSSIBLE,
    WORDS,
    Hole,
    LostEnd,
    Transaction,
)
from kafkajit.upkeep.repair.pieces import Piece
from kafkajit.upkeep.repair.transaction_events import TransactionEvent, events_of
from kafkajit.upkeep.repair.transaction_states import outcome_of

_CUT_AWAY = "its marker is among what is cut away"


class Surroundings(NamedTuple):
    """Files beside a log as they were before the repair."""

    folder: Path
    aborts: Mapping[int, Sequence[Abort]]  # of .txnindex files, by base offset
    snapshots: Mapping[int, Path]  # by offset
    bases: Sequence[int]  # the base offsets of the segments, in order
    later: Sequence[Piece]  # sound batches behind what is cut away


@dataclass
class _Open:
    """A transaction that was open at holes, until its producer's next batch or marker."""

    transaction: Transaction
    holes: list[Hole]


def find_lost_ends(
    segments: Iterable[Sequence[Piece]], holes: Sequence[Hole], surroundings: Surroundings
) -> list[LostEnd]:
    """Find the transactions whose markers may be in the holes of a log.

    Args:
        segments: the pieces of its segments, in order.
        holes: in order.
        surroundings: the files beside it, which may tell more.
    """
    if not holes:
        return []
    return _Search(holes, surroundings).found(events_of(segments))


class _Search:
    def __init__(self, holes: Sequence[Hole], surroundings: Surroundings) -> None:
        self._holes = list(holes)
        self._beside = surroundings
        self._transactions: dict[int, Transaction] = {}
        self._waiting: dict[int, _Open] = {}
        self._undecided: dict[int, list[LostEnd]] = {}
        self._coordinators: dict[int, int] = {}  # the last epoch by producer
        self._latest_coordinator = 0
        self._found: list[LostEnd] = []
        self._aborts: dict[int, list[Abort]] = {}  # by producer
        for abort in (one for aborts in surroundings.aborts.values() for one in aborts):
            self._aborts.setdefault(abort.producer_id, []).append(abort)
        self._kept_aborts: set[tuple[int, int]] = set()
        self._explained: dict[int, int] = {}  # an offset in a hole → the producer of its marker

    def found(self, events: Iterable[TransactionEvent]) -> list[LostEnd]:
        for event in events:
            self._pass_holes(event.first)
            self._take(event)
        self._pass_holes(MAX_INT64)
        later = _first_markers(events_of([self._beside.later])) if self._waiting else {}
        for producer_id, waiting in self._waiting.items():
            self._judge(waiting, None, later.get(producer_id))
        return sorted(self._found, key=lambda one: one.transaction.first_offset)

    def _pass_holes(self, offset: int) -> None:
        while self._holes and self._holes[0].first < offset:
            hole = self._holes.pop(0)
            for producer_id, transaction in self._transactions.items():
                waiting = self._waiting.setdefault(producer_id, _Open(transaction, []))
                waiting.holes.append(hole)
                abort = self._aborted_in(transaction, [hole])
                if abort is not None:
                    self._explained[abort] = producer_id

    def _take(self, event: TransactionEvent) -> None:
        waiting = self._waiting.pop(event.producer_id, None)
        has_ended = waiting is not None and self._judge(waiting, event) in (CERTAIN, LIKELY)
        if event.control_type is None:
            self._transactions[event.producer_id] = _continued(
                None if has_ended else self._transactions.get(event.producer_id),
                event,
                self._coordinators.get(event.producer_id, -1),
            )
            return
        self._coordinators[event.producer_id] = event.coordinator_epoch
        self._latest_coordinator = max(self._latest_coordinator, event.coordinator_epoch)
        if event.control_type == ABORT:
            self._kept_aborts.add((event.producer_id, event.first))
        self._transactions.pop(event.producer_id, None)
        for lost in self._undecided.pop(event.producer_id, ()):
            lost.becomes, lost.decided_at = event.control_type, event.first

    def _judge(
        self, waiting: _Open, event: TransactionEvent | None, later: TransactionEvent | None = None
    ) -> str | None:
        """Judge by the holes and the next event how sure it is that a transaction's end is lost.

        `later` is its marker behind what is cut away.
        """
        one, holes = waiting.transaction, waiting.holes
        evidence: list[str] = []
        was, offset, epoch, coordinator = None, None, one.producer_epoch, -1
        certainty: str | None = None
        for hole in holes:
            for batch in hole.batches:
                if batch.is_control and batch.producer_id == one.producer_id:
                    certainty, offset = CERTAIN, batch.first
                    if not batch.content:  # only the .txnindex knows of it
                        continue
                    epoch, marker = batch.producer_epoch, marker_in(batch)
                    if marker is not None:
                        was, coordinator = marker.control_type, marker.coordinator_epoch
                        evidence.append(_evidence(marker))
                    else:
                        evidence.append("damaged bytes have the header of its marker")
        aborted = self._aborted_in(one, holes)
        if aborted is not None:
            certainty, was, offset = CERTAIN, ABORT, aborted
            evidence.append(f"the .txnindex has its ABORT at offset {aborted}")
        if later is not None and certainty is None:
            certainty, was, offset = CERTAIN, later.control_type, later.first
            epoch, coordinator = later.producer_epoch, later.coordinator_epoch
            evidence.append(_CUT_AWAY)
        unknown = [
            hole
            for hole in holes
            if not hole.batches or any(batch.may_be_marker for batch in hole.batches)
        ]
        if certainty is None:
            if not unknown:
                return None  # damaged bytes were other batches
            certainty = self._certainty(one, unknown, event, evidence)
            if certainty is None:
                return None
        if event is not None and event.control_type is None and epoch == one.producer_epoch:
            epoch = min(max(event.producer_epoch, epoch), epoch + 1)
        if was is None:
            producer, times = (one.producer_id, one.producer_epoch), (one.first_ms, one.last_ms)
            was = outcome_of(self._beside.folder.parent, producer, times)
            if was is not None:
                evidence.append(f"__transaction_state has it as {WORDS[was]}")
        if was is None and certainty == CERTAIN and self._has_whole_index(holes):
            was = COMMIT
            evidence.append("the .txnindex has no ABORT of it")
        if coordinator < 0:
            coordinator = one.coordinator_epoch
        candidates = (unknown or holes)[::-1]
        lost = LostEnd(
            one,
            next((hole for hole in candidates if not hole.is_taken), candidates[0]),
            certainty,
            was,
            evidence,
            None,
            None,
            offset,
            epoch,
            coordinator,
        )
        if offset is not None:
            lost.hole = next((hole for hole in holes if hole.has(offset)), holes[-1])
        self._found.append(lost)
        if event is not None and event.control_type is not None:
            lost.becomes, lost.decided_at = event.control_type, event.first
        else:
            self._undecided.setdefault(one.producer_id, []).append(lost)
        if lost.coordinator_epoch < 0:
            following = event.coordinator_epoch if event is not None else -1
            lost.coordinator_epoch = following if following >= 0 else self._latest_coordinator
        return certainty

    def _certainty(
        self,
        one: Transaction,
        holes: list[Hole],
        event: TransactionEvent | None,
        evidence: list[str],
    ) -> str | None:
        """Judge whether the marker was in holes of unknown contents; None if it was not.

        `holes` keeps those in which it may have been.
        """
        if event is not None and event.producer_epoch > one.producer_epoch:
            evidence.append(f"the producer writes on with epoch {event.producer_epoch}")
            if event.control_type is None:
                return CERTAIN
        before = MAX_INT64 if event is None else event.first
        still_open, ended = self._in_snapshots(one, holes[0].first, before)
        holes[:] = [hole for hole in holes if hole.last is None or hole.last >= still_open]
        if ended is not None and holes:
            holes[:] = [hole for hole in holes if hole.first < ended] or holes
            evidence.append(f"the producers' snapshot at offset {ended} has it as ended")
            return CERTAIN
        if not holes:
            return None
        # If the damaged bytes were copies of the batches that stay, they had no other marker.
        free = [hole for hole in holes if not hole.is_taken]
        if not free:
            return POSSIBLE if event is None else None
        holes[:] = free
        if event is None:
            return LIKELY
        missing = sum(hole.size for hole in holes)
        explained = {at for at in self._explained if any(hole.has(at) for hole in holes)}
        missing -= len(explained)
        if event.control_type is not None:
            return None if missing <= 1 else POSSIBLE
        own = event.base_sequence - _behind(one.last_sequence, 1)  # records of it that are missing
        if missing - max(own, 0) <= 0:
            return None
        known = {self._explained[at] for at in explained}
        others = [
            producer_id
            for producer_id, waiting in self._waiting.items()
            if producer_id not in known and waiting.holes[-1] in holes
        ]
        # As many offsets as transactions, and no data of this one is missing.
        return LIKELY if missing == 1 + len(others) and own == 0 else POSSIBLE

    def _in_snapshots(self, one: Transaction, after: int, before: int) -> tuple[int, int | None]:
        """Snapshots between these offsets: the last with it open, the first with it ended."""
        still_open = -1
        for offset in sorted(self._beside.snapshots):
            if not after < offset <= before:
                continue
            try:
                content = as_bytes(self._beside.snapshots[offset].read_bytes())
                entries = snapshot_entries(content)
            except (OSError, KafkaJitError):
                continue
            row = entries[entries["producerId"] == one.producer_id]
            if row.size != 1:
                continue
            first_offset = int(row["currentTxnFirstOffset"][0])
            if not 0 <= first_offset <= one.last_offset:  # its first records may be lost
                return still_open, offset
            still_open = offset
        return still_open, None

    def _aborted_in(self, one: Transaction, holes: Sequence[Hole]) -> int | None:
        """The offset of the lost ABORT marker, if a .txnindex has it."""
        for _, first, last in self._aborts.get(one.producer_id, ()):
            if first <= one.last_offset < last and any(hole.has(last) for hole in holes):
                return last
        return None

    def _has_whole_index(self, holes: Sequence[Hole]) -> bool:
        """Whether the .txnindex of the segment with the holes has all other aborts."""
        if any(hole.last is None for hole in holes):
            return False  # segments behind may be lost, which had indexes of their own
        bases = {hole.segment for hole in holes}
        if not bases <= self._beside.aborts.keys():
            return False  # it has no aborts, or the file is gone or damaged
        known = {
            (producer, one.last) for producer, aborts in self._aborts.items() for one in aborts
        }
        own = {
            abort
            for abort in self._kept_aborts
            if max((base for base in self._beside.bases if base <= abort[1]), default=-1) in bases
        }
        return own <= known


def _evidence(marker: DamagedMarker) -> str:
    if marker.wrong_bits == 0:
        return _CUT_AWAY
    text = f"its damaged bytes are {_a(marker.control_type)} marker's"
    return text if marker.wrong_bits is None else f"{text}, with one wrong bit"


def _behind(sequence: int, count: int) -> int:
    """The sequence number that many records later (DefaultRecordBatch.incrementSequence)."""
    return (sequence + count) % 2**31


def _a(control_type: int) -> str:
    return "an ABORT" if control_type == ABORT else "a COMMIT"


def _continued(
    one: Transaction | None, event: TransactionEvent, coordinator_epoch: int
) -> Transaction:
    last_sequence = _behind(event.base_sequence, event.last - event.first)
    if one is None:
        return Transaction(
            event.producer_id,
            event.producer_epoch,
            event.first,
            event.last,
            event.records,
            event.first_ms,
            event.last_ms,
            last_sequence,
            coordinator_epoch,
            event.leader_epoch,
        )
    return Transaction(
        one.producer_id,
        event.producer_epoch,
        one.first_offset,
        event.last,
        one.records + event.records,
        min(one.first_ms, event.first_ms),
        max(one.last_ms, event.last_ms),
        last_sequence,
        coordinator_epoch,
        event.leader_epoch,
    )


def _first_markers(events: Iterable[TransactionEvent]) -> dict[int, TransactionEvent]:
    """The first marker of each producer."""
    found: dict[int, TransactionEvent] = {}
    for event in events:
        if event.control_type is not None:
            found.setdefault(event.producer_id, event)
    return found
