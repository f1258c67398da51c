"""Offsets that a log lacks between two segments: they are gone, or still to come.

A copy may get its segments in any order, and each of them piece by piece. So a stream does not pass
such offsets for as long as the folder may be a copy that is being made.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

from kafkajit.format.ranges import Range
from kafkajit.log.live_segments import listed_again
from kafkajit.log.missing_offsets import Missing
from kafkajit.log.resumption import has_any
from kafkajit.log.segment import Segment
from kafkajit.log.segment_end import unfinished
from kafkajit.log.segment_gaps import gaps_between
from kafkajit.places.named import Place
from kafkajit.places.tiered_files import TieredFile
from kafkajit.scan.stream.options import StreamOptions
from kafkajit.scan.stream.partition import Partition
from kafkajit.scan.stream.reports import Reports
from kafkajit.storage.stored_file import has_grown

# A file is finished if it has not changed for so long, and a broker's folder that lacks a segment
# changes all the time: it is waited for only so long.
COPIED_NS = 60 * 10**9
_MOST_NS = 600 * 10**9
# A file to which somebody writes all the time changes within this.
_STILL_NS = 2 * 10**9


class Gaps:
    """Looks for missing segments before the ends of micro-batches: at each segment once."""

    def __init__(self, options: StreamOptions, reports: Reports) -> None:
        self._options = options
        self._reports = reports
        self.is_last_look = not options.waits_for_copies  # whether no later one reads what is left
        # The generation of a log, and the segments that follow each other there.
        self._sound: dict[Place, tuple[object, frozenset[tuple[int, int, int]]]] = {}
        self._since_ns: dict[tuple[Place, int], int] = {}  # when a gap was seen first
        self.have_come: set[Place] = set()  # whose listings lack offsets that the folders have now

    def end_before(self, place: Place, partition: Partition, first: int, end: int) -> int:
        """The end of what may be read now of the offsets from `first` up to `end`."""
        self.have_come.discard(place)
        if first >= end:
            return end
        segments = _segments(partition, first, end)
        folder = partition.listing.folder
        late = list(unfinished(segments, time.time_ns() - COPIED_NS))
        if any(has_grown(one.segment.log) for one in late):
            self.have_come.add(place)
        torn = (one.behind for one in late if one.is_torn)
        end = self._before(next(torn, end), first, end, folder)
        missing, come = self._between(place, partition, segments, Range(first, end - 1))
        if come:
            # A file that grows leaves its folder's time as it is, and so the listing.
            self.have_come.add(place)
            end = max(first, min(end, come[0].first))
            missing = [gap for gap in missing if gap.first < end]
        for gap in missing:
            if gap.first > first and self._options.fail_on_data_loss:
                return gap.first  # what is before it is read before the error
            if not self._options.fail_on_data_loss and self._may_come(place, gap, segments):
                self._reports.warn(f"{folder}: {gap.text}: the query waits for them")
                return max(first, gap.first)
            self._reports.loss(gap.text, folder)
        # Compaction would explain what the others lack.
        others = (
            one
            for one in late
            if one.behind < end and not any(gap.first <= one.behind <= gap.last for gap in missing)
        )
        grown = (one.behind for one in others if not self.is_last_look or _grows(one.segment))
        return self._before(next(grown, end), first, end, folder)

    def missing_from(self, place: Place, partition: Partition, first: int) -> list[Missing]:
        """The missing offsets from this one on."""
        segments = _segments(partition, first, partition.end_offset)
        asked = Range(first, partition.end_offset - 1)
        missing, _ = self._between(place, partition, segments, asked)
        return [gap for gap in missing if gap.first >= first]

    def lost_from(self, place: Place, partition: Partition, first: int) -> list[Missing]:
        """The missing offsets from this one on that do not come, as far as time tells.

        A strict query may end soon, so the files' times tell it.
        """
        ahead = self.missing_from(place, partition, first)
        segments = _segments(partition, first, partition.end_offset)
        if self._options.fail_on_data_loss:
            changed = max([segment.log.modified_ns or 0 for segment in segments[:-1]], default=0)
            return ahead if time.time_ns() - changed >= COPIED_NS else []
        return [gap for gap in ahead if not self._may_come(place, gap, segments)]

    def next(self, place: Place, partition: Partition, first: int) -> int:
        """The first offset from this one on that is missing and may come, or the log's end."""
        self.have_come.discard(place)
        end = partition.end_offset
        segments = _segments(partition, first, end)
        late = list(unfinished(segments, time.time_ns() - COPIED_NS))
        missing, come = self._between(place, partition, segments, Range(first, end - 1))
        if come or any(has_grown(one.segment.log) for one in late):
            self.have_come.add(place)
        is_strict = self._options.fail_on_data_loss
        gaps = [gap.first for gap in missing if is_strict or self._may_come(place, gap, segments)]
        gaps += [one.first for one in come]
        gaps += [one.behind for one in late if one.is_torn or not self.is_last_look]
        return min([end, *(gap for gap in gaps if gap >= first)])

    def right_before(self, partition: Partition, offset: int) -> int | None:
        """The first of missing offsets behind which no record comes before this offset."""
        segments = _segments(partition, partition.start_offset, offset)
        if len(segments) < 2:
            return None
        missing, come = gaps_between(segments)
        for gap in sorted([*come, *(Range(one.first, one.last) for one in missing)], reverse=True):
            between = Range(gap.last + 1, offset - 1)
            if gap.last < offset and not (between and has_any(segments, between)):
                return max(gap.first, partition.start_offset)
        return None

    def _before(self, finished: int, first: int, end: int, folder: str) -> int:
        """The end, or the one of a segment that is not complete."""
        if finished >= end:
            return end
        self._reports.warn(f"{folder}: the segment with offset {finished} is not complete yet")
        return max(first, finished)

    def report(self, place: Place, partition: Partition, first: int, end: int) -> None:
        """Report the offsets that a planned micro-batch lacks now: it ended before all others."""
        segments = _segments(partition, first, end)
        missing, _ = self._between(place, partition, segments, Range(first, end - 1))
        for gap in missing:
            self._reports.loss(gap.text, partition.listing.folder)

    def _between(
        self, place: Place, partition: Partition, segments: Sequence[Segment], asked: Range
    ) -> tuple[list[Missing], list[Range]]:
        """The missing offsets that end among these, and those of these that have come since."""
        if len(segments) < 2:
            return [], []
        pairs = pairwise(segments)
        known = frozenset((a.base_offset, a.log.size, b.base_offset) for a, b in pairs)
        generation, sound = self._sound.get(place, (None, frozenset[tuple[int, int, int]]()))
        if generation is partition.generation and known <= sound:
            return [], []
        missing, come = gaps_between(segments)
        if come and not _has_changed(partition, segments):
            come = []  # other segments of the log explain the gap
        if not missing and not come:
            self._sound[place] = partition.generation, known
        ends = [one for one in missing if asked.first <= one.last <= asked.last]
        return ends, sorted(one for one in come if one & asked)

    def _may_come(self, place: Place, gap: Missing, segments: Sequence[Segment]) -> bool:
        """Whether missing offsets may be those of a copy that is being made."""
        now = time.time_ns()
        since = self._since_ns.setdefault((place, gap.first), now)
        # A broker appends to the last segment, and makes it.
        changed = max([segment.log.modified_ns or 0 for segment in segments[:-1]])
        is_new = now - max(changed, since) < COPIED_NS and now - since < _MOST_NS
        return self._options.waits_for_copies and is_new


