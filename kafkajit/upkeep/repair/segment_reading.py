"""Read one segment of a log that is being loaded.

Batches that stay go into the segment, their producers are followed, and the snapshot of producers
at its beginning is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kafkajit.errors import CorruptSnapshotError, InvalidRecordError, KafkaJitError
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.ranges import Range
from kafkajit.log.indexing import SegmentIndexes
from kafkajit.log.producers import ProducerStates, are_markers
from kafkajit.records.batches import Batches
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.control_records import ABORT
from kafkajit.records.decode import Decoder
from kafkajit.records.markers import NO_MARKERS, read_markers
from kafkajit.state.producer_snapshot import snapshot_entries
from kafkajit.storage.source import as_bytes
from kafkajit.upkeep.repair.file_repair import Contents
from kafkajit.upkeep.repair.options import RepairOptions
from kafkajit.upkeep.repair.segment_names import NamedSegment
from kafkajit.upkeep.repair.segment_repairs import MARKER, LoadedSegment
from kafkajit.upkeep.repair.sidecar_checks import (
    contradiction_in_snapshot,
    problem_with_snapshot,
)
from kafkajit.upkeep.repair.sound_batches import BatchTriage
from kafkajit.walk.damage import Stretch


class StoredLog(NamedTuple):
    """A partition's log as it is on the disk, and how to load it."""

    folder: Path
    files: Mapping[str, Path]  # a live name → the file that has its bytes now
    logs: Mapping[int, Path]  # by base offset
    snapshots: Mapping[int, Path]  # of producers, by offset
    log_start_offset: int  # as log-start-offset-checkpoint has it
    options: RepairOptions
    contents: Contents


@dataclass
class Known:
    """The facts known from the batches before some position of the log."""

    log_base: int | None = None  # the base offset of the first segment, once there is one
    producers: ProducerStates = field(default_factory=ProducerStates)
    known_since: int = 0  # producers are known from this offset on
    next_offset: int = 0
    has_holes: bool = False  # whether offsets are missing
    is_changed: bool = False  # whether something before goes
    has_messages: bool = False  # of v0 or v1
    # The epoch of each leader that is later than all before, and where its first batch begins.
    epochs: list[tuple[int, int]] = field(default_factory=list)
    new_snapshots: dict[int, tuple[bytes, str]] = field(default_factory=dict)  # and why
    right_snapshots: set[int] = field(default_factory=set)

    def copy(self) -> Known:
        return Known(
            self.log_base,
            self.producers.copy(),
            self.known_since,
            self.next_offset,
            self.has_holes,
            self.is_changed,
            self.has_messages,
            self.epochs.copy(),
            self.new_snapshots.copy(),
            self.right_snapshots.copy(),
        )


class SegmentReading:
    """One reading of a segment's log, which becomes several segments if offsets are far apart."""

    def __init__(self, stored: StoredLog, named: NamedSegment | None, known: Known) -> None:
        self.known = known
        self.segments: list[LoadedSegment] = []
        self.runs: list[tuple[Stretch, Range]] = []  # what stays, with its offsets
        self._stored = stored
        self._named = named

    def read(self, triage: BatchTriage, progress: Callable[[int], None]) -> None:
        """Take in the batches that stay."""
        decoder = Decoder(triage.source, ColumnMemory(Wanted(fields=True)))
        for batches in triage:
            self._take(batches, triage, decoder)
            progress(int(batches.size_in_bytes.sum()))

    def begin(self, base_offset: int) -> LoadedSegment:
        """Begin a segment at this offset."""
        known, stored = self.known, self._stored
        if known.log_base is None:
            known.log_base = known.next_offset = base_offset
            self._begin_producers(base_offset)
        elif base_offset <= stored.log_start_offset:
            known.producers, known.known_since = ProducerStates(), base_offset
        else:
            check_snapshot(stored, known, base_offset)
        log = None if self._named is None else self._named.log
        entries = SegmentIndexes(base_offset, stored.options.config)
        self.segments.append(LoadedSegment(base_offset, log, known.known_since, entries))
        return self.segments[-1]

    def _begin_producers(self, base_offset: int) -> None:
        """Start with the producers from before the log, if a snapshot has them."""
        self.known.known_since = base_offset
        snapshots = self._stored.snapshots
        for offset in sorted(snapshots, reverse=True):
            if self._stored.log_start_offset < offset <= base_offset:
                content = as_bytes(snapshots[offset].read_bytes())
                try:
                    if contradiction_in_snapshot(snapshot_entries(content), offset) is not None:
                        continue
                    self.known.producers = ProducerStates.of_snapshot(content)
                except CorruptSnapshotError:
                    continue
                break

    def _take(self, batches: Batches, triage: BatchTriage, decoder: Decoder) -> None:
        """Take in whole batches in order; a segment ends if an offset is too far from its base."""
        assert self._named is not None
        while len(batches):
            segment = self.segments[-1] if self.segments else self.begin(self._named.base_offset)
            too_far = batches.last_offset - segment.base_offset > MAX_INT32
            if too_far[0]:
                self.begin(int(batches.header["baseOffset"][0]))
                continue
            in_reach = batches[: int(np.argmax(too_far))] if too_far.any() else batches
            good, error = self._follow_producers(in_reach, segment, decoder)
            if good:
                self._keep(in_reach[:good], segment)
            if error is not None:
                triage.reject(in_reach, good, f"{type(error).__name__}: {error.message}")
                if not self._stored.options.salvage:
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
        return good, error

    def _keep(self, batches: Batches, segment: LoadedSegment) -> None:
        """Add batches that stay to the segment."""
        known, first, last = self.known, batches.header["baseOffset"], batches.last_offset
        segment.entries.add(batches, str(segment.log))
        stretch = Stretch(int(batches.position[0]), int(batches.end[-1]))
        offsets = Range(int(first[0]), int(last[-1]))
        stretches = segment.stretches
        if stretches and stretches[-1].end == stretch.start:
            (start, _), (offset, _) = self.runs.pop()
            stretch, offsets = Stretch(start, stretch.end), Range(offset, offsets.last)
            stretches.pop()
        stretches.append(stretch)
        self.runs.append((stretch, offsets))
        known.has_holes |= bool(first[0] != known.next_offset or (first[1:] != last[:-1] + 1).any())
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
    content = path.read_bytes()
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
        has_holes=known.has_holes or offset > known.next_offset,
        taken_ms=path.stat().st_mtime_ns // 1_000_000,
    )
