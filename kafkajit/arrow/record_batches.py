"""Builds Arrow record batches of a schema from chunks of records, headers of batches, and gaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.arrow.arrays import allocate, bits, column_of, primitive, repeated, strings
from kafkajit.format.codecs import codec_name
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.log_path import LogPath
from kafkajit.format.sequence import increment_sequence
from kafkajit.kernel import kernel
from kafkajit.records.batches import Batches
from kafkajit.records.columns import BinaryColumn, Wanted
from kafkajit.records.control_records import END_TRANSACTION, control_type, coordinator_epoch
from kafkajit.schema import (
    GAP_TYPE,
    HEADERS_TYPE,
    MICROSECONDS_TYPE,
    RECORD_COLUMNS,
    TEXT_COLUMNS,
    in_microseconds,
)
from kafkajit.storage.source import Bytes, Int64s
from kafkajit.walk.damage import Corruption, Gap

if TYPE_CHECKING:
    from kafkajit.records.chunk import Chunk


def batch_record_batch(
    batches: Batches, content: Bytes, schema: pa.Schema, where: Mapping[str, Any]
) -> pa.RecordBatch:
    """Build a record batch of batches' headers, and of whether their checksums hold.

    Args:
        batches: the headers.
        content: the log's bytes.
        schema: the columns to build.
        where: the values of topic, partition and path.
    """
    arrays = [
        repeated(where.get(field.name), len(batches), field.type)
        if field.name in where or field.type == GAP_TYPE
        else _batch_header_column(batches, content, field)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _batch_header_column(batches: Batches, content: Bytes, field: pa.Field) -> pa.Array:
    values = _BATCH_COLUMN_OF.get(field.name, _header_field)(batches, content, field.name)
    if field.type == MICROSECONDS_TYPE:
        return _microseconds(np.ascontiguousarray(values))
    array = values if isinstance(values, pa.Array) else column_of(values)
    return array.cast(field.type)


def _header_field(batches: Batches, _content: Bytes, name: str) -> Any:
    return batches.field(name)


def _unless_set(batches: Batches, _content: Bytes, name: str) -> pa.Array:
    """A header field; NULL for a compressed set of messages, whose contents it does not know."""
    return column_of(batches.field(name), is_null=batches.is_message_set)


def _header_property(batches: Batches, _content: Bytes, name: str) -> Any:
    return getattr(batches, _PROPERTIES[name])


def _delete_horizon(batches: Batches, _content: Bytes, _name: str) -> pa.Array:
    return column_of(batches.field("baseTimestamp"), is_null=~batches.has_delete_horizon)


def _compression_type(batches: Batches, _content: Bytes, _name: str) -> pa.Array:
    codecs = [codec_name(codec) for codec in range(8)]
    lengths = [0, *map(len, codecs)]
    names = np.frombuffer("".join(codecs).encode(), dtype=np.uint8)
    return strings(np.cumsum(lengths, dtype=np.int32), names).take(column_of(batches.codec))


def _is_valid(batches: Batches, content: Bytes, _name: str) -> Any:
    return batches.is_valid(content)


_PROPERTIES = {
    "lastOffset": "last_offset",
    "lastSequence": "last_sequence",
    "isTransactional": "is_transactional",
    "isControlBatch": "is_control",
    "position": "position",
    "timestampType": "timestamp_type",
    "sizeInBytes": "size_in_bytes",
}

# Every other column is a field of the header.
_BATCH_COLUMN_OF: dict[str, Callable[[Batches, Bytes, str], Any]] = {
    **dict.fromkeys(_PROPERTIES, _header_property),
    "deleteHorizonMs": _delete_horizon,
    "compressionType": _compression_type,
    "baseOffset": _unless_set,
    "recordsCount": _unless_set,
    "isValid": _is_valid,
}


def record_record_batch(chunk: Chunk, schema: pa.Schema) -> pa.RecordBatch:
    """Build a record batch of a chunk's records: only the columns of `schema` are gathered."""
    arrays = []
    for field in schema:
        if field.type == pa.binary_view():
            arrays.append(_binary_view_column(chunk, field.name))
        elif field.type == MICROSECONDS_TYPE:
            arrays.append(_microseconds(chunk.columns.timestamp[: len(chunk)]))
        elif field.type == pa.string() and field.name in TEXT_COLUMNS:
            # The bytes unchanged, UTF-8 or not: what Spark's CAST(value AS STRING) does.
            arrays.append(_binary_column(chunk, field.name).view(pa.string()))
        else:
            arrays.append(_RECORD_COLUMN_OF[field.name](chunk, field.name))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def gap_record_batch(gap: Gap, schema: pa.Schema, log_path: LogPath) -> pa.RecordBatch:
    """Build the row for a gap among records or batches."""
    known = {"path": gap.path, "corruption": gap._asdict()}
    return _row(log_path._asdict() | known, schema)


