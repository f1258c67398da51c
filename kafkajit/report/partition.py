"""Figures of one partition, or of a run of its segments: runs are joined in their order.

Some figures of a run depend on the segments before it: the offsets that are missing between them,
timestamps that go back behind theirs, transactions that they have begun. A run keeps as much as
`join` needs to make them the same as if one process had read the partition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kafkajit.format.limits import MAX_INT64
from kafkajit.log.missing_offsets import Extent
from kafkajit.log.segment import Segment
from kafkajit.records.batches import Batches
from kafkajit.report.batch_facts import BatchFacts
from kafkajit.report.tally import Tally
from kafkajit.storage.source import Int64s, Mask
from kafkajit.storage.stored_file import StoredFile


@dataclass
class OpenTransaction:
    """A transaction without a marker at its end."""

    producer_id: int
    first_offset: int
    timestamp: int
    log: StoredFile  # with its first batch, from `start` to `end`
    start: int
    end: int


@dataclass
class PartitionFigures:
    """The figures of a partition, or of segments that continue one."""

    partition: int | None
    folder: str
    base_offset: int  # in the name of the last segment that was listed
    continues: bool = False
    log_start_offset: int = 0  # in log-start-offset-checkpoint
    segments: int = 0
    bytes: int = 0
    records: int = 0
    batches: int = 0
    has_offsets: bool = False  # whether some batch has offsets that its segment can have
    first_offset: int = 0  # of the first batch
    behind: int = 0  # the highest offset of all batches, plus 1
    next_offset: int = 0  # behind the last batch, which need not have the highest offsets
    begins_unknown: bool = False
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    missing_offsets: int = 0
    overlaps: int = 0
    batches_back: int = 0
    open_transactions: dict[int, OpenTransaction] = field(default_factory=dict)
    # Each segment's size and newest timestamp; where some of its batches begin, and the last ends.
    ages: list[tuple[int, int | None]] = field(default_factory=list)
    marks: list[tuple[Segment, Int64s]] = field(default_factory=list)
    read: list[Segment] = field(default_factory=list)
    extents: list[Extent] = field(default_factory=list)  # of each segment
    has_holes: bool = False  # whether offsets are missing inside of a segment
    _latest: int = -1
    # The offset of each producer's last marker, which may end an earlier run's transaction.
    ended: dict[int, int] = field(default_factory=dict)
    # In a run: batches by timestamp that do not go back behind its own, but may behind an earlier
    # run's.
    _rising: Tally = field(default_factory=lambda: Tally(1))

    @property
    def start_offset(self) -> int:
        """The first offset that a broker serves.

        It is the one in the name of the first segment, whose first batches a cleaner may have
        removed, or the one that log-start-offset-checkpoint has.
        """
        first = self.read[0].first_offset if self.read else self.base_offset
        return min(max(first, self.log_start_offset), self.end_offset)

    @property
    def end_offset(self) -> int:
        """The offset behind the last record, or of an empty segment behind that."""
        end = self.behind if self.has_offsets else self.base_offset
        last = self.read[-1].base_offset if self.read else self.base_offset
        return max(end, last) if last <= MAX_INT64 else end

    def add(self, batches: Batches, facts: BatchFacts, segment: Segment) -> None:
        """Add batches of a segment that follow, and the facts about those of their records in it.

        Offsets that the segment cannot have are wrong: a message of v0 or v1 has no checksum of
        its offset.
        """
        firsts = np.maximum(facts.first_offset, segment.cut.first)
        lasts = np.minimum(batches.last_offset, segment.cut.last)
        is_possible = lasts <= segment.last_possible
        self.overlaps += int(np.count_nonzero(~is_possible))
        if is_possible.any():
            self._add_offsets(
                firsts[is_possible], lasts[is_possible], facts.is_unknown[is_possible]
            )
        self.records += int(facts.records.sum())
        self.batches += len(batches)
        self._add_timestamps(batches, facts)
        self._follow_transactions(batches[batches.is_transactional])

    def _add_offsets(self, firsts: Int64s, lasts: Int64s, is_unknown: Mask) -> None:
        if not self.has_offsets:
            self.has_offsets = True
            self.first_offset = self.next_offset = int(firsts[0])
            self.begins_unknown = bool(is_unknown[0])
        gaps = firsts - np.concatenate([[self.next_offset], lasts[:-1] + 1])
        self.missing_offsets += int(gaps[(gaps > 0) & ~is_unknown].sum())
        self.overlaps += int(np.count_nonzero(gaps < 0))
        self.next_offset = int(lasts[-1]) + 1
        self.behind = max(self.behind, int(lasts.max()) + 1)

    def _add_timestamps(self, batches: Batches, facts: BatchFacts) -> None:
        timestamps = batches.field("maxTimestamp").astype(np.int64)
        latest = np.maximum.accumulate(np.concatenate([[self._latest], timestamps]))
        is_timed = timestamps >= 0
        is_back = is_timed & (timestamps < latest[:-1])
        self.batches_back += int(np.count_nonzero(is_back))
        self._latest = int(latest[-1])
        if self.continues:
            rising = timestamps[is_timed & ~is_back]
            self._rising.add(rising, np.ones_like(rising))
        has_time = facts.last_timestamp >= 0
        if has_time.any():
            earliest = int(facts.first_timestamp[has_time].min())
            self._widen(earliest, int(facts.last_timestamp.max()))

    def _widen(self, earliest: int, latest: int) -> None:
        """Extend the time from the first record to the last by these timestamps."""
        first, last = self.first_timestamp, self.last_timestamp
        self.first_timestamp = earliest if first is None else min(first, earliest)
        self.last_timestamp = latest if last is None else max(last, latest)

    def _follow_transactions(self, batches: Batches) -> None:
        """Note the transactions that the batches begin, and forget those that they end."""
        if not len(batches):
            return
        ids = batches.field("producerId").astype(np.int64)
        firsts = batches.field("baseOffset").astype(np.int64)
        timestamps = batches.field("maxTimestamp").astype(np.int64)
        for producer in np.unique(ids).tolist():
            rows = np.flatnonzero(ids == producer)
            markers = rows[batches.is_control[rows]]
            if markers.size:
                self.open_transactions.pop(producer, None)
                self.ended[producer] = int(firsts[markers[-1]])
                rows = rows[rows > markers[-1]]
            if rows.size and producer not in self.open_transactions:
                row = int(rows[0])
                self.open_transactions[producer] = OpenTransaction(
                    producer,
                    int(firsts[row]),
                    int(timestamps[row]),
                    self.read[-1].log,
                    int(batches.position[row]),
                    int(batches.end[row]),
                )

    def join(self, run: PartitionFigures) -> None:
        """Add the figures of the segments that continue these."""
        self._join_offsets(run)
        self.segments += run.segments
        self.bytes += run.bytes
        self.records += run.records
        self.batches += run.batches
        self.missing_offsets += run.missing_offsets
        self.overlaps += run.overlaps
        timestamps, counts = run._rising.sums()
        self.batches_back += run.batches_back + int(counts[timestamps < self._latest].sum())
        self._latest = max(self._latest, run._latest)
        if run.first_timestamp is not None and run.last_timestamp is not None:
            self._widen(run.first_timestamp, run.last_timestamp)
        for producer in run.ended:
            self.open_transactions.pop(producer, None)
        self.ended |= run.ended
        for producer, transaction in run.open_transactions.items():
            self.open_transactions.setdefault(producer, transaction)
        self.ages += run.ages
        self.marks += run.marks
        self.read += run.read
        self.extents += run.extents
        self.has_holes |= run.has_holes

    def _join_offsets(self, run: PartitionFigures) -> None:
        self.base_offset = max(self.base_offset, run.base_offset)
        if not run.has_offsets:
            return
        if self.has_offsets:
            gap = run.first_offset - self.next_offset
            if gap > 0 and not run.begins_unknown:
                self.missing_offsets += gap
            self.overlaps += gap < 0
        else:
            self.has_offsets = True
            self.first_offset = run.first_offset
            self.begins_unknown = run.begins_unknown
        self.behind = max(self.behind, run.behind)
        self.next_offset = run.next_offset

    def document(self) -> dict[str, Any]:
        """The partition's entry in the document."""
        return {
            "partition": self.partition,
            "folder": self.folder,
            "segments": self.segments,
            "bytes": self.bytes,
            "records": self.records,
            "batches": self.batches,
            "startOffset": self.start_offset,
            "endOffset": self.end_offset,
            "firstTimestamp": self.first_timestamp,
            "lastTimestamp": self.last_timestamp,
        }
