"""The partitions to export, and the rows of each in the order of offsets, with the damage between.

A partition that an earlier run has exported up to an offset is read from the record before it: the
damage that lies behind that record is then seen, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.errors import (
    CorruptRecordError,
    InvalidOffsetError,
    InvalidRecordError,
    LeftOutError,
    RecordSerializationError,
)
from kafkajit.format.amounts import offsets_text
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.format.ranges import NOTHING, Range
from kafkajit.log.leaps import unsure_end
from kafkajit.log.segment import Segment
from kafkajit.log.segment_gaps import come_text, gaps_between
from kafkajit.log.tiered_copies import advise_copy
from kafkajit.places.location import absolute
from kafkajit.scan.export.header_keys import WHY, malformed_keys
from kafkajit.scan.export.known_damage import LeftOut, known_damage
from kafkajit.scan.export.losses import check_continued, losses, undecided
from kafkajit.scan.export.options import ExportOptions
from kafkajit.scan.export.partition_log import PartitionLog, errors_in, with_errors
from kafkajit.scan.export.passed import Passed
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.plan import Split, selection_in, selection_of
from kafkajit.scan.stretches import stretches_of
from kafkajit.scan.table import read_task
from kafkajit.schema import RECORD_COLUMNS, record_schema, with_corruption
from kafkajit.storage.stored_file import has_grown
from kafkajit.walk.damage import DROPMALFORMED, FAILFAST, PERMISSIVE, Stretch
from kafkajit.walk.selection import Selection

logger = logging.getLogger("kafkajit")

CORRUPTION = "corruption"

# The row of damage, and the fields of its column `corruption`.
_Damage = tuple[pa.RecordBatch, dict[str, Any]]


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
    passed.identify(log.segments)
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
    gaps = gaps_between(log.segments)
    given, late = _before_come(gaps.come, given, log, passed, reading)
    splits = _splits(log, given, reading)
    new = given.offsets & Range(MIN_INT64 if begin is None else begin)
    for text in losses(
        log.name,
        log.segments,
        new,
        is_by_time=reading.starting_timestamp is not None,
        early=early,
        lost=lost,
        missing=passed.missing,
        between=gaps.missing,
    ):
        passed.lost.append(text)
        _name_lost(text, log.options.scan)
    for gap, first in undecided(log.segments, gaps.missing, new, reading):
        passed.lost.append(
            f"{log.name}: {gap.text}: a transaction is open there since offset {first}, and if the "
            "marker that ends it is missing, a later one decides about its records"
        )
        _name_lost(passed.lost[-1], log.options.scan)
    for one in passed.left_out:
        if _is_mended(one, log, given):
            passed.lost.append(
                f"{log.name}: {offsets_text(*one.offsets)} had damage in an earlier run, and the "
                "log has records of them now: export it into another folder"
            )
            _name_lost(passed.lost[-1], log.options.scan)
    if unsure is not None and given.offsets.last == unsure.end_offset - 1:
        _name_lost(f"{log.name}: {unsure.text}, and the batch is not exported", log.options.scan)
    if late:
        passed.lost.append(f"{log.name}: {late}")
        _name_lost(passed.lost[-1], log.options.scan)
    drops_markers = not _has_markers(options)
    kept = pa.schema([field_ for field_ in schema if field_.name in _kept(log)])
    waiting: list[_Damage] = []  # in front of the first row
    last, is_first = -1 if begin is None else begin - 1, begin is not None
    before = _start(log, new) - 1  # the first record that this run may have
    for rows in _read(splits, schema, reading, log, passed):
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
        passed.pass_record(max(last, before), int(offsets[0]))
        last = int(offsets[-1])
        position = rows["position"][-1].as_py()
        passed.ground.note(last, position)
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


def _before_come(
    come: Sequence[Range],
    given: Selection,
    log: PartitionLog,
    passed: Passed,
    reading: ScanOptions,
) -> tuple[Selection, str | None]:
    """The wanted records before offsets whose segment came too late, and a line that says so.

    If the segments are named one by one, these offsets were not asked for, and a later run of
    others has to tell what this one lacked.
    """
    begin = passed.next_offset
    new = given.offsets & Range(MIN_INT64 if begin is None else begin)
    depth = log.segments[0].log.path.count("/")
    if any(absolute(path).count("/") == depth for path in log.options.scan.paths):
        passed.missing += [one & new for one in come if one & new]
        return given, None
    if reading.starting_timestamp is not None and begin is None:
        new = Range(last=new.last)  # the first record with the timestamp may be among these
    wanted = [one & new for one in come if one & new]
    if not wanted:
        return given, None
    first = wanted[0].first
    # Markers behind them do not decide about the records before them.
    before = replace(log, segments=[one for one in log.segments if one.base_offset < first])
    given = _given(before, reading, begin)
    text = f"{come_text(wanted[0])}: they and what is behind them are left to a later run"
    return replace(given, offsets=given.offsets & Range(last=first - 1)), text


def _early(log: PartitionLog, passed: Passed, reading: ScanOptions) -> Range:
    """The wanted offsets before the log's start when the export began."""
    start, begun = passed.now.log_start, passed.read.log_start
    if start is None or begun is None or start >= begun:
        return NOTHING
    return Range(start, begun - 1) & _given(log, reading, None).offsets


