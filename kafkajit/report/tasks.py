"""The work of a report as tasks, each of which reads its share and returns a small piece.

    list ─▶ tasks ─▶ pieces, in the order of tasks ─▶ merged ─▶ document

A task and its piece can be pickled, so tasks run here in turn (`HERE`) or on other machines
(kafkajit/spark/folder_report.py). A partition is one task's, unless it is larger than a share: then
it is cut between segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from kafkajit.errors import KafkaJitError
from kafkajit.log.segment import Segment
from kafkajit.report import savings, trouble
from kafkajit.report.dry_runs import DryRuns
from kafkajit.report.headers import TopicFigures
from kafkajit.report.newest import Newest, read_newest
from kafkajit.report.sample import Others, Part, RecordFigures
from kafkajit.report.savings import Encoding
from kafkajit.report.trouble import Trouble
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.sidecar_table import SidecarSplit
from kafkajit.scan.table import Task as ScanTask

# Opening a file counts as reading this many bytes, as in spark.sql.files.openCostInBytes.
OPENING = 4 << 20
# To encode a byte of a log in seven ways takes as long as reading this many.
_ENCODING = 100
# Bytes of records, decompressed, that are encoded anew: a few kilobytes may become gigabytes.
_MOST_PLAIN = 128 << 20
# The plan of a compaction reads a log twice.
_COMPACTING = 2

_Piece = TypeVar("_Piece", covariant=True)
_Item = TypeVar("_Item")


class Task(Protocol[_Piece]):
    """Work on some files."""

    @property
    def cost(self) -> int:
        """The time that it takes, as the bytes that could be read instead."""

    @property
    def path(self) -> str:
        """The first file or folder that it reads."""

    def run(self) -> _Piece:
        """Do the work."""


class Runner(Protocol):
    """Runs tasks, here or on other machines."""

    def share(self, cost: int) -> int | None:
        """The cost of a task, of work with this cost in all; None if it need not be cut."""

    def run(self, tasks: Iterable[Task[_Piece]]) -> Iterator[_Piece]:
        """The pieces, in the order of their tasks."""


class _InTurn:
    """Runs one task after the other in this process."""

    def share(self, cost: int) -> int | None:
        del cost
        return None

    def run(self, tasks: Iterable[Task[_Piece]]) -> Iterator[_Piece]:
        return (task.run() for task in tasks)


HERE = _InTurn()


@dataclass(frozen=True)
class ReadHeaders:
    """Reads the headers of partitions of one topic, or of runs of their segments."""

    topic: str
    now: int
    runs: list[list[Segment]]
    continues: bool  # whether the first run continues the partition of the task before
    at_rest: bool  # whether files must not change: tasks elsewhere cannot hold them open

    @property
    def cost(self) -> int:
        return sum(map(_cost_of_segments, self.runs))

    @property
    def path(self) -> str:
        return self.runs[0][0].log.path

    def run(self) -> tuple[TopicFigures, list[Trouble]]:
        figures = TopicFigures(self.topic, self.now)
        troubles = []
        for number, run in enumerate(self.runs):
            gaps = figures.read(run, continues=self.continues and number == 0, at_rest=self.at_rest)
            where = run[0].path.partition
            troubles += [trouble.of_gap(gap, self.topic, where) for gap in gaps]
        return figures, troubles


def header_tasks(
    topic: str, now: int, partitions: Iterable[list[Segment]], share: int | None
) -> Iterator[ReadHeaders]:
    """The tasks of a topic: its partitions, as many as fit into a share."""
    if share is None:
        for partition in partitions:
            yield ReadHeaders(topic, now, [partition], continues=False, at_rest=False)
        return
    for group in cut(partitions, share, _cost_of_segments):
        if len(group) > 1 or _cost_of_segments(group[0]) <= share:
            yield ReadHeaders(topic, now, group, continues=False, at_rest=True)
            continue
        for number, run in enumerate(cut(group[0], share, _cost_of_segment)):
            yield ReadHeaders(topic, now, [run], continues=number > 0, at_rest=True)


@dataclass(frozen=True)
class ReadRecords:
    """Reads records of one topic."""

    topic: str
    parts: list[Part]

    @property
    def cost(self) -> int:
        return sum(map(cost_of_part, self.parts))

    @property
    def path(self) -> str:
        return self.parts[0].segment.log.path

    def run(self) -> tuple[str, RecordFigures]:
        figures = RecordFigures()
        for part in self.parts:
            figures.read(part)
        return self.topic, figures


@dataclass(frozen=True)
class Encode:
    """Encodes records of one topic anew: their number, the bytes that they have now, the documents.

    Parts from the one on that does not fit into memory are left out.
    """

    topic: str
    parts: list[Part]
    encodings: Sequence[Encoding]

    @property
    def cost(self) -> int:
        return _ENCODING * sum(map(cost_of_part, self.parts))

    @property
    def path(self) -> str:
        return self.parts[0].segment.log.path

    def run(self) -> tuple[int, int, list[dict[str, Any]]]:
        rows: list[pa.RecordBatch] = []
        size = plain = 0
        for part in self.parts:
            found = []
            for batch in part.records(Others()):
                plain += batch.nbytes
                if plain > _MOST_PLAIN:
                    break
                found.append(batch)
            if plain > _MOST_PLAIN:
                break
            rows += found
            size += part.size
        if not rows:
            return 0, 0, []
        records = pa.Table.from_batches(rows).combine_chunks()
        return records.num_rows, size, savings.measured_in_all(records, self.encodings)


def encode_tasks(topic: str, parts: list[Part], *, is_cut: bool) -> list[Encode]:
    """The tasks of a topic: one, or one for each size of batches."""
    if not is_cut:
        return [Encode(topic, parts, savings.ENCODINGS)]
    by_size = groupby(savings.ENCODINGS, key=attrgetter("batch_size"))
    return [Encode(topic, parts, list(encodings)) for _, encodings in by_size]


@dataclass(frozen=True)
class DryRun:
    """Plans retention, and compaction if there are keys, for a local partition of a topic."""

    topic: str
    folder: Path
    size: int
    now: int
    has_keys: bool

    @property
    def cost(self) -> int:
        return OPENING + (_COMPACTING * self.size if self.has_keys else 0)

    @property
    def path(self) -> str:
        return str(self.folder)

    def run(self) -> DryRuns:
        plans = DryRuns(self.now)
        plans.add(self.folder, has_keys=self.has_keys)
        return plans


@dataclass(frozen=True)
class CheckIndexes:
    """Compares indexes with their logs."""

    indexes: list[SidecarSplit]

    @property
    def cost(self) -> int:
        return sum(map(cost_of_index, self.indexes))

    @property
    def path(self) -> str:
        return self.indexes[0].file.path

    def run(self) -> list[Trouble]:
        return list(trouble.of_indexes(self.indexes))


class Unread(NamedTuple):
    """Why an internal topic cannot be read, and whether a file has gone meanwhile."""

    problem: str
    is_gone: bool

    @classmethod
    def of(cls, error: Exception) -> Unread:
        return cls(str(error), isinstance(error, (FileNotFoundError, EOFError)))


@dataclass(frozen=True)
class ReadNewest:
    """Reads the newest values in a stretch of an internal topic; the piece may be a problem."""

    task: ScanTask
    options: ScanOptions

    @property
    def cost(self) -> int:
        return sum(split.size for split in self.task)

    @property
    def path(self) -> str:
        return self.task[0].file.path

    def run(self) -> Newest | Unread:
        try:
            return read_newest(self.task, self.options)
        except (OSError, EOFError, KafkaJitError) as error:
            return Unread.of(error)


def cut(
    items: Iterable[_Item], share: int | None, cost: Callable[[_Item], int]
) -> Iterator[list[_Item]]:
    """Stretches of a sequence with about the cost of a share each; without a share, all of it.

    >>> list(cut([4, 4, 9, 1], 8, int))
    [[4, 4], [9], [1]]
    """
    stretch: list[_Item] = []
    room = 0
    for item in items:
        needed = 0 if share is None else cost(item)
        if stretch and needed > room:
            yield stretch
            stretch = []
        room = (room if stretch else share or 0) - needed
        stretch.append(item)
    if stretch:
        yield stretch


def cost_of_part(part: Part) -> int:
    """The cost of reading a part of a sample."""
    return part.size + OPENING


def cost_of_index(index: SidecarSplit) -> int:
    """The cost of comparing an index with its log."""
    return index.size + OPENING


def _cost_of_segment(segment: Segment) -> int:
    return segment.log.size + OPENING


def _cost_of_segments(segments: Iterable[Segment]) -> int:
    return sum(map(_cost_of_segment, segments))
