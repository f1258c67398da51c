"""Restore logs from tiered storage or a backup into a log.dirs folder.

A plan lists what would be written, and its `apply` writes it: each partition whole or not at all.
Answers to LogLoader of Kafka 4.1.1, which has to find the log as a stopped broker leaves it.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from kafkajit.change.change import Change
from kafkajit.change.files import local_folder
from kafkajit.change.journal import logs_in
from kafkajit.change.lock import FolderLock
from kafkajit.change.partition_plan import FolderState, PartitionPlan, UpkeepPlan
from kafkajit.errors import (
    CorruptCheckpointError,
    KafkaJitError,
    RemoteStorageError,
)
from kafkajit.format.amounts import number_of, offsets_text
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.moment import Time, python_time
from kafkajit.format.progress import Progress, adding
from kafkajit.format.ranges import Range
from kafkajit.places.location import absolute
from kafkajit.places.private_keys import PrivateKeys
from kafkajit.state.partition_metadata import PARTITION_METADATA, partition_metadata_text
from kafkajit.upkeep.restore.kept_segments import (
    DAMAGED,
    KeptSegment,
    advising_end,
    first_offset_at,
    kept_segments,
)
from kafkajit.upkeep.restore.log_copy import LogCopy
from kafkajit.upkeep.restore.options import RestoreOptions
from kafkajit.upkeep.restore.source_logs import SourceLog, find_logs
from kafkajit.upkeep.restore.target import Target, check_targets, check_topic_id


@dataclass(repr=False)
class PartitionRestoration(PartitionPlan):
    """The files of one partition that are written; its text is what `kafkajit restore` prints."""

    ACTION = "restore"

    folder: Path
    state: FolderState
    source: SourceLog
    segments: list[KeptSegment]
    start_offset: int  # the log's, after it
    end_offset: int
    topic_id: str | None
    leader_epoch: int | None
    notes: list[str]
    _options: RestoreOptions
    progress: Callable[[int], None] = field(default=lambda _: None)

    @property
    def is_needed(self) -> bool:
        """Whether the source has a segment in the range that is asked for."""
        return bool(self.segments)

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(kept.size for kept in self.segments)

    @property
    def lines(self) -> Iterator[str]:
        """A line for the partition, and one for each thing to know about it."""
        yield f"{self.folder.name}: {self.summary()}"
        yield from (f"  {note}" for note in self.notes)

    def summary(self) -> str:
        if not self.segments:
            return "left out: there is no record in the range"
        count = number_of(len(self.segments), "segment")
        if self.end_offset == self.start_offset:
            return f"{count}, empty, from offset {self.start_offset} on"
        first, last = self.timestamps
        times = "" if first is None or last is None else f", {_time(first)} to {_time(last)}"
        offsets = offsets_text(self.start_offset, self.end_offset - 1)
        return f"{count}, {self.size:,} bytes, {offsets}{times}"

    @cached_property
    def timestamps(self) -> tuple[int | None, int | None]:
        """The timestamps of the first batch and of the last, if they have some."""
        found: list[int | None] = [None, None]
        with_batches = [kept for kept in self.segments if kept.size]
        if with_batches:
            first = with_batches[0].first_batch
            found[0] = int(first.header["baseTimestamp"][0]) if len(first) else None
            found[1] = with_batches[-1].last_timestamp
        first_time, last_time = (None if at is None or at < 0 else at for at in found)
        return first_time, last_time

    def report_to(self, progress: Progress) -> None:
        self.progress = adding(progress, self.folder.name, self.size)

    def document(self) -> dict[str, Any]:
        first, last = self.timestamps
        return {
            "source": self.source.place,
            "segments": len(self.segments),
            "bytes": self.size,
            "logStartOffset": self.start_offset,
            "logEndOffset": self.end_offset,
            "firstTimestamp": first,
            "lastTimestamp": last,
            "topicId": self.topic_id,
            "leaderEpoch": self.leader_epoch,
            "rewrittenBatches": [
                {
                    "segment": kept.segment.log.path,
                    "baseOffset": cut.was.first,
                    "firstOffset": cut.offsets.first,
                    "lastOffset": cut.offsets.last,
                    "records": cut.records,
                    "recordsBefore": cut.records_before,
                }
                for kept in self.segments
                for cut in kept.cut
            ],
            "notes": self.notes,
        }

    def replanned(self) -> PartitionRestoration:
        plan = _plan_of(self.source, self.folder, self._options)
        check_targets([Target.at(self.folder)], into_existing=self._options.into_existing_topics)
        plan.progress = self.progress
        return plan

    def stage(self, change: Change) -> None:
        target = Target.at(self.folder)
        check_targets([target], into_existing=self._options.into_existing_topics)
        copy = LogCopy(self.source, self.folder, change, self.leader_epoch, self.progress)
        try:
            copy.copy(self.segments, self.start_offset)
        except DAMAGED as error:
            if error.advice is None and copy.end_offset > self.segments[0].base_offset:
                error.advice = f"with --ending-offset {copy.end_offset} the log ends before it"
            raise
        if self.topic_id is not None and target.topic_id is None:
            content = partition_metadata_text(self.topic_id)
            change.new(self.folder / PARTITION_METADATA).write_bytes(content)
        target.clear(change)
        first = self.segments[0].base_offset
        target.set_offsets(change, self.start_offset if self.start_offset > first else None)
        open_since = copy.producers.first_open_offset
        if open_since is not None:
            self.notes.append(
                f"a transaction is open since offset {open_since}, where read_committed consumers "
                "stop: `kafka-transactions.sh abort` ends it"
            )

    def apply(self, *, keep: bool = False) -> Path | None:
        """Write the partition while the caller holds the folder's lock."""
        return super().apply(keep=keep)


