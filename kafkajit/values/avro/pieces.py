"""Arrow columns → Avro: each column as pieces of bytes, and the pieces of each row in its order.

A piece has some bytes, or none, for each row: the varint of a number, the bytes of a text. A record
is the pieces of its fields, one after the other. Only lists are put together before the row is:
their elements have rows of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.arrow.arrays import allocate
from kafkajit.errors import RecordSerializationError
from kafkajit.format.varint import MAX_VARLONG_SIZE, put_varint
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE, copy_bytes
from kafkajit.storage.source import Bytes, Int64s, Mask
from kafkajit.values.avro.columns import branch_names, leaf_type
from kafkajit.values.avro.schema import Array, AvroType, Enum, Fixed, Map, Record, Union

_NUMBERS: dict[str, np.dtype[Any]] = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}


class Piece(NamedTuple):
    """The bytes that one part of a schema adds to each row."""

    data: Bytes
    starts: Int64s
    sizes: Int64s


def constant(content: bytes, is_there: Mask) -> Piece:
    """The same bytes in all rows that are there."""
    data = np.frombuffer(content, dtype=np.uint8)
    starts = np.zeros(is_there.size, dtype=np.int64)
    return Piece(data, starts, np.where(is_there, np.int64(len(content)), np.int64(0)))


def joined(pieces: list[Piece], rows: int) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """The bytes of all rows behind each other, and where each row begins and the last one ends."""
    sizes = np.zeros((rows, len(pieces)), dtype=np.int64)
    starts = np.zeros((rows, len(pieces)), dtype=np.int64)
    base = 0
    for place, piece in enumerate(pieces):
        sizes[:, place] = piece.sizes
        starts[:, place] = piece.starts + base
        base += piece.data.size
    offsets = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(sizes.sum(axis=1), out=offsets[1:])
    if rows == 1:  # perhaps a large one, which is copied once then
        parts = (data[at[0] : at[0] + size[0]] for data, at, size in pieces)
        return np.concatenate([*parts, np.zeros(WIDE, dtype=np.uint8)]), offsets
    data = np.concatenate([*(piece.data for piece in pieces), np.zeros(WIDE, dtype=np.uint8)])
    out: npt.NDArray[np.uint8] = allocate(int(offsets[-1]) + WIDE, np.uint8)
    _join(data, starts, sizes, out)
    return out, offsets


@kernel
def _join(data, starts, sizes, out):
    w = np.int64(0)
    for row in range(starts.shape[0]):
        for place in range(starts.shape[1]):
            copy_bytes(out, w, data, starts[row, place], sizes[row, place])
            w += sizes[row, place]


def pieces_of(type_: AvroType, array: pa.Array, is_there: Mask, field: str) -> list[Piece]:
    """The pieces of a column, which is not a slice; rows that are not there have no bytes."""
    if isinstance(type_, Union):
        return _union(type_, array, is_there, field)
    if type_.kind == "null":
        return []
    if array.null_count:
        bad = np.flatnonzero(is_there & np.asarray(array.is_null()))
        if bad.size:
            raise _error(f"it is NULL, but its type is {type_.kind}", field, int(bad[0]))
    if pa.types.is_null(array.type):
        return []
    if isinstance(type_, Record):
        _check(array, "a struct", pa.types.is_struct, field)
        pieces = []
        for inner in type_.fields:
            inside = f"{field}.{inner.name}" if field else inner.name
            if inner.name not in array.type.names:
                raise _error("the struct does not have it", inside)
            pieces += pieces_of(inner.type, array.field(inner.name), is_there, inside)
        return pieces
    if isinstance(type_, Array):
        _check(array, "a list", pa.types.is_list, field)
        return _list(array, is_there, [(type_.items, array.values)], field)
    if isinstance(type_, Map):
        _check(array, "a map", pa.types.is_map, field)
        parts = [(AvroType("string"), array.keys), (type_.values, array.items)]
        return _list(array, is_there, parts, field)
    return _leaf(type_, _cast(array, leaf_type(type_), field), is_there, field)


def _check(array: pa.Array, noun: str, is_right: Callable[[pa.DataType], bool], field: str) -> None:
    if not is_right(array.type):
        raise _error(f"the column is of the type {array.type}, not {noun}", field)


def _cast(array: pa.Array, type_: pa.DataType, field: str) -> pa.Array:
    if array.type == type_:
        return array
    try:
        return array.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise _error(f"{array.type} cannot be cast to {type_}: {error}", field) from None


def _union(union: Union, array: pa.Array, is_there: Mask, field: str) -> list[Piece]:
    kinds = [branch.kind for branch in union.branches]
    is_null = np.asarray(array.is_null())
    branches = np.full(is_there.size, -1, dtype=np.int64)
    if "null" in kinds:
        branches[is_null] = kinds.index("null")
    others = [branch for branch in union.branches if branch.kind != "null"]
    columns = [array] if others else []  # of the branches that are not null
    if len(others) == 1:
        branches[~is_null] = union.branches.index(others[0])
    elif others:
        _check(array, "a struct with a tag", _has_tag, field)
        names = branch_names(others)
        tags = pc.index_in(array.field("tag"), pa.array(names)).fill_null(-1).to_numpy(False)
        columns = [array.field(name) for name in names]
        for number, branch in enumerate(others):
            branches[~is_null & (tags == number)] = union.branches.index(branch)
    bad = np.flatnonzero(is_there & (branches < 0))
    if bad.size:
        raise _error("it belongs to no branch of the union", field, int(bad[0]))
    pieces = [_varints(branches, is_there)]
    for branch, column in zip(others, columns, strict=True):
        is_branch = is_there & (branches == union.branches.index(branch))
        pieces += pieces_of(branch, column, is_branch, field)
    return pieces


def _has_tag(type_: pa.DataType) -> bool:
    return pa.types.is_struct(type_) and "tag" in type_.names


def _list(
    array: pa.Array, is_there: Mask, parts: list[tuple[AvroType, pa.Array]], field: str
) -> list[Piece]:
    offsets = np.asarray(array.offsets).astype(np.int64)
    counts = np.where(is_there, np.diff(offsets), 0)
    elements = int(offsets[-1])
    # Elements of lists that are not there are not written, and may be anything.
    is_element = np.repeat(is_there, np.diff(offsets))
    is_element = np.concatenate([np.zeros(int(offsets[0]), dtype=bool), is_element])
    inside = [
        piece
        for type_, column in parts
        for piece in pieces_of(type_, column[:elements], is_element, f"{field}[]")
    ]
    data, ends = joined(inside, elements)
    starts = ends[offsets[:-1]]
    sizes = np.where(counts > 0, ends[offsets[1:]] - starts, 0)
    return [
        _varints(counts, is_there & (counts > 0)),
        Piece(data, starts, sizes),
        constant(b"\0", is_there),
    ]


def _leaf(type_: AvroType, array: pa.Array, is_there: Mask, field: str) -> list[Piece]:
    logical = type_.logical.name if type_.logical else ""
    if isinstance(type_, Enum):
        numbers = pc.index_in(array, pa.array(type_.symbols)).fill_null(-1).to_numpy(False)
        bad = np.flatnonzero(is_there & (numbers < 0))
        if bad.size:
            row = int(bad[0])
            raise _error(f"the enum has no symbol {array[row].as_py()!r}", field, row)
        return [_varints(numbers.astype(np.int64), is_there)]
    if logical == "decimal":
        return _decimals(type_, array, is_there, field)
    if logical == "duration":
        return [_fixed(_durations(array, is_there, field), 12, is_there)]
    if logical == "uuid" and isinstance(type_, Fixed):
        return [_fixed(_uuids(array, is_there, field), 16, is_there)]
    if type_.kind in ("int", "long"):
        return [_varints(_numbers(array), is_there)]
    if type_.kind in _NUMBERS:
        dtype = _NUMBERS[type_.kind]
        return [_fixed(_raw(array, dtype), dtype.itemsize, is_there)]
    if type_.kind == "boolean":
        flags = array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint8)
        return [_fixed(flags, 1, is_there)]
    starts, sizes, data = _texts(array, is_there)
    if isinstance(type_, Fixed):
        bad = np.flatnonzero(is_there & (sizes != type_.size))
        if bad.size:
            row = int(bad[0])
            raise _error(f"it has {sizes[row]} bytes, not {type_.size}", field, row)
        return [Piece(data, starts, sizes)]
    return [_varints(sizes, is_there), Piece(data, starts, sizes)]


def _numbers(array: pa.Array) -> Int64s:
    """Integers of any width, and dates and times as such."""
    width = array.type.bit_width
    numbers = array.view(pa.int64() if width == 64 else pa.int32())
    plain: Int64s = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return plain


def _raw(array: pa.Array, dtype: Any) -> npt.NDArray[np.uint8]:
    numbers = array.fill_null(0).to_numpy(zero_copy_only=False).astype(dtype)
    return np.ascontiguousarray(numbers).view(np.uint8)


def _fixed(data: npt.NDArray[np.uint8], size: int, is_there: Mask) -> Piece:
    """Bytes of the same number for each row."""
    starts = np.arange(is_there.size, dtype=np.int64) * size
    return Piece(data, starts, np.where(is_there, np.int64(size), np.int64(0)))


def _texts(array: pa.Array, is_there: Mask) -> tuple[Int64s, Int64s, Bytes]:
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.zeros(1, dtype=np.int64)
    if len(array):
        offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[: len(array) + 1].astype(np.int64)
    data = np.zeros(0, dtype=np.uint8)
    if data_buffer is not None and data_buffer.size:
        data = np.frombuffer(data_buffer, dtype=np.uint8)
    return offsets[:-1], np.where(is_there, np.diff(offsets), 0), data


def _varints(numbers: Int64s, is_there: Mask) -> Piece:
    starts = np.empty(numbers.size, dtype=np.int64)
    sizes = np.empty(numbers.size, dtype=np.int64)
    out: npt.NDArray[np.uint8] = allocate(MAX_VARLONG_SIZE * numbers.size + WIDE, np.uint8)
    size = _write_varints(np.ascontiguousarray(numbers), is_there, starts, sizes, out)
    return Piece(out[:size], starts, sizes)


@kernel
def _write_varints(numbers, is_there, starts, sizes, out):
    w = np.int64(0)
    for row in range(numbers.size):
        starts[row] = w
        if is_there[row]:
            w = put_varint(out, w, numbers[row])
        sizes[row] = w - starts[row]
    return w


def _decimals(type_: AvroType, array: pa.Array, is_there: Mask, field: str) -> list[Piece]:
    """Big-endian numbers of two's complement: as few bytes as can be, or as a fixed has."""
    width = array.type.byte_width
    data = np.zeros(0, dtype=np.uint8)
    if len(array):
        data = np.frombuffer(array.buffers()[1], dtype=np.uint8)[: width * len(array)]
    least = type_.size if isinstance(type_, Fixed) else 1
    out: npt.NDArray[np.uint8] = allocate(max(width, least) * len(array) + WIDE, np.uint8)
    starts = np.zeros(len(array), dtype=np.int64)
    sizes = np.zeros(len(array), dtype=np.int64)
    size = _write_decimals(data, width, least, is_there, starts, sizes, out)
    piece = Piece(out[:size], starts, sizes)
    if not isinstance(type_, Fixed):
        return [_varints(sizes, is_there), piece]
    bad = np.flatnonzero(sizes > type_.size)
    if bad.size:
        raise _error(f"it does not fit {type_.size} bytes", field, int(bad[0]))
    return [piece]


