"""The ends of transactions in the .txnindex files and the producer snapshots beside a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kafkajit.errors import KafkaJitError
from kafkajit.state.producer_snapshot import snapshot_entries
from kafkajit.storage.source import as_bytes, read_small
from kafkajit.upkeep.repair.indexed_aborts import Abort
from kafkajit.upkeep.repair.lost_ends import Hole, Transaction
from kafkajit.upkeep.repair.pieces import Piece


class CutAway(NamedTuple):
    """The sound batches behind the end of a log, which do not stay."""

    pieces: Sequence[Piece]
    offsets: Sequence[tuple[int, int]]  # the first and the last of each batch, in order


class Surroundings(NamedTuple):
    """Knowledge of a log from before the repair."""

    folder: Path
    aborts: Mapping[int, Sequence[Abort]]  # of .txnindex files, by base offset
    snapshots: Mapping[int, Path]  # by offset
    bases: Sequence[int]  # the base offsets of the segments, in order
    later: CutAway


class OutcomeFiles:
    """The .txnindex files and the snapshots of producers beside a log."""

    def __init__(self, beside: Surroundings) -> None:
        self._beside = beside
        self._aborts: dict[int, list[Abort]] = {}  # by producer
        for abort in (one for aborts in beside.aborts.values() for one in aborts):
            self._aborts.setdefault(abort.producer_id, []).append(abort)
        self._seen_aborts: set[tuple[int, int]] = set()

    def has_seen_abort(self, producer_id: int, offset: int) -> None:
        """Take note of a sound ABORT marker, which a whole .txnindex has."""
        self._seen_aborts.add((producer_id, offset))

    def abort_of(self, one: Transaction) -> Abort | None:
        """The entry of the transaction, if it was aborted after its last offset."""
        covering = (
            entry
            for entry in self._aborts.get(one.producer_id, ())
            if entry.first <= one.last_offset < entry.last
        )
        return min(covering, key=lambda entry: entry.last, default=None)

    def next_begin(self, one: Transaction, before: int) -> int | None:
        """The offset at which the producer's next transaction begins, up to this one."""
        begins = (
            entry.first
            for entry in self._aborts.get(one.producer_id, ())
            if one.last_offset < entry.first <= before
        )
        return min(begins, default=None)

    def abort_in(self, one: Transaction, holes: Sequence[Hole]) -> int | None:
        """The offset of the lost ABORT marker."""
        entry = self.abort_of(one)
        is_lost = entry is not None and any(hole.has(entry.last) for hole in holes)
        return entry.last if entry is not None and is_lost else None

    def has_all_aborts_of(self, holes: Sequence[Hole]) -> bool:
        """Whether the .txnindex of the segment with the holes has all aborts of its segment."""
        segments = set()
        for hole in holes:
            # Between the segment and the next one, another one may be lost with its index.
            if hole.last is None or not (hole.batches or hole.last + 1 not in self._beside.bases):
                return False
            if hole.segment != self._base_of(hole.first):
                return False  # its log has another one's name
            segments.add(hole.segment)
        if not segments or not segments <= self._beside.aborts.keys():
            return False  # it has no aborts, or the file is gone or damaged
        known = {(producer, entry.last) for producer, one in self._aborts.items() for entry in one}
        own = {abort for abort in self._seen_aborts if self._base_of(abort[1]) in segments}
        return own <= known

    def _base_of(self, offset: int) -> int:
        """The base offset of the segment that an offset belongs to, by the logs' names."""
        return max((base for base in self._beside.bases if base <= offset), default=-1)

    def in_snapshots(self, one: Transaction, after: int, before: int) -> tuple[int, int | None]:
        """Snapshots between these offsets: the last with it open, the first with it ended."""
        still_open = -1
        for offset in sorted(self._beside.snapshots):
            if not after < offset <= before:
                continue
            try:
                content = as_bytes(read_small(self._beside.snapshots[offset]))
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
