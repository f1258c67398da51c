"""Searches the records of a plan's splits: those that match, or with others around them.

bytes of batches ─▶ batches with a needle ─▶ records ─▶ those whose key, value or header matches

Batches are checked first, and skipped if their bytes, once decompressed, do not contain what every
match has to contain. Damage is reported as a Gap, and the search goes on behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, islice, pairwise
from threading import Lock
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.errors import KafkaJitError, LeftOutError
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.format.log_path import LogPath, parse_log_path
from kafkajit.format.ranges import Range
from kafkajit.log.leaps import unsure_end
from kafkajit.log.missing_offsets import Missing
from kafkajit.log.missing_segments import missing_around
from kafkajit.log.segment import Segment
from kafkajit.log.segment_gaps import come_text, gaps_between
from kafkajit.places.named import ALL, Named
from kafkajit.places.wanted import any_partition
from kafkajit.reader import SegmentReader
from kafkajit.records.columns import MayHold
from kafkajit.records.search import all_holders
from kafkajit.scan.ahead import read_ahead
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.partitions import find_partitions
from kafkajit.scan.patterns import Pattern
from kafkajit.scan.plan import Split
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.small_segments import PATH, read_together, small_segments
from kafkajit.scan.table import plan_table, schema_of
from kafkajit.schema import with_corruption
from kafkajit.storage.source import Bytes, Int64s, Mask
from kafkajit.values.registry import is_internal
from kafkajit.walk.damage import PERMISSIVE, Gap

SIDES = ("key", "value", "headers")
_MARKER = "controlType"  # a transaction's marker is nobody's
_DAMAGE = "corruption"
# The most segments that are looked at to read them together.
_TOGETHER = 1024

# Makes the text of keys or values of the log at a path that is searched instead of their bytes.
Texts = Callable[[pa.Array, str], pa.Array]


@dataclass(frozen=True)
class Search:
    """Patterns, and where to search; a record matches if one of them is in one place."""

    patterns: tuple[Pattern, ...]
    sides: tuple[str, ...] = SIDES
    is_inverted: bool = False  # records without a match are those that are found
    texts: Mapping[str, Texts] = field(default_factory=dict)

    def may_hold(self) -> MayHold | None:
        """A function that finds the batches that may have a match; None if all may."""
        needles = [pattern.needle for pattern in self.patterns if pattern.needle is not None]
        is_decoded = any(side in self.texts for side in self.sides)
        if self.is_inverted or is_decoded or len(needles) < len(self.patterns):
            return None

        def found(content: Bytes, starts: Int64s, ends: Int64s) -> Mask:
            return all_holders(content, starts, ends, needles)

        return found

    def rows(self, records: pa.RecordBatch, path: str) -> Mask:
        """Find the records, of the log at a path, that match."""
        found = np.zeros(records.num_rows, dtype=np.bool_)
        for side in self.sides:
            values = records[side]
            made = self.texts[side](values, path) if side in self.texts else values
            found |= self._matches(made)
        return ~found if self.is_inverted else found

    def _matches(self, values: pa.Array) -> Mask:
        """Find the values with a match: texts, lists with a text, or structs."""
        found = np.zeros(len(values), dtype=np.bool_)
        if pa.types.is_list(values.type):
            parents = np.asarray(pc.list_parent_indices(values))
            found[parents[self._matches(pc.list_flatten(values))]] = True
        elif pa.types.is_struct(values.type):
            for part in values.flatten():
                found |= self._matches(part)
        else:
            for pattern in self.patterns:
                found |= pattern.rows(values)
        return found


class Found(NamedTuple):
    """Records, and which of them match."""

    records: pa.RecordBatch
    matches: Mask


# What a search comes across: records, damage, or a segment that cannot be read.
Part = Found | Gap | KafkaJitError | OSError
_Read: TypeAlias = "pa.RecordBatch | Part"  # or records that have not been searched yet


@dataclass
class SearchProgress:
    """The progress of a search, for another thread to read."""

    total: int = 0  # bytes to search
    path: str = ""
    _ended: int = 0  # bytes of splits that were searched, or are not wanted
    _readers: dict[tuple[str, int], SegmentReader] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def begin(self, split: Split, reader: SegmentReader) -> None:
        """Note the reader of a split."""
        with self._lock:
            self.path = split.file.path
            self._readers[split.file.path, split.start] = reader

    def end(self, splits: Iterable[Split]) -> None:
        """Note the splits that are not read any more."""
        with self._lock:
            for split in splits:
                self._readers.pop((split.file.path, split.start), None)
                self._ended += split.size

    @property
    def done(self) -> int:
        """The bytes that were searched."""
        with self._lock:
            readers = self._readers.items()
            return self._ended + sum(reader.position - start for (_, start), reader in readers)


@dataclass(frozen=True)
class Searcher:
    """Reads splits for a search.

    The records have these columns and those that are searched. With `around` all records come, for
    those around a match. `wants` decides before each part of a split whether it is read on.
    """

    search: Search
    options: ScanOptions
    columns: tuple[str, ...]
    around: bool = False
    wants: Callable[[Split], bool] = lambda _: True
    threads: int = 1
    progress: SearchProgress = field(default_factory=SearchProgress)

    def parts(self, splits: Iterable[Split]) -> Iterator[tuple[Split, Part]]:
        """Yield the records of batches in which there may be matches, and what is wrong."""
        # Parts that a thread has read ahead may not be wanted any more.
        for split, part in read_ahead(self._units(splits), self._read, self.threads):
            if self.wants(split):
                yield split, self._matched(split, part)

    def _units(self, splits: Iterable[Split]) -> Iterator[list[Split]]:
        """Yield the splits that a thread reads at once: one, or small ones together."""
        left = deque(splits)
        self.progress.total = sum(split.size for split in left)
        while left:
            if self.wants(left[0]):
                small = small_segments(list(islice(left, _TOGETHER)))
                yield [left.popleft() for _ in range(max(len(small), 1))]
            else:
                self.progress.end([left[0]])
                left.popleft()

    def _read(self, splits: list[Split]) -> Iterator[tuple[Split, _Read]]:
        left = splits
        try:
            while left:
                if len(left) > 1:
                    left = yield from self._together(left)
                if left and self.wants(left[0]):
                    # A reader of its own reports the problem of the first one.
                    yield from self._alone(left[0])
                left = left[1:]
        finally:
            self.progress.end(splits)

    @cached_property
    def _schema(self) -> pa.Schema:
        names = {*self.columns, *self.search.sides, _MARKER}
        return pa.schema([field for field in schema_of(self.options) if field.name in names])

    @cached_property
    def _may_hold(self) -> MayHold | None:
        return None if self.around else self.search.may_hold()

    def _together(
        self, splits: Sequence[Split]
    ) -> Generator[tuple[Split, _Read], None, list[Split]]:
        schema = self._schema.append(PATH)
        rows = read_together(splits, schema, self.options, self._may_hold)
        while True:
            try:
                records = next(rows)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            segment = records[PATH.name].indices.to_numpy()
            bounds = [0, *(np.flatnonzero(np.diff(segment)) + 1).tolist(), segment.size]
            for start, end in pairwise(bounds if segment.size else ()):
                split = splits[segment[start]]
                if self.wants(split):
                    yield from self._found(split, records.slice(start, end - start))

    def _alone(self, split: Split) -> Iterator[tuple[Split, _Read]]:
        for rows in self._rows(split):
            if not isinstance(rows, pa.RecordBatch):
                yield split, rows
                return
            damage = rows[_DAMAGE]
            if damage.null_count < len(damage):
                yield split, Gap(**damage[0].as_py())
            else:
                yield from self._found(split, rows)
            if not self.wants(split):
                return

    def _rows(self, split: Split) -> Iterator[pa.RecordBatch | KafkaJitError | OSError]:
        """The rows of a split, or the error at which reading ends."""
        try:
            reader = SegmentReader(
                split.file.open(split.start, split.end),
                mode=PERMISSIVE,
                selection=split.selection,
                start=split.start,
                end=split.end,
                order=split.order(),
            )
            self.progress.begin(split, reader)
            yield from reader.records(
                with_corruption(self._schema),
                check_crcs=self.options.check_crcs,
                max_decompressed_bytes=self.options.max_decompressed_bytes,
                may_hold=self._may_hold,
            )
        except (KafkaJitError, OSError) as error:
            yield error

    def _found(self, split: Split, rows: pa.RecordBatch) -> Iterator[tuple[Split, _Read]]:
        markers = rows[_MARKER]
        if markers.null_count < len(markers):
            rows = rows.filter(markers.is_null())
        records = rows.select(self._schema.names)
        if records.num_rows:
            # A decoder reads the values of one thread.
            yield split, records if self.search.texts else self._matched(split, records)

    def _matched(self, split: Split, part: _Read) -> Part:
        if not isinstance(part, pa.RecordBatch):
            return part
        return Found(part, self.search.rows(part, split.file.path))


def plan_search(
    options: ScanOptions,
    named: Named = ALL,
    offsets: tuple[int | None, int | None] = (None, None),
) -> list[Split]:
    """Plan a search: the splits by partition and offset.

    Only the named topics and partitions are searched; a name without segments is an error. By
    default all are searched but brokers' own topics and a registry's; these only if there are no
    others. `offsets` are the first one and the one to stop before.
    """
    first, behind = offsets
    predicates = [
        Predicate("offset", test, offset)
        for test, offset in ((">=", first), ("<", behind))
        if offset is not None
    ]
    if named:
        predicates.append(Predicate("topic", "in", sorted(named.of_topics)))
    plan = plan_table(options, predicates)
    splits = [split for task in plan.tasks for split in task]
    places = [parse_log_path(split.file.path) for split in splits]
    if named and named.missing(place[:2] for place in places):
        # They may have segments, but none with such an offset or time.
        found = find_partitions(options, any_partition)
        named.check((partition[0].path[:2] for partition in found), options.paths)

    def is_asked(place: LogPath) -> bool:
        if named:
            return bool(named.has(place.topic, place.partition))
        return place.topic is None or not is_internal(place.topic)

    chosen = list(compress(splits, map(is_asked, places)))
    partitions = [one for one in plan.partitions if is_asked(one[0].path)]
    if not named and not chosen:
        chosen, partitions = splits, list(plan.partitions)
    asked = Range(
        MIN_INT64 if first is None else first, MAX_INT64 if behind is None else behind - 1
    )
    if options.failed is not None:
        read = {split.file.path for split in chosen}
        for partition in partitions:
            for text in _doubts(partition, asked, read, options):
                options.failed(LeftOutError(f"{partition[0].log.folder}: {text}"))
    return chosen


def _doubts(
    partition: Sequence[Segment], asked: Range, read: Container[str], options: ScanOptions
) -> Iterator[str]:
    """Lines about offsets that a partition lacks, and about its last one if it may be wrong.

    `read` has the paths of the logs that are read.
    """
    for gap in _missing(partition, asked, read, options):
        yield gap.text
    if partition[-1].log.path in read:
        unsure = unsure_end(partition, check_crcs=options.check_crcs)
        if unsure is not None and unsure.end_offset <= asked.last:
            yield unsure.text


def _missing(
    partition: Sequence[Segment], asked: Range, read: Container[str], options: ScanOptions
) -> Iterator[Missing]:
    """The offsets that a partition lacks between its segments, and that may be asked for."""
    is_by_time = options.starting_timestamp is not None or options.ending_timestamp is not None
    gaps = gaps_between(partition)
    come = [Missing(*one, True, come_text(one)) for one in gaps.come]
    for gap in [*gaps.missing, *come, *missing_around(partition, options.failed)]:
        before = [one for one in partition if one.base_offset <= gap.first][-1:]
        behind = [one for one in partition if one.base_offset > gap.last][:1]
        is_near = any(one.log.path in read for one in before + behind)
        if asked & Range(gap.first, gap.last) and (is_near or not is_by_time):
            yield gap
