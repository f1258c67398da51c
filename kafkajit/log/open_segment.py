"""An open segment: its bytes, its indexes, and the stretch of it that a selection needs.

Answers to Kafka's LogSegment. An index entry is used only after the batch that it names has been
read, so a missing or wrong index costs time, never a row. One error goes unnoticed: a time index in
order whose entries match their batches, although an earlier batch has a later timestamp. Only a
look at all headers can find that; `kafkajit.index.verify_time_index` takes it.
"""

from __future__ import annotations

import logging
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from kafkajit.errors import CorruptIndexError, KafkaJitError, RemoteStorageError
from kafkajit.format.kafscale import HEAD
from kafkajit.format.kafscale import SUFFIX as KAFSCALE_SUFFIX
from kafkajit.format.layout import BATCH_LENGTH_OFFSET, LOG_OVERHEAD, MESSAGE_OVERHEAD_V0
from kafkajit.format.limits import MAX_INT64
from kafkajit.index.offset_index import OffsetIndex, OffsetPosition
from kafkajit.index.time_index import NO_TIMESTAMP, TimeIndex
from kafkajit.kernel.intrinsics import read_int32
from kafkajit.log.segment import Segment
from kafkajit.records.batches import Batches, frame
from kafkajit.records.offset_order import OffsetOrder
from kafkajit.storage.source import Bytes, Source, as_bytes
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import FAILFAST, Stretch
from kafkajit.walk.frames import frames
from kafkajit.walk.selection import Selection
from kafkajit.walk.walk import Walk

logger = logging.getLogger("kafkajit")

# The bytes in which batches are looked for first: Kafka's index.interval.bytes and a header.
_WINDOW = 8 << 10
# Remote files up to this size are read whole: a look into an index takes as long.
_SMALL = 64 << 10
# Entries are this far apart only if a batch is this large, or if the index is wrong.
_FARTHEST = 128 << 20
# If an index cannot be used, or what it names in the log cannot be read, the whole log is.
_INDEX_ERRORS = (CorruptIndexError, RemoteStorageError)


_Index = TypeVar("_Index", OffsetIndex, TimeIndex)


def order_in(segment: Segment, start: int) -> OffsetOrder:
    """The order that the offsets of a segment's batches have to have, from a position on."""
    return OffsetOrder.from_position(segment.log.path, segment.between, start)


