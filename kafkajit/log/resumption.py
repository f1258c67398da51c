"""Whether a log is still the one that was read up to an offset, and what of it is gone.

An offset alone does not say it: a topic may have been deleted and made again, or a log truncated
and written again, up to this offset and beyond. So whoever reads on keeps the last batch, too. The
log must still have it, unless

- retention has removed it: the log begins after it,
- compaction has removed it, or changed it: a cleaner keeps the first and the last offset of a
  batch, and puts no other batch in place of one that it removes.

A log that begins after what was read cannot show that batch. So whoever reads on keeps the topic's
id, too: a topic that was made again has another one. Kafka before 2.8 and copies of a log lack it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from kafkajit.errors import CorruptCheckpointError, OffsetOutOfRangeError
from kafkajit.format.layout import DELETE_HORIZON_MASK
from kafkajit.format.ranges import NOTHING, Range
from kafkajit.format.tiered_names import object_name
from kafkajit.log.open_segment import OpenSegment
from kafkajit.log.segment import Segment
from kafkajit.log.tiered_segments import topic_id_beside
from kafkajit.records.batches import Batches
from kafkajit.walk.damage import DROPMALFORMED
from kafkajit.walk.walk import Walk

logger = logging.getLogger("kafkajit")


class ReadBatch(NamedTuple):
    """The batch that has the last offset that was read."""

    base_offset: int
    last_offset: int
    crc: int
    size: int
    position: int  # in its segment, unless a cleaner has moved it
    leader_epoch: int = -1  # unknown in messages of v0 and v1, and in older journals

    @classmethod
    def of(cls, batches: Batches, row: int = 0) -> ReadBatch:
        """One of these batches."""
        header = batches.header[row]
        return cls(
            int(header["baseOffset"]),
            int(batches.last_offset[row]),
            int(header["crc"]),
            int(batches.size_in_bytes[row]),
            int(batches.position[row]),
            int(header["partitionLeaderEpoch"]),
        )

    def is_same(self, other: ReadBatch) -> bool:
        """Whether two batches are one, wherever it lies, as far as their headers tell.

        The checksum does not cover the epoch: a copy may have the same records under another one.

        >>> ReadBatch(0, 3, 77, 100, 0, 5).is_same(ReadBatch(0, 3, 77, 100, 900, -1))
        True
        >>> ReadBatch(0, 3, 77, 100, 0, 5).is_same(ReadBatch(0, 3, 77, 100, 0, 6))
        False
        """
        epochs = {self.leader_epoch, other.leader_epoch}
        return self[:4] == other[:4] and (len(epochs) == 1 or -1 in epochs)


class Footing(NamedTuple):
    """The ground of a position in a log: it tells the log from another one with such offsets."""

    topic_id: str | None = None  # if it is known
    last: ReadBatch | None = None  # the batch before the position, if there is one
    # The newest leader epochs before the position, and the offsets at which they begin.
    epochs: tuple[tuple[int, int], ...] = ()
    log_start: int | None = None  # the first offset of the log


def batch_at(segments: Sequence[Segment], offset: int, position: int) -> ReadBatch | None:
    """The batch at the position of a segment, which is the one with this offset.

    >>> import kafkajit.testing as kt
    >>> from kafkajit.scan.partitions import find_partitions
    >>> from kafkajit.scan.options import ScanOptions
    >>> (segments,) = find_partitions(ScanOptions(paths=(f"{kt.SAMPLE}/orders-0",)))
    >>> batch_at(segments, 2, 0)[:2]
    (0, 3)
    """
    batch = _at(segments, offset, position)
    return None if batch is None or batch.last_offset < offset else batch


def topic_id_of(segments: Sequence[Segment]) -> str | None:
    """The id of a log's topic, by partition.metadata or the names of tiered objects, if known.

    >>> topic_id_of([])
    """
    for log in {segment.log.folder: segment.log for segment in segments}.values():
        tiered = object_name(log.path)
        if tiered is not None:
            return tiered.topic_id
        try:
            found = topic_id_beside(log, {})
        except CorruptCheckpointError as error:
            logger.warning("%s: the topic's id is not known", error)
            continue
        if found is not None:
            return found
    return None


def check_resumed(
    segments: Sequence[Segment],
    next_offset: int,
    last: ReadBatch | None,
    topic_id: str | None = None,
) -> Range:
    """Check that a log is the one that was read up to an offset.

    Args:
        segments: of the log.
        next_offset: up to which it was read.
        last: the batch that was read last, if it is known.
        topic_id: the id of the topic that was read, if it is known.

    Returns:
        The offsets from the next one on that retention has removed meanwhile.

    Raises:
        OffsetOutOfRangeError: it is another log, or was truncated.
    """
    found_id = None if topic_id is None else topic_id_of(segments)
    if found_id not in (None, topic_id):
        raise OffsetOutOfRangeError(
            f"the topic was made again: its id is {found_id}, and that of the log that was read "
            f"is {topic_id}",
            path=segments[0].log.folder,
        )
    there = None if last is None else _at(segments, last.last_offset, last.position)
    if last is not None and there is not None and there.is_same(last):
        return NOTHING
    begin = min(segment.base_offset for segment in segments)
    wanted = next_offset - 1 if last is None else last.last_offset
    found = next(_from(segments, wanted), None)
    end = max(segment.base_offset for segment in segments)
    if found is None and end < next_offset:
        raise _another(segments, f"it ends before offset {next_offset}, up to which it was read")
    if begin > wanted:
        return Range(next_offset, begin - 1) if begin > next_offset else NOTHING
    if last is not None and found is not None and not may_be(found, last):
        raise _another(segments, f"its batch at offset {wanted} is not the one that was read")
    return NOTHING


def has_any(segments: Sequence[Segment], offsets: Range) -> bool:
    """Whether a log has a batch with one of these offsets."""
    found = next(_from(segments, offsets.first), None)
    return found is not None and int(found.header["baseOffset"][0]) <= offsets.last


def segment_with(segments: Sequence[Segment], offset: int) -> Segment | None:
    """The segment that has an offset; of those that overlap, the one that is read.

    >>> segment_with([], 7)
    """
    return next(_segments_from(segments, offset), None)


def may_be(found: Batches, last: ReadBatch) -> bool:
    """Whether a batch is the one that was read, or what a cleaner has left of it or after it."""
    here = ReadBatch.of(found)
    if here[:4] == last[:4]:
        return True
    if found.is_message[0]:  # a set of messages gives only its last offset
        return here.last_offset > last.last_offset
    if here.base_offset > last.last_offset:
        return True
    offsets = here.last_offset - here.base_offset + 1
    lacks_records = found.header["recordsCount"][0] < offsets
    # A cleaner notes in batches of tombstones and markers when it may remove them.
    has_horizon = found.header["attributes"][0] & DELETE_HORIZON_MASK
    return here[:2] == last[:2] and bool(lacks_records or has_horizon)


def _another(segments: Sequence[Segment], why: str) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(
        f"the topic was made again, or the log truncated: {why}",
        path=segments[0].log.folder,
    )


def _at(segments: Sequence[Segment], offset: int, position: int) -> ReadBatch | None:
    """The batch at a position of the segment that has an offset."""
    segment = segment_with(segments, offset)
    if segment is None or not 0 <= position < segment.log.size:
        return None
    found = OpenSegment(segment).batches_at(position)[:1]
    return ReadBatch.of(found) if len(found) else None


def _from(segments: Sequence[Segment], offset: int) -> Iterator[Batches]:
    """The batches of a log from the one that has an offset on, each alone."""
    for segment in _segments_from(segments, offset):
        source, start = OpenSegment(segment).tail(offset)
        for batches in Walk(source, mode=DROPMALFORMED, start=start).framed():
            late = batches[batches.last_offset >= offset]
            yield from (late[row : row + 1] for row in range(len(late)))
            source.forget(int(batches.end[-1]))


def _segments_from(segments: Sequence[Segment], offset: int) -> Iterator[Segment]:
    """The segments from the one that has an offset on; of those that overlap, what is read."""
    read = [segment for segment in segments if segment.cut and segment.log.size]
    for segment, following in zip_longest(read, read[1:]):
        if following is None or offset < max(following.base_offset, following.cut.first):
            yield segment
