"""Choose the segments of a log: the batches that stay, and in which order.

    census of a log ─▶ is it next? ─▶ read its producers, build its indexes
                       └─ no: census of all others ─▶ arrangement ─▶ read …

So a log without trouble is read once, segment by segment. Damage, overlaps and wrong names need a
look at all batches from there on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.storage.source import Mask
from kafkajit.upkeep.repair.arrangement import (
    BEHIND,
    COPY,
    Arrangement,
    Tail,
    arrange,
    as_asked,
)
from kafkajit.upkeep.repair.census import Census, take_census
from kafkajit.upkeep.repair.damaged_batches import damaged_batches
from kafkajit.upkeep.repair.evidence import facts_of
from kafkajit.upkeep.repair.left_offsets import LeftOffsets
from kafkajit.upkeep.repair.log_bodies import LEAPS, MISPLACED, LogRows
from kafkajit.upkeep.repair.losses import Kept
from kafkajit.upkeep.repair.lost_ends import Hole
from kafkajit.upkeep.repair.new_markers import LostMarker
from kafkajit.upkeep.repair.outcome_files import CutAway
from kafkajit.upkeep.repair.pieces import (
    Extent,
    Piece,
    Written,
    are_in,
    part_of,
    producer_of,
    put_right,
    runs_of,
    with_pieces,
)
from kafkajit.upkeep.repair.places import Places
from kafkajit.upkeep.repair.segment_reading import LogReading, SegmentPlan, StoredLog
from kafkajit.upkeep.repair.segment_repairs import (
    RepairedSegment,
    SegmentContext,
    logs_of,
    repaired_segment,
)


class ChosenSegments:
    """The segments that a log will have, and why the rest of its files goes."""

    def __init__(self, stored: StoredLog, progress: Callable[[int], None]) -> None:
        self._stored = stored
        self._progress = progress
        self._salvage = stored.options.salvage
        named = sorted(stored.logs.items())
        self.logs = [(base, log) for base, log in named if base <= MAX_INT64 or self._salvage]
        self.nameless = [log for base, log in named if base > MAX_INT64 and not self._salvage]
        self._censuses: dict[Path, Census] = {}
        self.reading = LogReading(stored, self._censuses)
        self.segments: list[RepairedSegment] = []
        self._earlier_logs: list[Path] = []
        self._first_changed: int | None = None  # the first segment that is not as it was
        self.strays: dict[Path, Mask] = {}  # the batches of a log that are out of order
        self._markers: list[tuple[int, int]] = []  # new ones: offsets and producers
        # Of logs that are not simply one segment: why each batch goes, and the end that goes.
        self.arranged: dict[Path, tuple[npt.NDArray[np.object_], Tail | None]] = {}
        self.starts_anew = False  # nothing that was known of the log before is true any more
        self.behind_damage = (
            0  # sound batches that go, although the log reaches its start with them
        )
        self._choose()

    def _choose(self) -> None:
        stored = self._stored
        if not self._settle():
            self._arrange()
        self._end_if_rejected()
        why = self._contradiction_with_start()
        if why is not None:
            self.behind_damage = self._behind_damage()
            self._begin_again()
            self.arranged = {
                log: (np.full(census.batches, why, dtype=object), Tail(0, why))
                for log, census in self.all_censuses()
            }
            self.starts_anew = True
            self.reading.known.is_changed = True
        if not self.segments:
            start = stored.log_start_offset
            truncate_to = stored.options.truncate_to
            if self.logs and truncate_to is not None and truncate_to < self.logs[0][0]:
                start, self.starts_anew = truncate_to, True
            self._read(SegmentPlan(start, []), None)

    def _behind_damage(self) -> int:
        """The number of sound batches behind damage, if they reach the log start offset."""
        found, last = 0, -1
        for log, census in self.all_censuses():
            fates, _ = self.arranged.get(log, (None, None))
            if fates is not None and (fates == BEHIND).any():
                rows = census.rows[fates == BEHIND]
                found, last = found + rows.size, max(last, int(rows["last"].max()))
        return found if last >= self._stored.log_start_offset else 0

    def _begin_again(self) -> None:
        self.segments, self._earlier_logs, self._first_changed = [], [], None
        self.reading = LogReading(self._stored, self._censuses)

    def insert(self, written: Sequence[tuple[int, Written]]) -> None:
        """Read the segments once more with batches written at offsets that no batch has."""
        before, changed = self.segments, self._first_changed
        bases = [segment.base_offset for segment in before]
        others: list[list[tuple[int, Written]]] = [[] for _ in before]
        for offset, piece in written:
            others[max(bisect_right(bases, offset) - 1, 0)].append((offset, piece))
        self._begin_again()
        self._markers = [(offset, producer_of(piece)) for offset, piece in written]
        for number, (segment, new) in enumerate(zip(before, others, strict=True)):
            plan = SegmentPlan(segment.base_offset, [*with_pieces(segment.pieces, new)])
            is_changed = bool(new) or (changed is not None and number >= changed)
            self._read(plan, segment.log, is_changed=is_changed)

    def census(self, base_offset: int, log: Path) -> Census:
        """The census of a log, which is read once."""
        if log not in self._censuses:
            self._censuses[log] = take_census(log, min(base_offset, MAX_INT64), self._progress)
        return self._censuses[log]

    def all_censuses(self) -> Iterator[tuple[Path, Census]]:
        """The census of each log."""
        for base_offset, log in self.logs:
            yield log, self.census(base_offset, log)

    def _settle(self) -> bool:
        """Read logs up to the first that is not simply the next one; return whether all are."""
        truncate_to = self._stored.options.truncate_to
        for place, (base_offset, log) in enumerate(self.logs):
            following = self.logs[place + 1][0] if place + 1 < len(self.logs) else None
            limit = MAX_INT64 if following is None else following - 1
            if truncate_to is not None:
                limit = min(limit, truncate_to - 1)
            census = self.census(base_offset, log)
            known = self.reading.known
            is_next = (
                census.is_plain
                and known.next_offset <= base_offset <= limit
                and (not census.batches or base_offset <= census.first_offset)
                and census.last_offset <= limit
                and (following is not None or not census.ends_behind_hole)
            )
            if not is_next:
                return False
            extent = [Extent(log, 0, census.size)] if census.size else []
            self._read(SegmentPlan(base_offset, [*extent]), log)
            if self.reading.has_ended:
                return True
        return True

    def _arrange(self) -> None:
        """Arrange the logs that are not settled, or all if one of the others has their offsets."""
        settled = len(self.segments)
        rest = self.logs[settled:]
        next_offset = self.reading.known.next_offset if settled else 0
        last_base = self.logs[settled - 1][0] if settled else -1
        firsts = [
            int(census.rows["first"].min())
            for census in (self.census(*named) for named in rest)
            if census.batches
        ]
        if settled and min(firsts, default=MAX_INT64) < max(next_offset, last_base + 1):
            rest, next_offset = self.logs, 0
            self._begin_again()
        options = self._stored.options
        rows = [_rows_of(self.census(*named)) for named in rest]
        facts = facts_of(self._stored.evidence, self._stored.files, self._stored.snapshots)
        was_cleaned = facts.was_cleaned or any(one.was_compacted for one in self._censuses.values())
        facts = facts._replace(next_offset=next_offset, was_cleaned=was_cleaned)
        found = arrange(rows, facts, salvage=self._salvage, truncate_to=options.truncate_to)
        for number, (_, log) in enumerate(rest):
            self.arranged[log] = (found.fates[number], found.tails.get(number))
            self.strays[log] = found.strays[number]
        is_changed = any(self._censuses[log].gaps for _, log in rest)
        is_changed |= any(tail or (fates != "").any() for fates, tail in self.arranged.values())
        for plan, empty in self._plans(found, [log for _, log in rest]):
            self._read(plan, empty, is_changed=is_changed)
            if self.reading.has_ended:
                return

    def _plans(
        self, found: Arrangement, logs: Sequence[Path]
    ) -> Iterator[tuple[SegmentPlan, Path | None]]:
        """The segments of an arrangement in order, some with a log that stays without a batch."""
        places, starts = found.places, sorted(found.bases)
        planned: list[tuple[SegmentPlan, Path | None]] = []
        for start, behind in pairwise([*starts, places.size]):
            pieces = self._pieces(places[start:behind], logs)
            planned.append((SegmentPlan(found.bases[start], pieces), None))
        planned += [(SegmentPlan(base, []), logs[log]) for base, log in found.empty.items()]
        yield from sorted(planned, key=lambda pair: pair[0].base_offset)

    def _pieces(self, places: Places, logs: Sequence[Path]) -> list[Piece]:
        """Adjacent batches of a log are one piece."""
        is_next = (places["log"][1:] == places["log"][:-1]) & ~places["isPart"][1:]
        is_next &= ~places["isPart"][:-1]
        is_next &= places["row"][1:] == places["row"][:-1] + 1
        pieces: list[Piece] = []
        begins = np.flatnonzero(np.append(True, ~is_next)).tolist()
        for begin, behind in zip(begins, [*begins[1:], places.size], strict=True):
            log = logs[int(places["log"][begin])]
            census = self._censuses[log]
            rows = places["row"][begin:behind]
            for run, is_wrong in runs_of(census.rows[rows], census.lies[rows]):
                extent = Extent(log, int(run["position"][0]), int(run["end"][-1]))
                if not places["isPart"][begin]:
                    pieces.append(put_right(extent, run[0]) if is_wrong else extent)
                    continue
                offsets = Range(int(places["first"][begin]), int(places["last"][begin]))
                part = part_of(extent, offsets)
                if part is not None:
                    pieces.append(part)
        return pieces

    def _read(self, plan: SegmentPlan, empty: Path | None, *, is_changed: bool = False) -> None:
        if empty is None:
            empty = next(iter(logs_of(plan.pieces)), None) or next(
                (one.of.log for one in plan.pieces if isinstance(one, Written) and one.of), None
            )
        if is_changed and self._first_changed is None:
            self._first_changed = len(self.segments)
        stored = self._stored
        for segment in self.reading.read(plan, is_changed=is_changed):
            context = SegmentContext(
                stored.folder,
                stored.files,
                empty,
                earlier_logs=self._earlier_logs,
                index_interval=stored.options.config.index_interval_bytes,
                contents=stored.contents,
                markers=self._markers,
            )
            self.segments.append(repaired_segment(segment, context))
            self._earlier_logs += segment.logs

    def _end_if_rejected(self) -> None:
        """Let the log end at a batch that no broker accepts, unless it is to be salvaged."""
        if not self.reading.has_ended:
            return
        ((log, rejected),) = self.reading.rejected.items()
        ((position, reason),) = rejected.items()
        stays = self.extents()
        for other, census in self.all_censuses():
            fates, tail = self.arranged.get(other, (_no_fates(census), None))
            kept = are_in(census.rows, stays.get(other, []))
            fates[~kept & (fates == "")] = BEHIND
            if other == log:
                tail = Tail(position, reason)
            elif not kept.any() and (census.gaps or (fates == BEHIND).any() or not census.size):
                tail = Tail(0, BEHIND)
            self.arranged[other] = fates, tail
        rejected.clear()

    def later(self) -> CutAway:
        """The sound batches behind the log's end, in the order of their offsets."""
        found: list[tuple[int, Piece]] = []
        offsets: list[tuple[int, int]] = []
        truncate_to = self._stored.options.truncate_to
        reasons = [BEHIND] if truncate_to is None else [BEHIND, as_asked(truncate_to)]
        for log, (fates, _) in self.arranged.items():
            rows = self._censuses[log].rows[np.isin(fates.astype(str), reasons)]
            breaks = np.flatnonzero(rows["position"][1:] != rows["end"][:-1]) + 1
            found += [
                (int(run["first"][0]), Extent(log, int(run["position"][0]), int(run["end"][-1])))
                for run in np.split(rows, breaks)
                if run.size
            ]
            offsets += zip(rows["first"].tolist(), rows["last"].tolist(), strict=True)
        return CutAway([piece for _, piece in sorted(found)], sorted(offsets))

    def lost_markers(self) -> Iterator[LostMarker]:
        """The markers that do not stay where they are, but whose offsets may be others'.

        They are sound, or damaged bytes that have their headers.
        """
        stays = self.extents()
        for log, (fates, _) in self.arranged.items():
            census = self._censuses[log]
            rows = census.rows
            offsets_left = self._offsets_left(log, stays)
            is_gone = (fates != "") & (fates != COPY) & (fates != BEHIND) & (rows["records"] == 0)
            for row in np.flatnonzero(is_gone).tolist():
                position, size = int(rows["position"][row]), int(rows["end"][row])
                offsets = Range(int(rows["first"][row]), int(rows["last"][row]))
                left = offsets_left.at(position) if not offsets_left.is_ordered[row] else offsets
                for batch in damaged_batches(log, position, size - position, *offsets):
                    if batch.is_control:
                        yield LostMarker(log, left, batch)
            for gap in census.gaps:
                left = offsets_left.at(gap.position)
                for batch in damaged_batches(
                    log, gap.position, gap.length, left.first, _end_of(left)
                ):
                    if batch.is_control:
                        yield LostMarker(log, Range(batch.first, batch.last), batch)

    def unreadable(self, kept: Kept) -> Iterator[Hole]:
        """The offsets that damage may have had, although other batches have them."""
        stays = self.extents()
        firsts = {census.first_offset for _, census in self.all_censuses() if census.batches}
        for log in self.arranged:
            census = self._censuses[log]
            offsets_left = self._offsets_left(log, stays)
            for gap in census.gaps:
                left = offsets_left.at(gap.position)
                first, end = left.first, _end_of(left)
                hole = Range(first, first if end is None else end)
                if not left or kept.missing(hole) is not None:
                    continue
                batches = damaged_batches(log, gap.position, gap.length, first, end)
                if batches and end is None:  # the log may have had more behind these
                    behind = batches[-1].last + 1
                    hole = Range(behind, behind)
                if not batches or end is None:
                    is_taken = kept.missing(hole) is None
                    yield Hole(*hole, [], census.base_offset, is_taken)
            # A log may have been torn between two batches, and another log has the next offset.
            if offsets_left.rows.size and offsets_left.stays[-1]:
                behind = int(census.rows["last"][-1]) + 1
                if behind not in firsts and kept.missing(Range(behind, behind)) is None:
                    yield Hole(behind, behind, [], census.base_offset, is_taken=True)

    def _offsets_left(self, log: Path, stays: Mapping[Path, Sequence[Extent]]) -> LeftOffsets:
        """The offsets between the batches of a log whose base offsets tell something of them."""
        census, (fates, _) = self._censuses[log], self.arranged[log]
        is_wrong = np.isin(fates.astype(str), (LEAPS, MISPLACED)) | self.strays.get(log, False)
        return LeftOffsets(census, ~is_wrong, are_in(census.rows, stays.get(log, [])))

    def _contradiction_with_start(self) -> str | None:
        """Why nothing stays: brokers delete a log that ends before its start."""
        stored = self._stored
        if stored.options.truncate_to is not None or not self.segments:
            return None
        end = self.end_offset
        if end >= stored.log_start_offset:
            return None
        return f"the log ends at {end}, before its start {stored.log_start_offset}"

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        last = self.segments[-1]
        return self.reading.known.next_offset if last.pieces else last.base_offset

    def extents(self) -> dict[Path, list[Extent]]:
        """The bytes of each log that stay, in the order of their positions."""
        found: dict[Path, list[Extent]] = {}
        for segment in self.segments:
            for piece in segment.pieces:
                if isinstance(piece, Extent):
                    found.setdefault(piece.log, []).append(piece)
        return {log: merged(sorted(extents)) for log, extents in found.items()}


def merged(extents: Sequence[Extent]) -> list[Extent]:
    """Extents of a log, with adjacent ones as one."""
    found: list[Extent] = []
    for extent in extents:
        if found and found[-1].end == extent.start:
            found[-1] = found[-1]._replace(end=extent.end)
        else:
            found.append(extent)
    return found


def _rows_of(census: Census) -> LogRows:
    gaps = np.array([gap.position for gap in census.gaps], dtype=np.int64)
    return LogRows(census.base_offset, census.rows, gaps)


def _end_of(left: Range) -> int | None:
    return None if left.last == MAX_INT64 else left.last


def _no_fates(census: Census) -> npt.NDArray[np.object_]:
    return np.full(census.batches, "", dtype=object)
