"""Aggregates of a table's rows, from the headers of batches if these suffice.

A query engine combines the results of all tasks, so each task returns partial ones: the count, sum,
minimum and maximum of its own rows. The header of a v2 batch has the number of its records. It also
has their first and last offset, unless compaction has removed some, and their largest timestamp. If
a header does not have what the query needs, the records are decoded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.format.codecs import COMPRESSION_TYPES
from kafkajit.format.layout import MAGIC_V2, RECORD_BATCH_OVERHEAD
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.log_path import parse_log_path
from kafkajit.records.batches import Batches
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.plan import Split
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.small_segments import SMALL
from kafkajit.scan.table import Task, plan_tasks, read_task, schema_of
from kafkajit.walk.damage import FAILFAST, Gap
from kafkajit.walk.walk import Walk

_LOG_APPEND_TIME = 1
_LEAST_RECORD_BYTES = 7  # a size, attributes, two deltas, and three empty fields
_PLACES = ("topic", "partition")  # the columns that all records of a segment share
# Tasks that become one at most, if headers suffice: 1 GiB. Starting a task takes as long as walking
# the headers of 100 MB.
_MOST_JOINED = 8
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max}


class Aggregate(NamedTuple):
    """A function of a column's values. A count without a column is of rows."""

    function: str  # count, sum, min or max
    column: str | None


class Aggregates(NamedTuple):
    """The aggregates of a query, and the columns by which it groups rows.

    >>> Aggregates.parse('{"by": ["topic"], "of": [["count", null], ["max", "offset"]]}').columns
    ['topic', 'offset']
    """

    by: list[str]
    of: list[Aggregate]

    @classmethod
    def parse(cls, text: str) -> Aggregates:
        """Parse the JSON that the bridge passes."""
        given = json.loads(text)
        return cls(given["by"], [Aggregate(*each) for each in given["of"]])

    @property
    def may_use_headers(self) -> bool:
        """Whether the headers of batches may have all that the aggregates need."""
        return all(
            function in ("count", *_FUNCTIONS) and column in (None, "offset", "timestamp", *_PLACES)
            for function, column in self.of
        ) and all(name in _PLACES for name in self.by)

    @property
    def columns(self) -> list[str]:
        """The columns that the aggregates need, each once."""
        used = [*self.by, *(each.column for each in self.of if each.column is not None)]
        return list(dict.fromkeys(used))


