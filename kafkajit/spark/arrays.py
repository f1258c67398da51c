"""The SQL functions, as functions of Arrow arrays: a whole array of contents in, an array out.

NULL in, NULL out. The bytes are read where Arrow holds them, and what is read of all contents
becomes one array of structs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kafkajit.encode.partitioner import NO_KEY, partitions_of
from kafkajit.encode.rows import byte_strings_of, numbers_of
from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import parse_log_path
from kafkajit.reader import SegmentReader, valid_bytes
from kafkajit.schema import (
    CONTENT_BATCHES,
    CONTENT_CORRUPTION,
    CONTENT_RECORDS,
    LOG_PATH_TYPE,
    check_columns,
)
from kafkajit.spark.worker import reported
from kafkajit.storage.source import Source
from kafkajit.walk.walk import DROPMALFORMED, FAILFAST, PERMISSIVE

# ByteArrayMethods.MAX_ROUNDED_ARRAY_LENGTH in Spark: what a row may grow to.
MAX_ROW_BYTES = 2**31 - 1 - 15
# Offsets in an array of Arrow's are int32.
MAX_ARROW_BYTES = 2**31 - 1

_IN_PIECES = (
    "Read it in pieces: SELECT * FROM kafka_log(TABLE(SELECT path FROM ...)), or "
    "spark.read.format('kafkaLog').load(...)"
)

_TEXT = (pa.types.is_string, pa.types.is_large_string)
_BINARY = (pa.types.is_binary, pa.types.is_large_binary)
_MOST_PARTITIONS = 2**31 - 1

# What a read gave: its record batches, or None for SQL's NULL.
Parts = list[pa.RecordBatch] | None


@reported
def kafka_records(
    content: pa.Array, columns: pa.Array | None = None, mode: pa.Array | None = None
) -> pa.Array:
    """All records of each content."""
    return as_lists(_records(content, columns, mode), CONTENT_RECORDS)


@reported
def try_kafka_records(
    content: pa.Array, columns: pa.Array | None = None, mode: pa.Array | None = None
) -> pa.Array:
    """All records of each content, NULL where it is damaged."""
    return as_lists(_records(content, columns, mode, lenient=True), CONTENT_RECORDS)


@reported
def kafka_record_batches(content: pa.Array) -> pa.Array:
    """The headers of the batches of each content."""
    return as_lists(_each(content, _batches), CONTENT_BATCHES)


@reported
def try_kafka_record_batches(content: pa.Array) -> pa.Array:
    """The headers of the batches of each content, NULL where it is damaged."""
    return as_lists(_each(content, or_null(_batches)), CONTENT_BATCHES)


@reported
def kafka_corruption(content: pa.Array) -> pa.Array:
    """What is damaged in each content."""
    return as_lists(_each(content, _corruption), CONTENT_CORRUPTION)


@reported
def kafka_valid_bytes(content: pa.Array) -> pa.Array:
    """Bytes of each content up to the end of its last whole batch."""
    return pa.array(_each(content, valid_bytes), pa.int64())


@reported
def try_kafka_valid_bytes(content: pa.Array) -> pa.Array:
    """Bytes of each content up to the end of its last whole batch, NULL where it is damaged."""
    return pa.array(_each(content, or_null(valid_bytes)), pa.int64())


@reported
def kafka_log_path(path: pa.Array) -> pa.Array:
    """What each path says."""
    check_type(path, "path must be STRING", *_TEXT)
    names = [field.name for field in LOG_PATH_TYPE]
    rows = [
        None if text is None else dict(zip(names, parse_log_path(text), strict=True))
        for text in path.to_pylist()
    ]
    return pa.array(rows, LOG_PATH_TYPE)


@reported
def kafka_partition(key: pa.Array, partitions: pa.Array) -> pa.Array:
    """The partition of each key; NULL where there is none."""
    check_type(key, "key must be BINARY or STRING", *_BINARY, *_TEXT)
    check_type(partitions, "partitions must be INT", pa.types.is_integer)
    if pa.types.is_null(key.type) or pa.types.is_null(partitions.type):
        return pa.nulls(len(key), pa.int32())
    counts = numbers_of(partitions, "partitions", null=1)
    bad = counts[(counts < 1) | (counts > _MOST_PARTITIONS)]
    if bad.size:
        raise ValueError(f"a topic has from 1 to {_MOST_PARTITIONS} partitions, not {bad[0]}")
    found = partitions_of(byte_strings_of(key, "key"), counts)
    is_null = (found == NO_KEY) | partitions.is_null().to_numpy(False)
    return pa.array(found, pa.int32(), mask=is_null)


def _each(content: pa.Array, read: Callable[[pa.Buffer], Any]) -> list[Any]:
    return [None if held is None else read(held) for held in buffers(content)]


def buffers(content: pa.Array, name: str = "content") -> Iterator[pa.Buffer | None]:
    """Each value where it stands: a scalar of Arrow's would be a copy."""
    wanted = f"{name} must be BINARY, as binaryFile loads it"
    check_type(content, wanted, *_BINARY)
    if pa.types.is_null(content.type):
        yield from [None] * len(content)
        return
    _, offsets, data = content.buffers()
    width = np.int64 if pa.types.is_large_binary(content.type) else np.int32
    ends = np.frombuffer(offsets, width)[content.offset :][: len(content) + 1].tolist()
    for row, is_valid in enumerate(content.is_valid().to_pylist()):
        yield data.slice(ends[row], ends[row + 1] - ends[row]) if is_valid else None


