"""Find the transactions whose commit or abort marker may be among what a log loses.

batches of transactions, in order ─┐
holes: missing offsets ────────────┼─▶ open at a hole ─▶ next batch or marker ─▶ what it was,
.txnindex, snapshots, ─────────────┘                     of its producer          and becomes
__transaction_state, damaged bytes

The first marker of the producer after a transaction decides its outcome. A later marker proves that
the transaction had ended, but not how, if bytes before it may have had another marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kafkajit.format.limits import MAX_INT64
from kafkajit.records.control_records import ABORT, COMMIT
from kafkajit.upkeep.repair.first_marker import FirstMarker, apart, first_marker
from kafkajit.upkeep.repair.lost_ends import (
    CERTAIN,
    LIKELY,
    POSSIBLE,
    WORDS,
    Hole,
    LostEnd,
    Transaction,
)
from kafkajit.upkeep.repair.outcome_files import OutcomeFiles, Surroundings
from kafkajit.upkeep.repair.pieces import Piece
from kafkajit.upkeep.repair.transaction_events import TransactionEvent, events_of
from kafkajit.upkeep.repair.transaction_states import outcome_of


@dataclass
class _Open:
    """A transaction that was open at holes, until its producer's next batch or marker."""

    transaction: Transaction
    holes: list[Hole]


