"""Arrays of keys and values of an internal topic → Arrow structs of JSON.

The JSON is what kafka-dump-log prints, with three exceptions, since rows are for queries: remote
log metadata is JSON too (Kafka prints Java's toString); what cannot be decoded is an error or NULL,
not a sentence; and of a type that is not known, or a version newer than those that are, the bytes
are kept: {"type":"99","data":"unknown","bytes":"<base64>"}, and in a value "version" in place of
"type".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import InvalidRecordError, KafkaJitError
from kafkajit.format.decimal import write_decimal
from kafkajit.format.limits import MAX_INT32
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.schema import DECODED_TYPE
from kafkajit.topics import TOPICS
from kafkajit.topics.json_text import new_doubles, write_base64
from kafkajit.topics.kinds import NAME_AT, NAME_SIZE, UNKNOWN, VALUE, TopicKind, topic_kind
from kafkajit.topics.message import (
    DONE,
    FULL,
    MALFORMED,
    NEW_DOUBLE,
    learn,
    new_scratch,
    read_int16,
    read_unsigned_varint,
)
from kafkajit.topics.payloads import (
    BAD_FRAME,
    GARBAGE,
    NO_TYPE,
    NO_VERSION,
    NUMBER,
    ONLY_UNKNOWN,
    QUOTED_UNKNOWN,
    TYPE,
    UNKNOWN_DATA,
    UNKNOWN_TYPE,
    UNKNOWN_VERSION,
    VERSION,
    put_text,
    write_key,
    write_metadata,
    write_value,
)
from kafkajit.topics.single import Payload, frame_complaint, read_key, read_metadata, read_value

# Beside the statuses of payloads: a value whose key is NULL. The side is added to what is wrong
# with a value.
_NO_KEY = 10
_OF_VALUE = 100

_MAX_TEXT = MAX_INT32  # Arrow's offsets are int32
_ROOM = 192

_REASONS = {
    _NO_KEY: "it is NULL, and the value is not",
    NO_TYPE: "there is no type in it",
    NO_VERSION: "there is no version in it",
}


class _Column(NamedTuple):
    """A binary column as kernels take it."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    is_valid: npt.NDArray[np.bool_]


class _Texts:
    """One of the two columns of JSON, as it grows."""

    def __init__(self, source: _Column, rows: int) -> None:
        # A message's JSON is about twice its size, and what names its fields.
        size = int(source.offsets[-1] - source.offsets[0])
        self.data = _allocate(min(2 * size + 96 * rows + 4096, _MAX_TEXT), np.uint8)
        self.offsets = _allocate(rows + 1, np.int32)
        self.offsets[0] = 0
        self.is_valid = np.zeros(rows, dtype=np.bool_)

    def grow(self, written: int) -> None:
        """Twice the room; no copy where `written` says that nothing is there."""
        if self.data.size == _MAX_TEXT:
            raise KafkaJitError(f"The JSON is larger than {_MAX_TEXT} bytes: decode fewer rows")
        grown = _allocate(min(2 * self.data.size, _MAX_TEXT), np.uint8)
        grown[:written] = self.data[:written]
        self.data = grown

    def array(self) -> pa.Array:
        rows = self.is_valid.size
        data = pa.py_buffer(self.data).slice(0, int(self.offsets[rows]))
        buffers = [_bitmap(self.is_valid), pa.py_buffer(self.offsets), data]
        return pa.Array.from_buffers(pa.string(), rows, buffers)


def decode_payloads(
    topic: str, keys: pa.Array | None, values: pa.Array, *, lenient: bool = False
) -> pa.StructArray:
    r"""Decode keys and values of one kind of internal topic, as JSON.

    Args:
        topic: the kind of topic: offsets, transaction_state, cluster_metadata, share_group_state or
            remote_log_metadata.
        keys: a binary array, or chunked array, as long as `values`. Records of cluster metadata
            and remote log metadata have no keys: for them it is ignored, and may be None.
        values: a binary array or chunked array.
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
        key = _Column(_read_only(np.empty(0, np.uint8)), np.zeros(1, np.int64), np.zeros(0, bool))
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
    key: _Column,
    value: _Column,
    key_texts: _Texts,
    value_texts: _Texts,
    is_good: npt.NDArray[np.bool_],
    *,
    lenient: bool,
) -> None:
    programs = kind.programs
    scratch, doubles = new_scratch(programs), new_doubles()
    row = key_end = value_end = 0
    while True:
        status, row, key_end, value_end = _write_rows(
            programs.rows,
            programs.texts,
            doubles,
            kind.types,
            kind.has_keys,
            *key,
            *value,
            lenient,
            key_texts.data,
            key_texts.offsets,
            key_texts.is_valid,
            value_texts.data,
            value_texts.offsets,
            value_texts.is_valid,
            is_good,
            scratch,
            row,
            key_end,
            value_end,
        )
        if status == DONE:
            return
        if status == FULL:
            key_texts.grow(key_end)
        elif status == FULL + _OF_VALUE:
            value_texts.grow(value_end)
        elif status % _OF_VALUE == NEW_DOUBLE:
            learn(doubles, scratch)
        else:
            raise _error(kind, int(status), row, key, value)


def _error(
    kind: TopicKind, status: int, row: int, key: _Column, value: _Column
) -> InvalidRecordError:
    """What is wrong with a row, looked at once more."""
    side = "value" if status >= _OF_VALUE else "key"
    raw_key = _bytes(key, row) if kind.has_keys else b""
    raw_value = _bytes(value, row)
    reason, position = _REASONS.get(status % _OF_VALUE), None
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


def _column(array: Any, name: str) -> _Column:
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
    return _Column(_read_only(content), held.astype(np.int64), is_valid)


def _read_only(array: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    array = array.view()
    array.setflags(write=False)
    return array


def _bytes(column: _Column, row: int) -> bytes:
    return column.data[column.offsets[row] : column.offsets[row + 1]].tobytes()


def _allocate(size: int, dtype: Any) -> npt.NDArray[Any]:
    """Memory of Arrow's pool: what it had before is warm."""
    return np.frombuffer(pa.allocate_buffer(size * np.dtype(dtype).itemsize), dtype=dtype)


