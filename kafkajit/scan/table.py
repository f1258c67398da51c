"""Tables over log folders: columns, plans, and the rows of a task.

This is the data source without Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa

from kafkajit.arrow.record_batches import corruption_record_batch
from kafkajit.errors import InvalidOffsetError
from kafkajit.format.log_path import parse_log_path
from kafkajit.format.ranges import Range
from kafkajit.log.overlaps import unserved
from kafkajit.reader import SegmentReader
from kafkajit.scan.file_table import read_files
from kafkajit.scan.options import SERVED, ScanOptions
from kafkajit.scan.plan import ScanPlan, Split, make_plan
from kafkajit.scan.predicates import (
    Predicate,
    millisecond_range_of,
    range_of,
)
from kafkajit.scan.remote_segments import read_remote_segments
from kafkajit.scan.sidecar_table import SidecarSplit, plan_sidecar_files, read_sidecar_files
from kafkajit.scan.small_segments import read_together, small_segments
from kafkajit.scan.typed_table import read_registry
from kafkajit.schema import in_microseconds, table_schema, with_corruption
from kafkajit.state.sidecar_files import PATH_COLUMNS, TABLES, TELLING
from kafkajit.walk.damage import PERMISSIVE, Corruption
from kafkajit.walk.selection import EVERYTHING, Selection

logger = logging.getLogger("kafkajit")

Task = list[Split] | list[SidecarSplit]

# The kinds of tables whose rows planning finds: tasks have nothing to read.
PLANNED = ("files", "schemas", "remoteSegments")


def schema_of(options: ScanOptions) -> pa.Schema:
    """The schema of the table that the options ask for, with Spark's timestamps.

    >>> schema_of(ScanOptions(paths=("/logs",), kind="corruption")).names[:6]
    ['topic', 'partition', 'path', 'position', 'length', 'reason']
    """
    schema = in_microseconds(table_schema(TABLES[options.kind]))
    if options.typed is not None:
        schema = options.typed.schema(schema)
    if options.mode == PERMISSIVE and options.kind in TELLING:
        schema = with_corruption(schema)
    return schema


def with_whole_structs(asked: pa.Schema, known: pa.Schema, options: ScanOptions) -> pa.Schema:
    """The asked columns with whole structs, to read them before their parts are taken out.

    Only the fields that are asked for are decoded of typed keys and values.
    """
    typed = () if options.typed is None else options.typed.readers
    return pa.schema(
        [
            field.with_type(known.field(field.name).type)
            if field.type.num_fields and field.name not in typed
            else field
            for field in asked
        ]
    )


def plan_tasks(options: ScanOptions, predicates: Sequence[Predicate]) -> Sequence[Task]:
    """Plan what each task reads: segments, or files beside them."""
    if options.kind in PATH_COLUMNS:
        return plan_sidecar_files(options, predicates)
    return plan_table(options, predicates).tasks


def planned_rows(
    options: ScanOptions, predicates: Sequence[Predicate], schema: pa.Schema
) -> pa.RecordBatch:
    """The rows of a table of one of the kinds in PLANNED."""
    if options.kind == "schemas":
        return read_registry(options, schema)
    if options.kind == "remoteSegments":
        return read_remote_segments(options, predicates, schema)
    return read_files(options, predicates, schema)


def read_task(task: Task, schema: pa.Schema, options: ScanOptions) -> Iterator[pa.RecordBatch]:
    """A task's rows, as record batches of the schema's columns."""
    if options.kind in PATH_COLUMNS:
        return read_sidecar_files(cast("list[SidecarSplit]", task), schema, options)
    splits = cast("list[Split]", task)
    if options.typed is not None:
        plain = options.typed.raw_schema(schema)
        untyped = replace(options, typed=None)
        return options.typed.rows(read_task(task, plain, untyped), schema)
    rows = _counted(_read_splits(splits, schema, options), splits)
    column = "baseOffset" if options.kind == "batches" else "offset"
    if not splits or not options.one_task_per_partition or column not in schema.names:
        return rows
    return _in_order(rows, column, splits[0].file.folder)


def _counted(rows: Iterator[pa.RecordBatch], splits: list[Split]) -> Iterator[pa.RecordBatch]:
    """The same rows; the requests for remote files go to the log at the end."""
    asked = {id(split.file.requests): split.file.requests for split in splits}
    try:
        yield from rows
    finally:
        for requests in filter(None, asked.values()):
            first, *others = {split.file.path for split in splits}
            logger.info("%s and %d other files: read in %s", first, len(others), requests)


def _in_order(
    batches: Iterable[pa.RecordBatch], column: str, folder: str
) -> Iterator[pa.RecordBatch]:
    """A partition's rows, if their offsets go up, as Spark relies on."""
    last = -1
    for rows in batches:
        offsets = rows.column(column).drop_null().to_numpy()  # damage has no offset
        all_of_them = np.concatenate(([last], offsets))
        before = all_of_them[:-1]
        wrong = np.flatnonzero(offsets <= before)
        if wrong.size:
            raise InvalidOffsetError(
                f"{column} {offsets[wrong[0]]} follows {before[wrong[0]]}",
                path=folder,
                advice="the option oneTaskPerPartition promises rows in order; leave it out, or "
                "let kafkajit repair remove the batches that are out of order",
            )
        last = all_of_them[-1]
        yield rows


