"""Load a partition's log: find the batches that stay, the files beside them, and what is lost.

Answers to LogLoader.recoverLog and LogSegment.recover of Kafka 4.1.1 for a log that was never
flushed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.log.missing_offsets import Extent as OffsetExtent
from kafkajit.log.missing_offsets import Missing, find_missing
from kafkajit.storage.source import Source
from kafkajit.upkeep.repair.arrangement import BEHIND, Tail
from kafkajit.upkeep.repair.census import ZEROS, Census
from kafkajit.upkeep.repair.evidence import facts_of
from kafkajit.upkeep.repair.indexed_aborts import holes_of_aborts, indexed_aborts
from kafkajit.upkeep.repair.log_bodies import LEAPS, MISPLACED
from kafkajit.upkeep.repair.losses import Kept, LogFate, Loss, losses_of, without_markers
from kafkajit.upkeep.repair.lost_end_search import find_lost_ends
from kafkajit.upkeep.repair.lost_ends import POSSIBLE, LostEnd
from kafkajit.upkeep.repair.new_markers import holes_of, new_markers
from kafkajit.upkeep.repair.outcome_files import Surroundings
from kafkajit.upkeep.repair.pieces import Extent, Written, are_in
from kafkajit.upkeep.repair.segment_choice import ChosenSegments
from kafkajit.upkeep.repair.segment_reading import StoredLog, check_snapshot
from kafkajit.upkeep.repair.segment_repairs import RepairedSegment
from kafkajit.walk.tail import foreign_error

_NO_OFFSET = "its name is not an offset"  # 20 digits can be larger than any offset
_IDLE = "it has no batches, and other segments have its offsets"


@dataclass
class LoadedLog:
    """A log as it will be after the repair."""

    log_start_offset: int
    log_end_offset: int = 0  # the offset that the next record gets
    segments: list[RepairedSegment] = field(default_factory=list)
    # Logs that go: why, if they are empty, and what they lose.
    gone: dict[Path, tuple[str, list[Loss]]] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    lost_ends: list[LostEnd] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)  # before the repair
    new_snapshots: Mapping[int, tuple[bytes, str]] = field(default_factory=dict)  # and why
    right_snapshots: set[int] = field(default_factory=set)
    epochs: list[tuple[int, int]] = field(default_factory=list)  # each with its start offset
    open_transactions: list[tuple[int, int]] = field(default_factory=list)  # producer, start offset
    has_messages: bool = False  # of v0 or v1
    loses: int = 0  # sound batches behind damage
    records: int = 0  # that stay
    kept: Kept = field(default_factory=lambda: Kept(np.empty((0, 2), dtype=np.int64)))
    starts_anew: bool = False  # nothing that was known of the log before is true any more


def load(stored: StoredLog, progress: Callable[[int], None]) -> LoadedLog:
    """Read all of a log; `progress` is called with the number of bytes read since the last call."""
    check_logs(stored)
    return _Loading(stored, ChosenSegments(stored, progress)).loaded()


def check_logs(stored: StoredLog) -> None:
    """Raise if a file is not a log, unless the options discard it."""
    for log in stored.logs.values():
        error, is_discarded = foreign_error(Source(str(log))), log in stored.options.discard
        if error is not None and not is_discarded:
            error.advice = "nothing is done, move it away or name it with --discard"
            raise error
        if error is None and is_discarded:
            raise ValueError(f"{log} is a Kafka log: it is not discarded")


class _Loading:
    """The repairs of the segments that were chosen, and what the log loses."""

    def __init__(self, stored: StoredLog, chosen: ChosenSegments) -> None:
        self._stored = stored
        self._chosen = chosen

    def loaded(self) -> LoadedLog:
        """The log."""
        loaded = LoadedLog(self._stored.log_start_offset, starts_anew=self._chosen.starts_anew)
        losses = self._losses(loaded)
        loaded.missing = self._missing()
        self._find_lost_ends(loaded, losses)
        stored, reading = self._stored, self._chosen.reading
        homes, known = self._homes(), reading.known
        lines: dict[int | None, list[str]] = {}
        for log, lost in losses.items():
            size = log.stat().st_size
            home = homes.get(log)
            segment = None if home is None else self._chosen.segments[home]
            is_other = segment is not None and log.name[:20] != segment.name
            of = f"of {log.name}: " if is_other else ""
            lines.setdefault(home, []).extend(f"{of}{loss.text(size)}" for loss in lost)
        for number, segment in enumerate(self._chosen.segments):
            loaded.segments.append(segment.with_losses(lines.get(number, ())))
        for _, log in self._chosen.logs:
            if homes.get(log) is None:
                _, tail = self._chosen.arranged.get(log, (None, None))
                why = _IDLE if tail is None or tail.reason is None else tail.reason
                loaded.gone[log] = why, losses.get(log, [])
        loaded.gone |= {log: (_NO_OFFSET, losses[log]) for log in self._chosen.nameless}
        loaded.loses += self._chosen.behind_damage
        loaded.losses = [loss for log in sorted(losses) for loss in losses[log]]
        loaded.log_end_offset, loaded.kept = self._chosen.end_offset, self._kept()
        check_snapshot(stored, known, loaded.log_end_offset)
        loaded.new_snapshots, loaded.right_snapshots = known.new_snapshots, known.right_snapshots
        loaded.epochs, loaded.has_messages = known.epochs, known.has_messages
        entries = known.producers.entries
        entries = entries[entries["currentTxnFirstOffset"] >= 0]
        ids, offsets = entries["producerId"], entries["currentTxnFirstOffset"]
        loaded.open_transactions = list(zip(ids.tolist(), offsets.tolist(), strict=True))
        return loaded

    def _missing(self) -> list[Missing]:
        """The offsets that are missing before the repair, but not those of batches out of place."""
        censuses = [census for _, census in self._chosen.all_censuses()]
        found = find_missing(
            [*map(self._extent_of, censuses)],
            self._stored.evidence,
            has_holes=self._had_holes(),
        )
        kept = self._kept()
        return [one for one in found if kept.missing(Range(one.first, one.last)) is not None]

    def _had_holes(self) -> bool:
        return any(self._has_holes(census) for _, census in self._chosen.all_censuses())

    def _extent_of(self, census: Census) -> OffsetExtent:
        """The offsets of a log without those that lie."""
        fates, _ = self._chosen.arranged.get(census.log, (None, None))
        if fates is None or not census.batches:
            return census.extent
        is_true = ~np.isin(fates.astype(str), (LEAPS, MISPLACED))
        if census.log in self._chosen.strays:
            is_true &= ~self._chosen.strays[census.log]
        rows = census.rows[is_true]
        first = int(rows["first"].min()) if rows.size else census.base_offset
        if census.begins_with_set or not rows.size or rows["position"][0] > 0:
            first = min(first, census.base_offset)
        behind = int(rows["last"].max()) + 1 if rows.size else census.base_offset
        return census.extent._replace(first=first, behind=behind)

    def _has_holes(self, census: Census) -> bool:
        """Whether offsets are missing between sound batches, and not because one of them lies.

        If other batches have the offsets, these are in a wrong place.
        """
        fates, _ = self._chosen.arranged.get(census.log, (None, None))
        if not census.is_plain or (fates is not None and (fates == LEAPS).any()):
            return False
        if census.lacks_records or fates is None or not census.has_holes:
            return census.lacks_records or census.has_holes
        rows = census.rows
        others = [one.rows for _, one in self._chosen.all_censuses() if one is not census]
        for row in np.flatnonzero(rows["first"][1:] > rows["last"][:-1] + 1).tolist():
            first, last = rows["last"][row] + 1, rows["first"][row + 1] - 1
            if not any(((one["first"] <= last) & (one["last"] >= first)).any() for one in others):
                return True
        return False

    def _find_lost_ends(self, loaded: LoadedLog, losses: dict[Path, list[Loss]]) -> None:
        """Find transactions whose markers are lost, and write these if the options ask for it."""
        lost = [loss for one in losses.values() for loss in one]
        pieces = [segment.pieces for segment in self._chosen.segments]
        missing = [Range(one.first, one.last) for one in loaded.missing if one.is_trouble]
        kept = self._kept()
        if lost and self._stored.evidence.why_cleaned is None and not self._had_holes():
            missing += kept.between()
        end, stored = self._chosen.end_offset, self._stored
        known_offset = facts_of(stored.evidence, stored.files, stored.snapshots).known_offset
        if known_offset >= end:
            missing.append(Range(end, known_offset))
        chosen = self._chosen
        holes = holes_of(lost, missing, chosen.lost_markers(), chosen.unreadable(kept), kept)
        beside = self._surroundings()
        if lost:
            indexed = [abort for aborts in beside.aborts.values() for abort in aborts]
            holes += holes_of_aborts(indexed, chosen.reading.aborts, holes, kept)
            holes.sort(key=lambda hole: hole.first)
        found = find_lost_ends(pieces, holes, beside)
        loaded.lost_ends = found
        markers = [
            end.hole.first if end.marker_offset is None else end.marker_offset
            for end in found
            if not end.hole.batches and end.certainty != POSSIBLE
        ]
        for log, one in losses.items():
            losses[log] = without_markers(one, markers)
        written = new_markers(found, self._stored.options, kept)
        if written:
            self._chosen.insert(written)

    def _kept(self) -> Kept:
        damaged = []
        for _, census in self._chosen.all_censuses():
            first = census.gaps[:1]
            if first and first[0].position == 0 and first[0].reason != ZEROS:
                damaged.append(census.base_offset)
        return Kept(np.concatenate(self._chosen.reading.kept), sorted(damaged))

    def _surroundings(self) -> Surroundings:
        stored = self._stored
        return Surroundings(
            stored.folder,
            indexed_aborts(stored.files),
            stored.snapshots,
            sorted(stored.logs),
            self._chosen.later(),
        )

    def _homes(self) -> dict[Path, int | None]:
        """The segment with whose log each log is listed; None for a log that goes."""
        homes: dict[Path, int | None] = {}
        names = {segment.name: number for number, segment in enumerate(self._chosen.segments)}
        for number, segment in enumerate(self._chosen.segments):
            for log in segment.logs or ([] if segment.log is None else [segment.log]):
                homes.setdefault(log, number)
        for base_offset, log in self._chosen.logs:
            homes.setdefault(log, names.get(f"{base_offset:020d}"))
        return homes

    def _losses(self, loaded: LoadedLog) -> dict[Path, list[Loss]]:
        """The losses of each log."""
        stays = self._chosen.extents()
        written = self._written()
        kept: Kept | None = None
        found: dict[Path, list[Loss]] = {}
        for log, census in self._chosen.all_censuses():
            fates, tail = self._chosen.arranged.get(log, (None, None))
            fate = LogFate(
                stays.get(log, []),
                fates,
                tail,
                self._chosen.reading.rejected.get(log, {}),
                written.get(log, {}),
                self._chosen.strays.get(log),
            )
            if fate.extents == [Extent(log, 0, census.size)]:
                loaded.records += census.records
                continue
            stay = are_in(census.rows, fate.extents)
            loaded.records += int(census.rows["records"][stay].sum()) + sum(fate.written.values())
            if kept is None:
                kept = self._kept()
            found[log] = [loss for loss, _ in losses_of(census, fate, kept)]
            if fates is not None:
                loaded.loses += int((fates == BEHIND).sum())
        for log in self._chosen.nameless:
            census = self._chosen.census(MAX_INT64, log)
            fate = LogFate(tail=Tail(0, _NO_OFFSET))
            found[log] = [
                one for one, _ in losses_of(census, fate, Kept(np.empty((0, 2), np.int64)))
            ]
        return found

    def _written(self) -> dict[Path, dict[int, int]]:
        """By log and position, the number of records that are written instead of a batch."""
        found: dict[Path, dict[int, int]] = {}
        for segment in self._chosen.segments:
            for piece in segment.pieces:
                if isinstance(piece, Written) and piece.of is not None:
                    of_log = found.setdefault(piece.of.log, {})
                    of_log[piece.of.start] = of_log.get(piece.of.start, 0) + piece.records
        return found