def _grows(segment: Segment) -> bool:
    """Whether somebody is writing to a segment: a copier does it every moment."""
    rest = (segment.log.modified_ns or 0) + _STILL_NS - time.time_ns()
    time.sleep(min(max(rest, 0), _STILL_NS) / 1e9)
    return has_grown(segment.log)


def _has_changed(partition: Partition, segments: Sequence[Segment]) -> bool:
    """Whether segments before the last of these have come or grown since they were listed.

    Some of the partition's others may be there, too, but not served.
    """
    first, last = segments[0], segments[-1]
    listed, now = (
        {
            (one.log.name, one.log.size)
            for one in every
            if first.base_offset <= one.base_offset < last.base_offset
            and not isinstance(one.log, TieredFile)
        }
        for every in (partition.segments, listed_again(first, 0))
    )
    return listed != now


def _segments(partition: Partition, first: int, end: int) -> list[Segment]:
    """The segments with the offsets from `first` up to `end`, and the one behind them.

    Where segments overlap, a segment's offsets end with its own last one, and no segment may have
    `first`: then the one before that offset counts, too.
    """
    local = [
        one
        for one in partition.segments
        if one.offsets and one.base_offset <= end and not isinstance(one.log, TieredFile)
    ]
    at = next((row for row, one in enumerate(local) if one.offsets.last >= first), len(local))
    is_hole = 0 < at < len(local) and first < local[at].base_offset
    return local[at - 1 if is_hole else at :]
