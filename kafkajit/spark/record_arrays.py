"""Evaluates the SQL functions that read a log segment, its path, or a record's key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafkajit import reader
from kafkajit.encode.partitioner import NO_KEY, partitions_of
from kafkajit.encode.rows import byte_strings_of, numbers_of
from kafkajit.format.log_path import parse_log_path
from kafkajit.reader import SegmentReader
from kafkajit.schema import (
    CONTENT_BATCHES,
    CONTENT_CORRUPTION,
    CONTENT_RECORDS,
    LOG_PATH_TYPE,
    check_columns,
)
from kafkajit.spark.arrays import (
    BINARY,
    TEXT,
    Parts,
    as_lists,
    buffers,
    check_type,
    each,
    forgiving,
    texts,
)
from kafkajit.spark.row_limit import Heap, task_heap
from kafkajit.storage.source import Source
from kafkajit.walk.damage import DROPMALFORMED, FAILFAST, PERMISSIVE

_IN_PIECES = (
    "read it in pieces: SELECT * FROM kafka_log(TABLE(SELECT path FROM ...)), or "
    "spark.read.format('kafkaLog').load(...)"
)
_MOST_PARTITIONS = 2**31 - 1


def records(
    content: pa.Array,
    columns: pa.Array | None = None,
    mode: pa.Array | None = None,
    *,
    lenient: bool,
) -> pa.Array:
    """All records of each content."""
    read, heap = forgiving(_records, lenient), task_heap()
    arguments = zip(
        buffers(content),
        texts(columns, "columns", len(content)),
        texts(mode, "mode", len(content)),
        strict=True,
    )
    rows = [
        None if held is None else read(held, _schema(names), _mode(name), heap)
        for held, names, name in arguments
    ]
    return as_lists(rows, CONTENT_RECORDS)


def _schema(names: str | None) -> pa.Schema:
    """The columns in a list such as 'offset, timestamp'; by default all."""
    if names is None:
        return CONTENT_RECORDS
    asked = check_columns([name.strip() for name in names.split(",")], CONTENT_RECORDS.names)
    return pa.schema([CONTENT_RECORDS.field(name) for name in asked])


def _mode(name: str | None) -> str:
    mode = FAILFAST if name is None else name.upper()
    if mode not in (FAILFAST, DROPMALFORMED):
        raise ValueError(
            f"kafka_records has the modes {FAILFAST} and {DROPMALFORMED}, not {name!r}; "
            "kafka_corruption(content) lists the damage"
        )
    return mode


def _records(held: pa.Buffer, schema: pa.Schema, mode: str, heap: Heap) -> Parts:
    parts = []
    size = 0
    for part in SegmentReader(Source(held), mode=mode).records(schema):
        parts.append(part)
        size += row_bytes(part)
        problem = heap.problem_with(held.size, size)
        if problem is not None:
            raise ValueError(
                f"a segment of {held.size:,} bytes and its records do not fit in one row: "
                f"{problem}; {_IN_PIECES}"
            )
    return parts


def row_bytes(part: pa.RecordBatch) -> int:
    """The least that these records take in an UnsafeRow, as an array of structs.

    Each record takes 8 bytes for its place in the array, 8 for its null bits and 8 for each field.
    Keys, values and headers come on top. A header takes 40 bytes more than its key and value.
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


def batches(content: pa.Array, *, lenient: bool) -> pa.Array:
    """The headers of the batches of each content."""
    return as_lists(each(_batches, buffers(content), lenient=lenient), CONTENT_BATCHES)


def _batches(held: pa.Buffer) -> Parts:
    return list(SegmentReader(Source(held)).batches(CONTENT_BATCHES))


def corruption(content: pa.Array) -> pa.Array:
    """The damaged stretches of each content."""
    return as_lists(each(_corruption, buffers(content)), CONTENT_CORRUPTION)


def _corruption(held: pa.Buffer) -> Parts:
    return list(SegmentReader(Source(held), mode=PERMISSIVE).corruption(CONTENT_CORRUPTION))


def valid_bytes(content: pa.Array, *, lenient: bool) -> pa.Array:
    """The number of bytes up to the end of each content's last complete batch."""
    return pa.array(each(reader.valid_bytes, buffers(content), lenient=lenient), pa.int64())


def log_path(path: pa.Array) -> pa.Array:
    """The parts of each path."""
    names = [field.name for field in LOG_PATH_TYPE]
    rows = [
        None if text is None else dict(zip(names, parse_log_path(text), strict=True))
        for text in texts(path, "path", len(path))
    ]
    return pa.array(rows, LOG_PATH_TYPE)


def partition(key: pa.Array, partitions: pa.Array) -> pa.Array:
    """The partition of each key; NULL without a key."""
    check_type(key, "key must be BINARY or STRING", *BINARY, *TEXT)
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
