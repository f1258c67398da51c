"""Shared by the evaluators of SQL functions: arrays of bytes in, arrays of structs out.

NULL in, NULL out. Bytes are read where Arrow holds them, without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import KafkaJitError

# Offsets in an Arrow array are int32.
MAX_ARROW_BYTES = 2**31 - 1

TEXT = (pa.types.is_string, pa.types.is_large_string)
BINARY = (pa.types.is_binary, pa.types.is_large_binary)

# The record batches of one row, or None for NULL.
Parts = list[pa.RecordBatch] | None


def check_type(array: pa.Array, wanted: str, *are_right: Callable[[pa.DataType], bool]) -> None:
    """Raise a TypeError unless the array has one of these types, or that of a bare NULL."""
    if not any(is_right(array.type) for is_right in (pa.types.is_null, *are_right)):
        raise TypeError(f"{wanted}, not {array.type}")


def buffers(content: pa.Array, name: str = "content") -> Iterator[pa.Buffer | None]:
    """Each value as a slice of the array's memory; an Arrow scalar would be a copy."""
    check_type(content, f"{name} must be BINARY, as binaryFile loads it", *BINARY)
    if pa.types.is_null(content.type):
        yield from [None] * len(content)
        return
    _, offsets, data = content.buffers()
    width = np.int64 if pa.types.is_large_binary(content.type) else np.int32
    ends = np.frombuffer(offsets, width)[content.offset :][: len(content) + 1].tolist()
    for row, is_valid in enumerate(content.is_valid().to_pylist()):
        yield data.slice(ends[row], ends[row + 1] - ends[row]) if is_valid else None


def integers(array: pa.Array, name: str) -> list[int | None]:
    """An argument of BIGINT, row by row."""
    check_type(array, f"{name} must be BIGINT", pa.types.is_integer)
    numbers: list[int | None] = array.to_pylist()
    return numbers


def texts(array: pa.Array | None, name: str, rows: int) -> list[str | None]:
    """An optional argument of STRING, row by row."""
    if array is None:
        return [None] * rows
    check_type(array, f"{name} must be STRING", *TEXT)
    found: list[str | None] = array.to_pylist()
    return found


def forgiving(read: Callable[..., Any], lenient: bool) -> Callable[..., Any]:
    """The function itself, or if `lenient` one that returns None for damaged bytes."""
    if not lenient:
        return read

    def attempt(*arguments: Any) -> Any:
        try:
            return read(*arguments)
        except KafkaJitError:
            return None

    return attempt


def each(read: Callable[..., Any], *arguments: Any, lenient: bool = False) -> list[Any]:
    """Call `read` for each row; a row with a NULL argument gets None."""
    read = forgiving(read, lenient)
    return [
        None if any(argument is None for argument in row) else read(*row)
        for row in zip(*arguments, strict=True)
    ]


def as_lists(rows: list[Parts], schema: pa.Schema) -> pa.Array:
    """An array of structs for each row. Columns that were not read are NULL."""
    counts = [sum(part.num_rows for part in parts or ()) for parts in rows]
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    parts = [part for row in rows for part in row or ()]
    columns = [_joined(parts, field) for field in schema]
    if offsets[-1] == 0:
        columns = [pa.nulls(0, field.type) for field in schema]
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.StructArray.from_arrays(columns, fields=list(schema)),
        mask=pa.array([parts is None for parts in rows], pa.bool_()),
    )


def _joined(parts: list[pa.RecordBatch], field: pa.Field) -> pa.Array:
    if not any(field.name in part.schema.names for part in parts):
        return pa.nulls(sum(part.num_rows for part in parts), field.type)
    pieces = [
        part.column(field.name)
        if field.name in part.schema.names
        else pa.nulls(part.num_rows, field.type)
        for part in parts
    ]
    if sum(piece.nbytes for piece in pieces) > MAX_ARROW_BYTES and not pa.types.is_primitive(
        field.type
    ):
        raise ValueError(
            f"the column {field.name} of {len(pieces):,} chunks does not fit in an Arrow array "
            f"({MAX_ARROW_BYTES:,} bytes); put fewer segments into a batch: "
            "SET spark.sql.execution.arrow.maxRecordsPerBatch=1"
        )
    return pa.concat_arrays(pieces)


def as_structs(table: pa.Table, is_null: npt.NDArray[np.bool_]) -> pa.Array:
    """The rows of a table as structs, NULL where `is_null`."""
    columns = [column.combine_chunks() for column in table.columns]
    return pa.StructArray.from_arrays(
        columns, fields=list(table.schema), mask=pa.array(is_null, pa.bool_())
    )