class RestorationPlan(UpkeepPlan[PartitionRestoration]):
    """The partitions to restore; its text is the output of the command."""

    left_out: tuple[tuple[str, str], ...] = ()  # partitions that are not restored, and why

    def __str__(self) -> str:
        others = [f"{name}: left out: {reason}" for name, reason in self.left_out]
        return "\n".join([*filter(None, [super().__str__()]), *others])

    def apply(self, *, keep: bool = False, force: bool = False) -> list[Path]:
        """Write the partitions.

        Args:
            keep: keep the files of empty logs that are replaced.
            force: go on although a running broker, or another process, holds the folder's lock.
        """
        if not self.partitions:
            return []
        self.check_room()
        with lock_of(self.location, force=force):
            return self._applied(keep=keep)

    def check_room(self) -> None:
        """Raise an error if the segments do not fit on the disk."""
        there = next(path for path in (self.location, *self.location.parents) if path.exists())
        size, free = sum(plan.size for plan in self.partitions), shutil.disk_usage(there).free
        if size > free:
            raise OSError(
                errno.ENOSPC,
                f"the logs need {size:,} bytes, and {free:,} are free: choose fewer partitions, or "
                "another disk",
                str(self.location),
            )


def lock_of(folder: Path, *, force: bool = False) -> FolderLock:
    """The lock of a log.dirs folder, which is made if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    # A folder may be called kafka-1 and be log.dirs: a name in it leaves no doubt.
    return FolderLock(folder / "?-0", force=force)


def restore(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    *,
    topics: Iterable[str] | str = (),
    partitions: Iterable[str] | str = (),
    starting_offset: int | None = None,
    ending_offset: int | None = None,
    starting_timestamp: Time | None = None,
    ending_timestamp: Time | None = None,
    topic_ids: Mapping[str, str] | None = MappingProxyType({}),
    into_existing_topics: bool = False,
    leader_epoch: int | None = None,
    private_keys: Mapping[str, str] | None = None,
) -> RestorationPlan:
    """Plan the restoration of logs from tiered storage or a backup.

    No file is written before you call the plan's `apply`. A partition that exists in the folder is
    an error.

    Args:
        sources: locations of tiered segments or of partitions' folders: paths, globs or URIs.
            Several are one log if they have the same topic id.
        folder: the log.dirs folder to write to.
        topics: the topics to restore; by default all but the brokers' own.
        partitions: the partitions to restore, such as orders-0.
        starting_offset: the log start offset of the only partition.
        ending_offset: the offset before which the only partition ends.
        starting_timestamp: milliseconds, a datetime, or a text as the command takes it; a log
            begins with the first record that has this timestamp or a later one. Its batch is kept
            whole, and the log start offset hides the records before it.
        ending_timestamp: the same; a log ends exactly before the first record that has this
            timestamp or a later one. The batch of that record is written with the records before.
        topic_ids: the ids of topics, if they are not to be those of the source. None: no
            partition.metadata is written.
        into_existing_topics: fill the empty partitions that a broker has made in the folder, which
            keep their topics' ids; batches then get leader epoch 0.
        leader_epoch: the epoch to write into all batches, instead of their own.
        private_keys: files of private keys by their ids, for encrypted tiered segments.

    >>> import kafkajit.testing as kt
    >>> ids = {"payments": "pUM3BMsVQk2fe-klgEgLLA"}
    >>> print(restore(f"{kt.SAMPLE}/payments-0", "/no/such/folder", topic_ids=ids))
    payments-0: 2 segments, 1,015 bytes, offsets 0 to 26, 2025-11-05T00:00:00.000Z to
    2025-11-05T00:26:00.000Z
      topic id pUM3BMsVQk2fe-klgEgLLA
      missing: offsets 10 to 19 are in no source
    """
    given = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    options = RestoreOptions.of(
        topics=topics,
        partitions=partitions,
        starting_offset=starting_offset,
        ending_offset=ending_offset,
        starting_timestamp=python_time(starting_timestamp),
        ending_timestamp=python_time(ending_timestamp),
        topic_ids=topic_ids,
        into_existing_topics=into_existing_topics,
        leader_epoch=leader_epoch,
        keys=PrivateKeys.of(private_keys),
    )
    return plan_of([os.fspath(source) for source in given], folder, options)


def plan_of(
    sources: Iterable[str],
    folder: str | os.PathLike[str],
    options: RestoreOptions,
    failed: Callable[[Exception], None] | None = None,
) -> RestorationPlan:
    """Plan the restoration of all chosen partitions.

    The plan leaves out damaged partitions, and calls `failed` with their errors; None: it raises.
    """
    root = local_folder(folder)
    if root.exists() and not root.is_dir():
        raise NotADirectoryError(f"{root} is not a folder: name the log.dirs folder to write to")
    if logs_in(root):
        raise ValueError(f"{root} is a partition's folder: name the log.dirs folder around it")
    found = find_logs(map(absolute, sources), options)
    left_out = list(found.left_out)
    chosen = []
    for log in found.logs:
        target = Target.at(root / log.name)
        is_filled = options.into_existing_topics and target.is_empty_log
        if options.skip_existing and target.obstacle is not None and not is_filled:
            left_out.append((log.name, target.obstacle))
        else:
            chosen.append((log, target))
    check_targets([target for _, target in chosen], into_existing=options.into_existing_topics)
    plan = RestorationPlan(root, [])
    for log, target in chosen:
        try:
            plan.partitions.append(_plan_of(log, target.folder, options))
        except KafkaJitError as error:
            if failed is None or not _is_damage(error):
                raise
            failed(error)
    plan.left_out = tuple(sorted(left_out))
    for topic, id_ in sorted(
        {(one.source.topic, one.topic_id) for one in plan.partitions}, key=str
    ):
        if id_ is not None:
            check_topic_id(root, topic, id_)
    return plan


def _is_damage(error: KafkaJitError) -> bool:
    """Whether a log, or a file beside it, is damaged. A missing key is not damage."""
    if isinstance(error, RemoteStorageError):
        return error.lost is not None
    return isinstance(error, (*DAMAGED, CorruptCheckpointError))


def _plan_of(log: SourceLog, folder: Path, options: RestoreOptions) -> PartitionRestoration:
    target = Target.at(folder)
    offsets = _offsets(log, options)
    # A segment that has the log start offset stays whole, as in the broker that had it.
    living = [one for one in log.segments if one.offsets.last >= log.start_offset]
    has_any = offsets and offsets.last >= log.start_offset
    segments = kept_segments(living, offsets) if has_any else []
    if options.has_range and not any(kept.size for kept in segments):
        segments = []
    start = max(segments[0].base_offset, offsets.first, log.start_offset) if segments else 0
    lasts = (kept.last_offset for kept in segments)
    ends = [last + 1 for last in lasts if last is not None]
    end = max([*ends, *(kept.base_offset for kept in segments)], default=0)
    topic_id = None
    if target.topic_id is not None and target.is_empty_log:
        topic_id = target.topic_id
    elif options.writes_topic_ids:
        topic_id = options.topic_ids.get(log.topic, log.topic_id)
    leader_epoch = options.leader_epoch
    if leader_epoch is None and options.into_existing_topics:
        leader_epoch = 0
    plan = PartitionRestoration(
        folder=folder,
        state=FolderState(folder),
        source=log,
        segments=segments,
        start_offset=start,
        end_offset=max(end, start),
        topic_id=topic_id,
        leader_epoch=leader_epoch,
        notes=[],
        _options=options,
    )
    if segments:
        plan.notes.extend(_notes(plan, target))
    return plan


def _offsets(log: SourceLog, options: RestoreOptions) -> Range:
    """The offsets to restore; a timestamp takes precedence over an offset, as in kafkaLog."""
    first, behind = options.starting_offset, options.ending_offset
    if options.starting_timestamp is not None:
        first = first_offset_at(log.segments, options.starting_timestamp, log.start_offset)
        first = MAX_INT64 if first is None else first
    if options.ending_timestamp is not None:
        with advising_end(log.segments):
            behind = first_offset_at(log.segments, options.ending_timestamp, log.start_offset)
    return Range(first or 0, MAX_INT64 if behind is None else behind - 1)


def _notes(plan: PartitionRestoration, target: Target) -> Iterator[str]:
    """Whatever is to know about a partition beside its offsets."""
    log, segments = plan.source, plan.segments
    if target.is_empty_log:
        yield "replaces the empty log that a broker has made"
    if plan.topic_id is not None:
        yield f"topic id {plan.topic_id}"
    else:
        yield "no partition.metadata: a broker with KRaft puts a log without a topic's id aside"
    if plan.leader_epoch is not None:
        yield f"leader epoch {plan.leader_epoch} in all batches"
    if plan.start_offset > segments[0].base_offset:
        yield (f"records before {plan.start_offset} are hidden by log-start-offset-checkpoint")
    for kept in segments:
        yield from kept.notes
    yield from log.notes


def _time(timestamp: int) -> str:
    return f"{np.datetime64(timestamp, 'ms')}Z"
