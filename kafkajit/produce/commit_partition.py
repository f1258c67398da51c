"""A partition's staged segments → its log, with their offsets, names and the files beside them.

A task counts offsets from 0; here they become those at the log's end. The base offsets of batches
are overwritten in place, and the files are renamed. Otherwise segments stay as the tasks wrote
them, except that small consecutive segments of several tasks are written again as one.

A batch's base offset and leader epoch are outside of what its checksum covers, and its records
count from the base offset: a broker that appends a producer's batches overwrites only these two.
The entries of an index count from the offset in the segment's name, so they stay as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kafkajit.append.append_effects import AppendEffects
from kafkajit.append.rolled_segments import RolledSegments
from kafkajit.change.change import Change
from kafkajit.errors import InvalidOffsetError, KafkaJitError
from kafkajit.format.layout import PARTITION_LEADER_EPOCH_OFFSET
from kafkajit.format.log_path import INDEX_SUFFIXES, LOG_SUFFIX, TXN_INDEX_SUFFIX
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import write_int32, write_int64
from kafkajit.log.epochs import LeaderEpochs
from kafkajit.log.log_end import LogEnd, end_of_new_log, read_log_end
from kafkajit.log.producers import markers_of
from kafkajit.produce.options import ProduceOptions
from kafkajit.produce.router import TopicPartition
from kafkajit.produce.task_output import StagedSegment
from kafkajit.produce.unmarked import OPEN, PLAIN, first_unmarked, make_plain, refuse_unmarked
from kafkajit.state.partition_metadata import (
    PARTITION_METADATA,
    partition_metadata_text,
    read_partition_metadata,
)
from kafkajit.storage.source import Source
from kafkajit.system import disk
from kafkajit.walk.frames import frames

logger = logging.getLogger("kafkajit")

# Consecutive segments of several tasks that are smaller than this are written as one.
_SMALL = 64 << 20


def commit_partition(
    change: Change,
    partition: TopicPartition,
    segments: list[StagedSegment],
    work: Path,
    options: ProduceOptions,
    *,
    is_new: bool,
    is_replaced: bool = False,
) -> None:
    """Append a partition's segments to its log, as part of a change.

    Args:
        change: collects the log's new files.
        partition: the partition.
        segments: its staged segments, in the order of the log.
        work: a folder for segments that are written again.
        options: the job's options.
        is_new: whether the log is new, or replaces the one that is there.
        is_replaced: whether it replaces one, with another id of its topic perhaps.
    """
    folder = options.path / str(partition)
    _identify(change, folder, options, is_replaced=is_replaced)
    end = end_of_new_log(0, LeaderEpochs()) if is_new else read_log_end(folder, options.config)
    effects = AppendEffects(folder, end, change)
    moved = _moved(partition, segments, end, options)
    if options.keep_offsets:
        _end_transactions(partition, moved, options)
    for segment in _joined_small(moved, work / str(partition), options):
        effects.take_snapshot(segment.base_offset)
        if options.keep_offsets:
            with _named(folder):
                _count_in(segment, effects)
        for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
            if segment.path(suffix).exists():
                name = f"{segment.base_offset:020}{suffix}"
                disk.rename(segment.path(suffix), effects.new(name))
    if not options.keep_offsets:
        effects.epochs.assign(_epoch(partition, end, options), moved[0].base_offset)
    effects.finish(moved[0].base_offset, moved[-1].next_offset)
    first = effects.producers.first_open_offset
    if options.keep_offsets and options.transactions != OPEN and first is not None:
        logger.warning(
            "%s: the transaction that begins at offset %d has no marker among the rows: consumers "
            "that read committed data stop before it",
            folder,
            first,
        )


def _end_transactions(
    partition: TopicPartition, moved: list[_Moved], options: ProduceOptions
) -> None:
    """Refuse transactions whose markers are not among the rows, or write them as plain batches."""
    if options.transactions == OPEN:
        return
    logs = [segment.path(LOG_SUFFIX) for segment in moved if segment.has_producers]
    first = first_unmarked(logs)
    if options.transactions == PLAIN:
        make_plain(logs, first)
    else:
        refuse_unmarked(str(partition), first)


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    """Name the partition in an error about a batch, instead of a file that is removed."""
    try:
        yield
    except KafkaJitError as error:
        error.path, error.position = str(folder), None
        raise


def _identify(change: Change, folder: Path, options: ProduceOptions, *, is_replaced: bool) -> None:
    """Write partition.metadata, if the option topicId is set."""
    if options.topic_id is None:
        return
    path = folder / PARTITION_METADATA
    if path.exists() and not is_replaced:
        (row,) = read_partition_metadata(path).to_pylist()
        if row["topicId"] == options.topic_id:
            return
        raise ValueError(
            f"{path} has the topic's id {row['topicId']}, and the option topicId is "
            f"{options.topic_id}"
        )
    disk.write(change.new(path), partition_metadata_text(options.topic_id))


class _Moved(NamedTuple):
    """A segment whose offsets are those in the log; its files still have the task's names."""

    stem: str
    base_offset: int
    next_offset: int
    size: int
    has_producers: bool

    def path(self, suffix: str) -> Path:
        return Path(self.stem + suffix)


