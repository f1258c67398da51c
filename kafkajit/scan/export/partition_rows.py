"""The partitions to export, and the rows of each in the order of offsets, with the damage between.

A partition that an earlier run has exported up to an offset is read from the record before it: the
damage that lies behind that record is then seen, too.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.errors import (
    CorruptRecordError,
    InvalidOffsetError,
    InvalidRecordError,
    KafkaJitError,
    LeftOutError,
    RecordSerializationError,
)
from kafkajit.format.limits import MIN_INT64
from kafkajit.format.ranges import NOTHING, Range
from kafkajit.log.footing import ReadBatch
from kafkajit.log.leaps import unsure_end
from kafkajit.log.open_segment import OpenSegment
from kafkajit.log.resumption import batch_at
from kafkajit.log.segment import Segment
from kafkajit.log.tiered_copies import advise_copy
from kafkajit.places.location import shown
from kafkajit.places.wanted import any_partition
from kafkajit.scan.export.header_keys import WHY, malformed_keys
from kafkajit.scan.export.journal import FileNames
from kafkajit.scan.export.known_damage import known_damage
from kafkajit.scan.export.losses import check_continued, losses
from kafkajit.scan.export.options import ExportOptions
from kafkajit.scan.export.passed import Passed
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.partitions import find_partitions
from kafkajit.scan.plan import Split, selection_in, selection_of
from kafkajit.scan.table import read_task
from kafkajit.scan.typed_table import with_types
from kafkajit.schema import RECORD_COLUMNS, with_corruption
from kafkajit.values.registry import is_internal
from kafkajit.values.typed_records import ERRORS
from kafkajit.walk.damage import DROPMALFORMED, FAILFAST, PERMISSIVE, Stretch
from kafkajit.walk.selection import Selection

logger = logging.getLogger("kafkajit")

CORRUPTION = "corruption"
# Leave out markers of transactions, unless their columns are asked for.
_MARKERS = ("controlType", "coordinatorEpoch")

# The row of damage, and the fields of its column `corruption`.
_Damage = tuple[pa.RecordBatch, dict[str, Any]]


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
        return with_corruption(_with_errors(schema, scan)) if scan.mode == PERMISSIVE else schema


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
        typed[topic] = replace(options, scan=with_types(options.scan, topic))
        typed[topic].schema()  # raises for unknown columns, before anything is written
    return [
        PartitionLog(topic, number, found[topic, number], typed[topic])
        for topic, number in sorted(found)
    ]


def _is_beside(topic: str, options: ExportOptions) -> bool:
    """Whether a topic is the brokers' own, and no location is a partition's folder of it."""
    named = any(f"{topic}-" in shown(path).rpartition("/")[2] for path in options.scan.paths)
    return is_internal(topic) and not named


def rows_of(
    log: PartitionLog, passed: Passed, progress: Callable[[int], None] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield a partition's rows, with the column offset whether or not it is exported.

    Under PERMISSIVE the damage is rows, too.

    Args:
        log: the partition.
        passed: how far an earlier run has come; it goes on with the rows.
        progress: is called with the number of the log's bytes that were read.
    """
    begin = passed.next_offset
    options, reading = log.options, _reading(log)
    schema, errors = _schema_to_read(log, reading)
    lost = early = NOTHING
    if begin is not None:
        lost = check_continued(log.segments, begin, passed.read, passed.now)
        early = _early(log, passed, reading)
    if "position" not in schema.names:
        schema = schema.append(pa.field("position", RECORD_COLUMNS["position"].type))
    given = _given(log, reading, begin)
    unsure = unsure_end(log.segments, check_crcs=reading.check_crcs)
    if unsure is not None and given.offsets.last >= unsure.end_offset:
        given = replace(given, offsets=given.offsets & Range(MIN_INT64, unsure.end_offset - 1))
    splits = _splits(log, given)
    new = given.offsets & Range(MIN_INT64 if begin is None else begin)
    for text in losses(
        log.name,
        log.segments,
        new,
        is_by_time=reading.starting_timestamp is not None,
        early=early,
        lost=lost,
        missing=passed.missing,
    ):
        passed.lost.append(text)
        _name_lost(text, log.options.scan)
    if unsure is not None and given.offsets.last == unsure.end_offset - 1:
        _name_lost(f"{log.name}: {unsure.text}, and the batch is not exported", log.options.scan)
    drops_markers = not _has_markers(options)
    kept = pa.schema([field_ for field_ in schema if field_.name in _kept(log)])
    waiting: list[_Damage] = []  # in front of the first row
    last, is_first = -1 if begin is None else begin - 1, begin is not None
    for rows in _read(splits, schema, reading, log.segments):
        if CORRUPTION in schema.names and rows.num_rows == 1 and rows[CORRUPTION][0].is_valid:
            waiting.append((rows.select(kept.names), rows[CORRUPTION][0].as_py()))
            if not is_first:
                yield from _reported(waiting, passed, log)
            continue
        if is_first and rows.num_rows:
            if rows["offset"][0].as_py() < (begin or 0):
                waiting.clear()  # lies before what the earlier run has exported
            is_first = False
            rows = rows.filter(pc.greater_equal(rows["offset"], begin))
        yield from _reported(waiting, passed, log)
        offsets = rows["offset"].to_numpy()
        _check_growing(offsets, last, log)
        if not offsets.size:
            continue
        last = int(offsets[-1])
        position = rows["position"][-1].as_py()
        passed.behind.clear()
        if drops_markers and rows["controlType"].null_count < rows.num_rows:
            rows = rows.filter(rows["controlType"].is_null())
        reasons = _malformed(rows, errors, log)
        if reasons is not None:
            bad = reasons.is_valid()
            passed.add_malformed(rows.filter(bad)["offset"], reasons.drop_null(), log.name)
            if options.scan.mode == DROPMALFORMED:
                rows = rows.filter(pc.invert(bad))
        done = 0
        for piece in _pieces(rows.select(kept.names), options.file_size):
            done += piece.num_rows
            passed.next_offset = piece["offset"][-1].as_py() + 1
            passed.position = rows["position"][done - 1].as_py()
            yield piece
        passed.next_offset, passed.position = last + 1, position
        if progress is not None:
            progress(log.bytes_before(last) + position)
    yield from _reported(waiting, passed, log)


