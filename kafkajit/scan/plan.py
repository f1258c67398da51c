"""Which stretches of which segments a query has to read, packed into tasks.

find files ─▶ drop by name ─▶ drop by header ─▶ split where batches begin ─▶ pack

A name says a segment's base offset, and so where the segment before it ends. Its indexes say which
of its bytes can hold the offsets and timestamps that are asked for; what they leave is framed, of
local files only: others would have to be downloaded, which is a task's work. Those are split where
their .index says that batches begin, or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from kafkajit.errors import CorruptIndexError, KafkaJitError
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.log.isolation import find_isolation
from kafkajit.log.segment import OpenSegment, Segment, segments_of
from kafkajit.reader import SegmentReader
from kafkajit.scan.options import READ_COMMITTED, Options
from kafkajit.scan.predicates import Predicate, meets
from kafkajit.schema import record_schema
from kafkajit.storage.locations import SEGMENT_NAME, StoredFile, find_segments, shown
from kafkajit.walk.selection import NOTHING, Range, Selection
from kafkajit.walk.walk import FAILFAST, Stretch, Walk

logger = logging.getLogger("kafkajit")

# A task's share where the option maxPartitionBytes does not say: an eighth of all, within these. A
# task costs Spark some 20 ms, and reading 16 MiB takes about as long.
_LEAST_BYTES = 16 << 20
_MOST_BYTES = 128 << 20
# Opening a file counts as reading this much of it. A small local one takes 0.1 ms: 10,000 of them
# are 20 tasks. A remote one takes a round trip: Spark's own spark.sql.files.openCostInBytes.
_OPEN_COST = 256 << 10
_REMOTE_OPEN_COST = 4 << 20
# The index of a smaller log may well be empty: an entry is written behind every few kilobytes.
_INDEXED = 64 << 10
# So many bytes of local files are framed where a query is planned.
_FRAMING_BUDGET = 16 << 30


class Split(NamedTuple):
    """A stretch of a segment that begins and ends where batches do, and what is asked of it."""

    file: StoredFile
    offsets: Range  # that the segment may have
    start: int
    end: int
    selection: Selection

    @property
    def size(self) -> int:
        return self.end - self.start


Task = list[Split]


class _Sized(Protocol):
    """What a task can read."""

    @property
    def file(self) -> StoredFile: ...
    @property
    def size(self) -> int: ...


_Piece = TypeVar("_Piece", bound=_Sized)


@dataclass(frozen=True)
class Plan:
    """What is read, task by task."""

    tasks: list[Task]
    segments: int
    segments_read: int
    total_bytes: int
    without_index: int  # segments whose bytes could only be narrowed by looking at all batches

    def __str__(self) -> str:
        splits = [split for task in self.tasks for split in task]
        to_read = sum(split.size for split in splits)
        text = (
            f"{self.segments_read} of {self.segments} segments, {len(splits)} splits in "
            f"{len(self.tasks)} tasks: {to_read:,} bytes to read, "
            f"{self.total_bytes - to_read:,} skipped"
        )
        if self.without_index:
            text += f"; {self.without_index} segments have no offset index to look into"
        return text


def make_plan(options: Options, predicates: Sequence[Predicate], selection: Selection) -> Plan:
    """Find, drop, split and pack, as the module's first lines say."""
    partitions = find_partitions(options)
    segments = [segment for partition in partitions for segment in partition]
    wanted: list[tuple[Segment, Selection]] = []
    for partition in partitions:
        where = partition[0].path
        if not meets({"topic": where.topic, "partition": where.partition}, predicates):
            continue
        asked = _selection_in(partition, options, selection)
        wanted.extend(
            (
                segment,
                replace(asked, aborted=asked.aborted.within(*segment.offsets)),
            )
            for segment in partition
            if segment.log.size and asked.offsets & segment.offsets
        )
    share = task_share(options, ((segment.log, segment.log.size) for segment, _ in wanted))
    budget = _FRAMING_BUDGET
    splits: list[Split] = []
    for segment, asked in wanted:
        if options.kind == "corruption":  # what is missing is known from what is around it
            stretches, framed = [Stretch(0, segment.log.size)], 0
        else:
            stretches, framed = _stretches(segment, asked, options.mode, share, budget)
        budget -= framed
        splits.extend(
            Split(segment.log, segment.offsets, start, end, asked) for start, end in stretches
        )
    plan = Plan(
        packed(splits, share),
        len(segments),
        len({split.file.path for split in splits}),
        sum(segment.log.size for segment in segments),
        sum(
            asked.judges_rows and segment.index is None and segment.log.size > _INDEXED
            for segment, asked in wanted
        ),
    )
    logger.info("%s: %s", ", ".join(map(shown, options.paths)), plan)
    return plan


