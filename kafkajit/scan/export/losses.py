"""Offsets that an export lacks because its log does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafkajit.errors import OffsetOutOfRangeError
from kafkajit.format.amounts import offsets_are, offsets_text
from kafkajit.format.ranges import Range
from kafkajit.log.missing_segments import missing_between
from kafkajit.log.resumption import ReadBatch, check_resumed
from kafkajit.log.segment import Segment


def check_continued(segments: Sequence[Segment], next_offset: int, last: ReadBatch | None) -> Range:
    """The offsets that a log has lost since an earlier run; raise if it is another log."""
    try:
        return check_resumed(segments, next_offset, last)
    except OffsetOutOfRangeError as error:
        error.advice = "export it into another folder"
        raise


def losses(
    name: str, segments: Sequence[Segment], asked: Range, lost: Range, missing: list[Range]
) -> Iterator[str]:
    """A line for each stretch of offsets that is not exported.

    Args:
        name: the partition's.
        segments: of the partition.
        asked: the offsets to export.
        lost: those that retention has removed between two runs.
        missing: those that earlier runs missed between segments; it gets those of this run, too.
    """
    for early in missing:
        if any(one.base_offset in range(early.first, early.last + 1) for one in segments):
            yield (
                f"{name}: {offsets_text(*early)} had no segment in an earlier run, "
                "and the log has some of them now: export it into another folder"
            )
    if lost & asked:
        lost &= asked
        yield (
            f"{name}: {offsets_are(*lost)} gone from the log, and had not been "
            "exported before: retention has removed them"
        )
    for one in missing_between(segments):
        new = Range(one.first, one.last) & asked
        if new:
            missing.append(new)
            yield f"{name}: {one.text}"
