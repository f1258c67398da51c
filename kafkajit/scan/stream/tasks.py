"""The tasks of a micro-batch: what each reads, and its rows.

A broker may roll, compact or delete a segment between the plan and the task. The task opens the
file first: an open file stays as it was planned, whatever becomes of its name. If another file has
its place, the task finds the same offsets in the folder as it is now.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from kafkajit.errors import OffsetOutOfRangeError
from kafkajit.format.limits import MIN_INT64
from kafkajit.format.log_path import parse_log_path
from kafkajit.format.ranges import Range
from kafkajit.log.footing import Footing, ReadBatch
from kafkajit.log.positions import IndexEntries, headers
from kafkajit.log.segment_end import unfinished
from kafkajit.log.segment_gaps import missing_between
from kafkajit.places.tiered_files import TieredFile
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.packing import packed, task_share
from kafkajit.scan.plan import Split
from kafkajit.scan.stream.folders import Folders
from kafkajit.scan.stream.gaps import COPIED_NS
from kafkajit.scan.stream.histories import parting
from kafkajit.scan.stream.listing import Listing, list_settled
from kafkajit.scan.stream.options import StreamOptions
from kafkajit.scan.stream.partition import Partition, Piece
from kafkajit.scan.stream.reports import ON_LOSS
from kafkajit.scan.stream.transactions import Transactions
from kafkajit.scan.table import read_task
from kafkajit.storage.live_file import LiveFile
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.selection import Selection

logger = logging.getLogger("kafkajit")

# How often a folder is listed again because files are gone before they have been read.
_ATTEMPTS = 9
_PAUSE_SECONDS = 0.02
_COMPARED = 4 << 10
_ELSEWHERE = -1  # the position of a batch in a later segment


class OffsetRange(NamedTuple):
    """Offsets to read of a partition."""

    partition: Partition
    first: int
    end: int
    transactions: Transactions | None  # if they matter
    footing: Footing | None  # what the end stands on, if it is known


def plan_tasks(ranges: Iterable[OffsetRange], options: ScanOptions) -> list[list[Split]]:
    """Split ranges of offsets into tasks of about equal sizes."""
    pieces = [(piece, of) for of in ranges for piece in of.partition.pieces(of.first, of.end)]
    share = task_share(options, ((piece.segment.log, piece.size) for piece, _ in pieces))
    splits = [split for piece, of in pieces for split in _splits(piece, of, share)]
    return packed(splits, share)


def _splits(piece: Piece, of: OffsetRange, share: int) -> Iterator[Split]:
    """A piece, cut where its offset index leads to batches."""
    log, footing = piece.segment.log, of.footing
    selection = Selection(offsets=piece.offsets)
    if of.transactions is not None:
        aborted = of.transactions.aborted.within(*piece.offsets)
        selection = replace(selection, committed=True, aborted=aborted)
    if footing is not None and footing.last is not None and piece.offsets.last < of.end - 1:
        footing = footing._replace(last=footing.last._replace(position=_ELSEWHERE))
    start, first = piece.start, piece.offsets.first
    last = piece.segment.between.last
    before = MIN_INT64 if piece.is_cut or first > of.first or not start else first
    for position, offset in _cuts(piece, -(-piece.size // share)):
        stretch = Range(first, offset - 1), start, position
        yield Split(log, *stretch, selection, footing, Range(before, offset - 1))
        start, first, before = position, offset, offset
    stretch = Range(first, piece.offsets.last), start, piece.end
    yield Split(log, *stretch, selection, footing, Range(before, last))


def _cuts(piece: Piece, count: int) -> Iterator[tuple[int, int]]:
    """Positions of batches near the ends of equal parts, and the offsets at which they begin."""
    if count < 2:
        return
    index = IndexEntries(piece.segment)
    before, offset = piece.start, piece.offsets.first
    for part in range(1, count):
        position = index.position_before(piece.start + part * piece.size // count)
        if not before < position < piece.end:
            continue
        first = next(headers(piece.segment.log, position), None)
        begins = -1 if first is None else int(first.field("baseOffset")[0])
        if offset < begins <= piece.offsets.last:
            yield position, begins
            before, offset = position, begins


def read_stream_task(
    task: list[Split], schema: pa.Schema, options: StreamOptions
) -> Iterator[pa.RecordBatch]:
    """A task's rows, as record batches of the schema's columns."""
    typed = options.scan.typed
    if typed is None:
        return _rows(task, schema, options)
    plain = replace(options, scan=replace(options.scan, typed=None))
    return typed.rows(_rows(task, typed.raw_schema(schema), plain), schema)


def _rows(task: list[Split], schema: pa.Schema, options: StreamOptions) -> Iterator[pa.RecordBatch]:
    for planned in task:
        for split in _current(planned, options):
            try:
                before = _last_bytes(split)
                yield from read_task([split], schema, options.scan)
                if _last_bytes(split) != before or not _is_still(split):
                    raise EOFError
            except EOFError as error:
                raise OffsetOutOfRangeError(
                    f"offsets {split.offsets.first} to {split.offsets.last} cannot be read: the "
                    "segment was truncated or replaced meanwhile",
                    path=split.file.path,
                    advice="start the query again",
                ) from error


def _last_bytes(split: Split) -> bytes:
    """The last bytes of a stretch of a file that a broker may truncate and write again."""
    if not isinstance(split.file, LiveFile):
        return b""
    start = max(split.start, split.end - _COMPARED)
    return split.file.read(start, split.end - start)


def _report_loss(split: Split, first: int, last: int, options: StreamOptions) -> None:
    gone = f"offsets {first} to {last} are gone: their segment has been deleted or truncated"
    if options.fail_on_data_loss:
        raise OffsetOutOfRangeError(gone, path=split.file.path, advice=ON_LOSS)
    logger.warning("%s: %s", split.file.path, gone)


def _current(split: Split, options: StreamOptions) -> Iterator[Split]:
    """The split with its file open, or the same offsets in the files that have its place now."""
    held = split.file.held() if isinstance(split.file, LiveFile) else split.file
    is_there = False
    with suppress(FileNotFoundError):  # an object is gone
        is_there = held is not None and _stands_in(held, split)
    if held is not None and is_there:
        yield split._replace(file=held)
        return
    for _ in range(_ATTEMPTS):
        try:
            found = _again(split, options)
            break
        except FileNotFoundError:
            time.sleep(_PAUSE_SECONDS)  # a broker deletes or swaps segments right now
    else:
        try:
            found = _again(split, options)
        except FileNotFoundError:
            _report_loss(split, *split.offsets, options)
            return
    yield from found


def _is_still(split: Split) -> bool:
    """Whether an object that was read in several requests has not been replaced in between."""
    return isinstance(split.file, LiveFile) or _stands_in(split.file, split)


def _stands_in(held: StoredFile, split: Split) -> bool:
    """Whether a file still has what it had when the micro-batch was planned.

    A broker truncates a segment in place, and may have written others up to that size since. It
    writes nothing to a segment that others follow, so there the time of the last change tells. An
    object is replaced by a longer or a compacted one of its name, except in tiered storage.
    """
    last = None if split.footing is None else split.footing.last
    if last is None or isinstance(held, TieredFile):
        return True
    if last.position == _ELSEWHERE:
        return held.modified_now() == held.modified_ns
    there = next(headers(held, last.position), None)
    return there is not None and last.is_same(ReadBatch.of(there))


def _again(split: Split, options: StreamOptions) -> list[Split]:
    """The offsets of a split in the files that have its file's place now, which are open."""
    now = _now(split, options)
    if now is None:
        _report_loss(split, *split.offsets, options)
        return []
    partition, lost = now
    if lost and not options.fail_on_data_loss:
        _check_finished(partition, lost)
    found = []
    for piece in partition.pieces(split.offsets.first, _common_end(partition, split)):
        log = piece.segment.log
        held = log.held() if isinstance(log, LiveFile) else log
        if held is None:
            raise FileNotFoundError(errno.ENOENT, "the segment is gone again", log.path)
        offsets = split.selection.offsets & piece.offsets
        selection = replace(split.selection, offsets=offsets)
        found.append(Split(held, piece.offsets, piece.start, piece.end, selection))
    for offsets in lost:
        _report_loss(split, *offsets, options)
    return found


