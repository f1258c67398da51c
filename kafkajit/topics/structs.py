"""Arrays of keys and values of an internal topic → Arrow structs of JSON.

The JSON is what kafka-dump-log prints, with three exceptions, because rows are for queries. Remote
log metadata is JSON, too; Kafka prints Java's toString. A payload that cannot be decoded is an
error or NULL, not a sentence. A payload of an unknown type, or of a version newer than those known,
keeps its bytes: {"type":"99","data":"unknown","bytes":"<base64>"}; in a value, "version" replaces
"type".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import InvalidRecordError, KafkaJitError
from kafkajit.format.limits import MAX_INT32
from kafkajit.schema import DECODED_TYPE
from kafkajit.topics import TOPICS
from kafkajit.topics.kinds import TopicKind, topic_kind
from kafkajit.topics.message import learn, new_tables
from kafkajit.topics.payload_columns import OF_VALUE, BinaryColumn, TextColumn, write_rows
from kafkajit.topics.single import Payload, frame_complaint, read_key, read_metadata, read_value
from kafkajit.topics.status import (
    BAD_FRAME,
    DONE,
    FULL,
    GARBAGE,
    MALFORMED,
    NEW_DOUBLE,
    NO_KEY,
    NO_TYPE,
    NO_VERSION,
)

_MAX_TEXT = MAX_INT32  # the offsets of an Arrow string array are int32
_REASONS = {
    NO_KEY: "it is NULL, and the value is not",
    NO_TYPE: "there is no type in it",
    NO_VERSION: "there is no version in it",
}


class _Texts:
    """A column of JSON that grows as it is written."""

    def __init__(self, source: BinaryColumn, rows: int) -> None:
        # A message's JSON is about twice its size, plus the names of its fields.
        size = int(source.offsets[-1] - source.offsets[0])
        self.data = allocate(min(2 * size + 96 * rows + 4096, _MAX_TEXT), np.uint8)
        self.offsets = allocate(rows + 1, np.int32)
        self.offsets[0] = 0
        self.is_valid = np.zeros(rows, dtype=np.bool_)

    def grow(self, written: int) -> None:
        """Double the room, and keep the first `written` bytes."""
        if self.data.size == _MAX_TEXT:
            raise KafkaJitError(f"The JSON is larger than {_MAX_TEXT} bytes: decode fewer rows")
        grown = allocate(min(2 * self.data.size, _MAX_TEXT), np.uint8)
        grown[:written] = self.data[:written]
        self.data = grown

    @property
    def column(self) -> TextColumn:
        """The column as kernels write it."""
        return TextColumn(self.data, self.offsets, self.is_valid)

    def array(self) -> pa.Array:
        rows = self.is_valid.size
        data = pa.py_buffer(self.data).slice(0, int(self.offsets[rows]))
        buffers = [_bitmap(self.is_valid), pa.py_buffer(self.offsets), data]
        return pa.Array.from_buffers(pa.string(), rows, buffers)


def decode_payloads(
    topic: str, keys: pa.Array | None, values: pa.Array, *, lenient: bool = False
) -> pa.StructArray:
    r"""Decode keys and values of an internal topic as JSON.

    Args:
        topic: the kind of topic: offsets, transaction_state, cluster_metadata, share_group_state or
            remote_log_metadata.
        keys: binary, an Array or ChunkedArray as long as `values`. Records of cluster metadata and
            remote log metadata have no keys: theirs are ignored and may be None.
        values: binary, an Array or ChunkedArray.
        lenient: return NULL for a row that cannot be decoded, instead of raising an
            InvalidRecordError.

    Returns:
        An array of struct<key: string, value: string>; NULL for NULL.

    Examples:
        >>> key = b"\x00\x01" + b"\x00\x05group" + b"\x00\x06orders" + bytes(4)
        >>> value = b"\x00\x03" + bytes(7) + b"\x2a" + bytes(4) + bytes(2) + bytes(8)
        >>> row = decode_payloads("offsets", pa.array([key]), pa.array([value]))[0].as_py()
        >>> print(row["key"])
        {"type":"1","data":{"group":"group","topic":"orders","partition":0}}
        >>> print(row["value"])
        {"version":"3","data":{"offset":42,"leaderEpoch":0,"metadata":"","commitTimestamp":0}}
    """
    kind = topic_kind(topic)
    value = _column(values, "values")
    rows = value.is_valid.size
    if not kind.has_keys:
        key = BinaryColumn(
            _read_only(np.empty(0, np.uint8)), np.zeros(1, np.int64), np.zeros(0, bool)
        )
    elif keys is None:
        raise ValueError(f"records of {TOPICS[topic]} have keys")
    else:
        key = _column(keys, "keys")
        if key.is_valid.size != rows:
            raise ValueError(f"{key.is_valid.size} keys for {rows} values")
    key_texts, value_texts = _Texts(key, rows), _Texts(value, rows)
    is_good = np.ones(rows, dtype=np.bool_)
    _decode(kind, key, value, key_texts, value_texts, is_good, lenient=lenient)
    return pa.StructArray.from_arrays(
        [key_texts.array(), value_texts.array()],
        fields=list(DECODED_TYPE),
        mask=None if is_good.all() else pa.array(~is_good),
    )


def _decode(
    kind: TopicKind,
    key: BinaryColumn,
    value: BinaryColumn,
    key_texts: _Texts,
    value_texts: _Texts,
    is_good: npt.NDArray[np.bool_],
    *,
    lenient: bool,
) -> None:
    tables = new_tables(kind.programs, kind.types)
    row = key_end = value_end = 0
    while True:
        status, row, key_end, value_end = write_rows(
            tables,
            kind.has_keys,
            key,
            value,
            lenient,
            key_texts.column,
            value_texts.column,
            is_good,
            row,
            key_end,
            value_end,
        )
        if status == DONE:
            return
        if status == FULL:
            key_texts.grow(key_end)
        elif status == FULL + OF_VALUE:
            value_texts.grow(value_end)
        elif status % OF_VALUE == NEW_DOUBLE:
            learn(tables)
        else:
            raise _error(kind, int(status), row, key, value)


def _error(
    kind: TopicKind, status: int, row: int, key: BinaryColumn, value: BinaryColumn
) -> InvalidRecordError:
    """The error for a row, decoded again to find the reason."""
    side = "value" if status >= OF_VALUE else "key"
    raw_key = _bytes(key, row) if kind.has_keys else b""
    raw_value = _bytes(value, row)
    reason, position = _REASONS.get(status % OF_VALUE), None
    if reason is None:
        payload = _payload(kind, side, raw_key, raw_value)
        reason = payload.reason
        if payload.status == BAD_FRAME:
            reason = frame_complaint(raw_value)
        elif payload.status == GARBAGE:
            reason = "there are bytes behind its end"
        if payload.status in (MALFORMED, GARBAGE):
            position = payload.position
    message = f"The {side} of row {row} is not one of {TOPICS[kind.name]}: {reason}"
    return InvalidRecordError(message, position=position)


def _payload(kind: TopicKind, side: str, key: bytes, value: bytes) -> Payload:
    if not kind.has_keys:
        return read_metadata(kind, value, any_version=False)
    return read_key(kind, key) if side == "key" else read_value(kind, key, value)


def _column(array: Any, name: str) -> BinaryColumn:
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        raise TypeError(f"{name} must be a pyarrow.Array of binary, not {type(array).__name__}")
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_null(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.binary())
    is_large = pa.types.is_large_binary(array.type)
    if not is_large and not pa.types.is_binary(array.type):
        raise TypeError(f"{name} must be binary, not {array.type}")
    _, offsets, data = array.buffers()
    dtype = np.dtype(np.int64 if is_large else np.int32)
    if offsets is None or not offsets.size:
        held: npt.NDArray[Any] = np.zeros(1, dtype=dtype)
    else:
        held = np.frombuffer(
            offsets, dtype=dtype, count=len(array) + 1, offset=array.offset * dtype.itemsize
        )
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    is_valid = array.is_valid().to_numpy(zero_copy_only=False)
    return BinaryColumn(_read_only(content), held.astype(np.int64), is_valid)


def _read_only(array: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    array = array.view()
    array.setflags(write=False)
    return array


def _bytes(column: BinaryColumn, row: int) -> bytes:
    return column.data[column.offsets[row] : column.offsets[row + 1]].tobytes()


def allocate(size: int, dtype: Any) -> npt.NDArray[Any]:
    """An array in memory of Arrow's pool, which hands the same warm pages out again."""
    return np.frombuffer(pa.allocate_buffer(size * np.dtype(dtype).itemsize), dtype=dtype)


def _bitmap(is_valid: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    if is_valid.all():
        return None
    return pa.py_buffer(np.packbits(is_valid, bitorder="little"))
