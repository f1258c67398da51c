"""Figures of partitions and topics from the headers of their batches.

The number of records in a compressed set of v0 or v1 messages is not in its header: such sets are
decoded and counted. So are batches that another segment has in part.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kafkajit.errors import KafkaJitError
from kafkajit.format.codecs import codec_name
from kafkajit.log.live_segments import as_now, held, listed_again
from kafkajit.log.missing_offsets import Extent
from kafkajit.log.open_segment import order_in
from kafkajit.log.segment import Segment
from kafkajit.records.batches import Batches, lacking_records, lacks_records, miscounted
from kafkajit.report.batch_facts import facts_of
from kafkajit.report.partition import PartitionFigures
from kafkajit.report.tally import Sizes, Tally
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
        self._ahead = self._transactional = self._control = 0

    def read(
        self, segments: list[Segment], *, continues: bool = False, at_rest: bool = False
    ) -> Iterator[Gap]:
        """Add a partition, and yield its damaged stretches.

        If a running broker has rolled, deleted or compacted segments since they were listed, the
        figures are those of the segments that are there now. At rest, a segment that is gone is an
        error. Segments that continue a partition are read by themselves, and joined by `add_all`.
        """
        first = segments[0]
        base = max(first.base_offset, segments[-1].base_offset)
        partition = PartitionFigures(first.path.partition, first.log.folder, base, continues)
        self.partitions.append(partition)
        for segment, source, is_last in _opened(segments, partition, at_rest=at_rest):
            if isinstance(source, Gap):
                yield source
                continue
            partition.read.append(segment)
            partition.segments += 1
            partition.bytes += segment.log.size
            newest: int | None = None
            marks: list[Int64s] = []
            end = 0
            extent = Extent(segment.base_offset, segment.base_offset, segment.base_offset)
            for part in self._headers(segment, source, is_last=is_last):
                if isinstance(part, Gap):
                    extent = extent._replace(ends_in_damage=True)
                    yield part
                    continue
                extent = _extended(extent, part, partition, is_first=end == 0)
                if segment.cut.first > extent.base_offset:  # its first batches are not read
                    extent = extent._replace(first=min(extent.first, extent.base_offset))
                self._add(part, partition, segment)
                timestamps = part.field("maxTimestamp").astype(np.int64)
                newest = max(int(timestamps.max()), -1 if newest is None else newest)
                marks.append(part.position[np.unique(part.position // _MARK, return_index=True)[1]])
                end = int(part.end[-1])
            # A broker without a timestamp goes by the file's.
            if newest is None or newest < 0:
                modified = segment.log.modified_ns
                newest = None if modified is None else modified // 1_000_000
            partition.ages.append((segment.log.size, newest))
            partition.extents.append(extent)
            if marks:
                marked = segment if at_rest else held(segment)
                partition.marks.append((marked, np.concatenate([*marks, [end]])))

    def add_all(self, other: TopicFigures) -> None:
        """Add the figures of more partitions of the topic, or of those that continue its last."""
        for partition in other.partitions:
            if partition.continues:
                self.partitions[-1].join(partition)
            else:
                self.partitions.append(partition)
        self._formats += other._formats
        self._codecs += other._codecs
        self._timestamp_types += other._timestamp_types
        self._life.add_all(other._life)
        self._records_per_batch.add_all(other._records_per_batch)
        self._bytes_per_batch.add_all(other._bytes_per_batch)
        self._producers.add_all(other._producers)
        self._epochs.add_all(other._epochs)
        self._ahead += other._ahead
        self._transactional += other._transactional
        self._control += other._control

    def add_up(self) -> None:
        """Add up what waits for more partitions: a thousand topics would keep 130 MB of it."""
        for sums in (
            self._life,
            self._records_per_batch,
            self._bytes_per_batch,
            self._producers,
            self._epochs,
        ):
            sums.add_up()

    def _headers(
        self, segment: Segment, source: Source, *, is_last: bool
    ) -> Iterator[Batches | Gap]:
        def doubtful(batches: Batches) -> Mask:
            """Batches whose headers are markers, or of which figures would be wrong."""
            found = miscounted(batches)
            if not is_last:  # a broker does not compact that one
                found &= ~lacking_records(batches)
            found |= batches.is_control | (batches.field("maxTimestamp") > self._now)
            return found & ~batches.is_message_set

        selection, order = Selection(offsets=segment.cut), order_in(segment, 0)
        walk = Walk(source, mode=PERMISSIVE, selection=selection, order=order)
        for part in walk.headers(doubtful):
            if isinstance(part, Gap) or len(part):
                yield part
            source.forget(walk.position)

    def _add(self, batches: Batches, partition: PartitionFigures, segment: Segment) -> None:
        sizes = batches.size_in_bytes
        facts = facts_of(batches, segment)
        records = facts.records
        timestamps = batches.field("maxTimestamp").astype(np.int64)
        is_control = batches.is_control
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
        partition.add(batches, facts, segment)

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
            "batchesBack": sum(each.batches_back for each in every),
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
    segments: list[Segment], partition: PartitionFigures, *, at_rest: bool
) -> Iterator[tuple[Segment, Source | Gap, bool]]:
    """Open one segment after the other as it is now; a gap stands for one that cannot be opened.

    With each: whether none follows.

    If one is gone, the folder is listed again, and the log goes on behind what has been read; at
    rest, that is an error.
    """
    left, turns = list(segments), _TURNS
    while left:
        segment = left.pop(0)
        try:
            size, segment = segment.log.size, as_now(segment)
            if left and segment.log.size > size and turns and not at_rest:
                # A cleaner has made one of several.
                raise FileNotFoundError(errno.ENOENT, "replaced", segment.log.path)
            source = segment.log.open()
        except (OSError, EOFError, KafkaJitError) as error:
            is_gone = isinstance(error, (FileNotFoundError, EOFError))
            if is_gone and at_rest:
                raise
            if is_gone and turns:
                turns -= 1
                left = listed_again(segment, partition.behind)
                continue
            yield segment, Gap(segment.log.path, 0, segment.log.size, str(error)), not left
        else:
            yield segment, source, not left


def _extended(
    extent: Extent, batches: Batches, partition: PartitionFigures, *, is_first: bool
) -> Extent:
    """The offsets of a segment with those of its next batches; the partition notes holes."""
    firsts = batches.field("baseOffset").astype(np.int64)
    behind = batches.last_offset + 1
    # A set of messages has its last record's offset.
    is_hole = (firsts[1:] > behind[:-1]) & ~batches.is_message_set[1:]
    if not is_first and not extent.ends_in_damage and not batches.is_message_set[0]:
        partition.has_holes |= bool(firsts[0] > extent.behind)
    partition.has_holes |= bool(is_hole.any()) or lacks_records(batches)
    first = int(firsts[0]) if is_first else extent.first
    if is_first and (extent.ends_in_damage or batches.is_message_set[0]):
        first = min(first, extent.base_offset)
    return extent._replace(first=first, behind=int(behind.max()), ends_in_damage=False)


def _sums(keys: Int64s, weights: Int64s, least: int = 0) -> Int64s:
    """The sum of the weights of each key from 0 on, without rounding."""
    sums = np.zeros(max(least, int(keys.max(initial=-1)) + 1), np.int64)
    np.add.at(sums, keys, weights)
    return sums
