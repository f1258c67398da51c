"""What is known where a partition's log ends, and with what an append goes on from there.

Answers to what UnifiedLog and LogLoader have at hand when they have loaded a log that was closed.
Little is read of it: the last segment behind its index's last entry, the newest snapshot, and what
was appended since.
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
from kafkajit.format.log_path import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, parse_log_path
from kafkajit.index.index_file import IndexFile
from kafkajit.index.offset_index import OffsetIndex
from kafkajit.index.time_index import NO_TIMESTAMP, TimeIndex
from kafkajit.log.config import LogConfig
from kafkajit.log.epochs import LeaderEpochs
from kafkajit.log.indexing import SegmentIndexes
from kafkajit.log.log import Log, checkpointed_offset
from kafkajit.log.producers import ProducerStates, markers_of
from kafkajit.log.segment import OpenSegment, Segment
from kafkajit.state.checkpoints import START_OFFSETS
from kafkajit.state.leader_epochs import LEADER_EPOCHS, parse_leader_epochs
from kafkajit.state.producer_snapshot import SNAPSHOT_NAME
from kafkajit.storage.locations import SEGMENT_NAME, stored_file
from kafkajit.storage.source import Source, as_bytes
from kafkajit.walk.walk import frames

logger = logging.getLogger("kafkajit")

REPAIR = "`kafkajit repair` the folder first"


@dataclass(frozen=True)
class LogEnd:
    """A log up to its end."""

    start_offset: int  # of the first record that may be read
    end_offset: int  # of the next record
    is_new: bool  # without a segment, or with one that has no batch
    active: Path | None  # the last segment's log, if there is one
    producers: ProducerStates
    snapshot: int  # behind this offset a broker takes the next
    epochs: LeaderEpochs
    latest_epoch: int | None  # a leader may have begun without a batch
    indexes: SegmentIndexes | None  # of the active segment, where nobody has closed its own
    strays: tuple[Path, ...]  # snapshots of offsets behind its end


def read_log_end(folder: Path, config: LogConfig) -> LogEnd:
    """The end of the log in a partition's folder; of a new one where there is no log.

    A log that does not end in a whole batch is an error.
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
    """The end of a log without a segment, which begins there."""
    return LogEnd(
        start_offset=start_offset,
        end_offset=start_offset,
        is_new=True,
        active=None,
        producers=ProducerStates(),
        snapshot=0,  # a broker takes one of a new log's start
        epochs=epochs,
        latest_epoch=latest_epoch,
        indexes=None,
        strays=strays,
    )


class Tail(NamedTuple):
    """What the last batches of a log say: those behind its index's last entry."""

    end_offset: int
    timestamp: int  # the latest of them
    is_index_sound: bool  # or all batches had to be looked at


def read_tail(active: Segment) -> Tail:
    """The end of a log, of which this is the last segment.

    One that does not end in a whole batch is an error.
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
    """Raise where a log is said to start behind its end."""
    if start_offset > end_offset:
        raise InvalidOffsetError(
            f"the log ends at {end_offset}, and is said to start at {start_offset}: a broker would "
            "delete it when it loads it. Put log-start-offset-checkpoint right first",
            path=str(folder),
        )


def snapshots_in(folder: Path) -> dict[int, Path]:
    """The snapshots of producers in a partition's folder, by their offsets."""
    return {int(path.stem): path for path in _files(folder) if SNAPSHOT_NAME.fullmatch(path.name)}


def read_epochs(folder: Path) -> LeaderEpochs:
    """What a partition's leader-epoch-checkpoint says, if there is one."""
    path = folder / LEADER_EPOCHS
    if not path.exists():
        return LeaderEpochs()
    try:
        table = parse_leader_epochs(as_bytes(path.read_bytes()), str(path))
    except CorruptCheckpointError as error:
        error.message += f": {REPAIR},"
        raise
    return LeaderEpochs(zip(*(column.to_pylist() for column in table.columns), strict=True))


def read_producers(
    log: Log, snapshots: dict[int, Path], start_offset: int, end_offset: int
) -> tuple[ProducerStates, int]:
    """Those of the newest snapshot that the log has, and of what was appended since its offset."""
    states, since = ProducerStates(), start_offset
    for offset in sorted(snapshots, reverse=True):
        if not start_offset <= offset <= end_offset:
            continue
        try:
            content = as_bytes(snapshots[offset].read_bytes())
            states = ProducerStates.of_snapshot(content, str(snapshots[offset]))
        except CorruptSnapshotError as error:
            logger.warning("%s: producers are looked for without it", error)
            continue
        since = offset
        break
    first = max(row for row, one in enumerate(log.segments) if row == 0 or one.base_offset <= since)
    for segment in log.segments[first:] if since < end_offset else []:
        try:
            _read_producers(segment, since, states)
        except KafkaJitError as error:
            error.message += f": {REPAIR}"
            raise
    return states, since


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    check_files(folder)
    return sorted(folder.iterdir())


def _checkpointed_start(folder: Path) -> int:
    path = folder.parent / START_OFFSETS
    name = parse_log_path(folder / "any")
    file = stored_file(str(path)) if path.exists() else None
    return checkpointed_offset(file, name.topic, name.partition)


def _end_of(active: Segment, config: LogConfig) -> tuple[int, SegmentIndexes | None]:
    """The log end offset; and indexes, where those of the active segment are not closed."""
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
        reason.message += f": {REPAIR}"
        raise
    return end_offset, indexes


def _torn(source: Source, position: int) -> CorruptRecordError:
    return CorruptRecordError(
        f"the log does not end in a whole batch, {source.content.size - position} bytes are no "
        f"sound one: {REPAIR},",
        path=source.path,
        position=position,
    )


def _is_closed(segment: Segment, kind: type[IndexFile], timestamp: int = NO_TIMESTAMP) -> bool:
    """Whether an index was cut to its entries, and its last one is of no earlier timestamp."""
    suffix = INDEX_SUFFIX if kind is OffsetIndex else TIME_INDEX_SUFFIX
    path = Path(segment.log.key.removesuffix(LOG_SUFFIX) + suffix)
    if not path.exists():
        return False
    index = kind(str(path), segment.base_offset)
    if len(index) * kind.ENTRY.itemsize != index.length:
        return False
    return not isinstance(index, TimeIndex) or index.last_entry.timestamp >= timestamp


def _read_producers(segment: Segment, since: int, states: ProducerStates) -> None:
    """Take in the batches of a segment from an offset on."""
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
