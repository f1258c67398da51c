"""Builds Arrow arrays from numpy's.

Not by pa.array, which imports pandas if it is installed: that takes 0.4 s and 35 MB.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.format.limits import MAX_INT32
from kafkajit.format.utf8 import MAX_GROWTH, write_string
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.records.gather import is_ascii
from kafkajit.storage.source import Mask


def allocate(size: int, dtype: Any) -> npt.NDArray[Any]:
    """Allocate an array in Arrow's memory pool, which hands the same warm pages out again."""
    return np.frombuffer(pa.allocate_buffer(size * np.dtype(dtype).itemsize), dtype=dtype)


def primitive(values: npt.NDArray[Any], rows: int, type_: pa.DataType) -> pa.Array:
    """The first rows of an array as an Arrow array, without a copy."""
    return pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(values)], 0)


def column_of(values: npt.NDArray[Any], is_null: Mask | None = None) -> pa.Array:
    """An Arrow array of numbers or booleans.

    >>> column_of(np.array([5, 6, 7]), is_null=np.array([False, True, False])).to_pylist()
    [5, None, 7]
    """
    nulls = 0 if is_null is None else int(np.count_nonzero(is_null))
    validity = None if is_null is None or not nulls else bits(~is_null)
    is_bool = values.dtype == np.bool_
    data = bits(values) if is_bool else pa.py_buffer(np.ascontiguousarray(values))
    type_ = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(type_, values.size, [validity, data], nulls)


def bits(values: Mask | npt.NDArray[np.uint8]) -> pa.Buffer:
    """Booleans, or bytes that are 0 or not, as Arrow keeps them: eight in a byte."""
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def repeated(value: Any, rows: int, type_: pa.DataType) -> pa.Array:
    """A column with the same value in all rows."""
    if value is None:
        return pa.nulls(rows, type_)
    if isinstance(value, str):
        text = value.encode()
        if rows * len(text) > MAX_INT32:  # pa.repeat would return offsets that wrap
            raise OverflowError(
                f"{rows} times {value!r:.60} are more than 2 GiB: read other columns than this one"
            )
        offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(len(text))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text * rows)]
        return pa.Array.from_buffers(pa.string(), rows, buffers, 0)
    return primitive(np.full(rows, value, dtype=f"i{type_.byte_width}"), rows, type_)


def strings(offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> pa.Array:
    """Strings as Java decodes them: bytes that are not UTF-8 become U+FFFD."""
    count, size = offsets.size - 1, int(offsets[-1])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data).slice(0, size)]
    if is_ascii(data, size):
        return pa.Array.from_buffers(pa.string(), count, buffers, 0)
    try:
        return pa.Array.from_buffers(pa.binary(), count, buffers, 0).cast(pa.string())
    except pa.ArrowInvalid:
        pass
    written_offsets = allocate(count + 1, np.int32)
    written = allocate(size * MAX_GROWTH + WIDE, np.uint8)
    end = _copy_strings(data[:size], offsets, written_offsets, written)
    buffers = [None, pa.py_buffer(written_offsets), pa.py_buffer(written).slice(0, end)]
    return pa.Array.from_buffers(pa.string(), count, buffers, 0)


@kernel
def _copy_strings(content, starts, offsets, data):
    written = np.int64(0)
    for i in range(starts.size - 1):
        offsets[i] = written
        start = np.int64(starts[i])
        written = write_string(content, start, np.int64(starts[i + 1]) - start, data, written)
    offsets[starts.size - 1] = written
    return written