def _moved(
    partition: TopicPartition, segments: list[StagedSegment], end: LogEnd, options: ProduceOptions
) -> list[_Moved]:
    """The segments, moved to their offsets in the log."""
    moved = []
    offset, epoch = end.end_offset, _epoch(partition, end, options)
    for segment in segments:
        shift = 0 if options.keep_offsets else offset - segment.base_offset
        if segment.base_offset + shift < offset:
            raise InvalidOffsetError(
                f"the log of {partition} goes on at {offset}, and rows begin at "
                f"{segment.base_offset}: with keepOffsets they must come after it, or replace "
                "the log (mode overwrite)"
            )
        if segment.leader_epoch is not None and (shift or epoch != segment.leader_epoch):
            rebase(segment.path(LOG_SUFFIX), shift, epoch)
        offset = segment.next_offset + shift
        stem = str(segment.path(""))
        moved.append(
            _Moved(stem, segment.base_offset + shift, offset, segment.size, segment.has_producers)
        )
    return moved


def _epoch(partition: TopicPartition, end: LogEnd, options: ProduceOptions) -> int:
    """The leader epoch of batches that do not have their own."""
    latest = 0 if end.latest_epoch is None else end.latest_epoch
    if options.leader_epoch is None:
        return latest
    if options.leader_epoch < latest:
        raise ValueError(
            f"the option leaderEpoch is {options.leader_epoch}, and {partition} has had leader "
            f"epoch {latest}"
        )
    return options.leader_epoch


def _joined_small(segments: list[_Moved], work: Path, options: ProduceOptions) -> Iterator[_Moved]:
    """The segments, with consecutive small ones of several tasks written as one."""
    small = min(_SMALL, options.config.segment_bytes // 2)
    runs: list[list[_Moved]] = []
    for segment in segments:
        before = runs[-1][-1] if runs else None
        if (
            before is not None
            and max(before.size, segment.size) < small
            and Path(before.stem).parent != Path(segment.stem).parent
        ):
            runs[-1].append(segment)
        else:
            runs.append([segment])
    for run in runs:
        if len(run) == 1:
            yield run[0]
            continue
        disk.make_folders(work)
        series = RolledSegments(work.joinpath, options.config)
        series.least_offset = run[0].base_offset
        for segment in run:
            source = Source(segment.path(LOG_SUFFIX))
            for framing in frames(source):
                series.append(source.content, framing.batches)
                source.forget(framing.position)
        for written in series.close():
            yield _Moved(str(work / f"{written.base_offset:020}"), *written)


def _count_in(segment: _Moved, effects: AppendEffects) -> None:
    """Note the leader epochs and producers of a segment's batches; index aborted transactions."""
    source = Source(segment.path(LOG_SUFFIX))
    aborted = bytearray()
    for framing in frames(source):
        batches = framing.batches
        epochs = batches.header["partitionLeaderEpoch"]
        is_known = (epochs >= 0) | batches.is_message
        effects.epochs.append(batches[is_known], epochs[is_known])
        if segment.has_producers:
            markers = markers_of(source, batches)
            aborted += effects.producers.update(batches, markers, source.path).tobytes()
        source.forget(framing.position)
    if aborted:
        disk.write(segment.path(TXN_INDEX_SUFFIX), aborted)


def rebase(log: Path, shift: int, leader_epoch: int) -> None:
    """Move the offsets of a segment's batches, and set their leader epoch.

    Messages of v0 and v1 keep their offsets; they have no epoch. The caller syncs the file when it
    becomes part of a log: until then losing it costs nothing.

    Args:
        log: the segment's file, which nobody else uses.
        shift: added to each offset.
        leader_epoch: the epoch of all batches.
    """
    source = Source(log)
    if source.content.size == 0:
        return
    with disk.open_to_change(log) as file:
        content = np.memmap(file, dtype=np.uint8, mode="r+")
    for framing in frames(source):
        batches = framing.batches[~framing.batches.is_message]
        _rebase(
            content.view(np.ndarray),
            batches.position,
            batches.header["baseOffset"] + np.int64(shift),
            np.int64(leader_epoch),
        )
        source.forget(framing.position)


@kernel
def _rebase(content, positions, offsets, leader_epoch):
    for row in range(positions.size):
        write_int64(content, positions[row], offsets[row])
        write_int32(content, positions[row] + PARTITION_LEADER_EPOCH_OFFSET, leader_epoch)