def _read_splits(
    splits: list[Split], schema: pa.Schema, options: ScanOptions
) -> Iterator[pa.RecordBatch]:
    while splits:
        small = () if options.kind == "corruption" else small_segments(splits)
        left: list[Split] = []
        if len(small) > 1:
            left = yield from read_together(small, schema, options)
        if left or len(small) < 2:
            # A reader of its own reports the problem of the first one.
            split, *left = left or splits[:1]
            yield from read_split(split, schema, options)
        splits = [*left, *splits[max(len(small), 1) :]]


def plan_table(options: ScanOptions, predicates: Sequence[Predicate]) -> ScanPlan:
    """Plan which segments have to be read, and where."""
    if options.kind == "records":
        offsets = range_of("offset", predicates)
        timestamps = millisecond_range_of("timestamp", predicates)
    elif options.kind == "batches":
        offsets = _offsets_between(
            range_of("baseOffset", predicates), range_of("lastOffset", predicates)
        )
        timestamps = millisecond_range_of("maxTimestamp", predicates)
    else:
        # The table of corruption has to work on any damaged log, in any mode.
        return make_plan(replace(options, mode=PERMISSIVE), predicates, Selection())
    return make_plan(options, predicates, Selection(offsets, timestamps))


def _offsets_between(bases: Range, lasts: Range) -> Range:
    """Offsets that include one of each batch whose first and last offsets are in these ranges."""
    if bases and lasts and bases.last < lasts.first:
        return Range(bases.last, lasts.first)  # such a batch spans both ranges
    return bases & lasts


def read_split(split: Split, schema: pa.Schema, options: ScanOptions) -> Iterator[pa.RecordBatch]:
    """A split's rows, as record batches of the schema's columns."""
    reader = SegmentReader(
        split.file.open(split.start, split.end),
        mode=PERMISSIVE if options.kind == "corruption" else options.mode,
        # Gaps are found from the batches around them, even from those outside the selection.
        selection=EVERYTHING if options.kind == "corruption" else split.selection,
        start=split.start,
        end=split.end,
        order=split.order(),
    )
    if options.kind == "batches":
        return reader.batches(schema)
    if options.kind == "corruption":
        return _corruption(split, reader, schema, options)
    return reader.records(
        schema,
        check_crcs=options.check_crcs,
        max_decompressed_bytes=options.max_decompressed_bytes,
    )


def _corruption(
    split: Split, reader: SegmentReader, schema: pa.Schema, options: ScanOptions
) -> Iterator[pa.RecordBatch]:
    """The damage of a segment, and what a broker does not serve of it."""
    gap = unserved(split.file, split.selection.offsets) if options.overlaps == SERVED else None
    if gap is not None:
        row = Corruption(*gap, first_missing_offset=None, last_missing_offset=None)
        yield corruption_record_batch(row, schema, parse_log_path(split.file.path))
    yield from reader.corruption(
        schema,
        offsets=split.offsets or None,
        check_crcs=options.check_crcs,
        max_decompressed_bytes=options.max_decompressed_bytes,
    )
