"""The part of each segment that is restored: whole batches, from one border to another.

A batch is never split. At the beginning the batch that has the first offset is kept; the log start
offset hides the records before it. At the end the batch that has the first offset behind the end is
left out, as when a broker truncates a log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kafkajit.errors import CorruptIndexError, CorruptRecordError, InvalidOffsetError
from kafkajit.format.kafscale import SUFFIX as KAFSCALE_SUFFIX
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import NOTHING, Range
from kafkajit.log.open_segment import OpenSegment, logger
from kafkajit.log.segment import Segment
from kafkajit.places.tiered_files import TieredFile
from kafkajit.records.batches import Batches
from kafkajit.walk.damage import Stretch
from kafkajit.walk.frames import frames


@dataclass(frozen=True)
class KeptSegment:
    """The part of a segment that is restored."""

    segment: Segment
    base_offset: int  # the new segment's
    stretch: Stretch
    offsets: Range  # of which batches are kept
    # Of the last batch before the end of the stretch, if a border was looked for there.
    last_offset: int | None = None
    last_timestamp: int | None = None
    unread: int = 0  # bytes behind the last batch, which an interrupted broker has left
    straddling: Range = NOTHING  # offsets before the end that are left out with their batch

    @property
    def size(self) -> int:
        """The bytes of the new segment."""
        return self.stretch.end - self.stretch.start

    @property
    def is_whole(self) -> bool:
        """Whether it has all batches of the segment, under its name."""
        return (
            self.stretch == Stretch(0, self.segment.log.size - self.unread)
            and self.base_offset == self.segment.base_offset
        )


def kept_segments(segments: Sequence[Segment], offsets: Range) -> list[KeptSegment]:
    """The parts of segments with these offsets; of the last one the end is known."""
    kept: list[KeptSegment] = []
    straddling = NOTHING
    is_last = True
    for segment in reversed(segments):
        if segment.base_offset > MAX_INT64:
            raise InvalidOffsetError("its name has no offset of Kafka's", path=segment.log.path)
        if not _offsets_of(segment) & offsets:
            continue
        part = _kept(segment, segment.cut & offsets, is_last=is_last)
        straddling = part.straddling or straddling
        if part.size or part.is_whole:
            kept.append(replace(part, straddling=straddling))
            straddling = NOTHING
        is_last &= not part.size
    return kept[::-1]


def missing_offsets(segments: Sequence[Segment]) -> Iterator[Range]:
    """The offsets that no source has, as far as the ends of segments are known."""
    behind = None
    for segment in segments:
        first = max(segment.base_offset, segment.cut.first)
        if behind is not None and behind < first:
            yield Range(behind, first - 1)
        behind = segment.offsets.last + 1 if segment.offsets.last < MAX_INT64 else None


def first_batch_at(segments: Sequence[Segment], timestamp: int) -> Range | None:
    """The offsets of the first batch with this timestamp or a later one."""
    for segment in segments:
        log = segment.log
        if isinstance(log, TieredFile) and log.manifest is not None:
            latest = log.manifest.max_timestamp
            if latest is not None and latest < timestamp:
                continue
        opened = OpenSegment(segment)
        try:
            first = opened.first_offset_at(timestamp)
        except CorruptIndexError as error:
            logger.warning("%s: the log is read without it", error)
            first = segment.base_offset
        before = segment.base_offset - 1
        for batches in batches_from(opened, max(first, segment.cut.first)):
            found = batches.header["maxTimestamp"] >= timestamp
            found &= segment.cut.holds(batches.last_offset)
            if found.any():
                row = int(np.argmax(found))
                return Range(_first_offset(batches, row, before), int(batches.last_offset[row]))
            before = int(batches.last_offset[-1])
    return None


def batches_from(opened: OpenSegment, offset: int) -> Iterator[Batches]:
    """The batches of a segment up to its end, but not all of those before the offset."""
    log = opened.segment.log
    start = 0
    if offset > opened.segment.base_offset:
        try:
            start = opened.position_of(offset)
            # Only the message before tells where a set of messages begins.
            if start and opened.batches_at(0)[:1].is_message.any():
                start = 0
        except CorruptIndexError as error:
            logger.warning("%s: the log is read without it", error)
    source = log.open(start)
    for framing in frames(source, position=start):
        yield framing.batches
        source.forget(framing.position)


def first_batch_of(kept: KeptSegment) -> Batches:
    """The first batch that is kept; empty for an empty segment."""
    return OpenSegment(kept.segment).batches_at(kept.stretch.start)[:1]


def _offsets_of(segment: Segment) -> Range:
    return segment.cut & Range(segment.base_offset, max(segment.offsets.last, segment.base_offset))


def _kept(segment: Segment, offsets: Range, *, is_last: bool) -> KeptSegment:
    opened = OpenSegment(segment)
    size = segment.log.size
    start, base_offset = 0, segment.base_offset
    if offsets.first > base_offset:
        start, base_offset = _begin(opened, offsets.first)
    if not is_last and segment.cut.last == MAX_INT64 and offsets.last >= segment.offsets.last:
        return KeptSegment(segment, base_offset, Stretch(start, size), offsets)
    end, last, timestamp, straddling = start, None, None, NOTHING
    position, is_cut = start, False
    for batches in batches_from(opened, max(offsets.last, offsets.first)):
        position = int(batches.end[-1])
        staying = batches[batches.last_offset <= offsets.last]
        if len(staying):
            end = int(staying.end[-1])
            last, timestamp = int(staying.last_offset[-1]), int(staying.header["maxTimestamp"][-1])
        if len(staying) < len(batches):
            behind = batches[batches.last_offset > offsets.last]
            begin = _first_offset(behind, 0, base_offset - 1 if last is None else last)
            straddling = Range(max(begin, offsets.first), offsets.last)
            end, is_cut = int(behind.position[0]), True
            break
        if last == offsets.last:  # what follows may be damaged
            is_cut = True
            break
    if not is_cut and segment.path.suffix == KAFSCALE_SUFFIX:
        position = end = size  # framing it has found its footer
    unread = 0 if is_cut else size - position
    if unread and isinstance(segment.log, TieredFile):
        raise CorruptRecordError(
            f"the last {unread} bytes are not a whole batch", path=segment.log.path, position=end
        )
    return KeptSegment(
        segment,
        base_offset,
        Stretch(start, max(start, end)),
        offsets,
        last,
        timestamp,
        unread,
        straddling,
    )


def _begin(opened: OpenSegment, offset: int) -> tuple[int, int]:
    """The position and the first offset of the batch that has this offset, or the next."""
    before = opened.segment.base_offset - 1
    for batches in batches_from(opened, offset):
        found = batches.last_offset >= offset
        if found.any():
            row = int(np.argmax(found))
            return int(batches.position[row]), _first_offset(batches, row, before)
        before = int(batches.last_offset[-1])
    return opened.segment.log.size, max(before + 1, offset)


def _first_offset(batches: Batches, row: int, before: int) -> int:
    """The offset at which a segment may begin that begins with this batch.

    A set of messages does not give its first offset; it is behind the message before.
    """
    if not batches.is_message[row]:
        return int(batches.header["baseOffset"][row])
    return before + 1 if row == 0 else int(batches.last_offset[row - 1]) + 1


def check_order(batches: Batches, last_offset: int, path: str | None) -> None:
    """Raise an error if the offsets of batches go back, or repeat."""
    ends = batches.last_offset
    before = np.concatenate([np.array([last_offset]), ends[:-1]])
    wrong = (batches.header["baseOffset"] <= before) | (ends < batches.header["baseOffset"])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidOffsetError(
            f"the batch does not begin behind offset {before[row]}",
            path=path,
            position=int(batches.position[row]),
            base_offset=int(batches.header["baseOffset"][row]),
        )
    if ends.size and ends[-1] == MAX_INT64:
        raise InvalidOffsetError("the log cannot end at the largest offset", path=path)
