"""Columns → Arrow. The only place where the schemas of records and batches are spelled.

Names are Kafka's words in Spark's casing, and the first eight columns of a record are those of
Spark's format("kafka"). NULL where Java returns null or an empty Optional; -1 where Java returns
that sentinel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.format.compression import COMPRESSION_TYPES
from kafkajit.format.utf8 import MAX_GROWTH, write_string
from kafkajit.kernel import WIDE, kernel
from kafkajit.records.batches import Batches, increment_sequence
from kafkajit.records.columns import Wanted
from kafkajit.records.control_records import (
    CONTROL_TYPES,
    END_TRANSACTION,
    UNKNOWN,
    control_type_id,
    coordinator_epoch,
)
from kafkajit.records.gather import (
    copy_binary,
    locate_headers,
    plan_binary,
    spread,
    write_validity,
    write_views,
)
from kafkajit.source import Bytes

if TYPE_CHECKING:
    from kafkajit.records.decode import Chunk


class Column(NamedTuple):
    """A column's Arrow type, and what it says."""

    type: pa.DataType
    doc: str


HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TIMESTAMP_TYPE = pa.timestamp("ms", tz="UTC")
CORRUPTION_TYPE = pa.struct(
    [
        pa.field("position", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("reason", pa.string()),
    ]
)

RECORD_COLUMNS: dict[str, Column] = {
    "key": Column(pa.binary(), "the record's key"),
    "value": Column(pa.binary(), "the record's value; NULL is a tombstone under compaction"),
    "topic": Column(pa.string(), "from the path"),
    "partition": Column(pa.int32(), "from the path"),
    "offset": Column(pa.int64(), "the record's offset in its partition"),
    "timestamp": Column(TIMESTAMP_TYPE, "when it was created, or appended under LogAppendTime"),
    "timestampType": Column(pa.int32(), "0 CreateTime, 1 LogAppendTime"),
    "headers": Column(HEADERS_TYPE, "in order, keys may repeat; NULL when there are none"),
    "sequence": Column(pa.int32(), "the producer's sequence number, -1 without idempotence"),
    "controlType": Column(pa.string(), "COMMIT, ABORT, …; NULL for data"),
    "coordinatorEpoch": Column(pa.int32(), "who wrote a COMMIT or ABORT; NULL otherwise"),
    "baseOffset": Column(pa.int64(), "the batch's first offset"),
    "partitionLeaderEpoch": Column(pa.int32(), "the leader's epoch at the append"),
    "producerId": Column(pa.int64(), "-1 without idempotence"),
    "producerEpoch": Column(pa.int16(), "-1 without idempotence"),
    "isTransactional": Column(pa.bool_(), "whether the batch is part of a transaction"),
    "magic": Column(pa.int8(), "the message format's version"),
    "position": Column(pa.int64(), "the batch's first byte in the segment"),
}

BATCH_COLUMNS: dict[str, Column] = {
    "baseOffset": Column(pa.int64(), "the first offset when the batch was written"),
    "lastOffset": Column(pa.int64(), "the last offset, kept when compaction removes the record"),
    "recordsCount": Column(pa.int32(), "records now in the batch"),
    "baseSequence": Column(pa.int32(), "-1 without idempotence"),
    "lastSequence": Column(pa.int32(), "-1 without idempotence"),
    "producerId": Column(pa.int64(), "-1 without idempotence"),
    "producerEpoch": Column(pa.int16(), "-1 without idempotence"),
    "partitionLeaderEpoch": Column(pa.int32(), "the leader's epoch at the append"),
    "isTransactional": Column(pa.bool_(), "whether it is part of a transaction"),
    "isControlBatch": Column(pa.bool_(), "whether it holds markers instead of data"),
    "deleteHorizonMs": Column(pa.int64(), "when tombstones may go; NULL where none is set"),
    "position": Column(pa.int64(), "its first byte in the segment"),
    "timestampType": Column(pa.int32(), "0 CreateTime, 1 LogAppendTime"),
    "baseTimestamp": Column(TIMESTAMP_TYPE, "what timestamp deltas count from"),
    "maxTimestamp": Column(TIMESTAMP_TYPE, "the largest timestamp, or that of the append"),
    "sizeInBytes": Column(pa.int32(), "with its header"),
    "magic": Column(pa.int8(), "the message format's version"),
    "compressionType": Column(pa.string(), "none, gzip, snappy, lz4 or zstd"),
    "crc": Column(pa.int64(), "the stored CRC-32C"),
    "isValid": Column(pa.bool_(), "whether that is the CRC-32C of the bytes"),
}


def record_schema(columns: Sequence[str], *, binary_view: bool = False) -> pa.Schema:
    """The schema of these record columns, in this order.

    >>> record_schema(["key", "offset"]).names
    ['key', 'offset']
    """
    view = {"key": pa.binary_view(), "value": pa.binary_view()} if binary_view else {}
    return pa.schema(
        [pa.field(name, view.get(name, RECORD_COLUMNS[name].type)) for name in columns]
    )


def batch_schema() -> pa.Schema:
    """The schema of the batch columns."""
    return pa.schema([pa.field(name, column.type) for name, column in BATCH_COLUMNS.items()])


def check_columns(columns: Iterable[str], known: Iterable[str]) -> list[str]:
    """The names as a list, or an error that tells which exist."""
    names = [columns] if isinstance(columns, str) else list(columns)
    known = list(known)
    for name in names:
        if name not in known:
            raise ValueError(f"unknown column {name!r}; there are: {', '.join(known)}")
    if not names:
        raise ValueError("columns names no column")
    if len(set(names)) < len(names):
        raise ValueError(f"a column is named twice in {names}")
    return names


def batch_record_batch(batches: Batches, content: Bytes) -> pa.RecordBatch:
    """Headers of batches, and whether their checksums hold, as Arrow."""
    codecs = [COMPRESSION_TYPES.get(codec, f"unknown({codec})") for codec in range(8)]
    derived: dict[str, Any] = {
        "lastOffset": batches.last_offset,
        "lastSequence": batches.last_sequence,
        "isTransactional": batches.is_transactional,
        "isControlBatch": batches.is_control,
        "deleteHorizonMs": pa.array(
            batches.field("baseTimestamp"), mask=~batches.has_delete_horizon
        ),
        "position": batches.position,
        "timestampType": batches.timestamp_type,
        "sizeInBytes": batches.size_in_bytes,
        "compressionType": pa.array(codecs).take(pa.array(batches.codec)),
        "isValid": batches.is_valid(content),
    }
    arrays = [
        _as_array(derived[name] if name in derived else batches.field(name), column.type)
        for name, column in BATCH_COLUMNS.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch_schema())


def _as_array(values: Any, type_: pa.DataType) -> pa.Array:
    array = values if isinstance(values, pa.Array) else pa.array(np.ascontiguousarray(values))
    return array.cast(type_)


def record_record_batch(chunk: Chunk, schema: pa.Schema) -> pa.RecordBatch:
    """The records of a chunk as Arrow: only the columns of `schema` are gathered."""
    arrays = []
    for field in schema:
        if field.type == pa.binary_view():
            arrays.append(_binary_view_column(chunk, field.name))
        else:
            arrays.append(_RECORD_COLUMN_OF[field.name](chunk, field.name))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class Gap(NamedTuple):
    """Bytes of a log that are no sound batch, and what is wrong with the first of them."""

    position: int
    length: int
    reason: str


def with_corruption(schema: pa.Schema) -> pa.Schema:
    """The schema of PERMISSIVE reading: records, and rows for what lies between them."""
    return schema.append(pa.field("corruption", CORRUPTION_TYPE))


def without_corruption(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Records in that schema."""
    nothing = pa.nulls(rows.num_rows, CORRUPTION_TYPE)
    return pa.RecordBatch.from_arrays([*rows.columns, nothing], schema=schema)


def gap_record_batch(gap: Gap, schema: pa.Schema) -> pa.RecordBatch:
    """A gap in that schema: one row."""
    arrays = [pa.nulls(1, field.type) for field in schema]
    arrays[-1] = pa.array([gap._asdict()], CORRUPTION_TYPE)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def wanted_for(schema: pa.Schema) -> Wanted:
    """What has to be written down of each record so that these columns can be made."""
    plain = {field.name for field in schema if field.type != pa.binary_view()}
    return Wanted(
        offset=bool(plain & {"offset", "sequence"}),
        timestamp="timestamp" in plain,
        fields=len(plain) < len(schema)
        or bool(plain & {"headers", "controlType", "coordinatorEpoch"}),
        key="key" in plain,
        value="value" in plain,
    )


def allocate(size: int, dtype: Any) -> npt.NDArray[Any]:
    """An array in memory of Arrow's pool, which hands the same warm pages out again."""
    return np.frombuffer(pa.allocate_buffer(size * np.dtype(dtype).itemsize), dtype=dtype)


def _int64_column(chunk: Chunk, name: str) -> pa.Array:
    return _primitive(getattr(chunk.columns, name), len(chunk), RECORD_COLUMNS[name].type)


def _primitive(values: npt.NDArray[Any], rows: int, type_: pa.DataType) -> pa.Array:
    """The first rows of an array as Arrow's, without a copy."""
    return pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(values)], 0)


