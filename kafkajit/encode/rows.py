"""Arrow → rows: where each record's key, value and headers are, for the writers of records.

Keys and values stay in Arrow's buffers. Headers are copied once, into the layout of a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from kafkajit.encode.batch_plan import ByteStrings
from kafkajit.errors import InvalidRecordError, KafkaJitError
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.varint import MAX_VARINT_SIZE, put_varint
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE, copy_bytes
from kafkajit.storage.source import Int64s, as_bytes

# For each of Arrow's units: (milliseconds per unit, units per millisecond); one of them is 1.
_MILLISECONDS = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}

_CAST_TO_LARGE_BINARY = (
    pt.is_large_string,
    pt.is_binary_view,
    pt.is_string_view,
    pt.is_fixed_size_binary,
)


def byte_strings_of(array: pa.Array, name: str) -> ByteStrings:
    """Locate the byte strings of a column; text is UTF-8.

    >>> keys = byte_strings_of(pa.array(["a", None, "bc"]), "key")
    >>> keys.data[:3].tobytes(), keys.starts.tolist(), keys.sizes.tolist()
    (b'abc', [0, 1, 1], [1, -1, 2])
    """
    if pt.is_dictionary(array.type):
        return _entries_of(byte_strings_of(array.dictionary, name), array.indices)
    if pt.is_null(array.type) or pt.is_string(array.type):
        array = array.cast(pa.binary())
    elif any(is_kind(array.type) for is_kind in _CAST_TO_LARGE_BINARY):
        array = array.cast(pa.large_binary())
    if not (pt.is_binary(array.type) or pt.is_large_binary(array.type)):
        raise TypeError(f"{name} is a column of {array.type}; it must be binary or string")
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
    return ByteStrings(as_bytes(b"" if data is None else data), starts, sizes)


def _entries_of(entries: ByteStrings, indices: pa.Array) -> ByteStrings:
    """The byte strings at these indices; a null index is null."""
    taken = indices.cast(pa.int64()).fill_null(entries.sizes.size).to_numpy()
    starts, sizes = np.append(entries.starts, 0), np.append(entries.sizes, -1)
    return ByteStrings(entries.data, starts[taken], sizes[taken])


def missing_column(rows: int, size: int = -1) -> ByteStrings:
    """The byte strings of a missing column: nulls, or with size 0 empty strings.

    >>> missing_column(2).sizes.tolist()
    [-1, -1]
    """
    return ByteStrings(
        as_bytes(b""), np.zeros(rows, dtype=np.int64), np.full(rows, size, dtype=np.int64)
    )


def headers_of(array: pa.Array) -> ByteStrings:
    r"""The headers of each record as they are laid out in it, beginning with their count.

    >>> column = pa.array([[("a", b"1")], None], pa.map_(pa.string(), pa.binary()))
    >>> headers = headers_of(column)
    >>> headers.data[:5].tobytes(), headers.sizes.tolist()
    (b'\x02\x02a\x021', [5, 0])
    """
    if pt.is_null(array.type):
        return missing_column(len(array), 0)
    header_keys, header_values = _entries(array.type)
    offsets = array.offsets.to_numpy().astype(np.int64)
    # These rows may be a slice of a large column: take only their headers.
    entries = array.values.slice(offsets[0], offsets[-1] - offsets[0])
    offsets -= offsets[0]
    parts = entries.flatten()  # nulls where the struct itself is null
    keys = byte_strings_of(parts[header_keys], "a header's key")
    values = byte_strings_of(parts[header_values], "a header's value")
    if array.null_count:
        # Ignore what a null list spans.
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
    return ByteStrings(as_bytes(data), positions, lengths)


def milliseconds_of(array: pa.Array, name: str = "timestamp", null: int | None = -1) -> Int64s:
    """Timestamps in Kafka's milliseconds, with the number `null` for null.

    >>> milliseconds_of(pa.array([1_999, None, -1], pa.timestamp("us"))).tolist()
    [1, -1, -1]
    """
    if not pt.is_timestamp(array.type):
        if not _holds_numbers(array.type):
            raise TypeError(
                f"{name} is a column of {array.type}; it must be timestamps, or integers "
                "of milliseconds"
            )
        return numbers_of(array, name, null)
    times, over = _MILLISECONDS[array.type.unit]
    values = numbers_of(array.view(pa.int64()), name, null)
    if times == over:
        return values
    is_given = array.is_valid().to_numpy(False)
    if times > 1:
        most = MAX_INT64 // times
        _refuse(
            is_given & ((values > most) | (values < -most)),
            f"{name} is out of range for an int64 of milliseconds since 1970",
        )
    return frozen(np.where(is_given, values // over * times, values))


def numbers_of(array: pa.Array, name: str, null: int | None = None) -> Int64s:
    """A column of integers or booleans, with the number `null` for null, which else is an error.

    >>> numbers_of(pa.array([3, None], pa.int16()), "producerEpoch", null=-1).tolist()
    [3, -1]
    """
    if not _holds_numbers(array.type):
        raise TypeError(f"{name} is a column of {array.type}; it must be integers")
    if pt.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count and null is None:
        _refuse(array.is_null().to_numpy(False), f"{name} is null, and must be a number")
    if pt.is_uint64(array.type):
        values = array.fill_null(0).to_numpy()
        _refuse(values > MAX_INT64, f"{name} is larger than an int64")
    if not pt.is_int64(array.type):
        array = array.cast(pa.int64())
    if array.null_count:
        array = array.fill_null(null)
    return frozen(np.ascontiguousarray(array.to_numpy()))


def frozen(numbers: Int64s) -> Int64s:
    """Make the array read-only, as Arrow's columns are: kernels are compiled only for those."""
    numbers.flags.writeable = False
    return numbers


@contextmanager
def rows_counted_from(first: int) -> Iterator[None]:
    """Add `first` to the row that an error in the block names: it counts from this slice."""
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
    """The indices of a header's key and value in a list's structs."""
    if pt.is_map(kind):
        return 0, 1
    if (pt.is_list(kind) or pt.is_large_list(kind)) and pt.is_struct(kind.value_type):
        names = [field.name for field in kind.value_type]
        if sorted(names) == ["key", "value"]:
            return names.index("key"), names.index("value")
    raise TypeError(
        f"headers is a column of {kind}; it must be a list of structs of key and value, or a map"
    )


@kernel
def _spans(offsets, validity, first, starts, sizes):
    # Two loops, and indexes that are not negative: LLVM then does several rows at once.
    for row in range(starts.size):
        starts[row] = offsets[row]
    for row in range(sizes.size):
        at = np.uint64(row)
        sizes[row] = np.int64(offsets[at + np.uint64(1)]) - np.int64(offsets[at])
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
    """Lay out headers; the first row with a null header key, else the number of rows."""
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
