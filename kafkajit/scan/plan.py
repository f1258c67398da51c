"""Plans which stretches of which segments a query has to read, and packs them into tasks.

find files ─▶ drop by name ─▶ drop by header ─▶ split where batches begin ─▶ pack

A segment's name contains its base offset, at which the segment before it ends. Its indexes narrow
the bytes that can hold the offsets and timestamps asked for. In local files the remaining bytes are
framed, and split where batches begin. Remote files would have to be downloaded for that, which is
left to tasks; they are split at the positions in their .index, or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from kafkajit.errors import (
    CorruptIndexError,
    KafkaJitError,
    RemoteStorageError,
)
from kafkajit.format.kafscale import SUFFIX as KAFSCALE_SUFFIX
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.format.log_path import LogPath
from kafkajit.format.ranges import ALL, NOTHING, Range
from kafkajit.log.footing import Footing
from kafkajit.log.isolation import find_isolation
from kafkajit.log.open_segment import OpenSegment, order_in
from kafkajit.log.overlaps import served
from kafkajit.log.positions import IndexEntries
from kafkajit.log.segment import Segment, segments_of
from kafkajit.log.tiered_segments import joined
from kafkajit.places.location import READABLE_NAME, shown
from kafkajit.records.batches import frame
from kafkajit.records.offset_order import OffsetOrder, grow, has_messages, offsets_of
from kafkajit.scan.options import READ_COMMITTED, SERVED, ScanOptions
from kafkajit.scan.packing import packed, task_share
from kafkajit.scan.partitions import find_partitions
from kafkajit.scan.predicates import Predicate, meets, wanted_by
from kafkajit.scan.time_lookup import offset_for_timestamp, start_for_timestamp
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import FAILFAST, Gap, Stretch
from kafkajit.walk.selection import Selection
from kafkajit.walk.walk import Walk

logger = logging.getLogger("kafkajit")

# The index of a smaller log may well be empty: Kafka adds an entry every few kilobytes.
_INDEXED = 64 << 10
# The bytes of local files that planning a query frames at most.
_FRAMING_BUDGET = 16 << 30
# As many batches behind another one tell whether its base offset fits.
_WITNESSES = 2
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
            stretches, framed = _stretches(segment, asked, options.mode, share, budget)
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
    # A timestamp takes precedence over an offset, as in Spark's Kafka connector.
    if options.starting_timestamp is not None:
        first = start_for_timestamp(partition, options.starting_timestamp, options)
        if first is None:
            return replace(selection, offsets=_BEHIND_ALL)
    if options.ending_timestamp is not None:
        behind = offset_for_timestamp(partition, options.ending_timestamp, options)
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


def _stretches(
    segment: Segment, asked: Selection, mode: str, share: int, budget: int
) -> tuple[list[Stretch], int]:
    """The stretches of a segment to read, and how many bytes were framed to find them."""
    opened = OpenSegment(segment)
    whole = opened.stretch(asked) if asked.judges_rows else Stretch(0, segment.log.size)
    if whole.end < segment.log.size:
        # The batches behind it tell whether the base offset of its last one fits.
        behind = opened.batches_at(whole.end)[:_WITNESSES]
        whole = whole._replace(end=int(behind.end.max(initial=whole.end)))
    if whole.start and segment.log.filesystem is None:  # and so do those before its first one
        before = IndexEntries(segment).position_before(whole.start - 1)
        whole = whole._replace(start=before)
    size = whole.end - whole.start
    # One task compares all batches of a KafScale segment with its footer.
    pieces = 1 if segment.path.suffix == KAFSCALE_SUFFIX else -(-size // share)
    is_local = segment.log.filesystem is None
    if pieces > 1 and (asked.is_everything or not is_local):
        cuts = _cuts_by_index(opened, whole, pieces)
        if cuts is not None:
            return _between([whole.start, *cuts, whole.end]), 0
    is_worth_it = pieces > 1 or not asked.is_everything
    if is_local and is_worth_it and size <= budget:
        return _framed_stretches(segment, whole, asked, mode, pieces), size
    return _between(whole), 0


def _between(cuts: Iterable[int]) -> list[Stretch]:
    return [Stretch(start, end) for start, end in pairwise(cuts) if start < end]


def _cuts_by_index(opened: OpenSegment, whole: Stretch, pieces: int) -> list[int] | None:
    """Beginnings of sound batches near the ends of equal pieces; None if the index is unusable."""
    try:
        index = opened.offset_index
        if index is None:
            return None
        positions = index.entries["position"].astype(np.int64)
        ideal = whole.start + np.arange(1, pieces) * (whole.end - whole.start) // pieces
        rows = np.unique(np.searchsorted(positions, ideal).clip(max=len(index) - 1))
        cuts = {opened.position_of(index.entry(row).offset) for row in rows.tolist()}
    except (CorruptIndexError, RemoteStorageError) as error:
        logger.warning("%s: the segment is split without it", error)
        return None
    return sorted(
        cut for cut in cuts if whole.start < cut < whole.end and _fits_around(opened, cut)
    )


def _fits_around(opened: OpenSegment, cut: int) -> bool:
    """Whether the offsets of the batches around a cut grow: tasks do not see those of others.

    A remote segment is not looked at: each cut would take two more requests.
    """
    if opened.segment.log.filesystem is not None:
        return True
    start = IndexEntries(opened.segment).position_before(cut - 1)
    before = opened.batches_at(start, cut - start)
    near = [before[before.position < cut], opened.batches_at(cut)[:_WITNESSES]]
    if any(map(has_messages, near)):
        return True
    firsts, lasts = map(np.concatenate, zip(*map(offsets_of, near), strict=True))
    return grow(firsts, lasts, None)


def _framed_stretches(
    segment: Segment, whole: Stretch, asked: Selection, mode: str, pieces: int
) -> list[Stretch]:
    """Runs of selected batches, cut near the ends of equal pieces."""
    source = segment.log.open()
    # A batch whose base offset does not fit may have any offset between those around it.
    order = order_in(segment, whole.start)
    reader = Walk(source, mode=mode, start=whole.start, end=whole.end, order=order)
    every = replace(asked, committed=False)  # a damaged batch may look like an aborted one
    cuts = [whole.start]
    firsts: dict[int, int] = {}  # cut: where the selected batches behind it begin
    lasts: dict[int, int] = {}  # cut: where they end
    behind, gap, was_wanted = MIN_INT64, Stretch(0, 0), False
    witness_before: int | None = None  # the position of the last batch
    claimed = NOTHING  # the offsets of damage by its own header

    def add_damage(before: int, is_near: bool, until: int) -> None:
        """Add the last damage, and the batches around it, if it may have had wanted offsets."""
        is_near |= was_wanted or asked.timestamps.is_everything
        is_wanted = Range(behind, before) & asked.offsets or claimed & asked.offsets
        if gap.end and is_near and is_wanted:
            start = gap.start if witness_before is None else witness_before
            cut = cuts[int(np.searchsorted(cuts, start, side="right")) - 1]
            firsts[cut] = min(firsts.get(cut, start), start)
            lasts[cut] = max(lasts.get(cut, until), until)

    try:
        for batches in reader.headers():
            if isinstance(batches, Gap):
                start = gap.start if gap.end else batches.position
                gap = Stretch(start, batches.position + batches.length)
                header = frame(source.content, batches.position, max_records=1).batches[:1]
                if len(header):
                    (first,), (last,) = offsets_of(header)
                    claimed = Range(int(first), int(last))
                continue
            source.forget(int(batches.position[0]))
            ideal = whole.start + np.arange(len(cuts), pieces) * (whole.end - whole.start) // pieces
            rows = np.searchsorted(batches.position, ideal)
            # Behind damage only a checksum proves that a batch begins.
            begins = np.isin(np.arange(len(batches)), rows)
            begins[begins] = batches[begins].is_valid(source.content)
            cuts.extend(batches.position[begins].tolist())
            are_wanted = every.batches(batches)
            witness = int(batches.end[:_WITNESSES][-1])
            add_damage(int(batches.field("baseOffset")[0]) - 1, bool(are_wanted[0]), witness)
            gap, claimed, was_wanted = Stretch(0, 0), NOTHING, bool(are_wanted[-1])
            behind, witness_before = int(batches.last_offset[-1]) + 1, int(batches.position[-1])
            wanted = batches[are_wanted]
            pieces_of = np.searchsorted(cuts, wanted.position, side="right") - 1
            for piece in np.unique(pieces_of).tolist():
                within = wanted[pieces_of == piece]
                firsts.setdefault(cuts[piece], int(within.position[0]))
                lasts[cuts[piece]] = int(within.end[-1])
        add_damage(MAX_INT64, False, whole.end)
    except KafkaJitError:
        # A task will reach the same damage, and report it.
        lasts[cuts[-1]] = whole.end
        begin = reader.position if witness_before is None else max(cuts[-1], witness_before)
        firsts.setdefault(cuts[-1], begin)
    if asked.is_everything:
        return _between([*cuts, whole.end])
    if mode != FAILFAST and firsts:
        # Damage between selected batches is reported, wherever the cuts are.
        start, end = min(firsts.values()), max(lasts.values())
        return _between([start, *(cut for cut in cuts if start < cut < end), end])
    return [Stretch(firsts[cut], lasts[cut]) for cut in cuts if cut in firsts]