@kernel
def _write_decimals(data, width, least, is_there, starts, sizes, out):
    w = np.int64(0)
    for row in range(is_there.size):
        starts[row] = w
        if is_there[row]:
            at = np.int64(row * width)
            sign = np.uint8(0xFF if data[at + width - 1] >= 0x80 else 0)
            size = np.int64(width)
            # The highest byte goes if the one below it has the same sign.
            while size > 1 and data[at + size - 1] == sign and (data[at + size - 2] ^ sign) < 0x80:
                size -= 1
            for _ in range(size, least):
                out[w] = sign
                w += 1
            for i in range(size):
                out[w] = data[at + size - 1 - i]
                w += 1
        sizes[row] = w - starts[row]
    return w


def _durations(array: pa.Array, is_there: Mask, field: str) -> npt.NDArray[np.uint8]:
    parts = [array.field(name).fill_null(0) for name in ("months", "days", "milliseconds")]
    numbers = np.stack([part.to_numpy(zero_copy_only=False) for part in parts], axis=1)
    bad = np.flatnonzero(is_there & ((numbers < 0) | (numbers >= 2**32)).any(axis=1))
    if bad.size:
        raise _error("a part of the duration does not fit 32 bits", field, int(bad[0]))
    return np.ascontiguousarray((numbers & 0xFFFFFFFF).astype("<u4")).view(np.uint8).reshape(-1)