def _batch_column(chunk: Chunk, name: str) -> pa.Array:
    """A value of the batch, for each of its records."""
    if name == "position":
        values: npt.NDArray[Any] = chunk.batches.position
    elif name == "timestampType":
        values = chunk.batches.timestamp_type
    else:
        values = chunk.batches.field(name)
    column = allocate(len(chunk), values.dtype)
    spread(np.ascontiguousarray(values), chunk.counts, column)
    return _primitive(column, len(chunk), RECORD_COLUMNS[name].type)


def _is_transactional(chunk: Chunk, _name: str) -> pa.Array:
    return pa.array(np.repeat(chunk.batches.is_transactional, chunk.counts))


def _path_column(chunk: Chunk, name: str) -> pa.Array:
    value = getattr(chunk.log_path, name)
    return pa.repeat(pa.scalar(value, RECORD_COLUMNS[name].type), len(chunk))


def _sequence(chunk: Chunk, _name: str) -> pa.Array:
    base_offset = np.repeat(chunk.batches.field("baseOffset"), chunk.counts)
    base_sequence = np.repeat(chunk.batches.field("baseSequence"), chunk.counts)
    delta = chunk.columns.offset[: len(chunk)] - base_offset
    sequence = np.where(base_sequence < 0, np.int32(-1), increment_sequence(base_sequence, delta))
    return _primitive(sequence, len(chunk), pa.int32())


