"""Logs compacted without a broker: what would stay is said first, and done when it is told to.

Answers to what a thread of LogCleaner does with a log; all that may be compacted is so at once, as
when its map has room for all keys.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kafkajit.change.change import Change
from kafkajit.change.files import local_folder
from kafkajit.change.partition_offsets import PartitionOffsets, offset_in
from kafkajit.change.partition_plan import Moment, PartitionPlan, Plan
from kafkajit.change.partitions import partitions_at
from kafkajit.errors import CorruptRecordError, KafkaJitError
from kafkajit.format.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.format.log_path import parse_log_path
from kafkajit.log.config import LogConfig
from kafkajit.log.log import Log
from kafkajit.log.log_end import REPAIR, read_producers, snapshots_in
from kafkajit.log.producers import PRODUCER_EXPIRATION_MS
from kafkajit.log.segment import Segment
from kafkajit.state.checkpoints import CLEANER_OFFSETS
from kafkajit.state.meta_properties import META_PROPERTIES
from kafkajit.topics import TOPICS
from kafkajit.upkeep.compact.cleanable import Cleanable, find_cleanable
from kafkajit.upkeep.compact.cleaned_segment import CleanedSegment
from kafkajit.upkeep.compact.cleaner import Cleaner, LastRecord

_DEDUPE_BUFFER_SIZE = 128 << 20
# Of the internal topics, those that brokers compact.
_COMPACTED = ("offsets", "transaction_state")

# Is told how many bytes have been read, time after time.
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Options:
    """How to compact, whichever log."""

    config: LogConfig
    is_compacted: bool  # somebody has said that the topic is
    now: int
    producer_expiration_ms: int
    dedupe_buffer_size: int
    max_decompressed_bytes: int

    @classmethod
    def of(
        cls,
        config: LogConfig | Mapping[str, Any] | None,
        *,
        now: int | None = None,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
        dedupe_buffer_size: int = _DEDUPE_BUFFER_SIZE,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    ) -> Self:
        """What `compact` takes, with its defaults."""
        config = LogConfig.of(config)
        return cls(
            config,
            config.compact,
            int(time.time() * 1000) if now is None else now,
            producer_expiration_ms,
            dedupe_buffer_size,
            max_decompressed_bytes,
        )


@dataclass(frozen=True)
class CompactedSegment:
    """Segments that become one, which has the first one's name, and what stays of them."""

    logs: tuple[str, ...]
    is_changed: bool
    records_before: int
    records: int
    bytes_before: int
    bytes: int
    records_without_key: int  # that are lost


