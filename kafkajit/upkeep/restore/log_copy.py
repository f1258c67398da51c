"""Copy a log into a partition's folder, batch by batch, with the files that a broker keeps beside.

    source ─▶ check ─▶ .log, staged
                └────▶ indexes, producers, leader epochs: the source's if they fit the log,
                       else those that the batches give

Every checksum is verified on the way: a damaged batch is an error, and the partition is not
restored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.change.change import Change
from kafkajit.errors import CorruptRecordError, CorruptSnapshotError, KafkaJitError
from kafkajit.format.kafscale import FOOTER
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.log_path import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from kafkajit.format.ranges import Range
from kafkajit.index.transaction_index import ENTRY as ABORTED
from kafkajit.log.config import LogConfig
from kafkajit.log.epochs import LeaderEpochs, stamp_epochs
from kafkajit.log.indexing import SegmentIndexes
from kafkajit.log.open_segment import OpenSegment
from kafkajit.log.producers import ProducerStates, are_markers
from kafkajit.log.tiered_segments import Epochs
from kafkajit.records.batches import Batches
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.control_records import ABORT
from kafkajit.records.decode import Decoder
from kafkajit.records.markers import NO_MARKERS, read_markers
from kafkajit.state.leader_epochs import LEADER_EPOCHS
from kafkajit.state.producer_snapshot import snapshot_entries
from kafkajit.storage.source import Bytes, Source, as_bytes
from kafkajit.storage.stored_file import StoredFile
from kafkajit.system import disk
from kafkajit.upkeep.repair.segment_repairs import MARKER
from kafkajit.upkeep.repair.sidecar_checks import (
    contradiction_in_snapshot,
    problem_with_offset_index,
    problem_with_snapshot,
    problem_with_time_index,
    problem_with_transaction_index,
)
from kafkajit.upkeep.restore.cut_batch import CutBatch, cut_batch
from kafkajit.upkeep.restore.kept_segments import KeptSegment, check_order
from kafkajit.upkeep.restore.producer_ids import (
    change_ids,
    snapshot_with_other_ids,
    with_other_ids,
)
from kafkajit.upkeep.restore.source_logs import SourceLog
from kafkajit.walk.frames import frames
from kafkajit.walk.kafscale import KafscaleSegment, is_kafscale

Entries = npt.NDArray[np.void]
Progress = Callable[[int], None]


class _Part(NamedTuple):
    """The contents of the files beside a segment, as far as its batches give them."""

    indexes: SegmentIndexes
    aborted: list[Entries]
    aborts: list[Entries]


class LogCopy:
    """The copy of a log, which is staged in a change segment by segment.

    Args:
        source: the log.
        folder: the partition's folder.
        change: collects the new files.
        leader_epoch: the epoch to write into all batches, for another cluster, in which producers
            get other ids, too; None keeps those that they have.
        progress: called with each number of bytes that were copied.

    `end_offset` is the offset behind the last sound batch, also after an error.
    """

    def __init__(
        self,
        source: SourceLog,
        folder: Path,
        change: Change,
        leader_epoch: int | None,
        progress: Progress,
    ) -> None:
        self.producers = ProducerStates()
        self.end_offset = 0
        self._source = source
        self._folder = folder
        self._change = change
        self._leader_epoch = leader_epoch
        self._progress = progress
        self._epochs = LeaderEpochs()
        self._known_since = 0
        self._last_offset = MAX_INT64  # that the segment may have
        self._has_holes = False
        self._config = LogConfig()
        self._logs: list[str] = []  # the staged ones

    def copy(self, segments: Sequence[KeptSegment], start_offset: int) -> None:
        """Stage all files of the log that begins at this offset."""
        self._known_since = self.end_offset = segments[0].base_offset
        self._begin_producers(segments[0])
        for number, kept in enumerate(segments):
            self._copy_segment(kept)
            behind = segments[number + 1].base_offset if number + 1 < len(segments) else -1
            self._take_snapshot(kept, max(self.end_offset, behind))
        self._write_epochs(segments[-1], start_offset)

    def _new(self, name: str) -> Path:
        return self._change.new(self._folder / name)

    def _begin_producers(self, first: KeptSegment) -> None:
        """Start with the producers from before the log, if a snapshot has them."""
        file = self._source.snapshot(first.segment, first.base_offset)
        if file is None:
            return
        content = as_bytes(file.read())
        try:
            if contradiction_in_snapshot(snapshot_entries(content), first.base_offset) is None:
                self.producers = ProducerStates.of_snapshot(content)
        except CorruptSnapshotError:
            return

    def _copy_segment(self, kept: KeptSegment) -> None:
        name = f"{kept.base_offset:020d}"
        log = self._new(name + LOG_SUFFIX)
        part = _Part(
            SegmentIndexes(kept.base_offset, self._config),
            [np.empty(0, dtype=ABORTED)],
            [np.empty(0, dtype=MARKER)],
        )
        opened = OpenSegment(kept.segment)
        self._last_offset = kept.segment.between.last
        with disk.create(log, buffering=0) as file:
            if kept.head is not None:
                self._copy_cut(opened, kept.head, part, file)
            self._copy_whole(kept, part, file)
            if kept.tail is not None:
                self._copy_cut(opened, kept.tail, part, file)
        self.end_offset = max(self.end_offset, kept.base_offset)
        part.indexes.close()
        self._logs.append(str(log))
        self._write_indexes(kept, log, part.indexes)
        self._write_aborted(kept, log, np.concatenate(part.aborted), np.concatenate(part.aborts))

    def _copy_whole(self, kept: KeptSegment, part: _Part, file: BinaryIO) -> None:
        """Copy the batches that are kept whole."""
        start, end = kept.stretch
        source = kept.segment.log.open(start, end)
        kafscale = KafscaleSegment(source, checks_crc=True) if is_kafscale(source) else None
        position = self._copy(source, start, end, part, file, kafscale)
        if kafscale is not None and end == source.content.size:
            end -= FOOTER.size
        if position != end:
            raise CorruptRecordError(
                f"{end - position} bytes are not a whole batch",
                path=source.path,
                position=position,
            )

    def _copy_cut(self, opened: OpenSegment, cut: CutBatch, part: _Part, file: BinaryIO) -> None:
        """Write a batch that is cut, as it was planned."""
        path = opened.segment.log.path
        again = cut_batch(opened, cut.position, cut.offsets)
        if again is None or again[0] != cut:
            raise KafkaJitError(
                "the batch has changed since the plan was made: make another plan",
                path=path,
                position=cut.position,
            )
        source = Source(again[1])  # without a path, since a KafScale segment is known by its name
        try:
            self._copy(source, 0, source.content.size, part, file)
        except KafkaJitError as error:
            error.path, error.position = path, cut.position
            raise

    def _copy(
        self,
        source: Source,
        start: int,
        end: int,
        part: _Part,
        file: BinaryIO,
        kafscale: KafscaleSegment | None = None,
    ) -> int:
        """Copy the batches of a stretch, and return the position behind them."""
        decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
        position = start
        for framing in frames(source, position=start, end=end, kafscale=kafscale):
            batches = framing.batches
            position = int(batches.position[0])  # behind the head of a KafScale segment
            try:
                self._check(batches, decoder, source.path)
                self._follow(batches, decoder, source.path, part)
                part.indexes.add(batches, source.path)
            except KafkaJitError as error:
                self._end_before(batches, error)
                raise
            content = self._stamped(source.content[position : framing.position], batches)
            rest = content.data
            while rest:  # the system may write only a part
                rest = rest[file.write(rest) :]
            self._progress(framing.position - position)
            position = framing.position
            source.forget(position)
        return position

    def _check(self, batches: Batches, decoder: Decoder, path: str | None) -> None:
        sound = decoder.sound(batches, check_crcs=True)
        if not sound.all():
            raise decoder.unsound(batches, int(np.argmin(sound)))
        check_order(batches, Range(self.end_offset, self._last_offset), path)

    def _end_before(self, batches: Batches, error: KafkaJitError) -> None:
        """Note where the log would end before a batch that is wrong."""
        if error.position is not None:
            before = batches.last_offset[batches.position < error.position]
            self.end_offset = int(before[-1]) + 1 if before.size else self.end_offset

    def _follow(
        self,
        batches: Batches,
        decoder: Decoder,
        path: str | None,
        part: _Part,
    ) -> None:
        """Follow producers and leader epochs through the batches."""
        first, last = batches.header["baseOffset"], batches.last_offset
        self._has_holes |= bool(first[0] != self.end_offset or (first[1:] != last[:-1] + 1).any())
        epochs = batches.header["partitionLeaderEpoch"]
        is_known = (epochs >= 0) | batches.is_message
        self._epochs.append(batches[is_known], epochs[is_known])
        if (batches.header["producerId"] >= 0).any():
            self._follow_producers(batches, decoder, path, part)
        self.end_offset = int(last[-1]) + 1

    def _follow_producers(
        self, batches: Batches, decoder: Decoder, path: str | None, part: _Part
    ) -> None:
        markers = NO_MARKERS
        rows = np.flatnonzero(are_markers(batches))
        if rows.size:
            control = batches[are_markers(batches)]
            markers, error = read_markers(decoder, control, np.ones(len(control), dtype=np.bool_))
            if error is not None:
                raise error
        part.aborted.append(self.producers.update(batches, markers, path))
        is_abort = markers.type_id == ABORT
        found = np.empty(int(is_abort.sum()), dtype=MARKER)
        found["offset"] = batches.header["baseOffset"][rows][is_abort] if rows.size else 0
        found["producerId"] = batches.header["producerId"][rows][is_abort] if rows.size else 0
        part.aborts.append(found)

    def _stamped(self, content: Bytes, batches: Batches) -> Bytes:
        """The bytes of batches as the cluster gets them."""
        if self._leader_epoch is None:
            return content
        changed = batches[~batches.is_message]
        content = content.copy()
        epochs = np.full(len(changed), self._leader_epoch, dtype=np.int32)
        start = int(batches.position[0])
        stamp_epochs(content, changed.position - start, epochs)
        if (changed.header["producerId"] >= 0).any():
            change_ids(content, changed, start)
        return content

    def _write_indexes(self, kept: KeptSegment, log: Path, indexes: SegmentIndexes) -> None:
        offsets, times = indexes.offset_index, indexes.time_index
        segment = kept.segment if kept.is_whole else None
        if segment is not None and segment.index is not None:
            content = as_bytes(segment.index.read())
            problem = problem_with_offset_index(
                content,
                offsets,
                str(log),
                kept.size,
                kept.base_offset,
                self._config.index_interval_bytes,
            )
            offsets = offsets if problem else content.tobytes()
        if segment is not None and segment.time_index is not None:
            content = as_bytes(segment.time_index.read())
            problem = problem_with_time_index(content, times, str(log), kept.base_offset)
            times = times if problem else content.tobytes()
        disk.write(self._new(log.stem + INDEX_SUFFIX), offsets)
        disk.write(self._new(log.stem + TIME_INDEX_SUFFIX), times)

    def _write_aborted(
        self, kept: KeptSegment, log: Path, aborted: Entries, aborts: Entries
    ) -> None:
        """Write the .txnindex, if the segment has aborted transactions."""
        aborted = aborted.astype(ABORTED)  # in the byte order of the file
        if self._leader_epoch is not None:
            aborted, aborts = with_other_ids(aborted), with_other_ids(aborts)
        written = aborted.tobytes()
        file = kept.segment.transaction_index
        if kept.is_whole and file is not None:
            content = as_bytes(file.read())
            if self._leader_epoch is not None and content.size % ABORTED.itemsize == 0:
                content = as_bytes(with_other_ids(content.view(ABORTED)).tobytes())
            problem = problem_with_transaction_index(
                content,
                aborted,
                aborts,
                self._logs,
                known_since=self._known_since,
                has_holes=self._has_holes,
            )
            written = written if problem else content.tobytes()
        if written:
            disk.write(self._new(log.stem + TXN_INDEX_SUFFIX), written)

    def _take_snapshot(self, kept: KeptSegment, offset: int) -> None:
        """Write the producers at the end of a segment."""
        expected = self.producers.snapshot()
        file = self._source.snapshot(kept.segment, offset) if kept.is_whole else None
        if file is not None:
            content = self._fitting(file, expected, offset)
            if content is not None and content != expected:
                expected = content
                self.producers = ProducerStates.of_snapshot(as_bytes(content))
        if self._leader_epoch is not None:
            expected = snapshot_with_other_ids(expected)
        disk.write(self._new(f"{offset:020d}{SNAPSHOT_SUFFIX}"), expected)

    def _fitting(self, file: StoredFile, expected: bytes, offset: int) -> bytes | None:
        """The content of a snapshot, if it fits the log."""
        content = file.read()
        try:
            problem = problem_with_snapshot(
                snapshot_entries(as_bytes(content)),
                snapshot_entries(as_bytes(expected)),
                offset,
                known_since=self._known_since,
                has_holes=self._has_holes,
                taken_ms=MAX_INT64,  # a copy's time is not the file's; brokers forget producers
            )
        except CorruptSnapshotError:
            return None
        return content if problem is None else None

    def _write_epochs(self, last: KeptSegment, start_offset: int) -> None:
        """Write the leader epochs: the source's if the batches have the same, else the batches'."""
        if self._leader_epoch is not None:
            epochs = LeaderEpochs([(self._leader_epoch, start_offset)] if self.end_offset else [])
        else:
            epochs = LeaderEpochs(self._source.epochs(last.segment))
            epochs.truncate_from_end(self.end_offset)
            if not _agree(self._epochs.entries, epochs.entries):
                epochs = self._epochs
            epochs.truncate_from_start(start_offset)
        # A broker writes an empty file until it knows an epoch.
        disk.write(self._new(LEADER_EPOCHS), epochs.text() if epochs.entries else b"")


def _agree(found: Epochs, known: Epochs) -> bool:
    """Whether the known epochs have those that were found where these begin."""
    if bool(found) != bool(known):
        return not found
    starts = [start for _, start in known]
    return all(
        (row := bisect_right(starts, start)) and known[row - 1][0] == epoch
        for epoch, start in found
    )
