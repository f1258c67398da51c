"""The SQL functions of what lies beside a log, as functions of Arrow arrays.

They differ in what they read, not in how: FUNCTIONS is made of the catalogue's tables. NULL in any
argument is NULL. A try_ gives NULL where content is damaged; what is wrong with a query still
raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.arrow import table_in_microseconds
from kafkajit.errors import KafkaJitError
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.index.offset_index import OffsetIndex, offset_entries
from kafkajit.index.time_index import TimeIndex, time_entries
from kafkajit.index.verify import verify_offset_index, verify_time_index
from kafkajit.schema import table_schema
from kafkajit.spark.arrays import Parts, as_lists, buffers, check_type, or_null
from kafkajit.spark.catalogue import (
    DECODE_FUNCTIONS,
    LOOKUP_FUNCTIONS,
    OF_ONE_ROW,
    SIDE_FUNCTIONS,
    VERIFY_FUNCTIONS,
    rows_of,
)
from kafkajit.spark.worker import reported
from kafkajit.state.sidecar_files import SIDECAR_FILES
from kafkajit.storage.source import Int64s, as_bytes
from kafkajit.topics.structs import decode_payloads

ArrayFunction = Callable[..., pa.Array]

# An index's offsets are this far from its base offset at the most.
_FARTHEST = 2**31


def _reading(name: str, kind: str, *, lenient: bool) -> ArrayFunction:
    """Content, and of an index the base offset → what is in it."""
    parse = or_null(_parse) if lenient else _parse
    schema = rows_of(SIDECAR_FILES[kind].columns)
    as_result = _as_structs if name in OF_ONE_ROW else as_lists

    def read(content: pa.Array) -> pa.Array:
        rows = [None if held is None else parse(kind, held) for held in buffers(content)]
        return as_result(rows, schema)

    def read_index(content: pa.Array, baseOffset: pa.Array) -> pa.Array:  # noqa: N803  as in SQL
        bases = _integers(baseOffset, "baseOffset")
        rows = [
            None if held is None or base is None else parse(kind, held, base)
            for held, base in zip(buffers(content), bases, strict=True)
        ]
        return as_result(rows, schema)

    return read_index if kind in LOOKUP_FUNCTIONS.values() else read


def _parse(kind: str, held: pa.Buffer, base_offset: int | None = None) -> Parts:
    table = SIDECAR_FILES[kind].parse(as_bytes(held), None, base_offset)
    parts: Parts = table_in_microseconds(table).to_batches()
    return parts


def _looking_up(kind: str, *, lenient: bool) -> ArrayFunction:
    """Content, base offset and target → the entry at or before it."""
    find, parameter = _LOOKUPS[kind]

    def look_up(content: pa.Array, base_offset: pa.Array, targets: pa.Array) -> pa.Array:
        wanted, is_null = _targets(targets, parameter)
        columns = (np.zeros(len(content), np.int64), np.zeros(len(content), np.int64))
        for run in _runs(content, _integers(base_offset, "baseOffset")):
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
        table = table_in_microseconds(pa.Table.from_arrays(arrays, schema=schema))
        return _struct_array(table, is_null)

    # As they are called in SQL.
    if kind == "offsetIndex":
        return lambda content, baseOffset, targetOffset: look_up(content, baseOffset, targetOffset)  # noqa: N803
    return lambda content, baseOffset, timestamp: look_up(content, baseOffset, timestamp)  # noqa: N803


def _offset_lookup(held: pa.Buffer, base_offset: int, targets: Int64s) -> tuple[Int64s, Int64s]:
    offset_entries(as_bytes(held))  # which raises where they are not in order
    least, most = max(base_offset - 1, MIN_INT64), min(base_offset + _FARTHEST, MAX_INT64)
    return OffsetIndex(held, base_offset).lookup_all(targets.clip(least, most))


def _time_lookup(held: pa.Buffer, base_offset: int, targets: Int64s) -> tuple[Int64s, Int64s]:
    time_entries(as_bytes(held))
    return TimeIndex(held, base_offset).lookup_all(targets)


# kind: what finds, and what it is given to find
_LOOKUPS = {
    "offsetIndex": (_offset_lookup, "targetOffset"),
    "timeIndex": (_time_lookup, "timestamp"),
}


class _Run(NamedTuple):
    """Rows one behind the other with the same index: a join of one index with many targets."""

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


def _targets(array: pa.Array, name: str) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """Numbers to look up, and which of them are NULL. Of a TIMESTAMP its millisecond."""
    is_null: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False).copy()
    right = [pa.types.is_integer]
    if name == "timestamp":
        right.append(_is_instant)
    kinds = "TIMESTAMP or BIGINT milliseconds" if name == "timestamp" else "BIGINT"
    check_type(array, f"{name} must be {kinds}", *right)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64), is_null
    numbers = array.cast(pa.int64()).fill_null(0).to_numpy()
    return (numbers // 1000 if _is_instant(array.type) else numbers), is_null


def _is_instant(type_: pa.DataType) -> bool:
    """Spark's TIMESTAMP, in microseconds: TIMESTAMP_NTZ has no zone."""
    return pa.types.is_timestamp(type_) and type_.tz is not None


