"""A partition's segments → its log: at their offsets, by their names, with the files beside them.

What was a log's first offset in a task becomes the log's end: batches are written over where they
say their offset, and files get their names. Segments stay as the tasks made them, but for small
ones that several tasks have made one behind the other: those become one, and are written anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kafkajit.append.append_effects import LogGrowth
from kafkajit.append.rebase import rebase
from kafkajit.append.rolled_segments import SegmentSeries
from kafkajit.change.change import Change
from kafkajit.errors import InvalidOffsetError
from kafkajit.format.log_path import INDEX_SUFFIXES, LOG_SUFFIX, TXN_INDEX_SUFFIX
from kafkajit.log.epochs import LeaderEpochs
from kafkajit.log.log_end import LogEnd, end_of_new_log, read_log_end
from kafkajit.log.producers import markers_of
from kafkajit.produce.options import ProduceOptions
from kafkajit.produce.router import TopicPartition
from kafkajit.produce.task_output import Staged
from kafkajit.state.partition_metadata import (
    PARTITION_METADATA,
    partition_metadata_text,
    read_partition_metadata,
)
from kafkajit.storage.source import Source
from kafkajit.walk.walk import frames

# Smaller segments are put together where they lie behind one another.
_SMALL = 64 << 20


def place(
    change: Change,
    partition: TopicPartition,
    segments: list[Staged],
    work: Path,
    options: ProduceOptions,
    *,
    is_new: bool,
) -> None:
    """Bring a partition's segments behind its log's end.

    Args:
        change: what they go into.
        partition: whose they are.
        segments: in the order that they are to have.
        work: a folder for what is put together.
        options: of the job.
        is_new: whether what is there goes away.
    """
    folder = options.path / str(partition)
    _identify(change, folder, options, is_new=is_new)
    end = end_of_new_log(0, LeaderEpochs()) if is_new else read_log_end(folder, options.config)
    growth = LogGrowth(folder, end, change)
    moved = _moved(partition, segments, end, options)
    for segment in _together(moved, work / str(partition), options):
        growth.take_snapshot(segment.base_offset)
        if options.keep_offsets:
            _look_into(segment, growth)
        for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
            if segment.path(suffix).exists():
                name = f"{segment.base_offset:020}{suffix}"
                segment.path(suffix).rename(growth.new(name))
    if not options.keep_offsets:
        growth.epochs.assign(_epoch(partition, end, options), moved[0].base_offset)
    growth.finish(moved[0].base_offset, moved[-1].next_offset)


def _identify(change: Change, folder: Path, options: ProduceOptions, *, is_new: bool) -> None:
    """Write whose topic's partition it is, if that is said."""
    if options.topic_id is None:
        return
    path = folder / PARTITION_METADATA
    if path.exists() and not is_new:
        (row,) = read_partition_metadata(path).to_pylist()
        if row["topicId"] == options.topic_id:
            return
        raise ValueError(
            f"{path} says that the topic's id is {row['topicId']}, and the option topicId "
            f"{options.topic_id}"
        )
    change.new(path).write_bytes(partition_metadata_text(options.topic_id))


class _Segment(NamedTuple):
    """A segment that knows its offsets in the log; its files are called as they were."""

    stem: str
    base_offset: int
    next_offset: int
    size: int
    has_producers: bool

    def path(self, suffix: str) -> Path:
        return Path(self.stem + suffix)


def _moved(
    partition: TopicPartition, segments: list[Staged], end: LogEnd, options: ProduceOptions
) -> list[_Segment]:
    """The segments at their offsets in the log."""
    moved = []
    offset, epoch = end.end_offset, _epoch(partition, end, options)
    for segment in segments:
        shift = 0 if options.keep_offsets else offset - segment.base_offset
        if segment.base_offset + shift < offset:
            raise InvalidOffsetError(
                f"the log of {partition} goes on at {offset}, and rows begin at "
                f"{segment.base_offset}: with keepOffsets they come behind what is there, or "
                "instead of it (mode overwrite)"
            )
        if segment.leader_epoch is not None and (shift or epoch != segment.leader_epoch):
            rebase(segment.path(LOG_SUFFIX), shift, epoch)
        offset = segment.next_offset + shift
        stem = str(segment.path(""))
        moved.append(
            _Segment(stem, segment.base_offset + shift, offset, segment.size, segment.has_producers)
        )
    return moved


def _epoch(partition: TopicPartition, end: LogEnd, options: ProduceOptions) -> int:
    """The leader's, of batches that do not bring theirs."""
    latest = 0 if end.latest_epoch is None else end.latest_epoch
    if options.leader_epoch is None:
        return latest
    if options.leader_epoch < latest:
        raise ValueError(
            f"the option leaderEpoch is {options.leader_epoch}, and {partition} has had leader "
            f"epoch {latest}"
        )
    return options.leader_epoch


def _together(segments: list[_Segment], work: Path, options: ProduceOptions) -> Iterator[_Segment]:
    """The segments, with one for small ones that several tasks have made."""
    small = min(_SMALL, options.config.segment_bytes // 2)
    runs: list[list[_Segment]] = []
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
        work.mkdir(parents=True, exist_ok=True)
        series = SegmentSeries(work.joinpath, options.config)
        series.next_offset = run[0].base_offset
        for segment in run:
            source = Source(segment.path(LOG_SUFFIX))
            for framing in frames(source):
                series.append(source.content, framing.batches)
                source.forget(framing.position)
        for written in series.close():
            yield _Segment(str(work / f"{written.base_offset:020}"), *written)


def _look_into(segment: _Segment, growth: LogGrowth) -> None:
    """Tell what a log's batches say of leaders' epochs, and of producers and their transactions."""
    source = Source(segment.path(LOG_SUFFIX))
    aborted = bytearray()
    for framing in frames(source):
        batches = framing.batches
        epochs = batches.header["partitionLeaderEpoch"]
        is_known = (epochs >= 0) | batches.is_message
        growth.epochs.append(batches[is_known], epochs[is_known])
        if segment.has_producers:
            markers = markers_of(source, batches)
            aborted += growth.producers.update(batches, markers, source.path).tobytes()
        source.forget(framing.position)
    if aborted:
        segment.path(TXN_INDEX_SUFFIX).write_bytes(aborted)
