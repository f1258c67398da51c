"""The offsets at which what is asked for begins: records of a time, or those next to damage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafkajit.errors import KafkaJitError
from kafkajit.format.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.format.ranges import ALL, Range
from kafkajit.log.open_segment import OpenSegment, order_in
from kafkajit.log.positions import IndexEntries, boundary
from kafkajit.log.segment import Segment
from kafkajit.reader import SegmentReader
from kafkajit.records.batches import Batches
from kafkajit.records.offset_order import has_messages, offsets_of
from kafkajit.schema import record_schema
from kafkajit.walk.damage import FAILFAST, PERMISSIVE, Gap
from kafkajit.walk.selection import Selection
from kafkajit.walk.walk import Walk


class _Found(NamedTuple):
    """The first record that has a timestamp or a later one: its segment, and its batch there."""

    segment: int
    position: int
    offset: int


@dataclass(frozen=True)
class TimeLookup:
    """Offsets of times in the segments of a partition, read as a query reads them.

    Records outside of `offsets` do not count.
    """

    segments: Sequence[Segment]
    mode: str = FAILFAST
    check_crcs: bool = True
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    offsets: Range = ALL

    def first_offset(self, timestamp: int) -> int | None:
        """The offset of the first record with this timestamp or a later one."""
        found = self._first(timestamp)
        return None if found is None else found.offset

    def start(self, timestamp: int) -> int | None:
        """The offset at which the records of this time and later ones begin, or None.

        Damage right before the first of them may have had others: it belongs to what is read.
        """
        found = self._first(timestamp)
        damaged = self._damaged_before(found) if self.segments and self.check_crcs else None
        if damaged is not None:
            return max(damaged, self.offsets.first)
        return None if found is None else found.offset

    def _first(self, timestamp: int) -> _Found | None:
        for at, segment in enumerate(self.segments):
            later = Selection(segment.cut & self.offsets, Range(timestamp))
            if not segment.may_have(later.timestamps):
                continue
            start, end = OpenSegment(segment).stretch(later)
            start = IndexEntries(segment).position_before(max(start - 1, 0))
            reader = SegmentReader(
                segment.log.open(start, end),
                mode=self.mode,
                selection=later,
                start=start,
                end=end,
                order=order_in(segment, start),
            )
            for rows in reader.records(
                record_schema(["offset", "position"]),
                check_crcs=self.check_crcs,
                max_decompressed_bytes=self.max_decompressed_bytes,
            ):
                if rows.num_rows:
                    return _Found(at, rows["position"][0].as_py(), rows["offset"][0].as_py())
        return None

    def _damaged_before(self, found: _Found | None) -> int | None:
        """The first offset of damage that lies right before a record, or at the end without one."""
        last = len(self.segments) - 1 if found is None else found.segment
        is_damaged = False
        for at in range(last, -1, -1):
            segment = self.segments[at]
            end = segment.log.size if found is None or at < last else found.position
            behind, has_gap = _behind_the_sound(segment, end)
            is_damaged |= has_gap
            if behind is not None:
                return behind if is_damaged else None
        return self.segments[0].first_offset if is_damaged else None


def damage_at(segments: Sequence[Segment], offset: int) -> int | None:
    """The first offset of damage that may have had an offset, by the sound batches around it."""
    segment = _segment_with(segments, offset)
    return None if segment is None else _damage_in(segment, offset)


def check_at(segments: Sequence[Segment], offset: int) -> None:
    """Raise the error of damage that may have had an offset."""
    segment = _segment_with(segments, offset)
    damaged = None if segment is None else _damage_in(segment, offset)
    if segment is None or damaged is None:
        return
    try:
        for _ in _walk_around(segment, offset, FAILFAST):
            pass
    except KafkaJitError as error:
        error.base_offset = damaged
        raise


def _segment_with(segments: Sequence[Segment], offset: int) -> Segment | None:
    for segment in segments:
        if offset <= segment.offsets.last:
            # Its name tells where it begins.
            return segment if offset > segment.base_offset else None
    return None


def _walk_around(segment: Segment, offset: int, mode: str) -> Iterator[Batches | Gap]:
    """The sound batches around an offset, and gaps."""
    where = boundary(segment, offset)
    return _checked(segment, _position_before(segment, where.start), where.end, mode)


def _position_before(segment: Segment, position: int) -> int:
    """The position of a batch before the one before a position: an index may name a damaged one."""
    index = IndexEntries(segment)
    start = index.position_before(max(position - 1, 0))
    return index.position_before(max(start - 1, 0))


def _checked(segment: Segment, start: int, end: int, mode: str) -> Iterator[Batches | Gap]:
    """The sound batches of a stretch and of two more, which tell whether base offsets fit."""
    until = int(OpenSegment(segment).batches_at(end)[:2].end.max(initial=end))
    source, order = segment.log.open(start, until), order_in(segment, start)
    for part in Walk(source, mode=mode, start=start, end=until, order=order).checked():
        yield part
        if isinstance(part, Batches):
            source.forget(int(part.end[-1]))


def _damage_in(segment: Segment, offset: int) -> int | None:
    behind, has_gap = segment.base_offset, False
    for part in _walk_around(segment, offset, PERMISSIVE):
        if isinstance(part, Gap):
            has_gap = True
            continue
        if has_messages(part):
            return None
        firsts, lasts = offsets_of(part)
        before = lasts < offset
        if before.any():
            behind, has_gap = int(lasts[before][-1]) + 1, False
        if not before.all():
            return behind if has_gap and int(firsts[~before][0]) > offset else None
    return behind if has_gap else None


def _behind_the_sound(segment: Segment, end: int) -> tuple[int | None, bool]:
    """The offset behind the last sound batch before a position, and whether damage follows it."""
    start = _position_before(segment, end)
    behind, has_gap = _walked(segment, start, end)
    if behind is None and start:
        behind, has_gap = _walked(segment, 0, end)
    return behind, has_gap


def _walked(segment: Segment, start: int, end: int) -> tuple[int | None, bool]:
    behind, has_gap = None, False
    try:
        for part in _checked(segment, start, end, PERMISSIVE):
            if isinstance(part, Gap):
                has_gap |= part.position < end
                continue
            part = part[part.position < end]
            if len(part):
                behind, has_gap = int(part.last_offset.max()) + 1, False
    except (OSError, EOFError, KafkaJitError):
        has_gap = True  # whoever reads it reports it
    return behind, has_gap