def plan_aggregates(
    options: ScanOptions, predicates: Sequence[Predicate], asked: Aggregates
) -> Sequence[Task]:
    """Plan what each task reads: if headers may suffice, each core gets one task of up to 1 GiB."""
    tasks = plan_tasks(options, predicates)
    is_up_to_user = options.max_partition_bytes is not None or options.one_task_per_partition
    if is_up_to_user or not tasks or not _trusts_headers(options, asked):
        return tasks
    planned = cast("Sequence[list[Split]]", tasks)
    size = min(-(-len(planned) // options.parallelism), _MOST_JOINED)
    return [_joined(planned[at : at + size]) for at in range(0, len(planned), size)]


def _joined(tasks: Sequence[list[Split]]) -> list[Split]:
    """The splits of several tasks; neighbours in a file become one."""
    joined: list[Split] = []
    for split in chain.from_iterable(tasks):
        last = joined[-1] if joined else None
        if last is not None and _follows(split, last):
            joined[-1] = last._replace(end=split.end)
        else:
            joined.append(split)
    return joined


def _follows(split: Split, last: Split) -> bool:
    is_next = split.file.path == last.file.path and split.start == last.end
    return is_next and split.selection.is_everything and last.selection.is_everything


def read_aggregates(
    task: Task, asked: Aggregates, schema: pa.Schema, options: ScanOptions
) -> list[pa.RecordBatch]:
    """A task's partial aggregates: the columns to group by, then a column for each aggregate.

    Without columns to group by there is one row, even if the task reads nothing.
    """
    parts, left = _by_headers(task, asked, schema, options)
    columns = _columns_to_read(asked, options)
    rows = read_task(left, columns, options)
    parts.extend(_of_rows(pa.Table.from_batches([batch]), asked, schema) for batch in rows)
    parts.append(_of_rows(columns.empty_table(), asked, schema))
    found: list[pa.RecordBatch] = _combined(pa.concat_tables(parts), asked, schema).to_batches()
    return found


def _columns_to_read(asked: Aggregates, options: ScanOptions) -> pa.Schema:
    """The columns to decode; under PERMISSIVE also the one for which damage becomes a row."""
    table = schema_of(options)
    cheapest = next((name for name in ("offset", "baseOffset") if name in table.names), "path")
    names = asked.columns or [cheapest]
    if "corruption" in table.names:
        names = [*names, "corruption"]
    return pa.schema([table.field(name) for name in names])


def _of_rows(rows: pa.Table, asked: Aggregates, schema: pa.Schema) -> pa.Table:
    """The aggregates of these rows."""
    functions: list[Any] = []
    columns = {name: rows[name] for name in asked.by}
    for name, (function, column) in zip(_names(asked, schema), asked.of, strict=True):
        columns[name] = rows[column or 0]
        counts = pc.CountOptions("all" if column is None else "only_valid")
        functions.append((name, function, counts if function == "count" else None))
    return _grouped(pa.table(columns), asked, functions, schema)


def _combined(parts: pa.Table, asked: Aggregates, schema: pa.Schema) -> pa.Table:
    """The aggregates of all rows, from those of their parts."""
    functions = [
        # Nothing is counted as 0, but has no sum.
        (name, "sum", pc.ScalarAggregateOptions(min_count=0))
        if function == "count"
        else (name, function)
        for name, (function, _) in zip(_names(asked, schema), asked.of, strict=True)
    ]
    return _grouped(parts, asked, functions, schema)


def _grouped(
    rows: pa.Table, asked: Aggregates, functions: list[Any], schema: pa.Schema
) -> pa.Table:
    found = rows.group_by(asked.by, use_threads=False).aggregate(functions)
    names = [f"{name}_{function}" for name, function, *_ in functions]
    columns = [found[name] for name in [*asked.by, *names]]
    return pa.table(columns, names=schema.names).cast(schema)


def _names(asked: Aggregates, schema: pa.Schema) -> list[str]:
    """The names of the aggregates' own columns, which follow those to group by."""
    return list(schema.names[len(asked.by) :])


def _by_headers(
    task: Task, asked: Aggregates, schema: pa.Schema, options: ScanOptions
) -> tuple[list[pa.Table], Task]:
    """The aggregates of those splits whose headers suffice, and the splits that are left to read.

    Only FAILFAST trusts headers: the lenient modes also skip or report batches whose checksum is
    right and whose records are not. Small segments are quick to decode together.
    """
    if not _trusts_headers(options, asked):
        return [], task
    found: list[pa.Table] = []
    left: list[Split] = []
    for split in cast("list[Split]", task):
        is_candidate = split.selection.is_everything and split.size > SMALL
        totals = _totals_of_headers(split, asked, options) if is_candidate else None
        if totals is None:
            left.append(split)
        elif totals.count or not asked.by:
            arrays = [
                pa.array([value], field.type)
                for value, field in zip(totals.row(asked), schema, strict=True)
            ]
            found.append(pa.table(arrays, schema=schema))
    return found, left


def _trusts_headers(options: ScanOptions, asked: Aggregates) -> bool:
    return options.kind == "records" and options.mode == FAILFAST and asked.may_use_headers


class _Totals:
    """The number of a split's records, and the bounds of their offsets and timestamps."""

    def __init__(self, path: str) -> None:
        place = parse_log_path(path)
        self._places = {"topic": place.topic, "partition": place.partition}
        self._offsets: list[int] = []  # the first and last of runs of batches
        self._microseconds: list[int] = []
        self.count = 0

    def add(self, batches: Batches) -> None:
        batches = batches[batches.field("recordsCount") > 0]
        if len(batches):
            self.count += int(batches.field("recordsCount").sum(dtype=np.int64))
            self._offsets.append(int(batches.field("baseOffset").min()))
            self._offsets.append(int(batches.last_offset.max()))
            timestamps = batches.field("maxTimestamp")
            self._microseconds.append(int(timestamps.min()) * 1000)
            self._microseconds.append(int(timestamps.max()) * 1000)

    def row(self, asked: Aggregates) -> list[Any]:
        values: dict[str, list[Any]] = {
            "offset": self._offsets,
            "timestamp": self._microseconds,
            **{name: [value] for name, value in self._places.items() if self.count},
        }
        row: list[Any] = [self._places[name] for name in asked.by]
        for function, column in asked.of:
            known = [value for value in values.get(column or "", []) if value is not None]
            if function == "count":
                row.append(self.count if column is None or known else 0)
            else:
                row.append(_FUNCTIONS[function](known, default=None))
        return row


def _totals_of_headers(split: Split, asked: Aggregates, options: ScanOptions) -> _Totals | None:
    """The totals of a split's batches; None if their headers do not have what is asked."""
    totals = _Totals(split.file.path)
    source = split.file.open(split.start, split.end)
    is_last = False if split.is_followed else None
    walk = Walk(source, start=split.start, end=split.end, is_last=is_last)
    for part in walk.checked() if options.check_crcs else walk.headers():
        assert not isinstance(part, Gap), "FAILFAST raises an error"
        if not _suffice(part, asked):
            return None
        totals.add(part)
        source.forget(walk.position)
    return totals


def _suffice(batches: Batches, asked: Aggregates) -> bool:
    """Whether headers have what is asked, and can be those of records."""
    if not ((batches.field("magic") == MAGIC_V2) & (batches.codec < len(COMPRESSION_TYPES))).all():
        return False
    counts = batches.field("recordsCount").astype(np.int64)
    # A header may claim records for which there is no room. Decoding reports it.
    room = np.where(batches.codec == 0, batches.size_in_bytes - RECORD_BATCH_OVERHEAD, MAX_INT64)
    if (counts < 0).any() or (counts * _LEAST_RECORD_BYTES > room).any():
        return False
    if "offset" in asked.columns:
        # Compaction keeps the offsets of a batch, and removes records.
        spans = batches.last_offset - batches.field("baseOffset") + 1
        if not ((spans == counts) | (counts == 0)).all():
            return False
    if "timestamp" in asked.columns:
        # A record's timestamp is NULL if microseconds cannot hold it.
        most, largest = MAX_INT64 // 1000, batches.field("maxTimestamp")
        if ((largest > most) | (largest < -most)).any():
            return False
        functions = {function for function, column in asked.of if column == "timestamp"}
        if functions != {"max"}:
            return bool((batches.timestamp_type == _LOG_APPEND_TIME).all())
    return True
