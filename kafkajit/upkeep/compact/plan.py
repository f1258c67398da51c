"""Compact logs without a broker.

A plan lists what stays of each segment, and its `apply` writes it. Answers to what a thread of
LogCleaner of Kafka 4.1.1 does with a log. Everything that may be compacted is compacted in one
pass, as when the cleaner's map has room for all keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkajit.change.change import Change
from kafkajit.change.files import local_folder
from kafkajit.change.partition_offsets import PartitionOffsets
from kafkajit.change.partition_plan import FolderState, PartitionPlan, UpkeepPlan, plans_of
from kafkajit.change.partitions import partitions_at
from kafkajit.errors import CorruptRecordError, InvalidOffsetError, KafkaJitError
from kafkajit.format.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.format.log_path import partition_of
from kafkajit.format.progress import Progress, adding
from kafkajit.log.config import LogConfig
from kafkajit.log.log import Log
from kafkajit.log.log_end import read_producers, snapshots_in
from kafkajit.log.missing_offsets import Missing
from kafkajit.log.producers import PRODUCER_EXPIRATION_MS
from kafkajit.log.repair_advice import REPAIR_FIRST, advise_repair
from kafkajit.log.segment import Segment
from kafkajit.log.segment_gaps import missing_between
from kafkajit.state.checkpoints import CLEANER_OFFSETS
from kafkajit.state.meta_properties import META_PROPERTIES
from kafkajit.system import disk
from kafkajit.upkeep.compact.cleanable import Cleanable, find_cleanable
from kafkajit.upkeep.compact.cleaned_segment import CleanedSegment
from kafkajit.upkeep.compact.cleaner import Cleaner, LastRecord
from kafkajit.upkeep.compact.options import DEDUPE_BUFFER_SIZE, CompactOptions, why_left_alone


@dataclass(frozen=True)
class CompactedSegment:
    """Segments that become one under the first one's name, and what stays of them."""

    logs: tuple[str, ...]
    is_changed: bool
    records_before: int
    records: int
    bytes_before: int
    bytes: int
    records_without_key: int  # which are lost


