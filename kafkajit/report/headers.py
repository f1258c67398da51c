"""Figures of partitions and topics from the headers of their batches. No record is read.

The number of records in a compressed set of v0 or v1 messages is not in its header: such sets are
decoded and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kafkajit.errors import KafkaJitError
from kafkajit.format.codecs import codec_name
from kafkajit.format.limits import MAX_INT64
from kafkajit.log.segment import Segment
from kafkajit.reader import SegmentReader
from kafkajit.records.batches import Batches
from kafkajit.report.folder import as_now, held, listed_again
from kafkajit.report.tally import Sizes, Tally
from kafkajit.schema import record_schema
from kafkajit.storage.source import Int64s, Mask, Source
from kafkajit.walk.damage import PERMISSIVE, Gap
from kafkajit.walk.selection import Selection
from kafkajit.walk.walk import Walk

HOUR = 3_600_000
# A topic's life is shown by hour, or by a longer step if it has this many hours or more.
_MOST_STEPS = 750
_STEPS = (1, 24, 30 * 24, 365 * 24)  # hours
# Around the middle 98 % of a topic's bytes its life is shown for as long again, and for a week.
_MARGIN = 7 * 24
# A batch is marked in each stretch of this size, so that samples can begin there.
_MARK = 1 << 20
_CODECS = 8
# A folder whose segments go while they are read is listed again, up to this number of times.
_TURNS = 100
_TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")  # of -1, 0 and 1


@dataclass
class OpenTransaction:
    """A transaction without a marker at its end."""

    producer_id: int
    first_offset: int
    timestamp: int


@dataclass
class PartitionFigures:
    """The figures of one partition."""

    partition: int | None
    folder: str
    segments: int = 0
    bytes: int = 0
    records: int = 0
    batches: int = 0
    start_offset: int | None = None
    end_offset: int = 0
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    missing_offsets: int = 0
    overlaps: int = 0
    open_transactions: dict[int, OpenTransaction] = field(default_factory=dict)
    # Each segment's size and newest timestamp; where some of its batches begin, and the last ends.
    ages: list[tuple[int, int | None]] = field(default_factory=list)
    marks: list[tuple[Segment, Int64s]] = field(default_factory=list)
    read: list[Segment] = field(default_factory=list)

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


class TopicFigures:
    """The figures of one topic, partition after partition."""

    def __init__(self, topic: str | None, now: int) -> None:
        self.topic = topic
        self.partitions: list[PartitionFigures] = []
        self._now = now
        self._formats = np.zeros(256, np.int64)
        self._codecs = np.zeros((3, _CODECS), np.int64)  # batches, records, bytes
        self._timestamp_types = np.zeros(len(_TIMESTAMP_TYPES), np.int64)
        self._life = Tally(2)  # bytes and records by hour
        self._records_per_batch = Sizes()
        self._bytes_per_batch = Sizes()
        self._producers = Tally(1)
        self._epochs = Tally(1)
        self._back = self._ahead = self._transactional = self._control = 0

    def read(self, segments: list[Segment], log_start_offset: int = 0) -> Iterator[Gap]:
        """Add a partition, and yield its damaged stretches.

        If a running broker has rolled, deleted or compacted segments since they were listed, the
        figures are those of the segments that are there now.
        """
        first = segments[0]
        partition = PartitionFigures(first.path.partition, first.log.folder)
        self.partitions.append(partition)
        latest = -1
        for segment, source in _opened(segments, partition):
            if isinstance(source, Gap):
                yield source
                continue
            partition.read.append(segment)
            partition.segments += 1
            partition.bytes += segment.log.size
            newest: int | None = None
            marks: list[Int64s] = []
            end = 0
            for part in _headers(segment, source):
                if isinstance(part, Gap):
                    yield part
                    continue
                timestamps = part.field("maxTimestamp").astype(np.int64)
                before = np.maximum.accumulate(np.concatenate([[latest], timestamps]))
                self._back += int(np.count_nonzero((timestamps < before[:-1]) & (timestamps >= 0)))
                latest = int(before[-1])
                self._add(part, partition, segment)
                newest = max(int(timestamps.max()), -1 if newest is None else newest)
                marks.append(part.position[np.unique(part.position // _MARK, return_index=True)[1]])
                end = int(part.end[-1])
            partition.ages.append((segment.log.size, newest))
            if marks:
                partition.marks.append((held(segment), np.concatenate([*marks, [end]])))
        if partition.start_offset is None:  # nothing but an empty segment
            partition.start_offset = partition.end_offset = max(
                first.base_offset, segments[-1].base_offset
            )
        last = partition.read[-1] if partition.read else segments[-1]
        if last.base_offset <= MAX_INT64:  # an empty segment may begin behind the last record
            partition.end_offset = max(partition.end_offset, last.base_offset)
        start = max(partition.start_offset, log_start_offset)
        partition.start_offset = min(start, partition.end_offset)

    def _add(self, batches: Batches, partition: PartitionFigures, segment: Segment) -> None:
        sizes = batches.size_in_bytes
        records = _records(batches, segment)
        timestamps = batches.field("maxTimestamp").astype(np.int64)
        is_control = batches.is_control
        records[is_control] = 0  # markers are not counted
        self._formats += np.bincount(batches.field("magic").astype(np.int64) & 0xFF, minlength=256)
        codecs = batches.codec.astype(np.int64)
        for row, weights in enumerate((np.ones_like(sizes), records, sizes)):
            self._codecs[row] += _sums(codecs, weights, _CODECS)
        self._timestamp_types += np.bincount(
            batches.timestamp_type.astype(np.int64) + 1, minlength=len(_TIMESTAMP_TYPES)
        )
        is_timed = timestamps >= 0
        self._life.add(timestamps[is_timed] // HOUR, sizes[is_timed], records[is_timed])
        self._records_per_batch.add(records[~is_control])
        self._bytes_per_batch.add(sizes[~is_control])
        ids = batches.field("producerId").astype(np.int64)
        self._producers.add(ids[ids >= 0], np.ones(np.count_nonzero(ids >= 0), np.int64))
        epochs = batches.field("partitionLeaderEpoch").astype(np.int64)
        self._epochs.add(epochs[epochs >= 0], np.ones(np.count_nonzero(epochs >= 0), np.int64))
        self._ahead += int(np.count_nonzero(timestamps > self._now))
        self._transactional += int(np.count_nonzero(batches.is_transactional & ~is_control))
        self._control += int(np.count_nonzero(is_control))
        _add_to(partition, batches, records)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.partitions)

    @property
    def records(self) -> int:
        return sum(each.records for each in self.partitions)

    @property
    def batches(self) -> int:
        return sum(each.batches for each in self.partitions)

    @property
    def main_codec(self) -> str:
        """The codec of most of the bytes."""
        return codec_name(int(self._codecs[2].argmax()))

    def document(self) -> dict[str, Any]:
        """The figures of the topic's entry in the document that come from headers."""
        every = self.partitions
        firsts = [one.first_timestamp for one in every if one.first_timestamp is not None]
        lasts = [one.last_timestamp for one in every if one.last_timestamp is not None]
        batches, records, sizes = self._codecs.tolist()
        return {
            "topic": self.topic,
            "partitions": len(every),
            "segments": sum(each.segments for each in every),
            "bytes": self.bytes,
            "records": self.records,
            "batches": self.batches,
            "firstTimestamp": min(firsts, default=None),
            "lastTimestamp": max(lasts, default=None),
            "formats": {
                f"v{magic}": count for magic, count in enumerate(self._formats.tolist()) if count
            },
            "codecs": {
                codec_name(codec): {
                    "batches": batches[codec],
                    "records": records[codec],
                    "bytes": sizes[codec],
                }
                for codec in range(_CODECS)
                if batches[codec]
            },
            "timestampTypes": _named(_TIMESTAMP_TYPES, self._timestamp_types.tolist()),
            "life": self._life_document(),
            "recordsPerBatch": self._records_per_batch.document(),
            "bytesPerBatch": self._bytes_per_batch.document(),
            "batchesBack": self._back,
            "batchesAhead": self._ahead,
            "missingOffsets": sum(each.missing_offsets for each in every),
            "producers": self._producers.sums().shape[1],
            "transactionalBatches": self._transactional,
            "controlBatches": self._control,
            "leaderEpochs": self._epochs.sums().shape[1],
            "eachPartition": [
                each.document() for each in sorted(every, key=lambda one: one.partition or 0)
            ],
        }

    def _life_document(self) -> dict[str, Any] | None:
        """Bytes and records by step of time; a few with wrong timestamps do not stretch it."""
        hours, sizes, records = self._life.sums()
        if not hours.size:
            return None
        up_to = np.cumsum(sizes)
        middle = np.searchsorted(up_to, up_to[-1] * np.array([0.01, 0.99]))
        first, last = hours[middle.clip(max=hours.size - 1)].tolist()
        first, last = 2 * first - last - _MARGIN, 2 * last - first + _MARGIN
        is_inside = (hours >= first) & (hours <= last)
        span = int(hours[is_inside][-1] - hours[is_inside][0])
        # Damaged timestamps span up to 300 million years.
        longest = _STEPS[-1] * (span // (_STEPS[-1] * _MOST_STEPS) + 1)
        step = next((step for step in _STEPS if span // step < _MOST_STEPS), longest)
        rows = hours[is_inside] // step
        start = int(rows[0])
        return {
            "step": step * HOUR,
            "from": start * step * HOUR,
            "bytes": _sums(rows - start, sizes[is_inside]).tolist(),
            "records": _sums(rows - start, records[is_inside]).tolist(),
            "before": _outside(hours < first, sizes, records),
            "after": _outside(hours > last, sizes, records),
        }


def _outside(rows: Mask, sizes: Int64s, records: Int64s) -> dict[str, int] | None:
    if not rows.any():
        return None
    return {"bytes": int(sizes[rows].sum()), "records": int(records[rows].sum())}


def _named(names: tuple[str, ...], counts: list[int]) -> Mapping[str, int]:
    return {name: count for name, count in zip(names, counts, strict=True) if count}


def _opened(
    segments: list[Segment], partition: PartitionFigures
) -> Iterator[tuple[Segment, Source | Gap]]:
    """Open one segment after the other as it is now; a gap stands for one that cannot be opened.

    If one is gone, the folder is listed again, and the log goes on behind what has been read.
    """
    left, turns = list(segments), _TURNS
    while left:
        segment = left.pop(0)
        try:
            segment = as_now(segment)
            source = segment.log.open()
        except (OSError, EOFError, KafkaJitError) as error:
            if turns and isinstance(error, (FileNotFoundError, EOFError)):
                turns -= 1
                behind = 0 if partition.start_offset is None else partition.end_offset
                left = listed_again(segment, behind)
                continue
            yield segment, Gap(segment.log.path, 0, segment.log.size, str(error))
        else:
            yield segment, source


def _headers(segment: Segment, source: Source) -> Iterator[Batches | Gap]:
    walk = Walk(source, mode=PERMISSIVE, selection=Selection(offsets=segment.cut))
    for part in walk.headers():
        if isinstance(part, Gap) or len(part):
            yield part
        source.forget(walk.position)


def _records(batches: Batches, segment: Segment) -> Int64s:
    """The number of each batch's records."""
    records: Int64s = np.maximum(batches.field("recordsCount").astype(np.int64), 0)
    for row in np.flatnonzero(batches.is_message_set).tolist():
        start, end = int(batches.position[row]), int(batches.end[row])
        reader = SegmentReader(segment.log.open(start, end), mode=PERMISSIVE, start=start, end=end)
        records[row] = sum(
            rows.num_rows - rows["offset"].null_count
            for rows in reader.records(record_schema(["offset"]))
        )
    return records


def _add_to(partition: PartitionFigures, batches: Batches, records: Int64s) -> None:
    firsts = batches.field("baseOffset").astype(np.int64)
    lasts = batches.last_offset
    if partition.start_offset is None:
        partition.start_offset = int(firsts[0])
        behind = firsts[:1]
    else:
        behind = np.array([partition.end_offset])
    # A set of messages has its last record's offset: the gap before it is of its own records.
    gaps = firsts - np.concatenate([behind, lasts[:-1] + 1])
    is_gap = (gaps > 0) & ~batches.is_message_set
    partition.missing_offsets += int(gaps[is_gap].sum())
    partition.overlaps += int(np.count_nonzero(gaps < 0))
    partition.end_offset = max(partition.end_offset, int(lasts.max()) + 1)
    partition.records += int(records.sum())
    partition.batches += len(batches)
    timestamps = batches.field("maxTimestamp").astype(np.int64)
    # The base timestamp is the first record's, unless a compacted batch keeps its horizon there.
    begins = np.where(
        batches.has_delete_horizon, timestamps, batches.field("baseTimestamp").astype(np.int64)
    )
    begins = np.minimum(begins, timestamps)
    begins = begins[begins >= 0]
    if begins.size:
        earliest = int(begins.min())
        known = partition.first_timestamp
        partition.first_timestamp = earliest if known is None else min(known, earliest)
        latest = int(timestamps.max())
        partition.last_timestamp = max(latest, partition.last_timestamp or latest)
    _follow_transactions(partition, batches[batches.is_transactional])


def _follow_transactions(partition: PartitionFigures, batches: Batches) -> None:
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
            partition.open_transactions.pop(producer, None)
            rows = rows[rows > markers[-1]]
        if rows.size and producer not in partition.open_transactions:
            row = int(rows[0])
            partition.open_transactions[producer] = OpenTransaction(
                producer, int(firsts[row]), int(timestamps[row])
            )


def _sums(keys: Int64s, weights: Int64s, least: int = 0) -> Int64s:
    """The sum of the weights of each key from 0 on, without rounding."""
    sums = np.zeros(max(least, int(keys.max(initial=-1)) + 1), np.int64)
    np.add.at(sums, keys, weights)
    return sums
