"""The partitions to export, each with the options and the types of its topic."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import pyarrow as pa

from kafkajit.log.segment import Segment
from kafkajit.places.location import shown
from kafkajit.places.wanted import any_partition
from kafkajit.scan.export.formats import check_types
from kafkajit.scan.export.journal import FileNames
from kafkajit.scan.export.options import ExportOptions
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.partitions import find_partitions
from kafkajit.scan.typed_table import with_types
from kafkajit.schema import with_corruption
from kafkajit.values.layout import Types
from kafkajit.values.registry import is_internal
from kafkajit.values.typed_records import ERRORS
from kafkajit.walk.damage import PERMISSIVE


@dataclass(frozen=True)
class PartitionLog:
    """A partition's log, and the options with the types of its topic."""

    topic: str
    partition: int
    segments: list[Segment]
    options: ExportOptions

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def names(self) -> FileNames:
        """The names of its files."""
        return FileNames(self.topic, self.partition, suffix=self.options.suffix)

    @property
    def identity(self) -> dict[str, Any]:
        """The options and the types that all runs of one export have in common."""
        types = [f"{field.name} {field.type}" for field in self.schema]
        return {**self.options.identity(), "suffix": self.options.suffix, "types": types}

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(segment.log.size for segment in self.segments)

    def bytes_before(self, offset: int) -> int:
        """The bytes of the segments before the one with this offset."""
        at = bisect_right(self.segments, offset, key=attrgetter("base_offset"))
        return sum(segment.log.size for segment in self.segments[: at - 1]) if at else 0

    @property
    def schema(self) -> pa.Schema:
        """The columns that are exported; under PERMISSIVE with those that report damage."""
        schema, scan = self.options.schema(), self.options.scan
        return with_corruption(with_errors(schema, scan)) if scan.mode == PERMISSIVE else schema


def partitions_to_export(options: ExportOptions) -> list[PartitionLog]:
    """The partitions that the options ask for, by topic and number."""
    found: dict[tuple[str, int], list[Segment]] = {}
    beside: set[str] = set()
    wanted = options.wants if options.named else None  # what is left out is reported without
    for segments in find_partitions(options.scan, wanted):
        topic, partition = segments[0].path[:2]
        if topic is None or partition is None:
            raise ValueError(
                f"{segments[0].log.path} is not in a partition's folder: move it into one such "
                "as orders-0, which gives its records a topic and a partition"
            )
        if not options.wants({"topic": topic, "partition": partition}):
            continue
        if not options.named and _is_beside(topic, options):
            beside.add(topic)
            continue
        if (topic, partition) in found:
            raise ValueError(
                f"{topic}-{partition} exists twice, in {found[topic, partition][0].log.folder} "
                f"and {segments[0].log.folder}: pass the folder of one of them, or the topic's id"
            )
        found[topic, partition] = segments
    if options.named.missing(found):
        every = {one[0].path[:2] for one in find_partitions(options.scan, any_partition)}
        options.named.check(every, options.scan.paths)
    where = ", ".join(map(shown, options.scan.paths))
    if not found:
        raise FileNotFoundError(
            f"only internal topics have segments at {where}: to export one, name it as the topic"
        )
    options.name_left_out(sorted(beside))
    typed: dict[str, ExportOptions] = {}
    for topic in sorted({topic for topic, _ in found}):
        typed[topic] = replace(options, scan=with_types(options.scan, topic, Types.FILES))
        check_types(typed[topic].schema(), options.format)
    return [
        PartitionLog(topic, number, found[topic, number], typed[topic])
        for topic, number in sorted(found)
    ]


def _is_beside(topic: str, options: ExportOptions) -> bool:
    """Whether a topic is the brokers' own, and no location is a partition's folder of it."""
    named = any(f"{topic}-" in shown(path).rpartition("/")[2] for path in options.scan.paths)
    return is_internal(topic) and not named


def errors_in(schema: pa.Schema, scan: ScanOptions) -> list[str]:
    """The columns that report malformed keys and values, if either is exported."""
    if scan.typed is None or scan.mode != PERMISSIVE:
        return []
    found = [name for name, part in ERRORS.items() if {name, part} & set(schema.names)]
    return [name for name in found if name in scan.typed.names]


def with_errors(schema: pa.Schema, scan: ScanOptions) -> pa.Schema:
    """The columns, and those that report malformed keys and values."""
    for name in errors_in(schema, scan):
        if name not in schema.names:
            schema = schema.append(pa.field(name, pa.string()))
    return schema