@dataclass(repr=False)
class PartitionCompaction(PartitionPlan):
    """The plan for one partition; its text is what `kafkajit compact` prints."""

    ACTION = "compact"

    folder: Path
    state: FolderState
    left_alone: str | None  # the reason, if the log is left alone
    cleanable: Cleanable | None  # None if it is left alone
    _options: CompactOptions
    _is_named: bool
    _noted: str | None  # how the partition's entry in cleaner-offset-checkpoint changes
    missing: list[Missing]  # offsets without a segment, which the result no longer tells
    progress: Callable[[int], None] | None = None  # called with each number of bytes read
    _segments: list[CompactedSegment] = field(default_factory=list)
    _is_known: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether the log has dirty segments that compaction changes, as far as is known."""
        if self.cleanable is None or self.cleanable.dirty_bytes == 0:
            return False
        # If no checkpoint notes how far a log was compacted, all of it is dirty again.
        is_same = self._is_known and not any(segment.is_changed for segment in self._segments)
        return not is_same or _notes_offset(self.folder)

    @property
    def bytes_to_read(self) -> int:
        """The bytes to read, as far as is known beforehand: dirty segments are read twice."""
        if self.cleanable is None:
            return 0
        return sum(s.log.size for s in self.cleanable.segments) + self.cleanable.dirty_bytes

    @property
    def segments(self) -> list[CompactedSegment]:
        """The segments after compaction. Finding them takes as long as compacting them."""
        if not self._is_known:
            self.find_out()
        return self._segments

    def find_out(self) -> None:
        """Compact the log without writing it."""
        self._clean(None)

    @property
    def lines(self) -> Iterator[str]:
        """A line for each segment, with what stays of it."""
        name, cleanable = self.folder.name, self.cleanable
        if cleanable is None:
            yield f"{name}: left alone: {self.left_alone}"
            return
        if not self.is_needed:
            yield (
                f"{name}: nothing to compact before offset {cleanable.first_uncleanable_offset}: "
                f"{cleanable.limit}"
            )
            return
        yield (
            f"{name}: dirty from offset {cleanable.first_dirty_offset} to "
            f"{cleanable.first_uncleanable_offset - 1}, {cleanable.dirty_ratio:.0%} of "
            f"{sum(segment.log.size for segment in cleanable.segments):,} bytes"
        )
        for segment in self.segments:
            first, *others = segment.logs
            behind = "one" if len(others) == 1 else len(others)
            merged = f" and the {behind} behind it" if others else ""
            if not segment.is_changed:
                yield f"  {first}: {segment.records:,} records, {segment.bytes:,} bytes: stays"
                continue
            yield (
                f"  {first}{merged}: {segment.records:,} of {segment.records_before:,} records, "
                f"{segment.bytes:,} of {segment.bytes_before:,} bytes"
            )
        for gap in self.missing:
            yield f"  {gap.text}: afterwards they look like those of removed records"
        if self._noted is not None:
            yield f"  {CLEANER_OFFSETS}: {self._noted}"
        lost = sum(segment.records_without_key for segment in self.segments)
        if lost:
            yield (
                f"  records without a key: {lost:,}, which go: brokers do not accept them in a "
                "compacted topic"
            )

    def summary(self) -> str:
        if self.cleanable is None:
            return f"left alone: {self.left_alone}"
        if not self.is_needed:
            return "nothing to compact"
        return f"{self.cleanable.dirty_ratio:.0%} of it dirty, to be compacted"

    def report_to(self, progress: Progress) -> None:
        self.progress = adding(progress, self.folder.name, self.bytes_to_read)

    def document(self) -> dict[str, Any]:
        cleanable = self.cleanable
        return {
            "leftAlone": self.left_alone,
            "firstDirtyOffset": cleanable.first_dirty_offset if cleanable else None,
            "firstUncleanableOffset": cleanable.first_uncleanable_offset if cleanable else None,
            "cleanerOffsetCheckpoint": self._noted if self.is_needed else None,
            "missing": [gap.document() for gap in self.missing],
            "segments": [
                {
                    "logs": list(segment.logs),
                    "isChanged": segment.is_changed,
                    "recordsBefore": segment.records_before,
                    "records": segment.records,
                    "bytesBefore": segment.bytes_before,
                    "bytes": segment.bytes,
                    "recordsWithoutKey": segment.records_without_key,
                }
                for segment in (self.segments if self.is_needed else [])
            ],
        }

    def replanned(self) -> PartitionCompaction:
        plan = plan_of(self.folder, self._options, is_named=self._is_named)
        plan.progress = self.progress
        return plan

    def stage(self, change: Change) -> None:
        self._clean(change)
        assert self.cleanable is not None
        if _notes_offset(self.folder):
            offsets = PartitionOffsets(self.folder, CLEANER_OFFSETS)
            content = offsets.with_offset(self.cleanable.first_uncleanable_offset)
            disk.write(change.new(offsets.path), content)

    def _clean(self, change: Change | None) -> None:
        """Compact the log into a change; None only finds out what stays."""
        segments: list[CompactedSegment] = []
        if self.cleanable is not None and self.cleanable.dirty_bytes:
            try:
                segments = list(self._cleaned(self.cleanable, change))
            except (CorruptRecordError, InvalidOffsetError) as error:
                advise_repair(error)
                raise
        self._segments, self._is_known = segments, True

    def _cleaned(self, cleanable: Cleanable, change: Change | None) -> Iterator[CompactedSegment]:
        options, log = self._options, Log(self.folder)
        cleaner = Cleaner(
            cleanable,
            log.segments,
            log.start_offset,
            _last_records(log, options.now - options.producer_expiration_ms),
            now=options.now,
            delete_retention_ms=options.config.delete_retention_ms,
            dedupe_buffer_size=options.dedupe_buffer_size,
            max_decompressed_bytes=options.max_decompressed_bytes,
            progress=self.progress,
        )
        cleaner.index()
        for group in cleanable.groups(options.config):
            yield _clean_group(cleaner, group, options.config, change)


class CompactionPlan(UpkeepPlan[PartitionCompaction]):
    """The plan for all partitions. Printing it takes as long as applying it."""


def compact(
    folder: str | os.PathLike[str],
    *,
    config: LogConfig | Mapping[str, Any] | None = None,
    now: int | None = None,
    producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
    dedupe_buffer_size: int = DEDUPE_BUFFER_SIZE,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> CompactionPlan:
    """Plan what brokers would leave of a partition's log, or of those in a log.dirs folder.

    The last record of each key stays, and a tombstone for `delete.retention.ms` longer. kafkajit
    compacts all segments that it may, even if few of their records are dirty. No file is changed
    before you call the plan's `apply`. Printing a plan takes as long as applying it.

    Args:
        folder: a partition's folder, or a log.dirs folder with several partitions.
        config: the topic's configuration, a `LogConfig` or a mapping of Kafka's names. A log that a
            broker has not compacted yet is refused, and left alone in a log.dirs folder, unless you
            name its partition's folder and the configuration has cleanup.policy=compact.
        now: the time in milliseconds since 1970, by default the present.
        producer_expiration_ms: how long the last batch of a producer stays, even without records;
            by default a day. Brokers check the producer's next sequence number against it.
        dedupe_buffer_size: memory for the map of keys in bytes, by default 128 MiB. If the keys do
            not fit, the dirty segments are read more than once.
        max_decompressed_bytes: the largest batch that is read.

    >>> import kafkajit.testing as kt
    >>> compact(kt.SAMPLE).is_needed  # nothing says that one of its topics is compacted
    False
    """
    options = CompactOptions.of(
        config,
        now=now,
        producer_expiration_ms=producer_expiration_ms,
        dedupe_buffer_size=dedupe_buffer_size,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    location = local_folder(folder)
    folders = partitions_at(location)

    def planned(path: Path) -> PartitionCompaction:
        return plan_of(path, options, is_named=path == location)

    return CompactionPlan(location, *plans_of(location, folders, planned))


def plan_of(folder: Path, options: CompactOptions, *, is_named: bool) -> PartitionCompaction:
    """Plan the compaction of one partition.

    A log that brokers may not compact is an error if its partition is named by itself, and left
    alone if it is one of several.
    """
    state = FolderState(folder)
    left_alone = why_left_alone(folder, options, is_named=is_named)
    if is_named and left_alone is not None:
        raise KafkaJitError(left_alone, path=str(folder))
    cleanable, missing = None, list[Missing]()
    if left_alone is None:
        for path in sorted(folder.glob("*.swap")):
            raise KafkaJitError(
                f"a broker was stopped while it swapped segments: {REPAIR_FIRST}",
                path=str(path),
            )
        log = Log(folder)
        cleanable = find_cleanable(folder, log, options.config, options.now)
        missing = missing_between(log.segments) if cleanable and cleanable.dirty_bytes else []
    noted = None if cleanable is None else _noted(folder, cleanable)
    return PartitionCompaction(
        folder, state, left_alone, cleanable, options, is_named, noted, missing
    )


def _notes_offset(folder: Path) -> bool:
    """Whether to note how far the log is compacted: not beside a copy of a log, or for one."""
    log_dirs = folder.parent  # a broker's has one of these files
    is_partition = partition_of(folder).topic is not None
    return is_partition and any(
        (log_dirs / name).exists() for name in (CLEANER_OFFSETS, META_PROPERTIES)
    )


def _noted(folder: Path, cleanable: Cleanable) -> str | None:
    """The change of the partition's entry in cleaner-offset-checkpoint."""
    before, after = PartitionOffsets(folder, CLEANER_OFFSETS), cleanable.first_uncleanable_offset
    if not _notes_offset(folder) or before.offset == after:
        return None
    if before.offset is not None:
        return f"{before.offset} becomes {after}"
    return f"a new entry with offset {after}{'' if before.path.exists() else ', in a new file'}"