def _early(log: PartitionLog, passed: Passed, reading: ScanOptions) -> Range:
    """The wanted offsets before the log's start when the export began."""
    start, begun = passed.now.log_start, passed.read.log_start
    if start is None or begun is None or start >= begun:
        return NOTHING
    return Range(start, begun - 1) & _given(log, reading, None).offsets


def last_batch(log: PartitionLog, passed: Passed) -> ReadBatch | None:
    """The batch of the last record: a later run looks whether the log still has it."""
    if passed.next_offset is None or passed.position is None:
        return passed.read.last
    try:
        return batch_at(log.segments, passed.next_offset - 1, passed.position)
    except (OSError, EOFError, KafkaJitError):
        return None  # the segment is gone meanwhile


def _name_lost(text: str, scan: ScanOptions) -> None:
    if scan.failed is None:
        logger.warning("%s", text)
    else:
        scan.failed(LeftOutError(text))


def _has_markers(options: ExportOptions) -> bool:
    """Whether markers are exported, too: their columns tell them from records."""
    return bool(set(_MARKERS) & set(options.columns))


def _reading(log: PartitionLog) -> ScanOptions:
    """The options to read with: those of PERMISSIVE, unless damage is an error."""
    scan = log.options.scan
    if scan.mode == FAILFAST:
        return scan
    typed = None if scan.typed is None else replace(scan.typed, mode=PERMISSIVE)
    return replace(scan, mode=PERMISSIVE, typed=typed)


def _kept(log: PartitionLog) -> set[str]:
    return {*log.schema.names, "offset", "timestamp"}


def _schema_to_read(log: PartitionLog, reading: ScanOptions) -> tuple[pa.Schema, list[str]]:
    """The columns to read, and those of them that report malformed keys and values."""
    schema = log.options.schema()
    errors = _errors(schema, reading)
    more = ["offset", *(["timestamp"] if "date" in log.options.partition_by else [])]
    more += [] if set(_MARKERS) & set(schema.names) else ["controlType"]
    for name in more:
        if name not in schema.names:
            schema = schema.append(pa.field(name, RECORD_COLUMNS[name].type))
    schema = _with_errors(schema, reading)
    return (with_corruption(schema) if reading.mode == PERMISSIVE else schema), errors


def _errors(schema: pa.Schema, scan: ScanOptions) -> list[str]:
    """The columns that report malformed keys and values, of those that are read."""
    if scan.typed is None or scan.mode != PERMISSIVE:
        return []
    found = [name for name, part in ERRORS.items() if part in schema.names]
    return [name for name in found if name in scan.typed.names]