@dataclass(repr=False)
class PartitionCompaction(PartitionPlan):
    """What becomes of one partition."""

    WHAT = "compact"

    folder: Path
    moment: Moment
    left_alone: str | None  # and why
    cleanable: Cleanable | None  # None where it is left alone
    _options: Options
    _is_named: bool
    progress: Progress | None = None
    _segments: list[CompactedSegment] = field(default_factory=list)
    _is_known: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether something dirty may be compacted, and changes, as far as that is known."""
        if self.cleanable is None or self.cleanable.dirty_bytes == 0:
            return False
        # Where nobody notes how far a log was compacted, all of it is dirty again.
        is_same = self._is_known and not any(segment.is_changed for segment in self._segments)
        return not is_same or self._notes_offset

    @property
    def bytes_to_read(self) -> int:
        """As far as is known beforehand: what is dirty is read once more."""
        if self.cleanable is None:
            return 0
        return sum(s.log.size for s in self.cleanable.segments) + self.cleanable.dirty_bytes

    @property
    def segments(self) -> list[CompactedSegment]:
        """What becomes of the segments; to find out takes as long as to compact them."""
        if not self._is_known:
            self.find_out()
        return self._segments

    def find_out(self) -> None:
        """Do all that is to be done, but for writing it."""
        self._clean(None)

    @property
    def lines(self) -> Iterator[str]:
        """What stays: a line for each new segment."""
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
        lost = sum(segment.records_without_key for segment in self.segments)
        if lost:
            yield (
                f"  records without a key: {lost:,}, which go, as brokers take none into a "
                "compacted topic"
            )

    def summary(self) -> str:
        if self.cleanable is None:
            return f"left alone: {self.left_alone}"
        if not self.is_needed:
            return "nothing to compact"
        return f"{self.cleanable.dirty_ratio:.0%} of it dirty, to be compacted"

    def document(self) -> dict[str, Any]:
        cleanable = self.cleanable
        return {
            "leftAlone": self.left_alone,
            "firstDirtyOffset": cleanable.first_dirty_offset if cleanable else None,
            "firstUncleanableOffset": cleanable.first_uncleanable_offset if cleanable else None,
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

    def again(self) -> PartitionCompaction:
        plan = plan_of(self.folder, self._options, is_named=self._is_named)
        plan.progress = self.progress
        return plan

    def put_into(self, change: Change) -> None:
        self._clean(change)
        assert self.cleanable is not None
        if self._notes_offset:
            offsets = PartitionOffsets(self.folder, CLEANER_OFFSETS)
            content = offsets.with_offset(self.cleanable.first_uncleanable_offset)
            change.new(offsets.path).write_bytes(content)

    @property
    def _notes_offset(self) -> bool:
        """Whether it is said how far the log is compacted; beside a copy may be anything."""
        log_dirs = self.folder.parent  # a broker's has one of these
        return any((log_dirs / name).exists() for name in (CLEANER_OFFSETS, META_PROPERTIES))

    def _clean(self, change: Change | None) -> None:
        """Compact the log into a change, or nowhere."""
        segments: list[CompactedSegment] = []
        if self.cleanable is not None and self.cleanable.dirty_bytes:
            try:
                segments = list(self._cleaned(self.cleanable, change))
            except CorruptRecordError as error:
                if REPAIR not in error.message:
                    error.message += f": {REPAIR},"
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


class CompactionPlan(Plan[PartitionCompaction]):
    """What becomes of the partitions of a place; to print it takes as long as to do it."""


def compact(
    folder: str | os.PathLike[str],
    *,
    config: LogConfig | Mapping[str, Any] | None = None,
    now: int | None = None,
    producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
    dedupe_buffer_size: int = _DEDUPE_BUFFER_SIZE,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> CompactionPlan:
    """What brokers would leave of a partition's log, or of the compacted ones of a log.dirs folder.

    Of each key the last record stays, and a tombstone for `delete.retention.ms` longer. All is
    compacted that may be, however little of it is dirty. Nothing is touched before the plan's
    `apply` is called; to print a plan takes as long as that.

    Args:
        folder: a partition's folder, or a log.dirs folder with several.
        config: the topic's, a `LogConfig` or by Kafka's names. Where nothing but its
            `cleanup.policy=compact` says that a topic is compacted, the partition of that folder
            is; without, it is refused, and left alone in a log.dirs folder.
        now: the time, in milliseconds.
        producer_expiration_ms: for how long the last batch of a producer stays, if need be without
            records: a day. Brokers hold the next one's sequence number against it.
        dedupe_buffer_size: bytes for a map of keys, 128 MiB. Where they do not fit into it, what is
            dirty is read more than once.
        max_decompressed_bytes: the largest batch that is read.

    >>> import kafkajit.testing as kt
    >>> compact(kt.SAMPLE).is_needed  # nothing says that one of them is compacted
    False
    """
    asked = Options.of(
        config,
        now=now,
        producer_expiration_ms=producer_expiration_ms,
        dedupe_buffer_size=dedupe_buffer_size,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    place = local_folder(folder)
    plans = [plan_of(path, asked, is_named=path == place) for path in partitions_at(folder)]
    return CompactionPlan(place, plans)


def plan_of(folder: Path, options: Options, *, is_named: bool) -> PartitionCompaction:
    """What becomes of one partition.

    What may be none that brokers compact is refused where the partition is named by itself, and
    left alone where it is one of several.
    """
    moment = Moment(folder)
    left_alone = why_left_alone(folder, is_named=is_named, is_compacted=options.is_compacted)
    if is_named and left_alone is not None:
        raise KafkaJitError(left_alone, path=str(folder))
    cleanable = None
    if left_alone is None:
        for path in sorted(folder.glob("*.swap")):
            raise KafkaJitError(
                f"a broker was stopped while it swapped files: {REPAIR}",
                path=str(path),
            )
        cleanable = find_cleanable(folder, Log(folder), options.config, options.now)
    return PartitionCompaction(folder, moment, left_alone, cleanable, options, is_named)


def why_left_alone(folder: Path, *, is_named: bool, is_compacted: bool) -> str | None:
    """Why a log may be none that brokers compact, unless somebody has said of it that it is."""
    topic = parse_log_path(folder / "any").topic
    if folder.name.endswith("-future"):
        return "a replica that a broker is moving here"
    internal = {topic: name for name, topic in TOPICS.items()}.get(topic or "")
    if internal is not None and internal not in _COMPACTED:
        return "an internal topic that brokers do not compact"
    if internal is not None or offset_in(folder, CLEANER_OFFSETS) is not None:
        return None
    if is_named and is_compacted:
        return None
    why = "nothing says that the topic is compacted"
    if not is_named:
        return why
    return (
        f"{why}, and records would be lost if it is not; if it is, say --config "
        "cleanup.policy=compact of the partition"
    )


def _last_records(log: Log, forgotten: int) -> dict[int, LastRecord]:
    """Of each producer that a broker knows, but for those whose last batch is so old."""
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
