"""The restoration of one partition: the files that are written, planned before any is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kafkajit.change.change import Change
from kafkajit.change.partition_plan import FolderState, PartitionPlan
from kafkajit.errors import CorruptCheckpointError, KafkaJitError
from kafkajit.format.amounts import number_of, offsets_text
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.progress import Progress, adding
from kafkajit.format.ranges import Range
from kafkajit.log.beginnings import TimeLookup, check_at
from kafkajit.log.tiered_copies import advise_copy
from kafkajit.state.checkpoints import START_OFFSETS
from kafkajit.state.partition_metadata import PARTITION_METADATA, partition_metadata_text
from kafkajit.system import disk
from kafkajit.upkeep.restore.kept_segments import (
    DAMAGED,
    KeptSegment,
    advising_end,
    kept_segments,
)
from kafkajit.upkeep.restore.log_copy import LogCopy
from kafkajit.upkeep.restore.options import RestoreOptions
from kafkajit.upkeep.restore.source_logs import SourceLog
from kafkajit.upkeep.restore.target import Target, check_targets


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
    losses: list[KafkaJitError]  # the parts of the log that the sources lack
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
            found[0] = with_batches[0].first_timestamp
            found[1] = with_batches[-1].last_timestamp
        first_time, last_time = (None if at is None or at < 0 else at for at in found)
        return first_time, last_time

    @property
    def models(self) -> list[Path]:
        logs = [Path(kept.segment.log.key) for kept in self.segments if kept.segment.log.is_local]
        return [*logs, *{log.parent for log in logs}]

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
        plan = partition_plan(self.source, self.folder, self._options)
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
            advise_copy(error, self.source.segments)
            if error.advice is None and copy.end_offset > self.segments[0].base_offset:
                error.advice = f"with --ending-offset {copy.end_offset} the log ends before it"
            raise
        if self.topic_id is not None and target.topic_id is None:
            content = partition_metadata_text(self.topic_id)
            disk.write(change.new(self.folder / PARTITION_METADATA), content)
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


def partition_plan(log: SourceLog, folder: Path, options: RestoreOptions) -> PartitionRestoration:
    """Plan the restoration of a log into the folder of its partition."""
    target = Target.at(folder)
    offsets = _offsets(log, options)
    # Records that cannot be read may have the starting timestamp.
    first = 0 if options.starting_timestamp is not None else offsets.first
    asked = Range(max(first, log.start_offset), offsets.last)
    log.check(asked)
    # A segment that has the log start offset stays whole, as in the broker that had it.
    living = [one for one in log.segments if one.offsets.last >= log.start_offset]
    has_any = offsets and offsets.last >= log.start_offset
    if has_any and offsets.last < MAX_INT64 - 1:
        with advising_end(living):
            check_at(living, offsets.last)
    segments = kept_segments(living, offsets, is_closed=log.is_closed) if has_any else []
    if options.has_range and not any(kept.size for kept in segments):
        segments = []
    start = max(segments[0].base_offset, offsets.first, log.start_offset) if segments else 0
    lasts = (kept.last_offset for kept in segments)
    ends = [last + 1 for last in lasts if last is not None]
    end = max([*ends, *(kept.base_offset for kept in segments)], default=0)
    if end < log.start_offset and any(kept.size for kept in segments):
        raise CorruptCheckpointError(
            f"the log of {log.name} ends at offset {end}, before its log start offset "
            f"{log.start_offset}: no record would be restored",
            path=f"{log.place.rpartition('/')[0]}/{START_OFFSETS}",
            advice="remove its line in a copy, or the file",
        )
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
        losses=list(log.losses(asked)),
        _options=options,
    )
    if segments:
        plan.notes.extend(_notes(plan, target))
    return plan


def _offsets(log: SourceLog, options: RestoreOptions) -> Range:
    """The offsets to restore; a timestamp takes precedence over an offset, as in kafkaLog."""
    first, behind = options.starting_offset, options.ending_offset
    times = TimeLookup(log.segments, offsets=Range(log.start_offset))
    if options.starting_timestamp is not None:
        with advising_end(log.segments):
            first = times.start(options.starting_timestamp)
        first = MAX_INT64 if first is None else first
    if options.ending_timestamp is not None:
        with advising_end(log.segments):
            behind = times.first_offset(options.ending_timestamp)
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
        yield f"leader epoch {plan.leader_epoch} in all batches, and other producer ids"
    if plan.start_offset > segments[0].base_offset:
        yield (f"records before {plan.start_offset} are hidden by log-start-offset-checkpoint")
    for kept in segments:
        yield from kept.notes
    yield from log.notes


def _time(timestamp: int) -> str:
    return f"{np.datetime64(timestamp, 'ms')}Z"
