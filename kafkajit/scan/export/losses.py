"""Offsets that an export lacks because its log does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kafkajit.errors import OffsetOutOfRangeError
from kafkajit.format.amounts import offsets_are, offsets_text
from kafkajit.format.limits import MIN_INT64
from kafkajit.format.ranges import ALL, Range
from kafkajit.log.footing import Footing
from kafkajit.log.isolation import find_isolation
from kafkajit.log.missing_offsets import Missing
from kafkajit.log.missing_segments import missing_around
from kafkajit.log.overlap_losses import lost_offsets
from kafkajit.log.resumption import check_resumed, has_any
from kafkajit.log.segment import Segment
from kafkajit.places.tiered_files import TieredFile
from kafkajit.scan.options import READ_COMMITTED, ScanOptions

_ANOTHER = "export it into another folder"


def check_continued(
    segments: Sequence[Segment], next_offset: int, read: Footing, now: Footing
) -> Range:
    """The offsets that a log has lost since an earlier run; raise if it is another log."""
    try:
        return check_resumed(segments, next_offset, read, now)
    except OffsetOutOfRangeError as error:
        error.advice = _ANOTHER
        raise


def losses(
    name: str,
    segments: Sequence[Segment],
    asked: Range,
    *,
    is_by_time: bool,
    early: Range,
    lost: Range,
    missing: list[Range],
    between: Sequence[Missing],
) -> Iterator[str]:
    """A line for each stretch of offsets that is not exported.

    Args:
        name: the partition's.
        segments: of the partition.
        asked: the offsets to export.
        is_by_time: whether a timestamp is where they begin.
        early: those before the log's start when the export began.
        lost: those that retention has removed between two runs.
        missing: those that earlier runs missed; it gets those of this run, too.
        between: those that the log lacks between its segments.
    """
    if early:
        yield (
            f"{name}: {offsets_are(*early)} in the log, which began at offset {early.last + 1} "
            f"when it was exported first: {_ANOTHER}"
        )
    for one in missing:
        if has_any(segments, one):
            yield (
                f"{name}: an earlier run lacked {offsets_text(*one)}, and the log has some of "
                f"them now: {_ANOTHER}"
            )
    if lost & asked:
        lost &= asked
        missing.append(lost)
        yield (
            f"{name}: {offsets_are(*lost)} gone from the log, and had not been "
            "exported before: retention has removed them"
        )
    for found in between:
        gap = Range(found.first, found.last)
        new = gap & asked
        # Records of a gap may have the timestamp, too, unless others behind it are older.
        older = Range(gap.last + 1, asked.first - 1)
        if is_by_time and gap.last < asked.first and not has_any(segments, older):
            new = gap
        if new:
            missing.append(new)
            yield f"{name}: {found.text}"
    if not any(isinstance(one.log, TieredFile) for one in segments):
        # The plan has named them; they may be served later, when the segments are repaired.
        whole = [replace(one, cut=ALL) for one in segments]
        hidden = [one.offsets & asked for one in lost_offsets(whole, segments)]
        missing += [offsets for offsets in hidden if offsets]
    damaged: list[Exception] = []
    found_around = missing_around(segments, damaged.append)
    yield from map(str, damaged)
    for found in found_around:
        # These are not noted: a broker that starts again gives those at the end to other records.
        if Range(found.first, found.last) & asked:
            yield f"{name}: {found.text}"


def undecided(
    segments: Sequence[Segment], missing: Sequence[Missing], new: Range, reading: ScanOptions
) -> Iterator[tuple[Missing, int]]:
    """The missing offsets that may have the markers of new records before them.

    With each: the first offset of a transaction that is open in front of them.
    """
    if reading.isolation_level != READ_COMMITTED:
        return
    begin = MIN_INT64
    for gap in missing:
        # An open transaction of earlier segments has been named with an earlier gap.
        before = [one for one in segments if begin <= one.base_offset < gap.first]
        begin = gap.first
        if not before or not Range(before[0].base_offset, gap.first - 1) & new:
            continue
        parts = [(one.log, one.transaction_index, one.cut) for one in before]
        _, first = find_isolation(parts, reading.mode, check_crcs=reading.check_crcs)
        if first is not None and Range(first, gap.first - 1) & new:
            yield gap, first
