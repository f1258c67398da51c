"""Read the segments of a log that is being loaded: its producers, indexes and snapshots.

Batches that stay go into their segments, their producers are followed, and the snapshot of
producers at the beginning of each segment is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.errors import CorruptSnapshotError, InvalidRecordError, KafkaJitError
from kafkajit.format.limits import MAX_INT32
from kafkajit.log.indexing import SegmentIndexes
from kafkajit.log.missing_offsets import Evidence
from kafkajit.log.producers import ProducerStates, are_markers
from kafkajit.records.batches import Batches, lacks_records
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.control_records import ABORT
from kafkajit.records.decode import Decoder
from kafkajit.records.markers import NO_MARKERS, read_markers
from kafkajit.state.producer_snapshot import snapshot_entries
from kafkajit.storage.source import as_bytes, read_small
from kafkajit.upkeep.repair.census import Census
from kafkajit.upkeep.repair.file_repair import Contents
from kafkajit.upkeep.repair.options import RepairOptions
from kafkajit.upkeep.repair.pieces import Extent, Piece, source_of
from kafkajit.upkeep.repair.segment_repairs import MARKER, LoadedSegment
from kafkajit.upkeep.repair.sidecar_checks import (
    contradiction_in_snapshot,
    problem_with_snapshot,
)
from kafkajit.walk.walk import Walk


class StoredLog(NamedTuple):
    """A partition's log as it is on the disk, and how to load it."""

    folder: Path
    files: Mapping[str, Path]  # a live name → the file that has its bytes now
    logs: Mapping[int, Path]  # by base offset
    snapshots: Mapping[int, Path]  # of producers, by offset
    log_start_offset: int  # as log-start-offset-checkpoint has it
    options: RepairOptions
    contents: Contents
    evidence: Evidence  # of the files beside the logs


class SegmentPlan(NamedTuple):
    """A segment that the log will have."""

    base_offset: int
    pieces: list[Piece]


@dataclass
class Known:
    """The facts known from the batches before some position of the log."""

    log_base: int | None = None  # the base offset of the first segment, once there is one
    producers: ProducerStates = field(default_factory=ProducerStates)
    known_since: int = 0  # producers are known from this offset on
    next_offset: int = 0
    has_holes: bool = False  # whether records are missing, as after compaction
    is_changed: bool = False  # whether something before goes
    lacks_segment: bool = False  # whether a segment before is missing
    has_messages: bool = False  # of v0 or v1
    # The epoch of each leader that is later than all before, and where its first batch begins.
    epochs: list[tuple[int, int]] = field(default_factory=list)
    new_snapshots: dict[int, tuple[bytes, str]] = field(default_factory=dict)  # and why
    right_snapshots: set[int] = field(default_factory=set)


