"""Arrow → rows: where each record's key, value and headers stand, for those who write records.

Keys and values stay in Arrow's buffers. Headers are laid out as they stand in a record, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from kafkajit.encode.record_writer import Field
from kafkajit.errors import InvalidRecordError, KafkaJitError
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.varint import MAX_VARINT_SIZE, put_varint
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE, copy_bytes
from kafkajit.storage.source import Int64s, as_bytes

# Nanoseconds and all that: how many of a unit are a millisecond, or the other way round.
_UNITS_OF_MILLISECOND = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}

_CAST_TO_LARGE_BINARY = (
    pt.is_large_string,
    pt.is_binary_view,
    pt.is_string_view,
    pt.is_fixed_size_binary,
)


def field_of(array: pa.Array, name: str) -> Field:
    """Where the byte strings of a column stand; text as its UTF-8.

    >>> field = field_of(pa.array(["a", None, "bc"]), "key")
    >>> field.data[:3].tobytes(), field.starts.tolist(), field.sizes.tolist()
    (b'abc', [0, 1, 1], [1, -1, 2])
    """
    if pt.is_dictionary(array.type):
        return _entries_of(field_of(array.dictionary, name), array.indices)
    if pt.is_null(array.type) or pt.is_string(array.type):
        array = array.cast(pa.binary())
    elif any(is_kind(array.type) for is_kind in _CAST_TO_LARGE_BINARY):
        array = array.cast(pa.large_binary())
    if not (pt.is_binary(array.type) or pt.is_large_binary(array.type)):
        raise TypeError(f"{name} is a column of {array.type}; what is written is binary or string")
    validity, offsets, data = array.buffers()
    kind = np.int64 if pt.is_large_binary(array.type) else np.int32
    starts = np.empty(len(array), dtype=np.int64)
    sizes = np.empty(len(array), dtype=np.int64)
    if len(array):
        has_nulls = validity is not None and array.null_count > 0
        _spans(
            np.frombuffer(offsets, dtype=kind)[array.offset :],
            as_bytes(validity if has_nulls else b""),
            array.offset,
            starts,
            sizes,
        )
    return Field(as_bytes(b"" if data is None else data), starts, sizes)


def _entries_of(field: Field, indices: pa.Array) -> Field:
    """Some of a field's byte strings; a null index is null."""
    taken = indices.cast(pa.int64()).fill_null(field.sizes.size).to_numpy()
    starts, sizes = np.append(field.starts, 0), np.append(field.sizes, -1)
    return Field(field.data, starts[taken], sizes[taken])


def no_field(rows: int, size: int = -1) -> Field:
    """A column that is not there: nulls, or empty strings.

    >>> no_field(2).sizes.tolist()
    [-1, -1]
    """
    return Field(as_bytes(b""), np.zeros(rows, dtype=np.int64), np.full(rows, size, dtype=np.int64))


def headers_of(array: pa.Array) -> Field:
    r"""The headers of each record as they stand in it, their count in front.

    >>> column = pa.array([[("a", b"1")], None], pa.map_(pa.string(), pa.binary()))
    >>> headers = headers_of(column)
    >>> headers.data[:5].tobytes(), headers.sizes.tolist()
    (b'\x02\x02a\x021', [5, 0])
    """
    if pt.is_null(array.type):
        return no_field(len(array), 0)
    header_keys, header_values = _entries(array.type)
    offsets = array.offsets.to_numpy().astype(np.int64)
    # Of a column that is large the rows here are a part, and so are their headers.
    entries = array.values.slice(offsets[0], offsets[-1] - offsets[0])
    offsets -= offsets[0]
    parts = entries.flatten()  # nulls where the struct itself is null
    keys = field_of(parts[header_keys], "a header's key")
    values = field_of(parts[header_values], "a header's value")
    if array.null_count:
        # What a null list spans does not count.
        sizes = np.where(array.is_null().to_numpy(False), 0, np.diff(offsets))
        starts = offsets[:-1]
    else:
        starts, sizes = offsets[:-1], np.diff(offsets)
    most = np.maximum(keys.sizes, 0).sum() + np.maximum(values.sizes, 0).sum()
    most += MAX_VARINT_SIZE * (2 * keys.sizes.size + len(array)) + WIDE
    data = np.empty(int(most), dtype=np.uint8)
    positions = np.empty(len(array), dtype=np.int64)
    lengths = np.empty(len(array), dtype=np.int64)
    row = _lay_out_headers(starts, sizes, *keys, *values, data, positions, lengths)
    if row < len(array):
        raise InvalidRecordError("Invalid null header key found in headers", row=int(row))
    return Field(as_bytes(data), positions, lengths)


