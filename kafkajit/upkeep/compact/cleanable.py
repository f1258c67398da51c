"""Find the segments of a log that may be compacted, and those that become one.

Answers to LogCleanerManager, LogToClean and Cleaner.groupSegmentsBySize of Kafka 4.1.1. Before the
first dirty offset the log has been compacted: every key is there only once. The first uncleanable
offset begins a segment: the active segment, one that is too young for min.compaction.lag.ms, or the
one with the last stable offset or the high watermark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path

from kafkajit.change.partition_offsets import offset_in
from kafkajit.format.limits import MAX_INT32
from kafkajit.index.offset_index import ENTRY as OFFSET_ENTRY
from kafkajit.index.time_index import ENTRY as TIME_ENTRY
from kafkajit.log.config import LogConfig
from kafkajit.log.log import Log
from kafkajit.log.segment import Segment
from kafkajit.log.timestamps import largest_timestamp
from kafkajit.state.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS
from kafkajit.storage.stored_file import StoredFile
from kafkajit.upkeep.compact.logged_transactions import LoggedTransactions


@dataclass(frozen=True)
class Cleanable:
    """The segments before the first uncleanable offset, and where the dirty ones begin."""

    segments: Sequence[Segment]
    first_dirty_offset: int
    first_uncleanable_offset: int
    limit: str  # why that offset is not cleanable

    @property
    def first_dirty(self) -> int:
        """The row of the first segment with a dirty offset."""
        return len(self.segments) - len(_from(self.first_dirty_offset, self.segments))

    @property
    def dirty_bytes(self) -> int:
        """The size of the segments with dirty offsets."""
        if self.first_dirty_offset >= self.first_uncleanable_offset:
            return 0
        return sum(segment.log.size for segment in self.segments[self.first_dirty :])

    @property
    def dirty_ratio(self) -> float:
        """The ratio that a broker compares with `min.cleanable.dirty.ratio`."""
        clean = sum(s.log.size for s in self.segments if s.base_offset < self.first_dirty_offset)
        return self.dirty_bytes / (clean + self.dirty_bytes) if self.dirty_bytes else 0.0

    def groups(self, config: LogConfig) -> Iterator[list[Segment]]:
        """Yield runs of segments that fit into one segment even if they lose nothing."""
        group = _Group(config)
        bases = [segment.base_offset for segment in self.segments]
        ends = [*bases, self.first_uncleanable_offset][1:]
        for segment, end in zip(self.segments, ends, strict=True):
            if not group.takes(segment, end - 1):
                yield group.segments
                group = _Group(config)
                group.takes(segment, end - 1)
        if group.segments:
            yield group.segments


class _Group:
    """Segments that become one, and what they would take together."""

    def __init__(self, config: LogConfig) -> None:
        self.segments: list[Segment] = []
        self._config = config
        self._bytes = self._offsets = self._times = 0

    def takes(self, segment: Segment, last_offset: int) -> bool:
        """Add a segment that ends with an offset, the first one always; False if it is too much."""
        size = self._bytes + segment.log.size
        offsets = self._offsets + _whole(segment.index, OFFSET_ENTRY.itemsize)
        times = self._times + _whole(segment.time_index, TIME_ENTRY.itemsize)
        fits = (
            size <= self._config.segment_bytes
            and max(offsets, times) <= self._config.segment_index_bytes
            and (
                segment.log.size == 0
                or not self.segments
                or last_offset - self.segments[0].base_offset <= MAX_INT32
            )
        )
        if self.segments and not fits:
            return False
        self.segments.append(segment)
        self._bytes, self._offsets, self._times = size, offsets, times
        return True


def find_cleanable(folder: Path, log: Log, config: LogConfig, now: int) -> Cleanable:
    """Find the segments that a broker's cleaner would compact at a time in milliseconds."""
    first_dirty = _first_dirty_offset(folder, log)
    stable = log.last_stable_offset
    limits = [
        (log.segments[-1].base_offset, "the active segment begins there"),
        (stable, f"the last stable offset is {stable}"),
    ]
    high_watermark = offset_in(folder, HIGH_WATERMARKS)
    if high_watermark is not None:
        limits.append((high_watermark, f"the high watermark is {high_watermark}"))
    if config.min_compaction_lag_ms > 0:
        latest = now - config.min_compaction_lag_ms
        young = (
            (segment.base_offset, "the records behind it are younger than min.compaction.lag.ms")
            for segment in _from(first_dirty, log.segments[:-1])
            if largest_timestamp(segment, proven_before=latest + 1).timestamp > latest
        )
        limits.extend(islice(young, 1))
    first_uncleanable, limit = _first_uncleanable(log, first_dirty, limits)
    if first_dirty < first_uncleanable:
        # Files beside the log may be stale, or those of another one: what goes, the log decides.
        transactions = LoggedTransactions(log.segments)
        opened = transactions.first_open_offset
        if opened is not None:
            limits.append((opened, f"the last stable offset is {opened}"))
        first_uncleanable, limit = _first_uncleanable(log, first_dirty, limits)
        transactions.check_indexes(log.segments, log.start_offset, first_uncleanable)
    segments = [s for s in log.segments if s.base_offset < first_uncleanable]
    return Cleanable(segments, first_dirty, first_uncleanable, limit)


def _first_uncleanable(
    log: Log, first_dirty: int, limits: Iterable[tuple[int, str]]
) -> tuple[int, str]:
    """The first uncleanable offset, and the limit that decides it."""
    first_limit, limit = min(limits, key=itemgetter(0))
    # A segment is compacted whole or not at all.
    return log.segment_for(max(first_dirty, first_limit)).base_offset, limit


def _first_dirty_offset(folder: Path, log: Log) -> int:
    """The offset in cleaner-offset-checkpoint if the log has it, or the log start offset."""
    checkpoint = offset_in(folder, CLEANER_OFFSETS)
    if checkpoint is None or not log.start_offset <= checkpoint <= log.end_offset:
        return log.start_offset
    return checkpoint


def _from(offset: int, segments: Sequence[Segment]) -> Sequence[Segment]:
    """The segment with an offset, and the segments behind it."""
    bases = [segment.base_offset for segment in segments]
    return segments[max(bisect_right(bases, offset) - 1, 0) :]


def _whole(file: StoredFile | None, entry: int) -> int:
    """The size of an index's whole entries in bytes."""
    return 0 if file is None else file.size // entry * entry
