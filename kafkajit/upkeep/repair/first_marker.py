"""The first marker of a producer after a transaction, in what a log loses.

It decides the outcome. If bytes before it may have had another marker, it proves only that the
transaction had ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kafkajit.records.control_records import ABORT
from kafkajit.upkeep.repair.damaged_batches import DamagedBatch, marker_in
from kafkajit.upkeep.repair.lost_ends import NAMES, Hole, Transaction
from kafkajit.upkeep.repair.outcome_files import CutAway
from kafkajit.upkeep.repair.transaction_events import TransactionEvent

_CUT_AWAY = "its marker is among what is cut away"


class FirstMarker(NamedTuple):
    """The first marker of a producer after a transaction, as far as what is lost has one."""

    hole: Hole
    offset: int
    producer_epoch: int
    is_proved: bool  # whether a checksum confirms that it is a marker of the producer
    control_type: int | None  # None if nothing proves it
    coordinator_epoch: int
    evidence: str

    @property
    def tells_outcome(self) -> bool:
        """Whether a checksum confirms how the transaction ended."""
        return self.is_proved and self.control_type is not None

    @property
    def doubtful(self) -> str:
        """The evidence, if another marker may be lost before it."""
        what = "a marker" if self.control_type is None else _a(self.control_type)
        offset = f"offset {self.offset} had {what} of its producer"
        return f"{offset}, but its own marker may be lost before that"


def apart(holes: Sequence[Hole], later: CutAway) -> Iterator[Hole]:
    """The holes; the one that ends a log has only the offsets between what is cut away."""
    for hole in holes:
        if hole.last is not None:
            yield hole
            continue
        begin = hole.first
        for first, last in later.offsets:
            if begin < first:
                yield hole._replace(first=begin, last=first - 1)
            begin = max(begin, last + 1)
        yield hole._replace(first=begin)


def first_marker(
    one: Transaction, holes: Iterable[Hole], later: TransactionEvent | None
) -> tuple[FirstMarker | None, list[Hole]]:
    """The first marker, and the holes before it that may have had another one."""
    doubts: list[Hole] = []
    for hole in holes:
        if later is not None and later.first < hole.first:
            break
        if not hole.batches:
            doubts.append(hole)
        for batch in hole.batches:
            if batch.is_control and batch.producer_id == one.producer_id:
                return _lost_marker(one, hole, batch), doubts
            if (batch.may_be_marker or batch.is_unproved_control) and hole not in doubts:
                doubts.append(hole)
    if later is None:
        return None, doubts
    assert later.control_type is not None
    marker = FirstMarker(
        Hole(later.first, later.last, []),
        later.first,
        later.producer_epoch,
        True,
        later.control_type,
        later.coordinator_epoch,
        _CUT_AWAY,
    )
    return marker, doubts


def _lost_marker(one: Transaction, hole: Hole, batch: DamagedBatch) -> FirstMarker:
    if not batch.content:  # only the .txnindex has it
        evidence = f"the .txnindex has an ABORT of its producer at offset {batch.first}"
        return FirstMarker(hole, batch.first, one.producer_epoch, True, None, -1, evidence)
    marker = marker_in(batch)
    control_type, coordinator_epoch = None, -1
    evidence = "damaged bytes have the header of its marker"
    if batch.wrong_bits is not None and marker is not None:
        control_type, coordinator_epoch = marker.control_type, marker.coordinator_epoch
        evidence = f"its damaged bytes are {_a(control_type)} marker's, with one wrong bit"
        if batch.wrong_bits == 0:
            evidence = _CUT_AWAY
    elif marker is not None:
        evidence = (
            f"damaged bytes look like its {NAMES[marker.control_type]} marker, "
            "but more than one bit is wrong"
        )
    return FirstMarker(
        hole,
        batch.first,
        batch.producer_epoch,
        batch.wrong_bits is not None,
        control_type,
        coordinator_epoch,
        evidence,
    )


def _a(control_type: int) -> str:
    return "an ABORT" if control_type == ABORT else "a COMMIT"
