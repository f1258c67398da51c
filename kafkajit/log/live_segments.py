"""Segments in a folder that a broker writes to: their sizes and files now."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kafkajit.format.limits import MIN_INT64
from kafkajit.format.ranges import Range
from kafkajit.log.segment import Segment
from kafkajit.log.tiered_segments import partitions_of
from kafkajit.places.location import READABLE_NAME
from kafkajit.storage.live_file import LiveFile
from kafkajit.storage.stored_file import file_at

# A folder whose files change is listed again, up to this number of times.
_TURNS = 5


def as_now(segment: Segment) -> Segment:
    """The segment with its size now: a broker may have written to it since it was listed.

    A local log that a broker has deleted, or compacted, since then raises a FileNotFoundError.
    """
    log = segment.log
    if log.filesystem is not None:
        return segment
    size = Path(log.key).stat().st_size
    if size < log.size:  # what is left of it, and of others, after a compaction
        raise FileNotFoundError(errno.ENOENT, "replaced since it was listed", log.path)
    return segment if size == log.size else replace(segment, log=replace(log, size=size))


def held(segment: Segment) -> Segment:
    """The segment as a file that is read later, even if a broker has renamed or replaced it."""
    if segment.log.filesystem is not None:
        return segment
    with suppress(FileNotFoundError):
        return replace(segment, log=replace(LiveFile.at(segment.log.key), path=segment.log.path))
    return segment


def listed_again(segment: Segment, offset: int) -> list[Segment]:
    """The segments that a partition's folder has now from an offset on; none if it is gone."""
    try:
        files = {file.path: file for file in segment.log.beside()}
    except FileNotFoundError:
        return []
    logs = [file for file in files.values() if READABLE_NAME.fullmatch(file.name)]
    return [
        replace(one, cut=one.cut & Range(offset)) if one.base_offset < offset else one
        for partition in partitions_of(logs, files)
        for one in partition
        if one.offsets.last >= offset
    ]


def served_now(partitions: Iterable[Sequence[Segment]]) -> list[list[Segment]]:
    """As `served`, without warnings, of local partitions that a broker writes to.

    A cleaner replaces several segments by one. If the first of them has been replaced since they
    were listed, and the others not yet removed, they seem to overlap.
    """
    from kafkajit.log.overlaps import served  # it loads kernels

    found = served(partitions, warns=False)
    for number, segments in enumerate(found):
        for _ in range(_TURNS):
            if all(one.cut.is_everything for one in segments) or _are_as_listed(segments):
                break
            again = listed_again(segments[0], MIN_INT64)
            if not again:
                break
            (segments,) = served([again], warns=False)
        found[number] = segments
    return found


def _are_as_listed(segments: Sequence[Segment]) -> bool:
    """Whether logs are as they were listed, but for the last one, which may have grown."""
    if not all(one.log.filesystem is None for one in segments):
        return True  # remote ones come once and stay
    try:
        logs = [file_at(one.log.key) for one in segments]
    except FileNotFoundError:
        return False
    return all(
        (log.size, log.modified_ns) == (one.log.size, one.log.modified_ns)
        for log, one in zip(logs[:-1], segments[:-1], strict=True)
    )
