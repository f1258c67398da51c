"""The repairs of one segment's files: its log and its three indexes.

They are found as soon as the segment has been read. The entries of its indexes can then be
forgotten, so that a log may have many segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.log_path import (
    INDEX_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from kafkajit.index.transaction_index import ENTRY as ABORTED
from kafkajit.log.indexing import SegmentIndexes
from kafkajit.storage.source import as_bytes, whole
from kafkajit.upkeep.repair.file_repair import Contents, FileRepair, copy_stretches
from kafkajit.upkeep.repair.sidecar_checks import (
    problem_with_offset_index,
    problem_with_time_index,
    problem_with_transaction_index,
)
from kafkajit.walk.damage import Corruption, Stretch

Entries = npt.NDArray[np.void]

MARKER = np.dtype([("offset", np.int64), ("producerId", np.int64)])


@dataclass
class LoadedSegment:
    """A segment as it will be after the repair."""

    base_offset: int
    log: Path | None  # the file that has its bytes now; None for a new, empty segment
    known_since: int  # producers and transactions are known from this offset on
    entries: SegmentIndexes
    stretches: list[Stretch] = field(default_factory=list)  # the bytes of `log` that stay
    aborted: list[Entries] = field(default_factory=list)  # rows of the .txnindex
    aborts: list[Entries] = field(default_factory=list)  # offset and producer of each ABORT marker

    @property
    def name(self) -> str:
        """The name of its files without the suffix."""
        return f"{self.base_offset:020d}"

    @property
    def size(self) -> int:
        """The size of its log in bytes."""
        return sum(stretch.end - stretch.start for stretch in self.stretches)


class RepairedSegment(NamedTuple):
    """A segment whose repairs have been found."""

    base_offset: int
    log: Path | None
    size: int
    is_empty: bool
    repairs: list[FileRepair]

    @property
    def name(self) -> str:
        """The name of its files without the suffix."""
        return f"{self.base_offset:020d}"


class SegmentContext(NamedTuple):
    """The surroundings that the repairs of a segment depend on."""

    folder: Path
    files: Mapping[str, Path]  # a live name → the file that has its bytes now
    gaps: Sequence[Corruption]  # what its log loses
    earlier_logs: Iterable[Path]  # the logs of the segments before it
    has_holes: bool  # whether offsets are missing before its end
    index_interval: int
    contents: Contents


def repaired_segment(segment: LoadedSegment, context: SegmentContext) -> RepairedSegment:
    """Find the repairs of a segment's log and indexes."""
    log_repair = _log_repair(segment, context)
    repairs = [] if log_repair is None else [log_repair]
    repairs.extend(_index_repairs(segment, context, is_new=bool(repairs)))
    is_empty = not segment.stretches
    return RepairedSegment(segment.base_offset, segment.log, segment.size, is_empty, repairs)


def _log_repair(segment: LoadedSegment, context: SegmentContext) -> FileRepair | None:
    """The repair of a segment's log; None if the file of that name is right."""
    path = context.folder / (segment.name + LOG_SUFFIX)
    log, stretches = segment.log, segment.stretches
    if log is None:
        return context.contents.writing(path, b"", "create: a log has at least one segment")
    size = log.stat().st_size
    is_whole = stretches == [Stretch(0, size)] or (size == 0 and not stretches)
    if is_whole and log == path:
        return None

    def write(staged: Path) -> None:
        copy_stretches(log, stretches, staged)

    what = [_description(gap, size) for gap in context.gaps]
    if log != context.files.get(path.name):
        what.insert(0, f"create from {log.name}: its offsets begin here")
    elif log != path:
        what.insert(0, f"create from {log.name}: a swap was interrupted")
    return FileRepair(path, tuple(what), write)


def _index_repairs(
    segment: LoadedSegment, context: SegmentContext, *, is_new: bool
) -> Iterator[FileRepair]:
    """The repairs of a segment's indexes; `is_new` means that its log is replaced."""
    writing = context.contents.writing
    segment.entries.close()
    # np.concatenate gives native numbers, the file has big-endian ones.
    aborted = np.concatenate([np.empty(0, ABORTED), *segment.aborted]).astype(ABORTED)
    expected = (segment.entries.offset_index, segment.entries.time_index, aborted.tobytes())
    for suffix, content in zip(INDEX_SUFFIXES, expected, strict=True):
        path = context.folder / (segment.name + suffix)
        there = context.files.get(path.name)
        verb = "create" if there is None else "rebuild"
        if is_new:
            if there is not None or content or suffix != TXN_INDEX_SUFFIX:
                yield writing(path, content, f"{verb}: the log changes")
        elif there is None and suffix != TXN_INDEX_SUFFIX:
            yield writing(path, content, "create: it is missing")
        elif (problem := _problem(segment, context, suffix, there, content)) is not None:
            yield writing(path, content, f"{verb}: {problem}")
        elif there is not None and there != path:
            yield writing(path, there.read_bytes(), f"create from {there.name}")


def _problem(
    segment: LoadedSegment,
    context: SegmentContext,
    suffix: str,
    path: Path | None,
    expected: bytes,
) -> str | None:
    """Describe what is wrong with an index; None if it may stay."""
    content = as_bytes(b"") if path is None else whole(str(path))[0]
    log, base_offset = str(segment.log), segment.base_offset
    if suffix == INDEX_SUFFIX:
        return problem_with_offset_index(
            content, expected, log, segment.size, base_offset, context.index_interval
        )
    if suffix == TIME_INDEX_SUFFIX:
        return problem_with_time_index(content, expected, log, base_offset)
    return problem_with_transaction_index(
        content,
        np.frombuffer(expected, ABORTED),
        np.concatenate([np.empty(0, dtype=MARKER), *segment.aborts]),
        [*map(str, context.earlier_logs), log],
        known_since=segment.known_since,
        has_holes=context.has_holes,
    )


def _description(gap: Corruption, size: int) -> str:
    """Describe the bytes that a log of that size loses."""
    end = gap.position + gap.length
    if end == size:
        text = f"cut off at {gap.position}, {gap.length} bytes: {gap.reason}"
    else:
        text = f"cut out {gap.position} to {end}, {gap.length} bytes: {gap.reason}"
    first, last = gap.first_missing_offset, gap.last_missing_offset
    if first is None or gap.reason == "zeros":
        return text
    if first == last:
        return f"{text}; offset {first} is missing"
    return f"{text}; offsets from {first} {'on' if last is None else f'to {last}'} are missing"