def _control_column(chunk: Chunk, name: str) -> pa.Array:
    """ControlType or coordinatorEpoch: control records are few, and decoded one by one."""
    type_ = RECORD_COLUMNS[name].type
    if not chunk.batches.is_control.any():
        return pa.nulls(len(chunk), type_)
    values: list[Any] = [None] * len(chunk)
    for row in np.flatnonzero(np.repeat(chunk.batches.is_control, chunk.counts)).tolist():
        control = CONTROL_TYPES.get(control_type_id(chunk.field(row, "key")), UNKNOWN)
        if name == "controlType":
            values[row] = control
        elif control in END_TRANSACTION:
            values[row] = coordinator_epoch(chunk.field(row, "value"))
    return pa.array(values, type_)


def _binary_column(chunk: Chunk, name: str) -> pa.Array:
    """A key or value column, which is in Arrow's layout already."""
    offsets, data, validity = getattr(chunk.columns, name)
    has_nulls = chunk.columns.has_nulls[0 if name == "key" else 1]
    buffers = [
        pa.py_buffer(validity) if has_nulls else None,
        pa.py_buffer(offsets),
        pa.py_buffer(data).slice(0, int(offsets[len(chunk)])),
    ]
    return pa.Array.from_buffers(pa.binary(), len(chunk), buffers, -1 if has_nulls else 0)


