"""The part of each segment that is restored: the records from one border to another.

The log ends exactly before its last border: the batch that has it is cut there. At its first border
the whole batch is kept, and the log start offset hides the records before it. A segment of which
others have the offsets before is cut there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kafkajit.errors import (
    CorruptIndexError,
    CorruptRecordError,
    InvalidOffsetError,
    InvalidRecordError,
)
from kafkajit.format.amounts import offsets_text
from kafkajit.format.kafscale import SUFFIX as KAFSCALE_SUFFIX
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.log.beginnings import check_at
from kafkajit.log.open_segment import OpenSegment, logger
from kafkajit.log.segment import Segment
from kafkajit.log.tiered_copies import advise_copy
from kafkajit.places.tiered_files import TieredFile
from kafkajit.reader import SegmentReader
from kafkajit.records.batches import Batches
from kafkajit.records.offset_order import has_messages, misfit, misplaced, offsets_of
from kafkajit.schema import record_schema
from kafkajit.upkeep.restore.cut_batch import CutBatch, cut_batch
from kafkajit.walk.damage import PERMISSIVE, Stretch
from kafkajit.walk.frames import frames

# The errors of a log that is damaged.
DAMAGED = (CorruptRecordError, InvalidOffsetError, InvalidRecordError)


@dataclass(frozen=True)
class KeptSegment:
    """The part of a segment that is restored: whole batches, and perhaps a cut one on either side.

    If both borders are in one batch, that is `head`.
    """

    segment: Segment
    base_offset: int  # the new segment's
    stretch: Stretch  # of whole batches
    offsets: Range  # of which records are kept
    head: CutBatch | None = None
    tail: CutBatch | None = None
    last_offset: int | None = None  # that of the last batch, if its end was looked for
    last_timestamp: int | None = None
    unread: int = 0  # bytes behind the last batch, which an interrupted broker has left

    @property
    def cut(self) -> list[CutBatch]:
        """The batches that are not kept whole."""
        return [one for one in (self.head, self.tail) if one is not None]

    @property
    def size(self) -> int:
        """The bytes of the new segment."""
        return self.stretch.end - self.stretch.start + sum(one.size for one in self.cut)

    @property
    def is_whole(self) -> bool:
        """Whether it has all batches of the segment, under its name."""
        return (
            self.stretch == Stretch(0, self.segment.log.size - self.unread)
            and self.base_offset == self.segment.base_offset
            and not self.cut
        )

    @property
    def notes(self) -> Iterator[str]:
        """The parts of it that change or go, as lines of a plan."""
        for cut in self.cut:
            yield (
                f"batch at offset {cut.was.first} is rewritten with {cut.records:,} of "
                f"{cut.records_before:,} records, {offsets_text(*cut.offsets)}"
            )
        if self.unread:
            yield (
                f"left out: the last {self.unread:,} bytes of {self.segment.log.path}, which are "
                "not a whole batch"
            )

    @property
    def first_batch(self) -> Batches:
        """The header of its first batch as the source has it; empty for an empty segment."""
        position = self.stretch.start if self.head is None else self.head.position
        return OpenSegment(self.segment).batches_at(position)[:1]

    @property
    def first_timestamp(self) -> int | None:
        """The time of the first record of its first batch; None if it has no batch."""
        first = self.first_batch
        if not len(first) or not first.has_delete_horizon[0]:
            return int(first.header["baseTimestamp"][0]) if len(first) else None
        # A cleaner has put the time there at which tombstones go.
        start, end = int(first.position[0]), int(first.end[0])
        source = self.segment.log.open(start, end)
        reader = SegmentReader(source, mode=PERMISSIVE, start=start, end=end)
        for rows in reader.records(record_schema(["timestamp"])):
            if rows.num_rows:
                timestamp: int = rows["timestamp"].cast(pa.int64())[0].as_py()
                return timestamp
        return None


def kept_segments(
    segments: Sequence[Segment], offsets: Range, *, is_closed: bool = False
) -> list[KeptSegment]:
    """The parts of segments with these offsets; of the last one the end is known.

    An interrupted broker leaves a torn end in the last segment with batches. Elsewhere, and if the
    log `is_closed` because a broker copied only whole segments, bytes are missing.
    """
    kept: list[KeptSegment] = []
    is_last = True
    may_be_torn = not is_closed
    for segment in reversed(segments):
        if segment.base_offset > MAX_INT64:
            raise InvalidOffsetError("its name has no offset of Kafka's", path=segment.log.path)
        is_end, may_be_torn = may_be_torn, may_be_torn and not segment.log.size
        if not _offsets_of(segment) & offsets:
            continue
        with advising_end(segments):
            part = _kept(segment, offsets, is_last=is_last)
            if part.unread and (not is_end or isinstance(segment.log, TieredFile)):
                raise CorruptRecordError(
                    f"the last {part.unread} bytes are not a whole batch",
                    path=segment.log.path,
                    position=segment.log.size - part.unread,
                    base_offset=None if part.last_offset is None else part.last_offset + 1,
                )
        if part.size or part.is_whole:
            kept.append(part)
        is_last &= not part.size
    return kept[::-1]


@contextmanager
def advising_end(segments: Sequence[Segment]) -> Iterator[None]:
    """Advise to end a log before a damaged batch that has to be read for a plan."""
    try:
        yield
    except DAMAGED as error:
        advise_copy(error, segments)
        end = -1 if error.base_offset is None else error.base_offset
        for segment in segments:
            here = segment.offsets & Range(segments[0].base_offset + 1)
            is_here = error.advice is None and error.path == segment.log.path
            if is_here and here.first <= end <= here.last:
                error.advice = f"with --ending-offset {end} the log ends before it"
        raise


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


def _offsets_of(segment: Segment) -> Range:
    return segment.cut & Range(segment.base_offset, max(segment.offsets.last, segment.base_offset))


def _kept(segment: Segment, wanted: Range, *, is_last: bool) -> KeptSegment:
    opened = OpenSegment(segment)
    size, offsets = segment.log.size, segment.cut & wanted
    start, base_offset, head = 0, segment.base_offset, None
    if offsets.first > base_offset:
        # Other segments have the offsets before, or the log start offset hides them.
        is_cut = offsets.first > wanted.first
        start, base_offset, head = _begin(opened, offsets, is_cut=is_cut)
    part = KeptSegment(segment, base_offset, Stretch(start, size), offsets, head)
    if not is_last and segment.cut.last == MAX_INT64 and offsets.last >= segment.offsets.last:
        return part
    return _ended(part, opened)


def _ended(part: KeptSegment, opened: OpenSegment) -> KeptSegment:
    """The part of a segment with its last border: only its first was looked for before."""
    segment, offsets, head = part.segment, part.offsets, part.head
    start = end = part.stretch.start
    position, is_ended = start, False
    last, timestamp, tail = None, None, None
    if head is not None:
        last, timestamp = head.offsets.last, head.max_timestamp
    for batches in batches_from(opened, max(offsets.last, offsets.first)):
        position = int(batches.end[-1])
        batches = batches[int(np.searchsorted(batches.position, start)) :]
        late = batches.last_offset > offsets.last
        row = int(np.argmax(late)) if late.any() else len(batches)
        if row:
            end, last = int(batches.end[row - 1]), int(batches.last_offset[row - 1])
            timestamp = int(batches.header["maxTimestamp"][row - 1])
        if row < len(batches):
            _check_order(opened, batches, row, offsets)
            before = part.base_offset - 1 if last is None else last
            if _first_offset(batches[row:], 0, before) <= offsets.last:
                found = cut_batch(opened, int(batches.position[row]), offsets)
                tail = found and found[0]
        # What follows the last offset may be damaged.
        is_ended = row < len(batches) or last == offsets.last
        if is_ended:
            break
    if tail is not None:
        last, timestamp = tail.offsets.last, tail.max_timestamp
    if not is_ended and segment.path.suffix == KAFSCALE_SUFFIX:
        position = end = segment.log.size  # framing it has found its footer
    unread = 0 if is_ended else segment.log.size - position
    return replace(
        part,
        stretch=Stretch(start, max(start, end)),
        tail=tail,
        last_offset=last,
        last_timestamp=timestamp,
        unread=unread,
    )


def _check_order(opened: OpenSegment, batches: Batches, row: int, wanted: Range) -> None:
    """Raise if a batch up to a border has a base offset that does not fit, and may be wanted.

    No checksum covers base offsets, and the border would lie elsewhere.
    """
    near = [batches[: row + 1], batches[row + 1 : row + 3]]
    if len(near[1]) < 2:
        near.append(opened.batches_at(int(batches.end[-1]))[: 2 - len(near[1])])
    if any(map(has_messages, near)):
        return
    firsts, lasts = map(np.concatenate, zip(*map(offsets_of, near), strict=True))
    # A segment's first batch does not begin before its name.
    begin = opened.segment.base_offset
    is_first = batches.position[0] == 0 and firsts[0] >= begin
    wrong = misplaced(firsts, lasts, begin - 1 if is_first else None)
    for at in np.flatnonzero(wrong[: row + 1]).tolist():
        before, behind = lasts[:at][~wrong[:at]], firsts[at + 1 :][~wrong[at + 1 :]]
        last = int(before[-1]) if before.size else None
        following = int(behind[0]) if behind.size else None
        first = begin if last is None else last + 1
        may_have = Range(first, MAX_INT64 if following is None else following - 1)
        if may_have & wanted or Range(int(firsts[at]), int(lasts[at])) & wanted:
            raise CorruptRecordError(
                misfit(last, following),
                path=opened.segment.log.path,
                position=int(batches.position[at]),
                base_offset=first,
            )


def _begin(
    opened: OpenSegment, offsets: Range, *, is_cut: bool
) -> tuple[int, int, CutBatch | None]:
    """The position where the whole batches of a part begin, its first offset, its cut batch.

    If it is not cut, the batch that has the first offset is whole.
    """
    offset = offsets.first
    before = opened.segment.base_offset - 1
    check_at([opened.segment], offset)
    for batches in batches_from(opened, offset):
        reaches = batches.last_offset >= offset
        if reaches.any():
            row = int(np.argmax(reaches))
            _check_order(opened, batches, row, offsets)
            position, first = int(batches.position[row]), _first_offset(batches, row, before)
            if not is_cut or first >= offset:
                return position, first, None
            found = cut_batch(opened, position, offsets)
            head = found and found[0]
            if head is not None and head.was == head.was & offsets:  # a set of messages may be
                return position, head.was.first, None
            return int(batches.end[row]), offset, head
        before = int(batches.last_offset[-1])
    return opened.segment.log.size, max(before + 1, offset), None


def _first_offset(batches: Batches, row: int, before: int) -> int:
    """The offset at which a segment may begin that begins with this batch.

    A set of messages does not give its first offset; it is behind the message before.
    """
    if not batches.is_message[row]:
        return int(batches.header["baseOffset"][row])
    return before + 1 if row == 0 else int(batches.last_offset[row - 1]) + 1


def check_order(batches: Batches, between: Range, path: str | None) -> None:
    """Raise an error if the offsets of batches go back, repeat, or are not between these."""
    ends = batches.last_offset
    before = np.concatenate([np.array([between.first - 1]), ends[:-1]])
    wrong = (batches.header["baseOffset"] <= before) | (ends < batches.header["baseOffset"])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidOffsetError(
            f"the batch does not begin behind offset {before[row]}",
            path=path,
            position=int(batches.position[row]),
            base_offset=int(batches.header["baseOffset"][row]),
        )
    behind = (batches.header["baseOffset"] > between.last) | (ends > between.last)
    if behind.any():
        row = int(np.argmax(behind))
        raise InvalidOffsetError(
            misfit(int(before[row]), between.last + 1),
            path=path,
            position=int(batches.position[row]),
            base_offset=int(batches.header["baseOffset"][row]),
        )
    if ends.size and ends[-1] == MAX_INT64:
        raise InvalidOffsetError("the log cannot end at the largest offset", path=path)
