"""Plans which stretches of which segments a query has to read, and packs them into tasks.

find files ─▶ drop by name ─▶ drop by header ─▶ split where batches begin ─▶ pack

A segment's name contains its base offset, at which the segment before it ends. `stretches` tells
which of its bytes are read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.format.log_path import LogPath
from kafkajit.format.ranges import ALL, Range
from kafkajit.log.beginnings import TimeLookup
from kafkajit.log.footing import Footing
from kafkajit.log.isolation import find_isolation
from kafkajit.log.overlaps import served
from kafkajit.log.segment import Segment, segments_of
from kafkajit.log.tiered_segments import joined
from kafkajit.places.location import READABLE_NAME, shown
from kafkajit.records.offset_order import OffsetOrder
from kafkajit.scan.options import READ_COMMITTED, SERVED, ScanOptions
from kafkajit.scan.packing import packed, task_share
from kafkajit.scan.partitions import find_partitions
from kafkajit.scan.predicates import Predicate, meets, wanted_by
from kafkajit.scan.stretches import stretches_of
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import Stretch
from kafkajit.walk.selection import Selection

logger = logging.getLogger("kafkajit")

# The index of a smaller log may well be empty: Kafka adds an entry every few kilobytes.
_INDEXED = 64 << 10
# The bytes of local files that planning a query frames at most.
_FRAMING_BUDGET = 16 << 30
# No offset, behind those of any log.
_BEHIND_ALL = Range(MAX_INT64, MAX_INT64 - 1)


class Split(NamedTuple):
    """A stretch of a segment between two batch boundaries, and the selection that applies to it."""

    file: StoredFile
    offsets: Range  # the offsets that the segment may have
    start: int
    end: int
    selection: Selection
    footing: Footing | None = None  # of a stream: what the log has to have still
    between: Range = ALL  # the offsets between what is read around it, as far as they are known

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def is_followed(self) -> bool:
        """Whether something is read behind its segment."""
        return self.between.last < MAX_INT64

    def order(self) -> OffsetOrder:
        """The order that the offsets of its batches have to have."""
        return OffsetOrder.from_position(self.file.path, self.between, self.start)


Task = list[Split]


@dataclass(frozen=True)
class ScanPlan:
    """The splits that each task reads, and the totals of the plan."""

    tasks: list[Task]
    segments: int
    segments_read: int
    total_bytes: int
    without_index: int  # segments that could be narrowed only by looking at all batches
    partitions: Sequence[Sequence[Segment]] = ()  # that were found

    def __str__(self) -> str:
        splits = [split for task in self.tasks for split in task]
        to_read = sum(split.size for split in splits)
        text = (
            f"{self.segments_read} of {self.segments} segments, {len(splits)} splits in "
            f"{len(self.tasks)} tasks: {to_read:,} bytes to read, "
            f"{self.total_bytes - to_read:,} skipped"
        )
        if self.without_index:
            text += f"; {self.without_index} segments have no offset index"
        return text


def make_plan(
    options: ScanOptions, predicates: Sequence[Predicate], selection: Selection
) -> ScanPlan:
    """Find, drop, split and pack, as described at the top of the module."""
    partitions = find_partitions(options, wanted_by(predicates))
    whole_log = options.kind == "corruption"
    segments = [segment for partition in partitions for segment in partition]
    wanted: list[tuple[Segment, Selection]] = []
    for partition in partitions:
        where = partition[0].path
        if not meets({"topic": where.topic, "partition": where.partition}, predicates):
            continue
        given = selection_in(partition, options, replace(selection, offsets=ALL))
        asked = replace(given, offsets=given.offsets & selection.offsets)
        wanted.extend(
            (segment, Selection(segment.cut) if whole_log else selection_of(segment, asked))
            for segment in partition
            if segment.log.size
            # A segment of which nothing is served is a row of the table of corruption.
            and (given.offsets & segment.offsets or (whole_log and not segment.cut))
            and segment.may_have(asked.timestamps)
            # Options set the offsets at which reading begins and ends, as a consumer does. A
            # condition must lose no row, and a segment may go on where the next has begun.
            and selection.offsets & Range(segment.offsets.first)
            and asked.offsets
        )
    # Gaps are found from the batches around them.
    whole = whole_log or options.one_task_per_partition
    owners = {
        segment.log.path: number
        for number, partition in enumerate(partitions)
        for segment in partition
    }
    plan = _split(segments, wanted, options, whole=whole, owners=owners)
    logger.info("%s: %s", ", ".join(map(shown, options.paths)), plan)
    return replace(plan, partitions=partitions)


def plan_files(
    files: Iterable[StoredFile], options: ScanOptions, selection: Selection, *, whole: bool
) -> list[Task]:
    """Plan the tasks that read these files, each a log of its own, whatever its name is."""
    segments = [Segment(file, LogPath(), ALL, None, None, None) for file in files]
    wanted = [(segment, selection) for segment in segments]
    owners = {segment.log.path: number for number, segment in enumerate(segments)}
    return _split(segments, wanted, options, whole=whole, owners=owners).tasks


def _split(
    segments: Sequence[Segment],
    wanted: Sequence[tuple[Segment, Selection]],
    options: ScanOptions,
    *,
    whole: bool,
    owners: Mapping[str, int],
) -> ScanPlan:
    """Split the wanted segments, unless they are read whole, and pack the splits into tasks.

    `owners` has the number of each segment's partition.
    """
    share = task_share(options, ((segment.log, segment.log.size) for segment, _ in wanted))
    budget = _FRAMING_BUDGET
    splits: list[Split] = []
    for segment, asked in wanted:
        if whole:
            stretches, framed = [Stretch(0, segment.log.size)], 0
        else:
            stretches, framed = stretches_of(segment, asked, options, share, budget)
        budget -= framed
        splits.extend(
            Split(
                *(segment.log, segment.offsets, start, end, asked),
                between=segment.between,
            )
            for start, end in stretches
        )
    if options.one_task_per_partition:
        partitions = groupby(splits, key=lambda split: owners[split.file.path])
        tasks = [list(task) for _, task in partitions]
    else:
        tasks = packed(splits, share)
    return ScanPlan(
        tasks,
        len(segments),
        len({split.file.path for split in splits}),
        sum(segment.log.size for segment in segments),
        sum(
            asked.judges_rows and segment.index is None and segment.log.size > _INDEXED
            for segment, asked in wanted
        ),
    )


def selection_in(partition: list[Segment], options: ScanOptions, selection: Selection) -> Selection:
    """The selection for one partition, with its own offsets, timestamps and transactions."""
    path = partition[0].path
    first = behind = None
    if path.topic is not None and path.partition is not None:
        first = options.starting_offsets.get(path.topic, {}).get(path.partition)
        behind = options.ending_offsets.get(path.topic, {}).get(path.partition)
    times = times_in(partition, options)
    # A timestamp takes precedence over an offset, as in Spark's Kafka connector.
    if options.starting_timestamp is not None:
        first = times.start(options.starting_timestamp)
        if first is None:
            return replace(selection, offsets=_BEHIND_ALL)
    if options.ending_timestamp is not None:
        behind = times.first_offset(options.ending_timestamp)
    offsets = selection.offsets & Range(
        MIN_INT64 if first is None else first, MAX_INT64 if behind is None else behind - 1
    )
    if options.isolation_level != READ_COMMITTED:
        return replace(selection, offsets=offsets)
    # A transaction may end in a segment outside the selection.
    beside = {file.path: file for file in partition[0].log.beside()}
    logs = [file for file in beside.values() if READABLE_NAME.fullmatch(file.name)]
    whole = partition
    if len({segment.log.folder for segment in partition}) == 1 and len(logs) >= len(partition):
        whole = joined(segments_of(logs, beside), beside)
        if options.overlaps == SERVED:
            (whole,) = served([whole])
    aborted, first_open = find_isolation(
        [(segment.log, segment.transaction_index, segment.cut) for segment in whole],
        options.mode,
        check_crcs=options.check_crcs,
        failed=options.failed,
    )
    if first_open is not None:
        offsets &= Range(last=first_open - 1)
    return replace(selection, offsets=offsets, committed=True, aborted=aborted)


def selection_of(segment: Segment, asked: Selection) -> Selection:
    """The selection of a partition's records, for one segment of it."""
    if segment.cut.is_everything and not asked.aborted.producer_id.size:
        return asked  # the same object for all segments, so that tasks are small when pickled
    return replace(
        asked,
        offsets=asked.offsets & segment.cut,
        aborted=asked.aborted.within(*segment.offsets),
    )


def times_in(partition: Sequence[Segment], options: ScanOptions) -> TimeLookup:
    """The lookup of times in a partition that is read as these options say."""
    return TimeLookup(partition, options.mode, options.check_crcs, options.max_decompressed_bytes)