class OpenSegment:
    """A segment whose bytes and indexes are opened when they are first needed."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment

    @cached_property
    def offset_index(self) -> OffsetIndex | None:
        """The offset index; None if it is missing or has no entry.

        A live log's index may name batches that were appended after the log was listed.
        """
        file = self.segment.index
        index = _with_entries(OffsetIndex, file, self.segment.base_offset) if file else None
        if index is not None:
            index.leave_out_from(self.segment.log.size)
        return index or None

    @cached_property
    def time_index(self) -> TimeIndex | None:
        """The time index; None if it is missing or has no entry."""
        file = self.segment.time_index
        return _with_entries(TimeIndex, file, self.segment.base_offset) if file else None

    def stretch(self, asked: Selection) -> Stretch:
        """The stretch that can hold the selected offsets and timestamps, as far as indexes tell."""
        first, last = asked.offsets
        start, end = 0, self.segment.log.size
        if self.segment.log.filesystem is not None and end <= _SMALL:
            return Stretch(start, end)
        try:
            first = max(first, self.first_offset_at(asked.timestamps.first))
            if first > self.segment.base_offset:
                start = self.position_of(first)
            if last < self.segment.offsets.last:
                end = self._end_of(last)
        except _INDEX_ERRORS as error:
            logger.warning("%s: the log is read without it", error)
            return Stretch(0, self.segment.log.size)
        return Stretch(start, max(start, end))

    def position_of(self, offset: int) -> int:
        """The position of a batch before which all offsets are lower."""
        index = self.offset_index
        if index is None:
            return 0
        entry = index.lookup(offset)
        if entry.position == 0:
            return 0
        batch = self._sound_batch(entry.position)
        if batch is None or int(batch.field("baseOffset")[0]) > offset:
            raise self._wrong(entry)
        return entry.position

    def first_offset_at(self, timestamp: int) -> int:
        """An offset before which all timestamps are earlier."""
        base = self.segment.base_offset
        index = self.time_index if timestamp > 0 else None
        if index is None:
            return base
        before = index.before(timestamp)
        if before.timestamp == NO_TIMESTAMP:
            return base
        assert self.segment.time_index is not None
        if not index.is_in_order_at(before):
            raise CorruptIndexError(
                f"the time index has entries out of order around timestamp {before.timestamp}",
                path=self.segment.time_index.path,
            )
        batches = self._up_to(before.offset)
        if batches is None or int(batches.field("maxTimestamp")[-1]) != before.timestamp:
            raise CorruptIndexError(
                f"the time index names timestamp {before.timestamp} for offset {before.offset}, "
                "whose batch has another",
                path=self.segment.time_index.path,
            )
        return before.offset + 1

    def tail(self, offset: int) -> tuple[Source, int]:
        """The bytes from a position on, and that position; offsets before it are lower."""
        start = 0
        try:
            start = self.position_of(offset)
        except _INDEX_ERRORS as error:
            logger.warning("%s: the log is read without it", error)
        return self.segment.log.open(start), start

    def last_offset(self, mode: str = FAILFAST) -> int | None:
        """The last offset of the last batch; None without a batch."""
        last = None
        source, start = self.tail(MAX_INT64)
        for batches in Walk(source, mode=mode, start=start).framed():
            last = int(batches.last_offset[-1])
            source.forget(int(batches.end[-1]))
        return last

    def bytes_at(self, position: int, count: int) -> Bytes:
        """This number of bytes from a position on, or fewer at the log's end."""
        count = min(count, self.segment.log.size - position)
        if self.segment.log.filesystem is None:
            return self.source.content[position : position + count]
        return as_bytes(self.segment.log.read(position, count)) if count > 0 else as_bytes(b"")

    @cached_property
    def source(self) -> Source:
        """The log's bytes; those of a remote log must be loaded before they are read."""
        return self.segment.log.open(leaps=True)

    def batches_at(self, position: int, most: int = _WINDOW) -> Batches:
        """The batches in `most` bytes from a position on, but at least one if there is one."""
        if position == 0 and self.segment.path.suffix == KAFSCALE_SUFFIX:
            position = HEAD.size
        content = self.bytes_at(position, most)
        batches = frame(content).batches
        if not len(batches) and content.size == most:
            # The window is larger than a header, so the size is there.
            size = int(read_int32(content, BATCH_LENGTH_OFFSET)) + LOG_OVERHEAD
            if most < size <= self.segment.log.size - position:
                batches = frame(self.bytes_at(position, size)).batches
        return Batches(batches.position + position, batches.header)

    def _sound_batch(self, position: int) -> Batches | None:
        """The batch at this position, if it is sound.

        A large batch is not read: if a batch with higher offsets begins behind it, that is as good
        as a checksum.
        """
        size = self.segment.log.size
        if not 0 <= position < size:
            return None
        found = self.bytes_at(position, _WINDOW)
        if found.size < MESSAGE_OVERHEAD_V0:
            return None
        header = frame(found).batches[:1]
        if len(header):
            batch = Batches(header.position + position, header.header)
            return batch if self._is_sound(batch) else None
        end = position + LOG_OVERHEAD + int(read_int32(found, BATCH_LENGTH_OFFSET))
        if not position + _WINDOW < end <= size:
            return None
        batch = self.batches_at(position)[:1]
        behind = self.batches_at(end)[:1] if end < size else batch[:0]
        if len(behind) and behind.field("baseOffset")[0] > batch.last_offset[0]:
            return batch
        return batch if self._is_sound(batch) else None

    def _is_sound(self, batch: Batches) -> bool:
        content = self.bytes_at(int(batch.position[0]), int(batch.size_in_bytes[0]))
        return bool(Batches(np.zeros(1, np.int64), batch.header).is_valid(content)[0])

    def _up_to(self, offset: int) -> Batches | None:
        """The sound batch that has this offset; None without one."""
        index = self.offset_index
        position = self.position_of(offset)
        following = index.upper_bound(offset + 1) if index is not None else None
        end = following.position if following is not None else self.segment.log.size
        while position < end:
            batches = self.batches_at(position)
            if not len(batches):
                return None
            found = batches[batches.last_offset >= offset]
            if len(found):
                has_it = int(found.field("baseOffset")[0]) <= offset and self._is_sound(found[:1])
                return found[:1] if has_it else None
            position = int(batches.end[-1])
        return None

    def _end_of(self, offset: int) -> int:
        """The position of a batch behind which all offsets are higher, or the log's end."""
        index, size = self.offset_index, self.segment.log.size
        entry = index.upper_bound(offset) if index is not None else None
        if index is None or entry is None:
            return size
        following = index.upper_bound(entry.offset + 1)
        if following is None or following.position - entry.position > _FARTHEST:
            return size
        # Batches appended at once begin at the one entry and end before the other.
        batches = None
        if 0 <= entry.position < following.position <= size:
            content = self.bytes_at(entry.position, following.position - entry.position)
            try:
                framings = list(frames(Source(content)))
            except KafkaJitError:
                framings = []
            if framings and framings[-1].position == content.size:
                batches = framings[-1].batches[-1:]
                batches = Batches(batches.position + entry.position, batches.header)
        if batches is None or int(batches.last_offset[0]) < offset or not self._is_sound(batches):
            raise self._wrong(entry)
        return following.position

    def _wrong(self, entry: OffsetPosition) -> CorruptIndexError:
        assert self.segment.index is not None
        return CorruptIndexError(
            f"the offset index names position {entry.position} for offset {entry.offset}, where no "
            "sound batch of it begins",
            path=self.segment.index.path,
        )


def _with_entries(kind: type[_Index], file: StoredFile, base_offset: int) -> _Index | None:
    # Since it was listed, a broker may have cut a preallocated index to its entries, or deleted it.
    try:
        if file.filesystem is None:
            size = min(file.size, Path(file.key).stat().st_size)
            index = kind(Source(file.key, size=size, leaps=True), base_offset)
        else:
            index = kind(file.read(), base_offset)
    except FileNotFoundError:
        return None
    index.path = file.path
    index.check_size()
    return index if len(index) else None
