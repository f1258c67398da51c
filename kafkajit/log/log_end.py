"""The end of a partition's log: all that an append needs to continue it.

Answers to what UnifiedLog and LogLoader of Kafka 4.1.1 know when they have loaded a log that was
closed. Little of the log is read: the last segment behind the last entry of its index, the newest
snapshot, and the batches appended since.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kafkajit.change.files import check_files
from kafkajit.errors import (
    CorruptCheckpointError,
    CorruptIndexError,
    CorruptRecordError,
    CorruptSnapshotError,
    InvalidOffsetError,
    KafkaJitError,
    NotALogError,
)
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.log_path import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, partition_of
from kafkajit.index.index_file import IndexFile
from kafkajit.index.offset_index import OffsetIndex
from kafkajit.index.time_index import NO_TIMESTAMP, TimeIndex
from kafkajit.log.config import LogConfig
from kafkajit.log.epochs import LeaderEpochs
from kafkajit.log.indexing import SegmentIndexes
from kafkajit.log.log import Log, checkpointed_offset
from kafkajit.log.missing_segments import missing_around
from kafkajit.log.open_segment import OpenSegment
from kafkajit.log.producers import ProducerStates, markers_of
from kafkajit.log.repair_advice import advise_repair
from kafkajit.log.segment import Segment
from kafkajit.places.location import SEGMENT_NAME
from kafkajit.places.locations import stored_file
from kafkajit.state.checkpoints import START_OFFSETS
from kafkajit.state.leader_epochs import LEADER_EPOCHS, epochs_in
from kafkajit.state.producer_snapshot import SNAPSHOT_NAME
from kafkajit.storage.source import Source, as_bytes, read_small
from kafkajit.walk.frames import frames

logger = logging.getLogger("kafkajit")


@dataclass(frozen=True)
class LogEnd:
    """The state of a log at its end."""

    start_offset: int  # of the first record that may be read
    end_offset: int  # of the next record
    is_new: bool  # there is no segment, or only an empty one
    active: Path | None  # the last segment's log, if there is one
    producers: ProducerStates
    snapshot: int  # the offset of the newest snapshot
    epochs: LeaderEpochs
    latest_epoch: int | None  # may be later than those in `epochs`: a leader without a batch
    indexes: SegmentIndexes | None  # of the active segment, if its own were not closed
    strays: tuple[Path, ...]  # snapshots with offsets behind the log's end


def read_log_end(folder: Path, config: LogConfig) -> LogEnd:
    """Read the end of the log in a partition's folder; without a log it is a new one.

    A log that does not end in a whole batch, or lacks its last segment, is an error.
    """
    snapshots = snapshots_in(folder)
    epochs = read_epochs(folder)
    checkpointed = _checkpointed_start(folder)
    latest = epochs.latest
    if not any(SEGMENT_NAME.fullmatch(path.name) for path in _files(folder)):
        epochs.truncate_from_end(checkpointed)
        strays = tuple(path for offset, path in snapshots.items() if offset > checkpointed)
        return end_of_new_log(checkpointed, epochs, latest, strays)
    log = Log(folder)
    active = log.segments[-1]
    end_offset, indexes = _end_of(active, config)
    start_offset = log.start_offset
    check_start(start_offset, end_offset, folder)
    _check_whole(log, end_offset, folder)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(checkpointed)
    producers, snapshot = read_producers(log, snapshots, start_offset, end_offset)
    return LogEnd(
        start_offset=start_offset,
        end_offset=end_offset,
        is_new=len(log.segments) == 1 and active.log.size == 0,
        active=Path(active.log.key),
        producers=producers,
        snapshot=snapshot,
        epochs=epochs,
        latest_epoch=latest,
        indexes=indexes,
        strays=tuple(path for offset, path in snapshots.items() if offset > end_offset),
    )


def end_of_new_log(
    start_offset: int,
    epochs: LeaderEpochs,
    latest_epoch: int | None = None,
    strays: tuple[Path, ...] = (),
) -> LogEnd:
    """The end of a log without a segment that begins at this offset."""
    return LogEnd(
        start_offset=start_offset,
        end_offset=start_offset,
        is_new=True,
        active=None,
        producers=ProducerStates(),
        snapshot=0,  # a broker takes a snapshot of a new log's start
        epochs=epochs,
        latest_epoch=latest_epoch,
        indexes=None,
        strays=strays,
    )


class Tail(NamedTuple):
    """The end of a log, from the batches behind the last entry of its index."""

    end_offset: int
    timestamp: int  # the latest of these batches
    is_index_sound: bool  # False: all batches of the segment were read


def read_tail(active: Segment) -> Tail:
    """Read the end of a log, given its last segment.

    A log that does not end in a whole batch is an error.
    """
    source = Source(active.log.key, size=active.log.size)
    is_index_sound, start = True, 0
    try:
        start = OpenSegment(active).position_of(MAX_INT64)
    except CorruptIndexError as error:
        logger.warning("%s: the log is read without it", error)
        is_index_sound = False
    end_offset, timestamp = active.base_offset, NO_TIMESTAMP
    position = start
    try:
        for framing in frames(source, position=start):
            end_offset = int(framing.batches.last_offset[-1]) + 1
            timestamp = max(timestamp, int(framing.batches.header["maxTimestamp"].max()))
            position, last = framing.position, framing.batches[-1:]
            source.forget(position)
        if position > start and not last.is_valid(source.content).all():
            position = int(last.position[0])
    except NotALogError:
        raise
    except CorruptRecordError as reason:
        raise _torn(source, reason.position or position) from reason
    if position != source.content.size:
        raise _torn(source, position)
    return Tail(end_offset, timestamp, is_index_sound)


def check_start(start_offset: int, end_offset: int, folder: Path) -> None:
    """Raise an error if the log start offset is behind the log's end."""
    if start_offset > end_offset:
        raise InvalidOffsetError(
            f"the log ends at {end_offset}, before its start {start_offset}, and a broker that "
            "loads it would delete it: correct log-start-offset-checkpoint first",
            path=str(folder),
        )