def _integers(array: pa.Array, name: str) -> list[int | None]:
    check_type(array, f"{name} must be BIGINT", pa.types.is_integer)
    numbers: list[int | None] = array.to_pylist()
    return numbers


def _verifying(name: str) -> ArrayFunction:
    """A log, its index and the base offset → entries that do not fit."""
    verify = verify_offset_index if name == "kafka_verify_index" else verify_time_index
    schema = rows_of(VERIFY_FUNCTIONS[name])

    def check(log: pa.Array, index: pa.Array, base_offset: pa.Array, called: str) -> pa.Array:
        arguments = zip(
            buffers(log, "log"),
            buffers(index, called),
            _integers(base_offset, "baseOffset"),
            strict=True,
        )
        rows: list[Parts] = [
            None
            if log_ is None or index_ is None or base is None
            else table_in_microseconds(verify(log_, index_, base)).to_batches()
            for log_, index_, base in arguments
        ]
        return as_lists(rows, schema)

    if name == "kafka_verify_index":
        return lambda log, index, baseOffset: check(log, index, baseOffset, "index")  # noqa: N803
    return lambda log, timeIndex, baseOffset: check(log, timeIndex, baseOffset, "timeIndex")  # noqa: N803


def _decoding(topic: str, *, lenient: bool) -> ArrayFunction:
    """Keys and values of an internal topic → both as JSON; NULL where both are."""

    def decode(key: pa.Array, value: pa.Array) -> pa.Array:
        for array, name in ((key, "key"), (value, "value")):
            wanted = f"{name} must be BINARY, as the record has it"
            check_type(array, wanted, pa.types.is_binary, pa.types.is_large_binary)
        decoded = decode_payloads(topic, key, value, lenient=lenient)
        fields = [decoded.field("key"), decoded.field("value")]
        is_null = decoded.is_null().to_numpy(zero_copy_only=False)
        is_null = is_null | np.logical_and(
            *(field.is_null().to_numpy(zero_copy_only=False) for field in fields)
        )
        return _struct_array(
            pa.Table.from_arrays(fields, schema=pa.schema(list(decoded.type))), is_null
        )

    return decode


def _as_structs(rows: list[Parts], schema: pa.Schema) -> pa.Array:
    """A struct for each row, of the one row that was read."""
    found = pa.Table.from_batches([part for row in rows for part in row or ()], schema=schema)
    is_null = np.array([row is None for row in rows], dtype=bool)
    places = pa.array(np.cumsum(~is_null) - 1, mask=is_null)
    return _struct_array(found.take(places), is_null)


def _struct_array(table: pa.Table, is_null: npt.NDArray[np.bool_]) -> pa.Array:
    columns = [column.combine_chunks() for column in table.columns]
    return pa.StructArray.from_arrays(
        columns, fields=list(table.schema), mask=pa.array(is_null, pa.bool_())
    )


def _named(name: str, function: ArrayFunction) -> ArrayFunction:
    function.__name__ = function.__qualname__ = name
    wrapped: ArrayFunction = reported(function)
    return wrapped


def _functions() -> Iterator[tuple[str, ArrayFunction]]:
    for prefix, lenient in (("", False), ("try_", True)):
        for name, kind in SIDE_FUNCTIONS.items():
            yield prefix + name, _reading(name, kind, lenient=lenient)
        for name, kind in LOOKUP_FUNCTIONS.items():
            yield prefix + name, _looking_up(kind, lenient=lenient)
        for name, topic in DECODE_FUNCTIONS.items():
            yield prefix + name, _decoding(topic, lenient=lenient)
    for name in VERIFY_FUNCTIONS:
        yield name, _verifying(name)


# function: what evaluates it
FUNCTIONS: dict[str, Any] = {name: _named(name, function) for name, function in _functions()}
