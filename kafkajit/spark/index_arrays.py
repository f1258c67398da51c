"""Evaluates the SQL functions that read an index, look something up in it, or verify it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.arrow.record_batches import table_in_microseconds
from kafkajit.errors import KafkaJitError
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.index.offset_index import OffsetIndex, offset_entries
from kafkajit.index.time_index import TimeIndex, time_entries
from kafkajit.index.verify import verify_offset_index
from kafkajit.index.verify import verify_time_index as verify_time_index_of
from kafkajit.schema import (
    INDEX_PROBLEM_COLUMNS,
    TIME_INDEX_PROBLEM_COLUMNS,
    TableColumn,
    in_microseconds,
    table_schema,
)
from kafkajit.spark.arrays import Parts, as_lists, as_structs, buffers, check_type, each, integers
from kafkajit.spark.file_arrays import parse, schema_of
from kafkajit.state.sidecar_files import SIDECAR_FILES
from kafkajit.storage.source import Int64s, as_bytes

Find = Callable[[pa.Buffer, int, Int64s], tuple[Int64s, Int64s]]

# The largest distance between an entry's offset and the index's base offset.
_FARTHEST = 2**31


def entries(content: pa.Array, baseOffset: pa.Array, *, kind: str, lenient: bool) -> pa.Array:  # noqa: N803  as in SQL
    """The entries of each index."""
    bases = integers(baseOffset, "baseOffset")
    found = each(partial(parse, kind), buffers(content), bases, lenient=lenient)
    return as_lists(found, schema_of(kind))


def offset_lookup(
    content: pa.Array,
    baseOffset: pa.Array,  # noqa: N803  as in SQL
    targetOffset: pa.Array,  # noqa: N803
    *,
    lenient: bool,
) -> pa.Array:
    """The entry at or before each offset."""
    check_type(targetOffset, "targetOffset must be BIGINT", pa.types.is_integer)
    return _look_up(_offsets, "offsetIndex", content, baseOffset, targetOffset, lenient)


def time_lookup(
    content: pa.Array,
    baseOffset: pa.Array,  # noqa: N803  as in SQL
    timestamp: pa.Array,
    *,
    lenient: bool,
) -> pa.Array:
    """The entry at or before each timestamp."""
    wanted = "timestamp must be TIMESTAMP or BIGINT milliseconds"
    check_type(timestamp, wanted, pa.types.is_integer, _is_instant)
    return _look_up(_timestamps, "timeIndex", content, baseOffset, timestamp, lenient)


def _offsets(held: pa.Buffer, base_offset: int, targets: Int64s) -> tuple[Int64s, Int64s]:
    offset_entries(as_bytes(held))  # raises if they are not in order
    least, most = max(base_offset - 1, MIN_INT64), min(base_offset + _FARTHEST, MAX_INT64)
    return OffsetIndex(held, base_offset).lookup_all(targets.clip(least, most))


def _timestamps(held: pa.Buffer, base_offset: int, targets: Int64s) -> tuple[Int64s, Int64s]:
    time_entries(as_bytes(held))
    return TimeIndex(held, base_offset).lookup_all(targets)


def _look_up(
    find: Find,
    kind: str,
    content: pa.Array,
    base_offset: pa.Array,
    targets: pa.Array,
    lenient: bool,
) -> pa.Array:
    wanted, is_null = _numbers(targets)
    columns = (np.zeros(len(content), np.int64), np.zeros(len(content), np.int64))
    for run in _runs(content, integers(base_offset, "baseOffset")):
        rows = slice(run.start, run.end)
        if run.held is None or run.base_offset is None:
            is_null[rows] = True
            continue
        try:
            found = find(run.held, run.base_offset, wanted[rows])
        except KafkaJitError:
            if not lenient:
                raise
            is_null[rows] = True
            continue
        for column, values in zip(columns, found, strict=True):
            column[rows] = values
    schema = table_schema(SIDECAR_FILES[kind].columns)
    arrays = [
        pa.array(column).cast(field.type) for column, field in zip(columns, schema, strict=True)
    ]
    return as_structs(table_in_microseconds(pa.Table.from_arrays(arrays, schema=schema)), is_null)


class _Run(NamedTuple):
    """Consecutive rows with the same index, as a join of one index with many targets has."""

    start: int
    end: int
    held: pa.Buffer | None
    base_offset: int | None


def _runs(content: pa.Array, base_offset: list[int | None]) -> Iterator[_Run]:
    held = list(buffers(content))
    starts = [
        row
        for row in range(len(held))
        if row == 0
        or base_offset[row] != base_offset[row - 1]
        or not _is_same(held[row], held[row - 1])
    ]
    for start, end in pairwise([*starts, len(held)]):
        yield _Run(start, end, held[start], base_offset[start])


def _is_same(a: pa.Buffer | None, b: pa.Buffer | None) -> bool:
    return a is b if a is None or b is None else bool(a.equals(b))


def _numbers(targets: pa.Array) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """The numbers to look up, those of a TIMESTAMP in milliseconds; and which of them are NULL."""
    is_null: npt.NDArray[np.bool_] = targets.is_null().to_numpy(zero_copy_only=False).copy()
    if pa.types.is_null(targets.type):
        return np.zeros(len(targets), np.int64), is_null
    numbers = targets.cast(pa.int64()).fill_null(0).to_numpy()
    return (numbers // 1000 if _is_instant(targets.type) else numbers), is_null


def _is_instant(type_: pa.DataType) -> bool:
    """Whether it is Spark's TIMESTAMP, in microseconds. TIMESTAMP_NTZ has no zone."""
    return pa.types.is_timestamp(type_) and type_.tz is not None


def verify_index(log: pa.Array, index: pa.Array, baseOffset: pa.Array) -> pa.Array:  # noqa: N803  as in SQL
    """The entries of each .index file that do not match its log."""
    return _problems(
        verify_offset_index,
        INDEX_PROBLEM_COLUMNS,
        buffers(log, "log"),
        buffers(index, "index"),
        integers(baseOffset, "baseOffset"),
    )


def verify_time_index(log: pa.Array, timeIndex: pa.Array, baseOffset: pa.Array) -> pa.Array:  # noqa: N803  as in SQL
    """The entries of each .timeindex file that do not match its log."""
    return _problems(
        verify_time_index_of,
        TIME_INDEX_PROBLEM_COLUMNS,
        buffers(log, "log"),
        buffers(timeIndex, "timeIndex"),
        integers(baseOffset, "baseOffset"),
    )


def _problems(
    verify: Callable[..., pa.Table],
    columns: dict[str, TableColumn],
    logs: Iterator[pa.Buffer | None],
    indexes: Iterator[pa.Buffer | None],
    bases: list[int | None],
) -> pa.Array:
    def rows(log: pa.Buffer, index: pa.Buffer, base_offset: int) -> Parts:
        parts: Parts = table_in_microseconds(verify(log, index, base_offset)).to_batches()
        return parts

    schema = in_microseconds(table_schema(columns))
    return as_lists(each(rows, logs, indexes, bases), schema)