def check_type(array: pa.Array, wanted: str, *are_right: Callable[[pa.DataType], bool]) -> None:
    """Raise a TypeError unless it is of one of these types.

    A bare NULL has a type of its own, and is fine.
    """
    if not any(is_right(array.type) for is_right in (pa.types.is_null, *are_right)):
        raise TypeError(f"{wanted}, not {array.type}")


def or_null(read: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with None where it would tell of damage."""

    def attempt(*args: Any) -> Any:
        try:
            return read(*args)
        except KafkaJitError:
            return None

    return attempt


def _records(
    content: pa.Array, columns: pa.Array | None, mode: pa.Array | None, *, lenient: bool = False
) -> list[Parts]:
    read = or_null(_read_records) if lenient else _read_records
    columns, mode = _texts(columns, "columns", content), _texts(mode, "mode", content)
    return [
        None if held is None else read(held, _schema(names), _mode(name))
        for held, names, name in zip(buffers(content), columns, mode, strict=True)
    ]


def _texts(array: pa.Array | None, name: str, content: pa.Array) -> list[str | None]:
    """An argument for each content; NULL where it was not given."""
    if array is None:
        return [None] * len(content)
    check_type(array, f"{name} must be STRING", *_TEXT)
    texts: list[str | None] = array.to_pylist()
    return texts


def _schema(names: str | None) -> pa.Schema:
    """The columns of a list such as 'offset, timestamp'; all of them without one."""
    if names is None:
        return CONTENT_RECORDS
    asked = check_columns([name.strip() for name in names.split(",")], CONTENT_RECORDS.names)
    return pa.schema([CONTENT_RECORDS.field(name) for name in asked])


def _mode(name: str | None) -> str:
    mode = FAILFAST if name is None else name.upper()
    if mode not in (FAILFAST, DROPMALFORMED):
        raise ValueError(
            f"kafka_records has the modes {FAILFAST} and {DROPMALFORMED}, not {name!r}; what is "
            "damaged comes from kafka_corruption(content)"
        )
    return mode


def _read_records(held: pa.Buffer, schema: pa.Schema, mode: str) -> Parts:
    parts = []
    size = held.size
    for part in SegmentReader(Source(held), mode=mode).records(schema):
        parts.append(part)
        size += row_bytes(part)
        if size > MAX_ROW_BYTES:
            raise ValueError(
                f"a segment of {held.size:,} bytes and its records do not fit a row of Spark's "
                f"({MAX_ROW_BYTES:,} bytes). {_IN_PIECES}"
            )
    return parts


def row_bytes(part: pa.RecordBatch) -> int:
    """What these records take as an array of structs in an UnsafeRow, at least.

    Each has 8 bytes for its place in the array, 8 for its nulls and 8 for each field of the
    struct; keys, values and headers come on top, a header with 40 bytes of its own.
    """
    size: int = part.num_rows * (16 + 8 * len(CONTENT_RECORDS))
    for column in part.columns:
        if pa.types.is_binary(column.type):
            size += _data_bytes(column)
        elif pa.types.is_list(column.type):
            keys, values = column.flatten().flatten()
            size += 16 * (part.num_rows - column.null_count) + 40 * len(keys)
            size += _data_bytes(keys) + _data_bytes(values)
    return size


def _data_bytes(column: pa.Array) -> int:
    _, offsets, _ = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return int(ends[-1] - ends[0]) if len(column) else 0


def _batches(held: pa.Buffer) -> Parts:
    return list(SegmentReader(Source(held)).batches(CONTENT_BATCHES))


def _corruption(held: pa.Buffer) -> Parts:
    return list(SegmentReader(Source(held), mode=PERMISSIVE).corruption(CONTENT_CORRUPTION))


def as_lists(rows: list[Parts], schema: pa.Schema) -> pa.Array:
    """An array of structs for each row, columns that were not read being NULL."""
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
            f"the column {field.name} of {len(pieces):,} pieces does not fit an Arrow array "
            f"({MAX_ARROW_BYTES:,} bytes). Let fewer segments share a batch: "
            "SET spark.sql.execution.arrow.maxRecordsPerBatch=1"
        )
    return pa.concat_arrays(pieces)