def milliseconds_of(array: pa.Array, name: str = "timestamp", null: int | None = -1) -> Int64s:
    """Timestamps in Kafka's milliseconds, or another number where there is none.

    >>> milliseconds_of(pa.array([1_999, None, -1], pa.timestamp("us"))).tolist()
    [1, -1, -1]
    """
    if not pt.is_timestamp(array.type):
        if not _holds_numbers(array.type):
            raise TypeError(
                f"{name} is a column of {array.type}; what is written is timestamps, or integers "
                "of milliseconds"
            )
        return numbers_of(array, name, null)
    times, over = _UNITS_OF_MILLISECOND[array.type.unit]
    values = numbers_of(array.cast(pa.int64()), name, null)
    if times == over:
        return values
    is_given = array.is_valid().to_numpy(False)
    if times > 1:
        most = MAX_INT64 // times
        _refuse(
            is_given & ((values > most) | (values < -most)),
            f"{name} is further from 1970 than an int64 of milliseconds says",
        )
    return frozen(np.where(is_given, values // over * times, values))


def numbers_of(array: pa.Array, name: str, null: int | None = None) -> Int64s:
    """A column of integers, or of truth values; nulls are an error unless they stand for a number.

    >>> numbers_of(pa.array([3, None], pa.int16()), "producerEpoch", null=-1).tolist()
    [3, -1]
    """
    if not _holds_numbers(array.type):
        raise TypeError(f"{name} is a column of {array.type}; what is written is integers")
    if pt.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count and null is None:
        _refuse(array.is_null().to_numpy(False), f"{name} is null, where there has to be a number")
    if pt.is_uint64(array.type):
        values = array.fill_null(0).to_numpy()
        _refuse(values > MAX_INT64, f"{name} is larger than an int64")
    array = array.cast(pa.int64())
    if array.null_count:
        array = array.fill_null(null)
    return frozen(np.ascontiguousarray(array.to_numpy()))


def frozen(numbers: Int64s) -> Int64s:
    """Read-only, as columns of Arrow's are: kernels are compiled for that alone."""
    numbers.flags.writeable = False
    return numbers


@contextmanager
def rows_counted_from(first: int) -> Iterator[None]:
    """Errors within name a row of this part of the records: have them name it among all."""
    try:
        yield
    except KafkaJitError as error:
        if error.row is not None:
            error.row += first
        raise


def _holds_numbers(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind):
        kind = kind.value_type
    return any(is_kind(kind) for is_kind in (pt.is_integer, pt.is_boolean, pt.is_null))


def _refuse(is_bad: npt.NDArray[np.bool_], message: str) -> None:
    if is_bad.any():
        raise InvalidRecordError(message, row=int(np.argmax(is_bad)))


def _entries(kind: pa.DataType) -> tuple[int, int]:
    """Which fields of a list's structs are a header's key and value."""
    if pt.is_map(kind):
        return 0, 1
    if (pt.is_list(kind) or pt.is_large_list(kind)) and pt.is_struct(kind.value_type):
        names = [field.name for field in kind.value_type]
        if sorted(names) == ["key", "value"]:
            return names.index("key"), names.index("value")
    raise TypeError(
        f"headers is a column of {kind}; what is written is a list of structs of key and value, or "
        "a map"
    )


@kernel
def _spans(offsets, validity, first, starts, sizes):
    for row in range(starts.size):
        start = np.int64(offsets[row])
        starts[row] = start
        sizes[row] = np.int64(offsets[row + 1]) - start
    if validity.size > 0:
        for row in range(starts.size):
            bit = first + row
            if validity[bit >> 3] >> np.uint8(bit & 7) & np.uint8(1) == 0:
                sizes[row] = -1


@kernel
def _lay_out_headers(
    starts, counts,
    key_data, key_starts, key_sizes,
    value_data, value_starts, value_sizes,
    out, positions, sizes,
):  # fmt: skip
    """The first row with a header that has no key."""
    w = np.int64(0)
    for row in range(starts.size):
        positions[row] = w
        if counts[row] > 0:
            w = put_varint(out, w, counts[row])
        for header in range(starts[row], starts[row] + counts[row]):
            size = key_sizes[header]
            if size < 0:
                return row
            w = put_varint(out, w, size)
            copy_bytes(out, w, key_data, key_starts[header], size)
            w = put_varint(out, w + size, value_sizes[header])
            size = max(value_sizes[header], np.int64(0))
            copy_bytes(out, w, value_data, value_starts[header], size)
            w += size
        sizes[row] = w - positions[row]
    return starts.size
