"""Searches the records of a plan's splits: those that match, or with others around them.

bytes of batches ─▶ batches with a needle ─▶ records ─▶ those whose key, value or header matches

Batches are checked first, and skipped if their bytes, once decompressed, do not contain what every
match has to contain. Damage is reported as a Gap, and the search goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.format.log_path import LogPath, parse_log_path
from kafkajit.reader import SegmentReader
from kafkajit.records.columns import MayHold
from kafkajit.records.search import all_holders
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.patterns import Pattern
from kafkajit.scan.plan import Split, find_partitions
from kafkajit.scan.predicates import Predicate, wanted_by
from kafkajit.scan.table import plan_table, schema_of
from kafkajit.schema import with_corruption
from kafkajit.storage.source import Bytes, Int64s, Mask
from kafkajit.values.registry import is_internal
from kafkajit.walk.damage import PERMISSIVE, Gap

SIDES = ("key", "value", "headers")
_MARKER = "controlType"  # a transaction's marker is nobody's
_DAMAGE = "corruption"

# Makes the text of keys or values of the log at a path that is searched instead of their bytes.
Texts = Callable[[pa.Array, str], pa.Array]


@dataclass(frozen=True)
class Search:
    """Where to search for which patterns; a record matches if one of them is in one place."""

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


def plan_search(
    options: ScanOptions,
    topics: Sequence[str] = (),
    partitions: Sequence[str] = (),
    offsets: tuple[int | None, int | None] = (None, None),
) -> tuple[list[Split], list[str]]:
    """Plan a search: the splits by partition and offset, and the names that no segment has.

    Only these topics and these partitions, such as orders-0, are searched. By default that is all
    but brokers' own topics and a registry's; these only if there are no others. `offsets` are the
    first one and the one to stop before.
    """
    first, behind = offsets
    predicates = [
        Predicate("offset", test, offset)
        for test, offset in ((">=", first), ("<", behind))
        if offset is not None
    ]
    asked = {*topics, *partitions}
    if asked:
        of_topics = {*topics, *(name.rpartition("-")[0] for name in partitions)}
        predicates.append(Predicate("topic", "in", sorted(of_topics)))
    splits = [split for task in plan_table(options, predicates).tasks for split in task]
    places = [parse_log_path(split.file.path) for split in splits]
    if not asked:
        chosen = [place.topic is None or not is_internal(place.topic) for place in places]
        return (list(compress(splits, chosen)) or splits), []
    chosen = [not asked.isdisjoint(_names(place)) for place in places]
    missing = asked.difference(*map(_names, places))
    if missing:  # unless their segments have no such offset or time
        found = find_partitions(options, wanted_by(predicates))
        missing = missing.difference(*(_names(partition[0].path) for partition in found))
    return list(compress(splits, chosen)), sorted(missing)


def _names(place: LogPath) -> set[str | None]:
    """The names by which a segment may be asked for."""
    return {place.topic, f"{place.topic}-{place.partition}"}


def search_split(
    split: Split,
    search: Search,
    options: ScanOptions,
    columns: tuple[str, ...],
    *,
    around: bool = False,
) -> Iterator[Found | Gap]:
    """Yield the records of batches in which there may be matches, and damage.

    The records have these columns and those that are searched. With `around` all records come, for
    those around a match.
    """
    names = {*columns, *search.sides, _MARKER}
    schema = pa.schema([field for field in schema_of(options) if field.name in names])
    reader = SegmentReader(
        split.file.open(split.start, split.end),
        mode=PERMISSIVE,
        selection=split.selection,
        start=split.start,
        end=split.end,
    )
    for rows in reader.records(
        with_corruption(schema),
        check_crcs=options.check_crcs,
        max_decompressed_bytes=options.max_decompressed_bytes,
        may_hold=None if around else search.may_hold(),
    ):
        damage = rows[_DAMAGE]
        if damage.null_count < len(damage):
            yield Gap(**damage[0].as_py())
            continue
        markers = rows[_MARKER]
        if markers.null_count < len(markers):
            rows = rows.filter(markers.is_null())
        records = rows.select(schema.names)
        if records.num_rows:
            yield Found(records, search.rows(records, split.file.path))