def _start(log: PartitionLog, asked: Range) -> int:
    """The first offset that the first row may have."""
    return max(0, asked.first, log.segments[0].first_offset if log.segments else 0)


def _is_mended(left: LeftOut, log: PartitionLog, given: Selection) -> bool:
    """Whether the log has sound records where an earlier run found damage."""
    if left.is_there(log.segments):
        return False
    reading = replace(log.options.scan, mode=DROPMALFORMED, typed=None)
    schema = record_schema(["offset", "controlType"])
    splits = _splits(log, replace(given, offsets=left.offsets), reading)
    is_all = _has_markers(log.options)
    return any(
        rows.num_rows if is_all else rows["controlType"].null_count
        for rows in read_task(splits, schema, reading)
    )


def _name_lost(text: str, scan: ScanOptions) -> None:
    if scan.failed is None:
        logger.warning("%s", text)
    else:
        scan.failed(LeftOutError(text))


def _has_markers(options: ExportOptions) -> bool:
    """Whether markers are exported, too: their column tells them from records."""
    return "controlType" in options.columns


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
    errors = errors_in(schema, reading)
    days = ["timestamp"] if "date" in log.options.partition_by else []
    for name in ("offset", *days, "controlType"):
        if name not in schema.names:
            schema = schema.append(pa.field(name, RECORD_COLUMNS[name].type))
    schema = with_errors(schema, reading)
    return (with_corruption(schema) if reading.mode == PERMISSIVE else schema), errors


def _given(log: PartitionLog, reading: ScanOptions, begin: int | None) -> Selection:
    """The wanted records; of those that an earlier run has exported, the last one."""
    if begin is not None:  # an earlier run has found the start, which may be gone now
        reading = replace(reading, starting_offsets={}, starting_timestamp=None)
    given = selection_in(log.segments, reading, Selection(with_control=_has_markers(log.options)))
    first = Range(MIN_INT64 if begin is None else begin - 1)
    return replace(given, offsets=given.offsets & first)


def _splits(log: PartitionLog, given: Selection, reading: ScanOptions) -> list[Split]:
    """The stretches that hold the wanted records, one of each segment at most."""
    splits: list[Split] = []
    for segment in log.segments:
        if not segment.log.size or not given.offsets & segment.offsets:
            continue
        asked = selection_of(segment, given)
        stretches = [Stretch(0, segment.log.size)]
        if asked.judges_rows:
            stretches, _ = stretches_of(segment, asked, reading, MAX_INT64, MAX_INT64)
        splits.extend(
            Split(segment.log, segment.offsets, *stretch, asked, between=segment.between)
            for stretch in stretches
        )
    return splits


def _read(
    splits: list[Split], schema: pa.Schema, reading: ScanOptions, log: PartitionLog, passed: Passed
) -> Iterator[pa.RecordBatch]:
    """Rows of segments, with damage between them, up to one to which others are writing."""
    left = [split for split in splits if split.is_followed]
    for rows in _read_all(splits, schema, reading, log.segments):
        offsets = rows["offset"].drop_null()  # damage has no offset
        while left and len(offsets) and offsets[-1].as_py() > left[0].offsets.last:
            split = left.pop(0)
            if has_grown(split.file):
                yield rows.filter(pc.less_equal(rows["offset"], split.offsets.last))
                _name_growing(split, log, passed)
                return
        yield rows
    for split in left:
        if has_grown(split.file):
            _name_growing(split, log, passed)
            return


def _name_growing(split: Split, log: PartitionLog, passed: Passed) -> None:
    text = f"{log.name}: {split.file.name} is growing, as in a copy that is being made: "
    passed.lost.append(f"{text}what is behind it is left to a later run")
    _name_lost(passed.lost[-1], log.options.scan)


def _read_all(
    splits: list[Split], schema: pa.Schema, reading: ScanOptions, segments: Sequence[Segment]
) -> Iterator[pa.RecordBatch]:
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
        if not any(map(here.is_same, passed.behind)):
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