def _bitmap(is_valid: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    if is_valid.all():
        return None
    return pa.py_buffer(np.packbits(is_valid, bitorder="little"))


@kernel
def _write_rows(
    rows,
    texts,
    doubles,
    types,
    has_keys,
    keys,
    key_offsets,
    key_is_valid,
    values,
    value_offsets,
    value_is_valid,
    lenient,
    key_out,
    key_ends,
    key_is_there,
    value_out,
    value_ends,
    value_is_there,
    is_good,
    scratch,
    row,
    k,
    v,
):
    """Write on from a row until all is written: (status, row, ends of both columns of text)."""
    while row < value_is_valid.size:
        has_key = has_keys and key_is_valid[row]
        has_value = value_is_valid[row]
        status = np.int64(DONE)
        next_k, next_v = k, v
        type_id = np.int64(0)
        if has_key:
            p = key_offsets[row]
            size = key_offsets[row + 1] - p
            status, next_k = write_key(
                rows, texts, doubles, types, keys, p, size, key_out, k, scratch
            )
            if status == UNKNOWN_TYPE:
                status, next_k = _write_unknown_key(keys, p, size, key_out, k)
            if status == DONE:
                type_id = read_int16(keys, p)
        elif has_keys and has_value:
            status = np.int64(_NO_KEY)
        if status == DONE and has_value:
            p = value_offsets[row]
            size = value_offsets[row + 1] - p
            if not has_keys:
                status, next_v = write_metadata(
                    rows, texts, doubles, types, values, p, size, False, value_out, v, scratch
                )
                if status in (UNKNOWN_TYPE, UNKNOWN_VERSION):
                    status, next_v = _write_unknown_metadata(
                        texts, types, values, p, size, value_out, v
                    )
            elif _is_known(types, type_id):
                status, next_v = write_value(
                    rows, texts, doubles, types, values, type_id, p, size, value_out, v, scratch
                )
                if status == UNKNOWN_VERSION:
                    status, next_v = _write_unknown_value(values, p, size, value_out, v)
            else:
                status, next_v = _write_unknown_value(values, p, size, value_out, v)
            if status != DONE:
                status += _OF_VALUE
        if status != DONE:
            again = status % _OF_VALUE in (FULL, NEW_DOUBLE)
            if again or not lenient:
                return status, row, k, v
            is_good[row] = False
            has_key, has_value, next_k, next_v = False, False, k, v
        k, v = next_k, next_v
        key_is_there[row] = has_key
        value_is_there[row] = has_value
        row += 1
        key_ends[row] = k
        value_ends[row] = v
    return np.int64(DONE), row, k, v


@kernel
def _is_known(types, type_id):
    return 0 <= type_id < types.shape[0] and types[type_id, VALUE] != UNKNOWN


@kernel
def _write_unknown_key(content, p, size, out, w):
    if w + size // 3 * 4 + _ROOM > out.size:
        return FULL, w
    w = write_decimal(out, put_text(out, w, TYPE), read_int16(content, p))
    return DONE, _write_bytes(content, p, size, out, put_text(out, w, QUOTED_UNKNOWN))


@kernel
def _write_unknown_value(content, p, size, out, w):
    if w + size // 3 * 4 + _ROOM > out.size:
        return FULL, w
    if size < 2:
        w = put_text(out, w, ONLY_UNKNOWN)
    else:
        w = write_decimal(out, put_text(out, w, VERSION), read_int16(content, p))
        w = put_text(out, w, QUOTED_UNKNOWN)
    return DONE, _write_bytes(content, p, size, out, w)


@kernel
def _write_unknown_metadata(texts, types, content, p, size, out, w):
    """The frame has been read before: it is good."""
    if w + size // 3 * 4 + _ROOM > out.size:
        return FULL, w
    _, at, _ = read_unsigned_varint(content, p, p + size)
    type_id, at, _ = read_unsigned_varint(content, at, p + size)
    version, _, _ = read_unsigned_varint(content, at, p + size)
    w = put_text(out, w, TYPE)
    if _is_known(types, type_id):
        name = np.int64(types[type_id, NAME_AT])
        for i in range(types[type_id, NAME_SIZE]):
            out[w] = texts[name + i]
            w += 1
    else:
        w = write_decimal(out, w, type_id)
    w = write_decimal(out, put_text(out, w, NUMBER), version)
    return DONE, _write_bytes(content, p, size, out, put_text(out, w, UNKNOWN_DATA))


@kernel
def _write_bytes(content, p, size, out, w):
    w = write_base64(content, p, size, out, w)
    out[w] = 0x7D
    return w + 1


assert WIDE < _ROOM