def corruption_record_batch(
    corruption: Corruption, schema: pa.Schema, log_path: LogPath
) -> pa.RecordBatch:
    """Build a row of the table of corruption."""
    missing = {
        "firstMissingOffset": corruption.first_missing_offset,
        "lastMissingOffset": corruption.last_missing_offset,
    }
    return _row(log_path._asdict() | corruption._asdict() | missing, schema)


def _row(known: dict[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [
        # pa.array([None]) takes five times as long, and most values are NULL.
        pa.nulls(1, field.type)
        if known.get(field.name) is None
        else pa.array([known[field.name]], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def wanted_for(schema: pa.Schema) -> Wanted:
    """The fields of each record that the reader must keep to build these columns."""
    plain = {field.name for field in schema if field.type != pa.binary_view()}
    viewed = {field.name for field in schema} - plain
    return Wanted(
        offset=bool(plain & {"offset", "sequence"}),
        timestamp="timestamp" in plain,
        fields=bool(plain & {"controlType", "coordinatorEpoch"}),
        key="key" in plain,
        value="value" in plain,
        headers="headers" in plain,
        key_views="key" in viewed,
        value_views="value" in viewed,
    )


def _int64_column(chunk: Chunk, name: str) -> pa.Array:
    return primitive(getattr(chunk.columns, name), len(chunk), RECORD_COLUMNS[name].type)


_MAX_MILLIS = np.int64(MAX_INT64 // 1000)


def table_in_microseconds(table: pa.Table) -> pa.Table:
    """The table with Spark's timestamps; NULL if microseconds cannot hold Kafka's.

    >>> table = pa.table({"timestamp": pa.array([5, 2**60], pa.timestamp("ms", tz="UTC"))})
    >>> table_in_microseconds(table)["timestamp"].cast(pa.int64()).to_pylist()
    [5000, None]
    """
    for at, field in enumerate(in_microseconds(table.schema)):
        if field.type != table.schema.field(at).type:
            column = table.column(at)
            try:
                column = column.cast(field.type)
            except pa.ArrowInvalid:
                import pyarrow.compute as pc  # 0.1 s

                millis = column.cast(pa.int64())
                inside = pc.and_(
                    pc.less_equal(millis, _MAX_MILLIS), pc.greater_equal(millis, -_MAX_MILLIS)
                )
                column = pc.if_else(inside, column, None).cast(field.type)
            table = table.set_column(at, field, column)
    return table


def _microseconds(millis: Int64s) -> pa.Array:
    """Milliseconds as Spark's TIMESTAMP; NULL if microseconds cannot hold them."""
    micros = allocate(millis.size, np.int64)
    buffers = [None, pa.py_buffer(micros)]
    outside = _to_micros(millis, micros)
    if outside:
        buffers[0] = bits((millis <= _MAX_MILLIS) & (millis >= -_MAX_MILLIS))
    return pa.Array.from_buffers(MICROSECONDS_TYPE, millis.size, buffers, outside)


@kernel
def _to_micros(millis, micros):
    """Convert, and return how many values do not fit."""
    outside = 0
    for i in range(millis.size):
        inside = -_MAX_MILLIS <= millis[i] <= _MAX_MILLIS
        micros[i] = millis[i] * 1000 if inside else 0
        outside += not inside
    return outside


def _batch_column(chunk: Chunk, name: str) -> pa.Array:
    """A column that has its batch's value for each record."""
    if name == "position":
        values: npt.NDArray[Any] = chunk.batches.position
    elif name == "timestampType":
        values = chunk.batches.timestamp_type
    else:
        values = chunk.batches.field(name)
    column = np.repeat(values, chunk.counts)
    return primitive(column, len(chunk), RECORD_COLUMNS[name].type)


def _is_transactional(chunk: Chunk, _name: str) -> pa.Array:
    return column_of(np.repeat(chunk.batches.is_transactional, chunk.counts))


def _path_column(chunk: Chunk, name: str) -> pa.Array:
    return repeated(getattr(chunk.log_path, name), len(chunk), RECORD_COLUMNS[name].type)


def _no_corruption(chunk: Chunk, _name: str) -> pa.Array:
    return pa.nulls(len(chunk), GAP_TYPE)


def _sequence(chunk: Chunk, _name: str) -> pa.Array:
    base_offset = np.repeat(chunk.batches.field("baseOffset"), chunk.counts)
    base_sequence = np.repeat(chunk.batches.field("baseSequence"), chunk.counts)
    delta = chunk.columns.offset[: len(chunk)] - base_offset
    sequence = np.where(base_sequence < 0, np.int32(-1), increment_sequence(base_sequence, delta))
    return primitive(sequence, len(chunk), pa.int32())


def _control_column(chunk: Chunk, name: str) -> pa.Array:
    """Build controlType or coordinatorEpoch; control records are few, and decoded one by one."""
    type_ = RECORD_COLUMNS[name].type
    if not chunk.batches.is_control.any():
        return pa.nulls(len(chunk), type_)
    rows = np.flatnonzero(np.repeat(chunk.batches.is_control, chunk.counts)).tolist()
    controls = [control_type(chunk.field(row, "key")) for row in rows]
    is_null = np.ones(len(chunk), dtype=np.bool_)
    if name == "controlType":
        is_null[rows] = False
        sizes = np.zeros(len(chunk) + 1, dtype=np.int32)
        sizes[1:][rows] = [len(control) for control in controls]
        data = pa.py_buffer("".join(controls).encode())
        buffers = [bits(~is_null), pa.py_buffer(np.cumsum(sizes, dtype=np.int32)), data]
        return pa.Array.from_buffers(type_, len(chunk), buffers)
    epochs = np.zeros(len(chunk), dtype=np.int32)
    for row, control in zip(rows, controls, strict=True):
        if control in END_TRANSACTION:
            is_null[row], epochs[row] = False, coordinator_epoch(chunk.field(row, "value"))
    return column_of(epochs, is_null)


def _binary_column(chunk: Chunk, name: str) -> pa.Array:
    """A key or value column, which the kernel has written in Arrow's layout."""
    has_nulls = chunk.columns.has_nulls[0 if name == "key" else 1]
    return _binary(getattr(chunk.columns, name), len(chunk), has_nulls)


def _binary(column: BinaryColumn, entries: int, has_nulls: np.uint8) -> pa.Array:
    offsets, data, validity, _ = column
    buffers = [
        pa.py_buffer(validity) if has_nulls else None,
        pa.py_buffer(offsets),
        pa.py_buffer(data).slice(0, int(offsets[entries])),
    ]
    return pa.Array.from_buffers(pa.binary(), entries, buffers, -1 if has_nulls else 0)


def _binary_view_column(chunk: Chunk, name: str) -> pa.Array:
    """Views into the chunk's bytes: into the segment itself if it is not compressed."""
    rows = len(chunk)
    column = getattr(chunk.columns, name)
    has_nulls = chunk.columns.has_nulls[0 if name == "key" else 1]
    buffers = [
        pa.py_buffer(column.validity) if has_nulls else None,
        pa.py_buffer(column.views[:rows]),
        pa.py_buffer(chunk.content),
    ]
    return pa.Array.from_buffers(pa.binary_view(), rows, buffers, -1 if has_nulls else 0)


def _headers_column(chunk: Chunk, _name: str) -> pa.Array:
    rows = len(chunk)
    offsets, keys, values = chunk.columns.headers
    total = int(offsets[rows])
    if total == 0:
        return pa.nulls(rows, HEADERS_TYPE)
    entries = pa.StructArray.from_arrays(
        [
            strings(keys.offsets[: total + 1], keys.data),
            _binary(values, total, chunk.columns.has_nulls[2]),
        ],
        fields=list(HEADERS_TYPE.value_type),
    )
    has_some = offsets[1 : rows + 1] != offsets[:rows]
    none = rows - int(np.count_nonzero(has_some))
    validity = bits(has_some) if none else None
    buffers = [validity, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(HEADERS_TYPE, rows, buffers, none, children=[entries])


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
    "corruption": _no_corruption,
}
