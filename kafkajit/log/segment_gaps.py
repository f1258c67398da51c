"""The offsets that a partition lacks between its segments, as they were listed and now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kafkajit.format.amounts import offsets_are
from kafkajit.format.kafscale import SUFFIX as KAFSCALE_SUFFIX
from kafkajit.format.log_path import LOG_SUFFIX
from kafkajit.format.ranges import NOTHING, Range
from kafkajit.log.live_segments import listed_again
from kafkajit.log.missing_offsets import Evidence, Extent, Missing, find_missing
from kafkajit.log.missing_segments import MissingSegments, extent_of, has_tiered
from kafkajit.log.segment import Segment
from kafkajit.places.tiered_files import TieredFile


class Gaps(NamedTuple):
    """The offsets between the segments of a partition that none of them has."""

    missing: list[Missing]
    come: list[Range]  # that the folder has now, in segments that are not among these


def gaps_between(segments: Sequence[Segment]) -> Gaps:
    """The offsets that a partition lacks between two segments, unless compaction explains it.

    Others may write to the folder, or only some of its segments be given. So what a folder lacks
    has to be missing when it is listed again, too.
    """
    found = _between(segments, are_all=False)
    if not found or has_tiered(segments) or len({one.log.folder for one in segments}) > 1:
        return Gaps(found, [])
    now = listed_again(segments[0], 0)
    missing = [
        again
        for again in _between(now, are_all=True)
        if any(one.first <= again.last and again.first <= one.last for one in found)
    ]
    # What retention has removed since, or a broker with the folder, has not come.
    here = Range(now[0].base_offset, now[-1].base_offset - 1) if now else NOTHING
    come = [Range(one.first, one.last) & here for one in found]
    come = [one for one in come if one]
    for gap in missing:
        parts = ((one & Range(last=gap.first - 1), one & Range(gap.last + 1)) for one in come)
        come = [part for both in parts for part in both if part]
    return Gaps(missing, come)


def missing_between(segments: Sequence[Segment]) -> list[Missing]:
    """The offsets that a partition lacks between two segments, also in its folder as it is now."""
    return gaps_between(segments).missing


def come_text(come: Range) -> str:
    """Say that a segment with these offsets came too late to be read."""
    return f"{offsets_are(*come)} in a segment that has come since, or that is not named"


def _between(segments: Sequence[Segment], *, are_all: bool) -> list[Missing]:
    from kafkajit.log.overlaps import ends_of  # it loads kernels

    if {one.path.suffix for one in segments} == {KAFSCALE_SUFFIX}:
        return list(_between_kafscales(segments))
    segments = [one for one in segments if one.path.suffix == LOG_SUFFIX]
    if len(segments) < 2:
        return []
    is_tiered = has_tiered(segments)
    (lasts,) = ends_of([segments])
    if is_tiered:
        lasts = [min(last, one.cut.last) for last, one in zip(lasts, segments, strict=True)]
    extents = [
        Extent(one.base_offset, one.first_offset, max(last + 1, one.base_offset))
        for one, last in zip(segments, lasts, strict=True)
    ]
    # No file tells more of the last one: a broker may append to it.
    extents[-1] = extents[-1]._replace(behind=extents[-1].base_offset)
    suspects = find_missing(extents, Evidence(), has_holes=False)
    if not suspects:
        return []
    for row in range(len(segments) - 1):
        # Damage at a segment's end explains it, and is reported as such.
        is_last_before = any(
            extents[row].base_offset <= one.first <= extents[row].behind for one in suspects
        )
        if is_last_before and not isinstance(segments[row].log, TieredFile):
            extents[row] = extent_of(segments[row])
    missing = MissingSegments([] if is_tiered else segments[0].log.beside())
    has_holes = False if is_tiered else None
    found = missing.of(segments, extents, has_holes=has_holes, are_all=are_all)
    first, last = segments[0].base_offset, segments[-1].base_offset
    return [one for one in found if one.is_trouble and first <= one.first < last]


def _between_kafscales(segments: Sequence[Segment]) -> Iterator[Missing]:
    """The same of KafScale, which compacts no log."""
    from kafkajit.log.overlaps import end_of as last_of

    behind = segments[0].base_offset
    for one, following in pairwise(segments):
        behind = max(behind, last_of(one, following) + 1)
        first, last = behind, following.base_offset - 1
        if first <= last:
            names = f"{one.log.name} and {following.log.name}"
            yield Missing(first, last, True, f"{offsets_are(first, last)} missing between {names}")
