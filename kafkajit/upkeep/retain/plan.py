"""Old segments of logs deleted without a broker: a plan first, done when it is told to.

Answers to UnifiedLog.deleteOldSegments and deleteRecords of Kafka 4.1.1, to LogLoader, which looks
at the log before, and to LogManager, which closes it and writes its checkpoints.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from kafkajit.change.change import Change
from kafkajit.change.files import local_folder
from kafkajit.change.journal import logs_in
from kafkajit.change.partition_offsets import PartitionOffsets, offset_in
from kafkajit.change.partition_plan import Moment, PartitionPlan, Plan
from kafkajit.change.partitions import partitions_at
from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from kafkajit.log.log import Log
from kafkajit.log.log_end import (
    REPAIR,
    check_start,
    read_epochs,
    read_producers,
    read_tail,
    snapshots_in,
)
from kafkajit.state.checkpoints import HIGH_WATERMARKS, START_OFFSETS
from kafkajit.state.leader_epochs import LEADER_EPOCHS
from kafkajit.upkeep.retain.expiry import ExpiredSegment, Expiry
from kafkajit.upkeep.retain.limits import Limits, why_left_alone


@dataclass(repr=False)
class PartitionRetention(PartitionPlan):
    """What goes of one partition."""

    WHAT = "retain"

    folder: Path
    moment: Moment
    segments: int  # that there are
    size: int  # of them all, in bytes
    expired: list[ExpiredSegment]
    log_start_offset: int  # as it is
    new_log_start_offset: int  # and as it will be
    log_end_offset: int
    notes: list[str]
    left_alone: str | None  # and why
    _limits: Limits
    _is_named: bool

    @property
    def is_needed(self) -> bool:
        """Whether anything goes."""
        return bool(self.expired) or self.new_log_start_offset > self.log_start_offset

    @property
    def expired_size(self) -> int:
        """Bytes of the segments that go."""
        return sum(segment.size for segment in self.expired)

    @property
    def lines(self) -> Iterator[str]:
        """What goes, and for which reason: a line for each segment, and what follows."""
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

    def again(self) -> PartitionRetention:
        return plan_of(self.folder, self._limits, is_named=self._is_named)

    def put_into(self, change: Change) -> None:
        log, snapshots = Log(self.folder), snapshots_in(self.folder)
        gone = {segment.base_offset for segment in self.expired}
        for segment in log.segments:
            if segment.base_offset in gone:
                change.remove(segment.log.path)
        staying = [s.base_offset for s in log.segments if s.base_offset not in gone]
        first = staying[0] if staying else self.log_end_offset
        if not staying:
            for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                change.new(self.folder / f"{first:020d}{suffix}").touch()
        for offset, path in snapshots.items():
            if offset < first:
                change.remove(path)
        # A broker that closes the log, or loads it, has one: what is known of producers may be in
        # what goes.
        if self.log_end_offset not in snapshots and self.log_end_offset > self.log_start_offset:
            producers, _ = read_producers(
                log, snapshots, self.log_start_offset, self.log_end_offset
            )
            path = self.folder / f"{self.log_end_offset:020d}.snapshot"
            change.new(path).write_bytes(producers.snapshot())
        self._forget_epochs(change)
        starts = PartitionOffsets(self.folder, START_OFFSETS)
        # A log that starts with its first segment is not named there.
        start = self.new_log_start_offset if self.new_log_start_offset > first else None
        if starts.offset != start:
            change.new(starts.path).write_bytes(starts.with_offset(start))

    def _forget_epochs(self, change: Change) -> None:
        epochs = read_epochs(self.folder)
        epochs.truncate_from_end(self.log_end_offset)
        epochs.truncate_from_start(self.new_log_start_offset)
        if epochs.is_changed:
            change.new(self.folder / LEADER_EPOCHS).write_bytes(epochs.text())


class RetentionPlan(Plan[PartitionRetention]):
    """What goes of the partitions of a place."""


def retain(
    folder: str | os.PathLike[str],
    *,
    retention_ms: int = -1,
    retention_bytes: int = -1,
    log_start_offset: int | None = None,
    now: int | None = None,
    cleanup_policy: str | None = None,
    remote_storage_enable: bool | None = None,
) -> RetentionPlan:
    """What brokers would delete of a partition's log, or of each log of a log.dirs folder.

    Nothing is touched before the plan's `apply` is called.

    Args:
        folder: a partition's folder, or a log.dirs folder with several.
        retention_ms: segments go whose records are all older, in milliseconds.
        retention_bytes: segments go as long as the others have so many bytes.
        log_start_offset: records before this offset are deleted, and segments that have no others;
            -1 is the high watermark.
        now: the time, in milliseconds.
        cleanup_policy: the topic's, such as "compact,delete". Without it a compacted topic's log,
            or an internal topic's, is refused, and left alone in a log.dirs folder.
        remote_storage_enable: False is to be said of a topic that looks like one in tiered storage
            and is none. What is in tiered storage only brokers can delete.

    >>> import kafkajit.testing as kt
    >>> print(retain(f"{kt.SAMPLE}/payments-0", retention_bytes=1))
    payments-0: 1 of 2 segments to delete, 539 of 1,015 bytes
      due to log retention size 1 breach:
        00000000000000000000.log         539  2025-11-05T00:09:00.000Z
      log start offset 0 becomes 20
    """
    settings = {
        "retention.ms": retention_ms,
        "retention.bytes": retention_bytes,
        "cleanup.policy": cleanup_policy,
        "remote.storage.enable": remote_storage_enable,
    }
    said = {name: value for name, value in settings.items() if value is not None}
    limits = Limits.of(said, log_start_offset=log_start_offset, now=now)
    location = local_folder(folder)
    return RetentionPlan(
        location,
        [plan_of(path, limits, is_named=path == location) for path in partitions_at(location)],
    )


def plan_of(folder: Path, limits: Limits, *, is_named: bool) -> PartitionRetention:
    """What goes of one partition.

    What may be no retention's to delete is refused where the partition is named by itself, and left
    alone where it is one of several.
    """
    if not is_named and limits.log_start_offset is not None:
        raise ValueError("a log start offset is one partition's: name its folder")
    moment = Moment(folder)
    plan = PartitionRetention(
        folder=folder,
        moment=moment,
        segments=0,
        size=0,
        expired=[],
        log_start_offset=0,
        new_log_start_offset=0,
        log_end_offset=0,
        notes=[f"{name}: {what}" for name, what in moment.interrupted],
        left_alone=why_left_alone(folder, limits, is_named=is_named),
        _limits=limits,
        _is_named=is_named,
    )
    if is_named and plan.left_alone is not None:
        raise KafkaJitError(plan.left_alone, path=str(folder))
    if plan.left_alone is None and (is_named or logs_in(folder)):
        _plan(plan, Log(folder))
    return plan


def _plan(plan: PartitionRetention, log: Log) -> None:
    for path in sorted(plan.folder.glob("*.swap")):
        raise KafkaJitError(f"a broker was stopped in a swap of segments: {REPAIR}", path=str(path))
    tail = read_tail(log.segments[-1])
    check_start(log.start_offset, tail.end_offset, plan.folder)
    high_watermark = offset_in(plan.folder, HIGH_WATERMARKS)
    if high_watermark is None:
        high_watermark = tail.end_offset
    expiry = Expiry(
        log.segments,
        log.start_offset,
        tail.end_offset,
        min(max(high_watermark, log.start_offset), tail.end_offset),
        tail.timestamp,
    )
    plan.segments, plan.size = len(log.segments), expiry.size
    plan.log_start_offset, plan.log_end_offset = log.start_offset, tail.end_offset
    limits = plan._limits
    if limits.log_start_offset is not None:
        expiry.raise_start(limits.log_start_offset)
    expiry.before_start()
    expiry.beyond_size(limits.retention_bytes)
    expiry.beyond_time(limits.retention_ms, limits.now)
    plan.expired, plan.new_log_start_offset = expiry.expired, expiry.log_start_offset
    plan.notes += expiry.notes
    if plan.is_needed:
        read_epochs(plan.folder)  # or an error, before anybody is told that it can be done
