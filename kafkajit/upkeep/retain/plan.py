"""Delete old segments of logs without a broker.

A plan lists the segments, and its `apply` deletes them. Answers to UnifiedLog.deleteOldSegments and
deleteRecords of Kafka 4.1.1, to LogLoader, which loads the log before that, and to LogManager,
which closes it and writes its checkpoints.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kafkajit.change.change import Change
from kafkajit.change.files import local_folder
from kafkajit.change.journal import logs_in
from kafkajit.change.partition_offsets import PartitionOffsets, offset_in
from kafkajit.change.partition_plan import FolderState, PartitionPlan, UpkeepPlan, plans_of
from kafkajit.change.partitions import partitions_at
from kafkajit.errors import InvalidOffsetError, KafkaJitError
from kafkajit.format.log_path import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from kafkajit.log.config import LogConfig
from kafkajit.log.log import Log
from kafkajit.log.log_end import (
    check_start,
    read_epochs,
    read_producers,
    read_tail,
    snapshots_in,
)
from kafkajit.log.overlaps import end_of
from kafkajit.log.repair_advice import REPAIR_FIRST
from kafkajit.state.checkpoints import HIGH_WATERMARKS, START_OFFSETS
from kafkajit.state.leader_epochs import LEADER_EPOCHS
from kafkajit.system import disk
from kafkajit.upkeep.retain.expiry import ExpiredSegment, Expiry
from kafkajit.upkeep.retain.options import RetainOptions, why_left_alone


@dataclass(repr=False)
class PartitionRetention(PartitionPlan):
    """The segments of one partition that go; its text is what `kafkajit retain` prints."""

    ACTION = "retain"

    folder: Path
    state: FolderState
    segments: int  # the number of all segments
    size: int  # of all segments, in bytes
    expired: list[ExpiredSegment]
    log_start_offset: int  # at present
    new_log_start_offset: int  # after it
    log_end_offset: int
    notes: list[str]
    left_alone: str | None  # the reason, if the log is left alone
    _options: RetainOptions
    _is_named: bool

    @property
    def is_needed(self) -> bool:
        """Whether a segment or a record goes."""
        return bool(self.expired) or self.new_log_start_offset > self.log_start_offset

    @property
    def expired_size(self) -> int:
        """The size of the segments that go, in bytes."""
        return sum(segment.size for segment in self.expired)

    @property
    def lines(self) -> Iterator[str]:
        """A line for each segment that goes, under its reason, and what follows from that."""
        name, left = self.folder.name, self.left_alone
        if left is not None:
            yield f"{name}: left alone: {left}"
            return
        count = f"{len(self.expired)} of" if self.expired else "none of"
        yield (
            f"{name}: {count} {self.segments} segments to delete, "
            f"{self.expired_size:,} of {self.size:,} bytes"
        )
        for reason, segments in groupby(self.expired, key=lambda segment: segment.reason):
            yield f"  due to {reason}:"
            for one in segments:
                at = f"{np.datetime64(one.largest_timestamp, 'ms')}Z"
                source = "" if one.is_of_record else "  (modified)"
                yield f"    {one.base_offset:020d}.log  {one.size:>10}  {at}{source}"
        if self.expired and len(self.expired) == self.segments:
            yield f"  a new segment begins at offset {self.log_end_offset}"
        if self.new_log_start_offset > self.log_start_offset:
            yield f"  log start offset {self.log_start_offset} becomes {self.new_log_start_offset}"
        yield from (f"  {note}" for note in self.notes)

    def summary(self) -> str:
        if self.left_alone is not None:
            return f"left alone: {self.left_alone}"
        return f"{len(self.expired)} of {self.segments} segments to delete"

    def document(self) -> dict[str, Any]:
        return {
            "leftAlone": self.left_alone,
            "segments": self.segments,
            "bytes": self.size,
            "expired": [
                {
                    "baseOffset": segment.base_offset,
                    "bytes": segment.size,
                    "largestTimestamp": segment.largest_timestamp,
                    "reason": segment.reason,
                }
                for segment in self.expired
            ],
            "logStartOffset": self.log_start_offset,
            "newLogStartOffset": self.new_log_start_offset,
            "logEndOffset": self.log_end_offset,
            "notes": self.notes,
        }

    def replanned(self) -> PartitionRetention:
        return plan_of(self.folder, self._options, is_named=self._is_named)

    def stage(self, change: Change) -> None:
        log, snapshots = Log(self.folder), snapshots_in(self.folder)
        gone = {segment.base_offset for segment in self.expired}
        for segment in log.segments:
            if segment.base_offset in gone:
                change.remove(segment.log.path)
        staying = [s.base_offset for s in log.segments if s.base_offset not in gone]
        first = staying[0] if staying else self.log_end_offset
        if not staying:
            for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                disk.write(change.new(self.folder / f"{first:020d}{suffix}"), b"")
        for offset, path in snapshots.items():
            if offset < first:
                change.remove(path)
        # A broker that closes or loads the log has a snapshot of its end. Without one, what is
        # known of producers might go with the segments.
        if self.log_end_offset not in snapshots and self.log_end_offset > self.log_start_offset:
            producers, _ = read_producers(
                log, snapshots, self.log_start_offset, self.log_end_offset
            )
            path = self.folder / f"{self.log_end_offset:020d}.snapshot"
            disk.write(change.new(path), producers.snapshot())
        self._forget_epochs(change)
        starts = PartitionOffsets(self.folder, START_OFFSETS)
        # A log that starts with its first segment has no entry there.
        start = self.new_log_start_offset if self.new_log_start_offset > first else None
        if starts.offset != start:
            disk.write(change.new(starts.path), starts.with_offset(start))

    def _forget_epochs(self, change: Change) -> None:
        epochs = read_epochs(self.folder)
        epochs.truncate_from_end(self.log_end_offset)
        epochs.truncate_from_start(self.new_log_start_offset)
        if epochs.is_changed:
            disk.write(change.new(self.folder / LEADER_EPOCHS), epochs.text())


class RetentionPlan(UpkeepPlan[PartitionRetention]):
    """The segments to delete of all partitions; its text is the output of the command."""


def retain(
    folder: str | os.PathLike[str],
    *,
    config: LogConfig | Mapping[str, Any] | None = None,
    log_start_offset: int | None = None,
    now: int | None = None,
) -> RetentionPlan:
    """Plan what brokers would delete from a partition's log, or from each log of a log.dirs folder.

    No file is changed before you call the plan's `apply`.

    Args:
        folder: a partition's folder, or a log.dirs folder with several partitions.
        config: the topic's configuration, a mapping of Kafka's names or a `LogConfig`. A mapping
            limits a log only by the configurations that it names: retention.ms, retention.bytes. A
            `LogConfig` is a whole configuration, with Kafka's retention.ms of seven days if you
            give no other. The log of a compacted or an internal topic is refused, and left alone in
            a log.dirs folder, unless the mapping names a cleanup.policy such as "compact,delete".
            So is a log that looks like one in tiered storage, unless the mapping has
            remote.storage.enable=false: only brokers can delete from tiered storage.
        log_start_offset: delete the records before this offset, and the segments that have only
            such records; -1 is the high watermark.
        now: the time in milliseconds since 1970, by default the present.

    >>> import kafkajit.testing as kt
    >>> print(retain(f"{kt.SAMPLE}/payments-0", config={"retention.bytes": 1}))
    payments-0: 1 of 2 segments to delete, 539 of 1,015 bytes
      due to log retention size 1 breach:
        00000000000000000000.log         539  2025-11-05T00:09:00.000Z
      log start offset 0 becomes 20
    """
    options = RetainOptions.of(config, log_start_offset=log_start_offset, now=now)
    location = local_folder(folder)
    folders = partitions_at(location)
    if folders != [location] and options.log_start_offset is not None:
        raise ValueError("a log start offset is for one partition: name its folder")

    def planned(path: Path) -> PartitionRetention:
        return plan_of(path, options, is_named=path == location)

    return RetentionPlan(location, *plans_of(location, folders, planned))


def plan_of(folder: Path, options: RetainOptions, *, is_named: bool) -> PartitionRetention:
    """Plan what goes from one partition.

    A log that retention must not delete from is an error if its partition is named by itself, and
    left alone if it is one of several.
    """
    if not is_named and options.log_start_offset is not None:
        raise ValueError("a log start offset is for one partition: name its folder")
    state = FolderState(folder)
    plan = PartitionRetention(
        folder=folder,
        state=state,
        segments=0,
        size=0,
        expired=[],
        log_start_offset=0,
        new_log_start_offset=0,
        log_end_offset=0,
        notes=[f"{name}: {what}" for name, what in state.interrupted],
        left_alone=why_left_alone(folder, options, is_named=is_named),
        _options=options,
        _is_named=is_named,
    )
    if is_named and plan.left_alone is not None:
        raise KafkaJitError(plan.left_alone, path=str(folder))
    if plan.left_alone is None and (is_named or logs_in(folder)):
        _fill(plan, Log(folder), options)
    return plan


def expiry_of(folder: Path, log: Log) -> Expiry:
    """A log of which nothing has expired yet; a log that must be repaired first is an error."""
    for path in sorted(folder.glob("*.swap")):
        raise KafkaJitError(
            f"a broker was stopped while it swapped segments: {REPAIR_FIRST}", path=str(path)
        )
    tail = read_tail(log.segments[-1])
    check_start(log.start_offset, tail.end_offset, folder)
    high_watermark = offset_in(folder, HIGH_WATERMARKS)
    if high_watermark is None:
        high_watermark = tail.end_offset
    return Expiry(
        log.segments,
        log.start_offset,
        tail.end_offset,
        min(max(high_watermark, log.start_offset), tail.end_offset),
        tail.timestamp,
    )


def _fill(plan: PartitionRetention, log: Log, options: RetainOptions) -> None:
    """Find the segments that go."""
    expiry = expiry_of(plan.folder, log)
    plan.segments, plan.size = len(log.segments), expiry.size
    plan.log_start_offset, plan.log_end_offset = log.start_offset, expiry.log_end_offset
    if options.log_start_offset is not None:
        expiry.raise_start(options.log_start_offset)
    expiry.before_start()
    expiry.beyond_size(options.retention_bytes)
    expiry.beyond_time(options.retention_ms, options.now)
    _check_ends(log, expiry)
    plan.expired, plan.new_log_start_offset = expiry.expired, expiry.log_start_offset
    plan.notes += expiry.notes
    if plan.is_needed:
        read_epochs(plan.folder)  # an unreadable file is an error now, not when the plan is applied


def _check_ends(log: Log, expiry: Expiry) -> None:
    """Raise an error if a segment that goes has offsets of those that stay.

    Consumers get them from the first segment, and a name shows only where a segment begins.
    """
    gone = {segment.base_offset for segment in expiry.expired}
    for segment, following in pairwise(log.segments):
        if segment.base_offset not in gone:
            return
        try:
            last = end_of(segment, following)
        except KafkaJitError:  # it is damaged: nobody can read its end
            continue
        if last >= expiry.first_offset:
            raise InvalidOffsetError(
                f"the segment would go, but it has offsets up to {last}, and those from "
                f"{expiry.first_offset} on stay: {REPAIR_FIRST}",
                path=segment.log.path,
            )