def _with_errors(schema: pa.Schema, scan: ScanOptions) -> pa.Schema:
    """The columns, and those that report malformed keys and values."""
    for name in _errors(schema, scan):
        if name not in schema.names:
            schema = schema.append(pa.field(name, pa.string()))
    return schema


def _given(log: PartitionLog, reading: ScanOptions, begin: int | None) -> Selection:
    """The wanted records; of those that an earlier run has exported, the last one."""
    if begin is not None:  # an earlier run has found the start, which may be gone now
        reading = replace(reading, starting_offsets={}, starting_timestamp=None)
    given = selection_in(log.segments, reading, Selection(with_control=_has_markers(log.options)))
    first = Range(MIN_INT64 if begin is None else begin - 1)
    return replace(given, offsets=given.offsets & first)


def _splits(log: PartitionLog, given: Selection) -> list[Split]:
    """The stretches that hold the wanted records, as far as indexes can tell."""
    splits = []
    for segment in log.segments:
        if not segment.log.size or not given.offsets & segment.offsets:
            continue
        asked = selection_of(segment, given)
        stretch = Stretch(0, segment.log.size)
        if asked.judges_rows:
            stretch = OpenSegment(segment).stretch(asked)
        splits.append(Split(segment.log, segment.offsets, *stretch, asked, between=segment.between))
    return splits


def _read(
    splits: list[Split], schema: pa.Schema, reading: ScanOptions, segments: Sequence[Segment]
) -> Iterator[pa.RecordBatch]:
    """Rows of segments, with damage between them."""
    if reading.mode == FAILFAST:
        try:
            yield from read_task(splits, schema, reading)
        except (CorruptRecordError, InvalidRecordError) as error:
            advise_copy(error, segments)
            error.advice = error.advice or "export with mode DROPMALFORMED to leave damage out"
            raise
        return
    for split in splits:
        yield from read_task([split], schema, reading)


def _reported(
    waiting: list[_Damage], passed: Passed, log: PartitionLog
) -> Iterator[pa.RecordBatch]:
    """Report damage that no earlier run has; yield its rows under PERMISSIVE."""
    for rows, gap in waiting:
        here = known_damage(gap, log.segments)
        if here not in passed.behind:
            passed.behind.append(here)
            passed.gaps.append(gap)
            if log.options.scan.mode == PERMISSIVE:
                yield rows
    waiting.clear()


def _pieces(rows: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """The rows in pieces of about this size: a small file ends before a large chunk does."""
    count = rows.num_rows * size // max(rows.nbytes, 1)
    step = max(1, min(count, rows.num_rows))
    return (rows.slice(start, step) for start in range(0, rows.num_rows, step))


def _check_growing(offsets: Any, last: int, log: PartitionLog) -> None:
    before = np.concatenate(([last], offsets[:-1])) if offsets.size else offsets
    wrong = np.flatnonzero(offsets <= before)
    if wrong.size:
        at = wrong[0]
        raise InvalidOffsetError(
            f"offset {offsets[at]} follows {before[at]}",
            path=log.segments[0].log.folder,
            advice="the log is out of order: kafkajit repair lists the batches",
        )


def _malformed(rows: pa.RecordBatch, errors: list[str], log: PartitionLog) -> pa.Array | None:
    """Why each row is malformed, NULL if it is not; None if no row is."""
    reasons = [rows[error] for error in errors if rows[error].null_count < rows.num_rows]
    if "headers" in log.schema.names and rows.num_rows:
        keys = malformed_keys(rows, log.segments, log.options.scan)
        if keys is not None:
            _check_mode(rows.filter(pa.array(keys)), log)
            reasons.append(pc.if_else(pa.array(keys), WHY, None))
    return pc.coalesce(*reasons) if reasons else None


def _check_mode(malformed: pa.RecordBatch, log: PartitionLog) -> None:
    """Raise an error for records with such header keys if the mode is FAILFAST."""
    if log.options.scan.mode == FAILFAST:
        raise RecordSerializationError(
            f"{WHY} at offset {malformed['offset'][0]}",
            path=log.segments[0].log.folder,
            advice="export with mode PERMISSIVE, which writes U+FFFD in place of the bytes, with "
            "DROPMALFORMED, which leaves the record out, or without the column headers",
        )
