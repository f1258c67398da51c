"""The offsets at which the records of a time begin and end in a partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkajit.errors import KafkaJitError
from kafkajit.format.ranges import Range
from kafkajit.log.open_segment import OpenSegment, order_in
from kafkajit.log.positions import IndexEntries
from kafkajit.log.segment import Segment
from kafkajit.reader import SegmentReader
from kafkajit.scan.options import ScanOptions
from kafkajit.schema import record_schema
from kafkajit.walk.damage import FAILFAST, PERMISSIVE, Gap
from kafkajit.walk.selection import Selection
from kafkajit.walk.walk import Walk


class _Found(NamedTuple):
    """The first record that has a timestamp or a later one: its segment, and its batch there."""

    segment: int
    position: int
    offset: int


def offset_for_timestamp(
    partition: Sequence[Segment], timestamp: int, options: ScanOptions
) -> int | None:
    """The first offset of a record with this timestamp or a later one."""
    found = _first(partition, timestamp, options)
    return None if found is None else found.offset


def start_for_timestamp(
    partition: Sequence[Segment], timestamp: int, options: ScanOptions
) -> int | None:
    """The offset at which the records of this time and later ones begin, or None.

    Damage right before the first of them may have had others: it belongs to what is read, unless
    damage is an error anyway.
    """
    found = _first(partition, timestamp, options)
    if options.mode != FAILFAST and partition:
        damaged = _damaged_before(partition, found)
        if damaged is not None:
            return damaged
    return None if found is None else found.offset


def _first(partition: Sequence[Segment], timestamp: int, options: ScanOptions) -> _Found | None:
    for at, segment in enumerate(partition):
        if not segment.may_have(Range(timestamp)):
            continue
        later = Selection(segment.cut, Range(timestamp))
        start, end = OpenSegment(segment).stretch(later)
        reader = SegmentReader(
            segment.log.open(start, end),
            mode=options.mode,
            selection=later,
            start=start,
            end=end,
            order=order_in(segment, start),
        )
        for rows in reader.records(
            record_schema(["offset", "position"]),
            check_crcs=options.check_crcs,
            max_decompressed_bytes=options.max_decompressed_bytes,
        ):
            if rows.num_rows:
                return _Found(at, rows["position"][0].as_py(), rows["offset"][0].as_py())
    return None


def _damaged_before(partition: Sequence[Segment], found: _Found | None) -> int | None:
    """The first offset of damage that lies right before a record, or at the end without one."""
    last = len(partition) - 1 if found is None else found.segment
    is_damaged = False
    for at in range(last, -1, -1):
        segment = partition[at]
        end = segment.log.size if found is None or at < last else found.position
        behind, has_gap = _behind_the_sound(segment, end)
        is_damaged |= has_gap
        if behind is not None:
            return behind if is_damaged else None
    return partition[0].first_offset if is_damaged else None


def _behind_the_sound(segment: Segment, end: int) -> tuple[int | None, bool]:
    """The offset behind the last sound batch before a position, and whether damage follows it."""
    start = IndexEntries(segment).position_before(max(end - 1, 0))
    behind, has_gap = _walked(segment, start, end)
    if behind is None and start:
        behind, has_gap = _walked(segment, 0, end)
    return behind, has_gap


def _walked(segment: Segment, start: int, end: int) -> tuple[int | None, bool]:
    behind, has_gap = None, False
    try:
        # Two batches behind another one tell whether its base offset fits.
        witnesses = OpenSegment(segment).batches_at(end)[:2]
        until = int(witnesses.end.max(initial=end))
        source = segment.log.open(start, until)
        order = order_in(segment, start)
        walk = Walk(source, mode=PERMISSIVE, start=start, end=until, order=order)
        for part in walk.checked():
            if isinstance(part, Gap):
                has_gap |= part.position < end
                continue
            part = part[part.position < end]
            if len(part):
                behind, has_gap = int(part.last_offset.max()) + 1, False
                source.forget(int(part.end[-1]))
    except (OSError, EOFError, KafkaJitError):
        has_gap = True  # whoever reads it reports it
    return behind, has_gap