def _gathered(
    content: Bytes,
    starts: npt.NDArray[np.int32],
    sizes: npt.NDArray[np.int32],
    type_: pa.DataType,
) -> pa.Array:
    """Fields at scattered places as one column."""
    offsets = allocate(sizes.size + 1, np.int32)
    total, nulls = plan_binary(sizes, offsets)
    data = allocate(total + WIDE, np.uint8)
    copy_binary(content, starts, offsets, data)
    data_buffer = pa.py_buffer(data).slice(0, total)
    buffers = [_validity(sizes, nulls), pa.py_buffer(offsets), data_buffer]
    return pa.Array.from_buffers(type_, sizes.size, buffers, nulls)


def _validity(sizes: npt.NDArray[np.int32], nulls: int) -> pa.Buffer | None:
    if nulls == 0:
        return None
    bitmap = np.zeros((sizes.size + 7) // 8, dtype=np.uint8)
    write_validity(sizes, bitmap)
    return pa.py_buffer(bitmap)


def _binary_view_column(chunk: Chunk, name: str) -> pa.Array:
    """Views that point into the chunk's bytes: the segment itself where it is not compressed."""
    starts, sizes = chunk.fields[name], chunk.fields[name + "Size"]
    views = allocate(2 * sizes.size, np.uint64)
    nulls = write_views(chunk.content, starts, sizes, views.reshape(-1, 2))
    buffers = [_validity(sizes, nulls), pa.py_buffer(views), pa.py_buffer(chunk.content)]
    return pa.Array.from_buffers(pa.binary_view(), sizes.size, buffers, nulls)


def _headers_column(chunk: Chunk, _name: str) -> pa.Array:
    counts = chunk.fields["headersCount"]
    offsets = allocate(counts.size + 1, np.int32)
    total, _ = plan_binary(counts, offsets)
    if total == 0:
        return pa.nulls(counts.size, HEADERS_TYPE)
    parts = np.empty((total, 4), dtype=np.int32)
    locate_headers(chunk.content, chunk.fields["headers"], counts, parts)
    keys = _strings(chunk.content, parts[:, 0], parts[:, 1])
    values = _gathered(chunk.content, parts[:, 2], parts[:, 3], pa.binary())
    entries = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS_TYPE.value_type))
    none = int((counts == 0).sum())
    buffers = [_validity(np.where(counts == 0, np.int32(-1), counts), none), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(HEADERS_TYPE, counts.size, buffers, none, children=[entries])


def _strings(
    content: Bytes, starts: npt.NDArray[np.int32], sizes: npt.NDArray[np.int32]
) -> pa.Array:
    """Strings as Java would hold them: what is not UTF-8 becomes U+FFFD."""
    raw = _gathered(content, starts, sizes, pa.binary())
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        pass
    offsets = allocate(sizes.size + 1, np.int32)
    data = allocate(int(sizes.sum(dtype=np.int64)) * MAX_GROWTH + WIDE, np.uint8)
    written = _copy_strings(content, starts, sizes, offsets, data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data).slice(0, written)]
    return pa.Array.from_buffers(pa.string(), sizes.size, buffers, 0)


@kernel
def _copy_strings(content, starts, sizes, offsets, data):
    written = np.int64(0)
    for i in range(starts.size):
        offsets[i] = written
        written = write_string(content, np.int64(starts[i]), np.int64(sizes[i]), data, written)
    offsets[starts.size] = written
    return written


_RECORD_COLUMN_OF: dict[str, Callable[[Chunk, str], pa.Array]] = {
    "key": _binary_column,
    "value": _binary_column,
    "topic": _path_column,
    "partition": _path_column,
    "offset": _int64_column,
    "timestamp": _int64_column,
    "timestampType": _batch_column,
    "headers": _headers_column,
    "sequence": _sequence,
    "controlType": _control_column,
    "coordinatorEpoch": _control_column,
    "baseOffset": _batch_column,
    "partitionLeaderEpoch": _batch_column,
    "producerId": _batch_column,
    "producerEpoch": _batch_column,
    "isTransactional": _is_transactional,
    "magic": _batch_column,
    "position": _batch_column,
}