def _uuids(array: pa.Array, is_there: Mask, field: str) -> npt.NDArray[np.uint8]:
    starts, sizes, data = _texts(array, is_there)
    out = np.zeros((is_there.size, 16), dtype=np.uint8)
    rows = np.flatnonzero(is_there)
    bad = rows[sizes[rows] != 36]
    text = np.zeros((rows.size, 36), dtype=np.uint8)
    if not bad.size and rows.size:
        text = data[starts[rows][:, None] + np.arange(36)]
        digits = _DIGITS[np.delete(text, (8, 13, 18, 23), axis=1)]
        has_dashes = (text[:, (8, 13, 18, 23)] == ord("-")).all(axis=1)
        bad = rows[(digits > 15).any(axis=1) | ~has_dashes]
        out[rows] = (digits[:, ::2] << 4 | digits[:, 1::2] & 15).astype(np.uint8)
    if bad.size:
        row = int(bad[0])
        raise _error(f"{array[row].as_py()!r} is not a UUID", field, row)
    return out.reshape(-1)


_DIGITS = np.full(256, 16, dtype=np.int64)
for _value, _letters in enumerate(zip("0123456789abcdef", "0123456789ABCDEF", strict=True)):
    for _letter in _letters:
        _DIGITS[ord(_letter)] = _value


def _error(words: str, field: str, row: int | None = None) -> RecordSerializationError:
    where = f" in {field}" if field else ""
    # The row of an element of a list is not that of the value.
    place = None if "[]" in field else row
    return RecordSerializationError(f"the value cannot be written{where}: {words}", row=place)