class LogReading:
    """One reading of the segments of a log, in order.

    A segment becomes several if its offsets are far apart. The censuses of the logs
    have the first offsets of sets.
    """

    def __init__(self, stored: StoredLog, censuses: Mapping[Path, Census]) -> None:
        self.known = Known()
        # The first and the last offset of each run that stays.
        self.kept: list[npt.NDArray[np.int64]] = [np.empty((0, 2), dtype=np.int64)]
        self.rejected: dict[Path, dict[int, str]] = {}  # batches that no broker accepts, and why
        self.aborts: set[tuple[int, int]] = set()  # the offset and producer of each ABORT marker
        self._stored = stored
        self._censuses = censuses

    @property
    def has_ended(self) -> bool:
        """Whether a batch that no broker accepts has ended the log."""
        return bool(self.rejected) and not self._stored.options.salvage

    def read(self, plan: SegmentPlan, *, is_changed: bool) -> list[LoadedSegment]:
        """Read the segment's pieces; `is_changed` means that something of its log goes."""
        segments: list[LoadedSegment] = []
        if not plan.pieces:
            segments.append(self._begin(plan.base_offset))
        for piece in plan.pieces:
            source, start, end = source_of(piece)
            decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
            for batches in Walk(source, start=start, end=end, is_last=True).framed():
                self._take(batches, piece, segments, plan.base_offset, decoder)
                source.forget(int(batches.end[-1]))
                if self.has_ended:
                    return segments
        if not segments:  # each of its batches was rejected
            segments.append(self._begin(plan.base_offset))
        self.known.is_changed |= is_changed
        segments[-1].has_holes = self.known.has_holes
        return segments

    def _begin(self, base_offset: int) -> LoadedSegment:
        """Begin a segment at this offset."""
        known, stored = self.known, self._stored
        if known.log_base is None:
            known.log_base = known.next_offset = base_offset
            self._begin_producers(base_offset)
        elif base_offset <= stored.log_start_offset:
            known.producers, known.known_since = ProducerStates(), base_offset
        else:
            is_usual = known.has_holes or stored.evidence.why_cleaned is not None
            # A segment is missing. What snapshots know of it contradicts the batches that are left,
            # from which a broker that recovers the log makes its snapshots.
            known.lacks_segment |= base_offset > known.next_offset and not is_usual
            check_snapshot(stored, known, base_offset)
        entries = SegmentIndexes(base_offset, stored.options.config)
        return LoadedSegment(base_offset, known.known_since, entries)

    def _begin_producers(self, base_offset: int) -> None:
        """Start with the producers from before the log, if a snapshot has them."""
        self.known.known_since = base_offset
        snapshots = self._stored.snapshots
        for offset in sorted(snapshots, reverse=True):
            if self._stored.log_start_offset < offset <= base_offset:
                content = as_bytes(read_small(snapshots[offset]))
                try:
                    if contradiction_in_snapshot(snapshot_entries(content), offset) is not None:
                        continue
                    self.known.producers = ProducerStates.of_snapshot(content)
                except CorruptSnapshotError:
                    continue
                break

    def _take(
        self,
        batches: Batches,
        piece: Piece,
        segments: list[LoadedSegment],
        base_offset: int,
        decoder: Decoder,
    ) -> None:
        """Take in whole batches in order; a segment ends if an offset is too far from its base."""
        while len(batches):
            if not segments:
                segments.append(self._begin(base_offset))
            segment = segments[-1]
            too_far = batches.last_offset - segment.base_offset > MAX_INT32
            if too_far[0]:
                segment.has_holes = self.known.has_holes
                segments.append(self._begin(int(batches.header["baseOffset"][0])))
                continue
            in_reach = batches[: int(np.argmax(too_far))] if too_far.any() else batches
            good, error = self._follow_producers(in_reach, segment, decoder)
            if good:
                self._keep(in_reach[:good], piece, segment)
            if error is not None:
                assert isinstance(piece, Extent)  # what is written is right
                position = int(in_reach.position[good])
                reason = f"{type(error).__name__}: {error.message}"
                self.rejected.setdefault(piece.log, {})[position] = reason
                self.known.is_changed = True
                if self.has_ended:
                    return
                good += 1
            batches = batches[good:]

    def _follow_producers(
        self, batches: Batches, segment: LoadedSegment, decoder: Decoder
    ) -> tuple[int, KafkaJitError | None]:
        """Follow producers through batches; return how many could be read, and the error."""
        if not (batches.header["producerId"] >= 0).any():
            return len(batches), None
        is_marker = are_markers(batches)
        markers, error = NO_MARKERS, None
        good = len(batches)
        if is_marker.any():
            control = batches[is_marker]
            markers, error = read_markers(decoder, control, np.ones(len(control), dtype=np.bool_))
            if error is not None:
                good = int(np.flatnonzero(is_marker)[len(markers)])
        before = self.known.producers.copy()
        try:
            aborted = self.known.producers.update(batches[:good], markers)
        except InvalidRecordError as reason:
            error, good = reason, int(np.searchsorted(batches.position, reason.position or 0))
            self.known.producers = before
            markers = markers.between(0, int(is_marker[:good].sum()))
            aborted = before.update(batches[:good], markers)
        if aborted.size:
            segment.aborted.append(aborted)
        if (markers.type_id == ABORT).any():
            rows = np.flatnonzero(is_marker[:good])[markers.type_id == ABORT]
            aborts = np.empty(rows.size, dtype=MARKER)
            aborts["offset"] = batches.header["baseOffset"][rows]
            aborts["producerId"] = batches.header["producerId"][rows]
            segment.aborts.append(aborts)
            self.aborts.update(aborts.tolist())
        return good, error

    def _keep(self, batches: Batches, piece: Piece, segment: LoadedSegment) -> None:
        """Add batches that stay to the segment."""
        known, last = self.known, batches.last_offset
        first = batches.header["baseOffset"].astype(np.int64)
        if batches.is_message_set.any():
            there, begin = (piece, 0) if isinstance(piece, Extent) else (piece.of, piece.begin)
            assert there is not None  # no set is made anew
            first = self._censuses[there.log].first_offsets(batches, begin)
        segment.entries.add(batches, str(piece.log) if isinstance(piece, Extent) else None)
        if isinstance(piece, Extent):
            piece = piece._replace(start=int(batches.position[0]), end=int(batches.end[-1]))
        segment.add(piece)
        is_hole = first[1:] != last[:-1] + 1
        begins = np.flatnonzero(np.append(True, is_hole))
        ends = np.flatnonzero(np.append(is_hole, True))
        self.kept.append(np.stack([first[begins], last[ends]], axis=1))
        known.has_holes |= bool(first[0] != known.next_offset or is_hole.any())
        known.has_holes |= lacks_records(batches)
        known.next_offset = int(last[-1]) + 1
        known.has_messages |= bool(batches.is_message.any())
        epochs = batches.header["partitionLeaderEpoch"]
        while (is_later := epochs > (known.epochs[-1][0] if known.epochs else -1)).any():
            row = int(np.argmax(is_later))
            known.epochs.append((int(epochs[row]), int(first[row])))


def check_snapshot(stored: StoredLog, known: Known, offset: int) -> None:
    """Check the snapshot of the producers that are known here: it must be there and be right."""
    assert known.log_base is not None
    if offset <= max(stored.log_start_offset, known.log_base):
        return  # brokers have no snapshot of their log's start
    if offset in known.right_snapshots or offset in known.new_snapshots:
        return
    expected = known.producers.snapshot()
    path = stored.snapshots.get(offset)
    if path is None:
        known.new_snapshots[offset] = (expected, "it is missing")
        return
    content = read_small(path)
    problem = None if content == expected else _problem(known, content, expected, offset, path)
    if problem is not None:
        known.new_snapshots[offset] = (expected, problem)
        return
    known.right_snapshots.add(offset)
    if content != expected:
        known.producers = ProducerStates.of_snapshot(as_bytes(content))


def _problem(known: Known, content: bytes, expected: bytes, offset: int, path: Path) -> str | None:
    """Describe what is wrong with a snapshot; None if it may stay."""
    try:
        entries = snapshot_entries(as_bytes(content))
    except CorruptSnapshotError as error:
        return f"{type(error).__name__}: {error.message}"
    if known.is_changed:
        return "what is before it changes"
    return problem_with_snapshot(
        entries,
        snapshot_entries(as_bytes(expected)),
        offset,
        known_since=known.known_since,
        has_holes=(known.has_holes or offset > known.next_offset) and not known.lacks_segment,
        taken_ms=path.stat().st_mtime_ns // 1_000_000,
    )
