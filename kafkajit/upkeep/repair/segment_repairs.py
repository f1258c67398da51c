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
from kafkajit.upkeep.repair.file_repair import Contents, FileRepair, write_pieces
from kafkajit.upkeep.repair.pieces import Extent, Piece, Written
from kafkajit.upkeep.repair.sidecar_checks import (
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
        return list(dict.fromkeys(one.log for one in self.pieces if isinstance(one, Extent)))


class RepairedSegment(NamedTuple):
    """A segment whose repairs have been found."""

    base_offset: int
    pieces: list[Piece]
    log: Path | None  # the log that has its first bytes now; None for a new, empty segment
    size: int
    is_new: bool  # whether its log is written
    repairs: list[FileRepair]

    @property
    def name(self) -> str:
        """The name of its files without the suffix."""
        return f"{self.base_offset:020d}"

    @property
    def logs(self) -> set[Path]:
        """The logs that have its bytes now."""
        return {one.log for one in self.pieces if isinstance(one, Extent)}


class SegmentContext(NamedTuple):
    """The surroundings that the repairs of a segment depend on."""

    folder: Path
    files: Mapping[str, Path]  # a live name → the file that has its bytes now
    empty_log: Path | None  # a log that stays although it has no batch
    earlier_logs: Sequence[Path]  # the logs of the segments before it
    has_holes: bool  # whether offsets are missing before its end
    index_interval: int
    contents: Contents


def repaired_segment(
    segment: LoadedSegment, context: SegmentContext, lost: Iterable[str]
) -> RepairedSegment:
    """Find the repairs of a segment's log and indexes; `lost` are the lines about what it loses."""
    log_repair = _log_repair(segment, context, lost)
    repairs = [] if log_repair is None else [log_repair]
    repairs.extend(_index_repairs(segment, context, is_new=bool(repairs)))
    log = segment.logs[0] if segment.logs else context.empty_log
    return RepairedSegment(
        segment.base_offset, segment.pieces, log, segment.size, log_repair is not None, repairs
    )


def _log_repair(
    segment: LoadedSegment, context: SegmentContext, lost: Iterable[str]
) -> FileRepair | None:
    """The repair of a segment's log; None if the file of that name is right."""
    path = context.folder / (segment.name + LOG_SUFFIX)
    pieces, logs = segment.pieces, segment.logs
    if not pieces and context.empty_log is None:
        return context.contents.writing(path, b"", "create: a log has at least one segment")
    source = logs[0] if logs else context.empty_log
    assert source is not None
    whole = [Extent(source, 0, source.stat().st_size)] if source.stat().st_size else []
    if pieces == whole and source == path:
        return None

    def write(staged: Path) -> None:
        write_pieces(pieces, staged, source)

    what = [*lost, *(piece.what for piece in pieces if isinstance(piece, Written))]
    own = context.files.get(path.name)
    others = [log.name for log in logs or [source] if log != own]
    if own == source and own != path:
        what.insert(0, f"create from {own.name}: a swap was interrupted")
    elif source != own:
        what.insert(0, f"create from {' and '.join(others)}: its offsets begin here")
    elif others:
        what.insert(0, f"batches of {' and '.join(others)} come in: its offsets are here")
    return FileRepair(path, tuple(what) or ("rebuild: what it has changes",), write)


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
        has_holes=context.has_holes,
    )
