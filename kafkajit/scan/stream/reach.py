"""The ends of micro-batches: offsets behind a number of files, bytes or records of a partition."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.log.positions import Boundary, IndexEntries, headers
from kafkajit.log.segment import Segment
from kafkajit.scan.stream.partition import Partition, Piece
from kafkajit.storage.source import Int64s


def after_files(partition: Partition, first: int, end: int, most: int) -> int:
    """The offset behind at most `most` segments."""
    reached = first
    for piece in partition.pieces(first, end):
        if most == 0:
            return reached
        most -= 1
        reached = piece.offsets.last + 1
    return end


def after_bytes(
    partition: Partition, first: int, end: int, most: int, *, at_least_one: bool
) -> int:
    """The offset behind at most `most` bytes of batches, or behind one batch."""
    reached, left = first, most
    for piece in partition.pieces(first, end):
        if piece.size <= left:
            left -= piece.size
            reached = piece.offsets.last + 1
            continue
        found = _behind_bytes(partition, piece, piece.start + left)
        if found > piece.offsets.first:
            return min(found, piece.offsets.last + 1)
        if reached > first or not at_least_one:
            return reached
        for batches in headers(piece.segment.log, piece.start):
            found = int(batches.last_offset[0]) + 1
            break
        return min(max(found, first + 1), piece.offsets.last + 1)
    return end


def _behind_bytes(partition: Partition, piece: Piece, position: int) -> int:
    """The offset behind the last batch that ends at this position or before it."""
    begin = max(piece.start, IndexEntries(piece.segment).position_before(position))
    found = piece.offsets.first
    for batches in headers(piece.segment.log, begin):
        if begin > piece.start:  # everything before an index entry's batch fits
            found = max(found, int(batches.field("baseOffset")[0]))
        fits = int(np.searchsorted(batches.end, position, side="right"))
        if fits:
            found = max(found, int(batches.last_offset[:fits].max()) + 1)
            end = int(batches.end[fits - 1])
            if found == int(batches.last_offset[fits - 1]) + 1 > piece.offsets.first:
                partition.remember(piece.segment, found, Boundary(end, end))
        if fits < len(batches):
            return found
        begin = piece.start
    return piece.offsets.last + 1  # damage, which a task reports


def after_records(partition: Partition, first: int, end: int, most: int, *, may_cut: bool) -> int:
    """The offset behind at most `most` records.

    Compaction may have removed offsets, so there may be fewer. A batch that has more is cut,
    or taken whole if it may not be cut.
    """
    reached, left = first, most
    for segment, start, behind in partition.spans(first, end):
        if behind - start <= left:
            left -= behind - start
            reached = behind
            continue
        if left == 0:
            return reached
        done, taken = _records_in(partition, segment, start, behind, left)
        if done == behind:
            left, reached = left - taken, behind
            continue
        if done > start:
            return done
        if reached > first:
            return reached
        return _into_batch(partition, segment, start, behind, left if may_cut else None)
    return end


def _records_in(
    partition: Partition, segment: Segment, start: int, behind: int, most: int
) -> tuple[int, int]:
    """The offset behind the last batch that fits, and the number of records up to there."""
    done, taken = start, 0
    for batches in headers(segment.log, partition.boundary(segment, start).start):
        counts = _counts(batches.header["recordsCount"], batches.last_offset, done)
        totals = taken + np.cumsum(counts)
        fits = int(np.searchsorted(totals, most, side="right"))
        if fits:
            done = max(done, int(batches.last_offset[:fits].max()) + 1)
            taken = int(totals[fits - 1])
            at = int(batches.end[fits - 1])
            if done == int(batches.last_offset[fits - 1]) + 1 > start:
                partition.remember(segment, done, Boundary(at, at))
        if done >= behind:
            return behind, taken
        if fits < len(batches):
            return done, taken
    return behind, taken  # damage, which a task reports


def _into_batch(
    partition: Partition, segment: Segment, start: int, behind: int, most: int | None
) -> int:
    """An offset in or behind the batch at an offset."""
    for batches in headers(segment.log, partition.boundary(segment, start).start):
        rows = np.flatnonzero(batches.last_offset >= start)
        if rows.size:
            base = int(batches.field("baseOffset")[rows[0]])
            last = int(batches.last_offset[rows[0]])
            into = last + 1 if most is None else max(base, start) + most
            return min(into, last + 1, behind)
    return behind


def _counts(records: npt.NDArray[np.int32], last_offset: Int64s, start: int) -> Int64s:
    """The most records that each batch can have from an offset on."""
    before = np.concatenate(([start - 1], last_offset[:-1]))
    offsets = np.maximum(last_offset - np.maximum(before, start - 1), 0)
    # A set of messages does not have its count in its header.
    counts: Int64s = np.where(records >= 0, np.minimum(records, offsets), offsets)
    return counts