def _last_records(log: Log, forgotten: int) -> dict[int, LastRecord]:
    """The last record of each producer that a broker knows.

    A producer whose last batch is not newer than `forgotten` is left out, unless it has an open
    transaction.
    """
    folder = Path(log.segments[0].log.folder)
    states, _ = read_producers(log, snapshots_in(folder), log.start_offset, log.end_offset)
    return {
        int(entry["producerId"]): LastRecord(
            None if entry["lastOffset"] < 0 else int(entry["lastOffset"]),
            int(entry["producerEpoch"]),
        )
        for entry in states.entries
        if entry["currentTxnFirstOffset"] >= 0 or entry["timestamp"] > forgotten
    }


def _clean_group(
    cleaner: Cleaner, group: Sequence[Segment], config: LogConfig, change: Change | None
) -> CompactedSegment:
    cleaned = CleanedSegment(group, config, change)
    records_before = records = 0
    for segment in group:
        for run, filtered in cleaner.clean(segment):
            records_before += int(run.counts.sum())
            records += filtered.records
            cleaned.add(filtered)
    cleaned.finish(cleaner.take_aborted().tobytes())
    return CompactedSegment(
        logs=tuple(segment.log.name for segment in group),
        is_changed=cleaned.is_changed,
        records_before=records_before,
        records=records,
        bytes_before=sum(segment.log.size for segment in group),
        bytes=cleaned.size,
        records_without_key=sum(map(cleaner.records_without_key, group)),
    )