def find_partitions(options: Options) -> list[list[Segment]]:
    """The segments at the locations asked for, by folder and in order."""
    logs, files = find_segments(options.paths, options.path_glob_filter)
    folders: dict[str, list[StoredFile]] = {}
    for log in logs:
        folders.setdefault(log.folder, []).append(log)
    return [segments_of(folders[folder], files) for folder in sorted(folders)]


def task_share(options: Options, files: Iterable[tuple[StoredFile, int]]) -> int:
    """How many bytes a task should read if so many are read of each of these files."""
    cost = sum(size + _open_cost(file) for file, size in files)
    return options.max_partition_bytes or min(max(cost // 8, _LEAST_BYTES), _MOST_BYTES)


def packed(pieces: Iterable[_Piece], share: int) -> list[list[_Piece]]:
    """Pieces in their order, a share of bytes to each task."""
    tasks: list[list[_Piece]] = []
    room = 0
    for piece in pieces:
        opening = _open_cost(piece.file)
        cost = piece.size + opening
        if not tasks or cost > room:
            tasks.append([])
            room = share + opening
        tasks[-1].append(piece)
        room -= cost
    return tasks


def _open_cost(file: StoredFile) -> int:
    return _OPEN_COST if file.filesystem is None else _REMOTE_OPEN_COST


def _selection_in(partition: list[Segment], options: Options, selection: Selection) -> Selection:
    """What is asked of one partition: offsets, timestamps and transactions are its own."""
    path = partition[0].path
    first = behind = None
    if path.topic is not None and path.partition is not None:
        first = options.starting_offsets.get(path.topic, {}).get(path.partition)
        behind = options.ending_offsets.get(path.topic, {}).get(path.partition)
    # As in Spark's connector, a timestamp takes precedence.
    if options.starting_timestamp is not None:
        first = _offset_for_timestamp(partition, options.starting_timestamp, options)
        if first is None:
            return replace(selection, offsets=NOTHING)
    if options.ending_timestamp is not None:
        behind = _offset_for_timestamp(partition, options.ending_timestamp, options)
    offsets = selection.offsets & Range(
        MIN_INT64 if first is None else first, MAX_INT64 if behind is None else behind - 1
    )
    if options.isolation_level != READ_COMMITTED:
        return replace(selection, offsets=offsets)
    # A transaction may end in a segment that nobody asked for.
    beside = {file.path: file for file in partition[0].log.beside()}
    logs = [file for file in beside.values() if SEGMENT_NAME.fullmatch(file.name)]
    whole = segments_of(logs, beside) if len(logs) >= len(partition) else partition
    aborted, first_open = find_isolation(
        [(segment.log, segment.transaction_index) for segment in whole],
        options.mode,
        check_crcs=options.check_crcs,
    )
    if first_open is not None:
        offsets &= Range(last=first_open - 1)
    return replace(selection, offsets=offsets, committed=True, aborted=aborted)


def _offset_for_timestamp(partition: list[Segment], timestamp: int, options: Options) -> int | None:
    """The first offset of a record with this timestamp or a later one."""
    later = Selection(timestamps=Range(timestamp))
    for segment in partition:
        start, end = OpenSegment(segment).stretch(later)
        reader = SegmentReader(
            segment.log.open(start, end), mode=options.mode, selection=later, start=start, end=end
        )
        for rows in reader.records(
            record_schema(["offset"]),
            check_crcs=options.check_crcs,
            max_decompressed_bytes=options.max_decompressed_bytes,
        ):
            if rows.num_rows:
                offset: int = rows["offset"][0].as_py()
                return offset
    return None


def _stretches(
    segment: Segment, asked: Selection, mode: str, share: int, budget: int
) -> tuple[list[Stretch], int]:
    """The stretches of a segment to read, and how many bytes had to be framed to know."""
    opened = OpenSegment(segment)
    whole = opened.stretch(asked) if asked.judges_rows else Stretch(0, segment.log.size)
    size = whole.end - whole.start
    pieces = -(-size // share)
    is_local = segment.log.filesystem is None
    if pieces > 1 and (asked.is_everything or not is_local):
        cuts = _cuts_by_index(opened, whole, pieces)
        if cuts is not None:
            return _between([whole.start, *cuts, whole.end]), 0
    is_worth_it = pieces > 1 or not asked.is_everything
    if is_local and is_worth_it and size <= budget:
        return _framed_stretches(segment.log, whole, asked, mode, pieces), size
    return _between(whole), 0


def _between(cuts: Iterable[int]) -> list[Stretch]:
    return [Stretch(start, end) for start, end in pairwise(cuts) if start < end]


def _cuts_by_index(opened: OpenSegment, whole: Stretch, pieces: int) -> list[int] | None:
    """Positions near the ends of equal pieces, each where a sound batch begins; or none at all."""
    try:
        index = opened.offset_index
        if index is None:
            return None
        positions = index.entries["position"].astype(np.int64)
        ideal = whole.start + np.arange(1, pieces) * (whole.end - whole.start) // pieces
        rows = np.unique(np.searchsorted(positions, ideal).clip(max=len(index) - 1))
        cuts = {opened.position_of(index.entry(row).offset) for row in rows.tolist()}
    except CorruptIndexError as error:
        logger.warning("%s: the segment is split without it", error)
        return None
    return sorted(cut for cut in cuts if whole.start < cut < whole.end)


def _framed_stretches(
    log: StoredFile, whole: Stretch, asked: Selection, mode: str, pieces: int
) -> list[Stretch]:
    """Runs of batches that are asked for, cut near the ends of equal pieces."""
    source = log.open()
    reader = Walk(source, mode=mode, start=whole.start, end=whole.end)
    cuts = [whole.start]
    firsts: dict[int, int] = {}  # in the stretch behind each cut: where what is asked for begins
    lasts: dict[int, int] = {}  # and ends
    try:
        for batches in reader.framed():
            source.forget(int(batches.position[0]))
            ideal = whole.start + np.arange(len(cuts), pieces) * (whole.end - whole.start) // pieces
            rows = np.searchsorted(batches.position, ideal)
            # Past damage only a checksum tells where a batch begins.
            begins = np.isin(np.arange(len(batches)), rows)
            begins[begins] = batches[begins].is_valid(source.content)
            cuts.extend(batches.position[begins].tolist())
            wanted = batches[asked.batches(batches)]
            pieces_of = np.searchsorted(cuts, wanted.position, side="right") - 1
            for piece in np.unique(pieces_of).tolist():
                within = wanted[pieces_of == piece]
                firsts.setdefault(cuts[piece], int(within.position[0]))
                lasts[cuts[piece]] = int(within.end[-1])
    except KafkaJitError:
        # A task will come to the same place, and report it.
        lasts[cuts[-1]] = whole.end
        firsts.setdefault(cuts[-1], reader.position)
    if asked.is_everything:
        return _between([*cuts, whole.end])
    if mode != FAILFAST and firsts:
        # Damage between batches that are asked for is told, wherever the cuts are.
        start, end = min(firsts.values()), max(lasts.values())
        return _between([start, *(cut for cut in cuts if start < cut < end), end])
    return [Stretch(firsts[cut], lasts[cut]) for cut in cuts if cut in firsts]
