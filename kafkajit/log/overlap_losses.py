"""Offsets that only hidden parts of overlapping segments have: no consumer gets them.

If segments are copies, a broker serves of one what it does not serve of another. That is not so if
names of segments were exchanged, or if a batch has a wrong base offset, which no checksum covers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.errors import KafkaJitError
from kafkajit.format.amounts import offsets_are
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.log.segment import Segment
from kafkajit.reader import SegmentReader
from kafkajit.schema import record_schema
from kafkajit.walk.damage import DROPMALFORMED
from kafkajit.walk.selection import Selection
from kafkajit.walk.walk import Walk

_Offsets = npt.NDArray[np.int64]
_Pairs = tuple[_Offsets, _Offsets]  # the first offsets of ranges, and the last
_NO_PAIRS: _Pairs = (np.empty(0, np.int64), np.empty(0, np.int64))


logger = logging.getLogger("kafkajit")


class Lost(NamedTuple):
    """Offsets that are in the batches of one log alone, and not read."""

    path: str
    offsets: Range

    @property
    def text(self) -> str:
        """The reason, and what can be done."""
        return (
            f"{offsets_are(*self.offsets)} left out, because a broker serves another segment "
            "there, which does not have them: `kafkajit repair --salvage` keeps them"
        )


def lost_offsets(segments: Sequence[Segment], read: Sequence[Segment]) -> list[Lost]:
    """The offsets that are lost, by the log that has them.

    Args:
        segments: of a partition, with the offsets that are to be read.
        read: those of them that are read, each cut to the offsets that are read of it.
    """
    try:
        return _lost(segments, read)
    except (OSError, EOFError, KafkaJitError) as error:
        logger.warning("%s: overlapping segments are not compared: %s", read[0].log.path, error)
        return []


def _lost(segments: Sequence[Segment], read: Sequence[Segment]) -> list[Lost]:
    cuts = {segment.log.path: segment.cut for segment in read}
    hidden = [
        (segment, cuts.get(segment.log.path))
        for segment in segments
        if segment.log.size and cuts.get(segment.log.path) != segment.cut
    ]
    if not hidden:
        return []
    unread = [(segment, _unread(segment, cut)) for segment, cut in hidden]
    ranges = [pairs for _, pairs in unread if pairs[0].size]
    if not ranges:
        return []
    around = Range(
        int(min(firsts[0] for firsts, _ in ranges)), int(max(lasts[-1] for _, lasts in ranges))
    )
    known = _merged(
        [_NO_PAIRS]
        + [
            _clipped(_batches(one, with_gaps=True), one.cut)
            for one in read
            if one.offsets & one.cut & around
        ]
    )
    return [
        Lost(segment.log.path, lost)
        for segment, pairs in unread
        for unknown in _without(pairs, known)
        for lost in _recorded(segment, unknown)
    ]


def _recorded(segment: Segment, offsets: Range) -> Iterator[Range]:
    """Those of these offsets that a segment has records of: a cleaner may have removed others."""
    reader = SegmentReader(
        segment.log.open(), mode=DROPMALFORMED, selection=Selection(offsets=offsets)
    )
    found = [rows["offset"].to_numpy() for rows in reader.records(record_schema(["offset"]))]
    if not found:
        return
    recorded = np.unique(np.concatenate(found))
    for run in np.split(recorded, np.flatnonzero(np.diff(recorded) > 1) + 1):
        yield Range(int(run[0]), int(run[-1]))


def _unread(segment: Segment, cut: Range | None) -> _Pairs:
    batches = _clipped(_batches(segment), segment.cut)
    if cut is None:
        return _merged([batches])
    parts = [_clipped(batches, Range(last=cut.first - 1))]
    if cut.last < MAX_INT64:
        parts.append(_clipped(batches, Range(cut.last + 1)))
    return _merged(parts)


def _batches(segment: Segment, *, with_gaps: bool = False) -> _Pairs:
    """The offsets of each batch; with the gap before a message set, which may be its own."""
    firsts, lasts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    before = segment.base_offset - 1
    source = segment.log.open()
    for batches in Walk(source, mode=DROPMALFORMED).framed():
        last = batches.last_offset.astype(np.int64)
        first = batches.header["baseOffset"].astype(np.int64)
        if with_gaps:
            previous = np.concatenate([np.array([before]), last[:-1]])
            first = np.where(batches.is_message, np.minimum(previous + 1, first), first)
        firsts.append(first)
        lasts.append(last)
        before = int(last[-1])
        source.forget(int(batches.end[-1]))
    return np.concatenate(firsts), np.concatenate(lasts)


def _clipped(pairs: _Pairs, offsets: Range) -> _Pairs:
    firsts, lasts = np.maximum(pairs[0], offsets.first), np.minimum(pairs[1], offsets.last)
    has_some = firsts <= lasts
    return firsts[has_some], lasts[has_some]


def _merged(parts: Sequence[_Pairs]) -> _Pairs:
    """The union of ranges, in order."""
    firsts = np.concatenate([first for first, _ in parts])
    lasts = np.concatenate([last for _, last in parts])
    order = np.argsort(firsts, kind="stable")
    firsts, reached = firsts[order], np.maximum.accumulate(lasts[order])
    begins = np.ones(len(firsts), dtype=np.bool_)
    begins[1:] = firsts[1:] - 1 > reached[:-1]
    ends = np.roll(begins, -1)
    return firsts[begins], reached[ends]


def _without(pairs: _Pairs, known: _Pairs) -> Iterator[Range]:
    """The ranges without those that are known; both are in order."""
    starts, ends = known
    for first, last in zip(pairs[0].tolist(), pairs[1].tolist(), strict=True):
        row = int(np.searchsorted(ends, first))
        while first <= last and row < len(starts) and starts[row] <= last:
            if first < starts[row]:
                yield Range(first, int(starts[row]) - 1)
            first = int(ends[row]) + 1
            row += 1
        if first <= last:
            yield Range(first, last)