def _check_whole(log: Log, end_offset: int, folder: Path) -> None:
    """Raise an error if files beside a log know of offsets behind its end."""
    for missing in missing_around(log.segments):
        if missing.first >= end_offset:
            raise InvalidOffsetError(
                f"{missing.text}, and what is appended would take these offsets",
                path=str(folder),
                advice="put the missing segment back, or give it up with kafkajit repair --apply",
            )


def snapshots_in(folder: Path) -> dict[int, Path]:
    """The snapshots of producers in a partition's folder, by their offsets."""
    return {int(path.stem): path for path in _files(folder) if SNAPSHOT_NAME.fullmatch(path.name)}


def read_epochs(folder: Path) -> LeaderEpochs:
    """The entries of a partition's leader-epoch-checkpoint, if there is one."""
    path = folder / LEADER_EPOCHS
    if not path.exists():
        return LeaderEpochs()
    try:
        return LeaderEpochs(epochs_in(read_small(path), str(path)))
    except CorruptCheckpointError as error:
        advise_repair(error)
        raise


def read_producers(
    log: Log, snapshots: dict[int, Path], start_offset: int, end_offset: int
) -> tuple[ProducerStates, int]:
    """The producers at the log's end, and the offset of the snapshot they were read from.

    They come from the newest readable snapshot and the batches from its offset on.
    """
    states, since = ProducerStates(), start_offset
    for offset in sorted(snapshots, reverse=True):
        if not start_offset <= offset <= end_offset:
            continue
        try:
            content = as_bytes(read_small(snapshots[offset]))
            states = ProducerStates.of_snapshot(content, str(snapshots[offset]))
        except CorruptSnapshotError as error:
            logger.warning("%s: producers are read without it", error)
            continue
        since = offset
        break
    first = max(row for row, one in enumerate(log.segments) if row == 0 or one.base_offset <= since)
    for segment in log.segments[first:] if since < end_offset else []:
        try:
            _read_producers(segment, since, states)
        except KafkaJitError as error:
            advise_repair(error)
            raise
    return states, since


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    check_files(folder)
    return sorted(folder.iterdir())


def _checkpointed_start(folder: Path) -> int:
    path = folder.parent / START_OFFSETS
    name = partition_of(folder)
    file = stored_file(str(path)) if path.exists() else None
    return checkpointed_offset(file, name.topic, name.partition)


def _end_of(active: Segment, config: LogConfig) -> tuple[int, SegmentIndexes | None]:
    """The log end offset, and new indexes if those of the active segment were not closed."""
    end_offset, timestamp, is_closed = read_tail(active)
    is_closed = is_closed and _is_closed(active, OffsetIndex)
    if is_closed and _is_closed(active, TimeIndex, timestamp):
        return end_offset, None
    source = Source(active.log.key, size=active.log.size)
    indexes = SegmentIndexes(active.base_offset, config)
    try:
        for framing in frames(source):
            indexes.add(framing.batches, source.path)
    except KafkaJitError as reason:
        advise_repair(reason)
        raise
    return end_offset, indexes


def _torn(source: Source, position: int) -> CorruptRecordError:
    return advise_repair(
        CorruptRecordError(
            "the log does not end in a whole batch: its last "
            f"{source.content.size - position} bytes are not a sound batch",
            path=source.path,
            position=position,
        )
    )


def _is_closed(segment: Segment, kind: type[IndexFile], timestamp: int = NO_TIMESTAMP) -> bool:
    """Whether an index was cut to its entries, and its last timestamp is not earlier than this."""
    suffix = INDEX_SUFFIX if kind is OffsetIndex else TIME_INDEX_SUFFIX
    path = Path(segment.log.key.removesuffix(LOG_SUFFIX) + suffix)
    if not path.exists():
        return False
    index = kind(str(path), segment.base_offset)
    if len(index) * kind.ENTRY.itemsize != index.length:
        return False
    return not isinstance(index, TimeIndex) or index.last_entry.timestamp >= timestamp


def _read_producers(segment: Segment, since: int, states: ProducerStates) -> None:
    """Update producers with the batches of a segment from an offset on."""
    source = Source(segment.log.key, size=segment.log.size)
    try:
        start = OpenSegment(segment).position_of(since)
    except CorruptIndexError as reason:
        logger.warning("%s: the log is read without it", reason)
        start = 0
    for framing in frames(source, position=start):
        batches = framing.batches[framing.batches.last_offset >= since]
        states.update(batches, markers_of(source, batches, check_crcs=True), source.path)
        source.forget(framing.position)