def _check_finished(partition: Partition, lost: list[Range]) -> None:
    """Raise an error if offsets that a log lacks may come, as those of a copy that is made anew."""
    for one in unfinished(partition.segments, time.time_ns() - COPIED_NS):
        if any(offsets.first <= one.behind <= offsets.last for offsets in lost):
            raise OffsetOutOfRangeError(
                f"the segment is being written again, and has its offsets up to {one.behind - 1}",
                path=one.segment.log.path,
                advice="start the query again when it is complete",
            )


def _now(split: Split, options: StreamOptions) -> tuple[Partition, list[Range]] | None:
    """The partition that has most of a split's offsets now, and those that it lacks."""
    best = None
    for listing in _listed_again(split, options):
        partition = Partition(listing, options)
        lost = _lost(partition, split)
        if best is None or _count(lost) < _count(best[1]):
            best = partition, lost
        if not lost:
            break
    return best


def _lost(partition: Partition, split: Split) -> list[Range]:
    """The offsets of a split that a partition lacks."""
    (first, last), end = split.offsets, _common_end(partition, split)
    begins = min(max(partition.start_offset, first), end)
    ends = max(min(partition.end_offset, end), begins)
    gaps = (Range(one.first, one.last) for one in missing_between(partition.segments))
    inside = (gap & Range(begins, ends - 1) for gap in gaps)
    return [one for one in (Range(first, begins - 1), *inside, Range(ends, last)) if one]


def _count(ranges: Iterable[Range]) -> int:
    return sum(last - first + 1 for first, last in ranges)


def _common_end(partition: Partition, split: Split) -> int:
    """The end of a split's offsets, as far as a log is still the one for which it was planned."""
    end = split.offsets.last + 1
    if split.footing is None:
        return end
    last = split.footing.last
    parted = parting(partition, 0 if last is None else last.last_offset + 1, split.footing)
    if parted is None:
        return end
    logger.info("%s: %s", partition.listing.folder, parted.why)
    return max(split.offsets.first, min(end, parted.offset or 0))


def _listed_again(split: Split, options: StreamOptions) -> Iterator[Listing]:
    """The partition of a split as it is now: in its folder, and then elsewhere.

    Tiered storage may have its offsets, or another folder of log.dirs, to which it was moved.

    Raises:
        FileNotFoundError: there are folders, but no segments in them.
    """
    folder, place = split.file.folder, parse_log_path(split.file.path)
    here = None
    with suppress(FileNotFoundError):
        here = list_settled(folder)
    if here is not None and here.segments:
        yield here
    elsewhere = []
    with suppress(FileNotFoundError):
        topics = [place.topic] if place.topic else ()
        elsewhere = Folders(options.scan, topics, may_lack_paths=True).refresh()
    is_found = here is None or bool(here.segments)
    for listing in elsewhere:
        log = listing.segments[0].log if listing.segments else None
        if log is None or parse_log_path(log.path)[:2] != place[:2]:
            continue
        if here is None or listing.is_tiered or log.folder != folder:
            is_found = True
            yield list_settled(log.folder) if listing.is_swapping else listing
    if not is_found:
        raise FileNotFoundError(errno.ENOENT, "the folder has no segment", folder)