@dataclass
class _End:
    """The end of a transaction, as far as it is known."""

    holes: list[Hole]  # those that may have had the marker
    certainty: str | None = None  # None if nothing proves that it is lost
    was: int | None = None
    offset: int | None = None  # of the marker
    marker: FirstMarker | None = None  # the marker, if damaged bytes or what is cut away have it
    evidence: list[str] = field(default_factory=list)


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
        self._files = OutcomeFiles(surroundings)
        self._explained: dict[int, int] = {}  # an offset in a hole → the producer of its marker

    def found(self, events: Iterable[TransactionEvent]) -> list[LostEnd]:
        for event in events:
            self._pass_holes(event.first)
            self._take(event)
        self._pass_holes(MAX_INT64)
        later: dict[int, TransactionEvent] = {}
        for event in events_of([self._beside.later.pieces]) if self._waiting else ():
            if event.control_type is not None:
                later.setdefault(event.producer_id, event)
            if event.control_type == ABORT:
                self._files.has_seen_abort(event.producer_id, event.first)
        for producer_id, waiting in self._waiting.items():
            self._judge(waiting, None, later.get(producer_id))
        return sorted(self._found, key=lambda one: one.transaction.first_offset)

    def _pass_holes(self, offset: int) -> None:
        while self._holes and self._holes[0].first < offset:
            hole = self._holes.pop(0)
            for producer_id, transaction in self._transactions.items():
                waiting = self._waiting.setdefault(producer_id, _Open(transaction, []))
                waiting.holes.append(hole)
                abort = self._files.abort_in(transaction, [hole])
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
            self._files.has_seen_abort(event.producer_id, event.first)
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
        entry = self._files.abort_of(one)
        if entry is not None and event is not None and _goes_on(event, entry.last):
            return None
        before = MAX_INT64 if event is None else event.first
        begin = self._files.next_begin(one, before)
        if begin is not None:  # its end was before that
            holes = [hole for hole in holes if hole.first < begin]
            later = None if later is None or later.first >= begin else later
        marker, doubts = first_marker(one, apart(holes, self._beside.later), later)
        end = self._end_by(waiting, holes, marker, doubts, before)
        if begin is not None and end.certainty != CERTAIN:
            end.certainty = CERTAIN
            end.evidence.append(f"the .txnindex has its next transaction from offset {begin} on")
        if end.certainty is None and end.holes:
            known = _data_of(one.producer_id, (hole for hole in holes if hole not in end.holes))
            end.certainty = self._certainty(one, end.holes, event, end.evidence, known)
        if end.certainty is None:
            return None  # damaged bytes were other batches
        if end.was is None:
            self._find_outcome(one, end)
        self._found.append(self._lost_end(waiting, event, end))
        return end.certainty

    def _end_by(
        self,
        waiting: _Open,
        holes: list[Hole],
        marker: FirstMarker | None,
        doubts: list[Hole],
        before: int,
    ) -> _End:
        """The end by the first marker of the producer, and by the .txnindex.

        `doubts` are the holes before the marker that may have had another one.
        """
        one = waiting.transaction
        aborted = self._files.abort_in(one, holes)
        end = _End(_of_unknown_contents(holes))
        ended = None
        if marker is not None:
            still_open, ended = self._files.in_snapshots(one, waiting.holes[0].first, before)
            doubts = [hole for hole in doubts if hole.last is None or hole.last >= still_open]
            end.holes = [*doubts, marker.hole]
        if marker is not None and marker.tells_outcome and not doubts:
            end.certainty, end.was, end.offset = CERTAIN, marker.control_type, marker.offset
            end.evidence.append(marker.evidence)
        elif aborted is not None:
            end.certainty, end.was, end.offset = CERTAIN, ABORT, aborted
            end.evidence.append(f"the .txnindex has its ABORT at offset {aborted}")
        elif marker is not None:
            end.certainty = CERTAIN if marker.is_proved or ended is not None else LIKELY
            end.offset = None if doubts else marker.offset
            end.evidence.append(marker.doubtful if doubts else marker.evidence)
            if ended is not None and not marker.is_proved:
                end.evidence.append(_ended_at(ended))
        if marker is not None and marker.offset == end.offset:
            end.marker = marker
        return end

    def _find_outcome(self, one: Transaction, end: _End) -> None:
        """Find the outcome in __transaction_state, or in a .txnindex without an abort of it."""
        producer, times = (one.producer_id, one.producer_epoch), (one.first_ms, one.last_ms)
        end.was = outcome_of(self._beside.folder.parent, producer, times)
        if end.was is not None:
            end.evidence.append(f"__transaction_state has it as {WORDS[end.was]}")
        elif end.certainty == CERTAIN and self._files.has_all_aborts_of(end.holes):
            end.was = COMMIT
            end.evidence.append("the .txnindex has no ABORT of it")

    def _lost_end(self, waiting: _Open, event: TransactionEvent | None, end: _End) -> LostEnd:
        """The statement about a lost end, with all that a new marker needs."""
        one, marker = waiting.transaction, end.marker
        epoch = one.producer_epoch
        if marker is not None and marker.is_proved:
            epoch = marker.producer_epoch
        coordinator = -1 if marker is None else marker.coordinator_epoch
        if coordinator < 0:
            coordinator = one.coordinator_epoch
        if event is not None and event.control_type is None and epoch == one.producer_epoch:
            epoch = min(max(event.producer_epoch, epoch), epoch + 1)
        # If no hole may have had it, it is missing where compaction leaves gaps, too.
        since = end.holes[0].first if end.holes else one.last_offset + 1
        candidates = end.holes or waiting.holes[:1]
        hole = next((hole for hole in candidates[::-1] if not hole.is_taken), candidates[-1])
        if end.offset is not None:
            hole = next((one for one in waiting.holes if one.has(end.offset)), waiting.holes[-1])
            since = hole.first
        assert end.certainty is not None
        lost = LostEnd(
            one,
            hole,
            min(since, hole.first),
            end.certainty,
            end.was,
            end.evidence,
            None,
            None,
            end.offset,
            epoch,
            coordinator,
        )
        if event is not None and event.control_type is not None:
            lost.becomes, lost.decided_at = event.control_type, event.first
        else:
            self._undecided.setdefault(one.producer_id, []).append(lost)
        if lost.coordinator_epoch < 0:
            following = event.coordinator_epoch if event is not None else -1
            lost.coordinator_epoch = following if following >= 0 else self._latest_coordinator
        return lost

    def _certainty(
        self,
        one: Transaction,
        holes: list[Hole],
        event: TransactionEvent | None,
        evidence: list[str],
        known: int,
    ) -> str | None:
        """Judge whether the marker was in holes of unknown contents; None if it was not.

        `holes` keeps those in which it may have been. `known` is the number of the producer's
        records in other holes.
        """
        is_data = event is not None and event.control_type is None
        if event is not None and is_data and event.producer_epoch > one.producer_epoch:
            evidence.append(f"the producer writes on with epoch {event.producer_epoch}")
            return CERTAIN
        before = MAX_INT64 if event is None else event.first
        still_open, ended = self._files.in_snapshots(one, holes[0].first, before)
        holes[:] = [hole for hole in holes if hole.last is None or hole.last >= still_open]
        if ended is not None and holes:
            holes[:] = [hole for hole in holes if hole.first < ended] or holes
            evidence.append(_ended_at(ended))
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
            return None if missing <= 1 and not known else POSSIBLE
        # Records of it that are missing in these holes.
        own = event.base_sequence - _behind(one.last_sequence, 1) - known
        if missing - max(own, 0) <= 0:
            return None
        told = {self._explained[at] for at in explained}
        others = [
            producer_id
            for producer_id, waiting in self._waiting.items()
            if producer_id not in told and waiting.holes[-1] in holes
        ]
        # As many offsets as transactions, and no data of this one is missing.
        return LIKELY if missing == 1 + len(others) and own == 0 else POSSIBLE


def _ended_at(offset: int) -> str:
    return f"the producers' snapshot at offset {offset} has it as ended"


def _goes_on(event: TransactionEvent, aborted: int) -> bool:
    """Whether a transaction that was aborted at this offset was still open before the event."""
    return aborted > event.first if event.control_type is None else aborted == event.first


def _of_unknown_contents(holes: Sequence[Hole]) -> list[Hole]:
    return [
        hole
        for hole in holes
        if not hole.batches or any(batch.may_be_marker for batch in hole.batches)
    ]


def _data_of(producer_id: int, holes: Iterable[Hole]) -> int:
    """The number of a producer's records in holes whose batches are known."""
    batches = (batch for hole in holes for batch in hole.batches)
    return sum(batch.records for batch in batches if batch.producer_id == producer_id)


def _behind(sequence: int, count: int) -> int:
    """The sequence number that many records later (DefaultRecordBatch.incrementSequence)."""
    return (sequence + count) % 2**31


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
