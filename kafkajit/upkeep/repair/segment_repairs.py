"""The repairs of one segment's files: its log and its three indexes.

They are found as soon as the segment has been read. The entries of its indexes can then be
forgotten, so that a log may have many segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from kafkajit.log.topic_configs import METADATA_FOLDER
from kafkajit.storage.source import as_bytes, read_small, whole
from kafkajit.upkeep.repair.file_repair import Contents, FileRepair, write_pieces
from kafkajit.upkeep.repair.pieces import Extent, Piece, Written
from kafkajit.upkeep.repair.sidecar_checks import (
    ENDS_IN_ZEROS,
    problem_with_offset_index,
    problem_with_time_index,
    problem_with_transaction_index,
)

Entries = npt.NDArray[np.void]

MARKER = np.dtype([("offset", np.int64), ("producerId", np.int64)])


@dataclass
class LoadedSegment:
    """A segment as it will be after the repair."""

    base_offset: int
    known_since: int  # producers and transactions are known from this offset on
    entries: SegmentIndexes
    pieces: list[Piece] = field(default_factory=list)  # what its log is made of
    aborted: list[Entries] = field(default_factory=list)  # rows of the .txnindex
    aborts: list[Entries] = field(default_factory=list)  # offset and producer of each ABORT marker
    has_holes: bool = False  # whether offsets are missing before its end

    def add(self, piece: Piece) -> None:
        """Add the next piece of its log."""
        last = self.pieces[-1] if self.pieces else None
        if isinstance(piece, Extent) and isinstance(last, Extent):
            if (last.log, last.end) == (piece.log, piece.start):
                self.pieces[-1] = last._replace(end=piece.end)
                return
        elif last is piece:
            return
        self.pieces.append(piece)

    @property
    def name(self) -> str:
        """The name of its files without the suffix."""
        return f"{self.base_offset:020d}"

    @property
    def size(self) -> int:
        """The size of its log in bytes."""
        return sum(piece.size for piece in self.pieces)

    @property
    def logs(self) -> list[Path]:
        """The logs that have its bytes now."""
        return logs_of(self.pieces)


class RepairedSegment(NamedTuple):
    """A segment whose repairs have been found."""

    base_offset: int
    pieces: list[Piece]
    log: Path | None  # the log that has its first bytes now; None for a new, empty segment
    size: int
    repairs: list[FileRepair]  # the first is its log's, if its log changes
    is_new: bool  # whether its log changes
    sources: tuple[str, ...]  # lines about the logs that its bytes come from

    @property
    def name(self) -> str:
        """The name of its files without the suffix."""
        return f"{self.base_offset:020d}"

    @property
    def logs(self) -> list[Path]:
        """The logs that have its bytes now."""
        return logs_of(self.pieces)

    def with_losses(self, lost: Iterable[str]) -> RepairedSegment:
        """The segment with lines about what its log loses."""
        if not self.is_new:
            return self
        written = [piece.what for piece in self.pieces if isinstance(piece, Written)]
        what = (*self.sources, *lost, *written) or ("rebuild: it changes",)
        log, *others = self.repairs
        return self._replace(repairs=[replace(log, what=what), *others])


class SegmentContext(NamedTuple):
    """The surroundings that the repairs of a segment depend on."""

    folder: Path
    files: Mapping[str, Path]  # a live name → the file that has its bytes now
    empty_log: Path | None  # a log that stays although it has no batch
    earlier_logs: Sequence[Path]  # the logs of the segments before it
    index_interval: int
    contents: Contents
    markers: Sequence[tuple[int, int]] = ()  # the new ones: their offsets and producers


def repaired_segment(segment: LoadedSegment, context: SegmentContext) -> RepairedSegment:
    """Find the repairs of a segment's log and indexes."""
    log = segment.logs[0] if segment.logs else context.empty_log
    sources = _sources(segment, log, context)
    log_repair = _log_repair(segment, log, context)
    repairs = [] if log_repair is None else [log_repair]
    repairs.extend(_index_repairs(segment, context, is_new=log_repair is not None))
    base_offset, pieces, size = segment.base_offset, segment.pieces, segment.size
    is_new = log_repair is not None and log is not None
    return RepairedSegment(base_offset, pieces, log, size, repairs, is_new, sources)


def logs_of(pieces: Iterable[Piece]) -> list[Path]:
    """The logs that pieces are of, in their order."""
    return list(dict.fromkeys(one.log for one in pieces if isinstance(one, Extent)))


def _log_repair(
    segment: LoadedSegment, log: Path | None, context: SegmentContext
) -> FileRepair | None:
    """The repair of a segment's log; None if the file of that name is right."""
    path = context.folder / (segment.name + LOG_SUFFIX)
    pieces = segment.pieces
    if log is None:
        return context.contents.writing(path, b"", "create: a log has at least one segment")
    size = log.stat().st_size
    if log == path and pieces == ([Extent(log, 0, size)] if size else []):
        return None

    def write(staged: Path) -> None:
        write_pieces(pieces, staged, like=log)

    return FileRepair(path, (), write)


def _sources(segment: LoadedSegment, log: Path | None, context: SegmentContext) -> tuple[str, ...]:
    """Lines about the logs that a segment's bytes come from, if these are not its own."""
    path = context.folder / (segment.name + LOG_SUFFIX)
    own = context.files.get(path.name)
    if log is None or (log == path and segment.logs in ([], [path])):
        return ()
    if own == log and own != path:
        return (f"create from {own.name}: a swap was interrupted",)
    others = " and ".join(one.name for one in segment.logs or [log] if one != own)
    if own in segment.logs:
        return (f"batches of {others} come in: their offsets belong here",)
    return (f"create from {others}: its offsets begin here",)


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
            # A broker rebuilds the indexes of this log whenever it starts, and does not trim them.
            is_needed = problem != ENDS_IN_ZEROS or context.folder.name != METADATA_FOLDER
            yield writing(path, content, f"{verb}: {problem}", is_needed=is_needed)
        elif there is not None and there != path:
            yield writing(path, read_small(there), f"create from {there.name}")


def _problem(
    segment: LoadedSegment,
    context: SegmentContext,
    suffix: str,
    path: Path | None,
    expected: bytes,
) -> str | None:
    """Describe what is wrong with an index; None if it may stay."""
    content = as_bytes(b"") if path is None else whole(str(path))[0]
    own = segment.logs[0] if segment.logs else context.empty_log
    log, base_offset = str(own), segment.base_offset
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
        [*context.earlier_logs, *([] if own is None else [own])],
        known_since=segment.known_since,
        has_holes=segment.has_holes,
        new_markers=context.markers,
    )
