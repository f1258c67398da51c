"""The bytes that rows take once they are plain bytes and JSON.

A dictionary, a run, or a view stands for the same bytes many times: a file of a kilobyte may have
gigabytes of them. So batches are cut before they are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from kafkajit.produce.inputs.rows import MOST_RECORD, BadInputError
from kafkajit.storage.source import Int64s

_MOST_BYTES = 64 << 20  # of a batch that is written out
_MOST_EMPTY = 1 << 24  # elements of lists that have fewer bits: of a run that repeats
_MOST_SIZE = 1 << 40  # of a row: the sums of larger ones do not fit into 64 bits
_FIXED = 8  # bytes of a value of any type besides its text


def pieces(batch: pa.RecordBatch, first_row: int = 0) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batch in pieces of bounded size, each with the number of its first row.

    Raises:
        BadInputError: a row alone is larger than a record may be.
    """
    sizes = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        sizes += sizes_of(column)
    if batch.num_rows and sizes.max() > MOST_RECORD:
        row = int(sizes.argmax())
        words = f"it has {sizes[row]:,} bytes, more than {MOST_RECORD:,}"
        raise BadInputError(words, place=f"row {first_row + row + 1}")
    total = np.cumsum(sizes)
    first = 0
    while first < batch.num_rows:
        before = int(total[first - 1]) if first else 0
        stop = int(np.searchsorted(total, before + _MOST_BYTES, side="right"))
        stop = max(stop, first + 1)
        yield first, batch.slice(first, stop - first)
        first = stop


def sizes_of(array: pa.Array) -> Int64s:
    """About how many bytes each row takes.

    >>> sizes_of(pa.array(["a", "abc"]).dictionary_encode()).tolist()
    [9, 11]
    """
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return sizes_of(array.storage)
    if pt.is_dictionary(kind):
        indices = array.indices.cast(pa.int64()).fill_null(len(array.dictionary)).to_numpy()
        of_entries: Int64s = np.append(sizes_of(array.dictionary), 0)[indices]
        return of_entries
    if pt.is_run_end_encoded(kind):
        ends = array.run_ends.to_numpy().astype(np.int64)
        runs = np.searchsorted(ends, array.offset + np.arange(len(array)), side="right")
        of_runs: Int64s = sizes_of(array.values)[runs]
        return of_runs
    if pt.is_struct(kind):
        total = _fixed(array)
        for number in range(kind.num_fields):
            total += sizes_of(array.field(number))
        return total
    for is_it, spans in _LISTS:
        if is_it(kind):
            return _list_sizes(array, *spans(array))
    for is_it, width in _TEXTS:
        if is_it(kind):
            return _fixed(array) + _text_sizes(array, width)
    sizes = _fixed(array)
    if pt.is_fixed_size_binary(kind):
        sizes += kind.byte_width
    return sizes


def _constant_size(kind: pa.DataType) -> int | None:
    """The bytes of each value of a type, or more than a row may have; None if they differ."""
    size = _exact_size(kind)
    return None if size is None else min(size, _MOST_SIZE)


def _exact_size(kind: pa.DataType) -> int | None:
    if pt.is_fixed_size_list(kind):
        size = _constant_size(kind.value_type)
        return None if size is None else _FIXED + int(kind.list_size) * size
    if pt.is_fixed_size_binary(kind):
        return _FIXED + int(kind.byte_width)
    if pt.is_struct(kind):
        sizes = [_constant_size(field.type) for field in kind]
        known = [size for size in sizes if size is not None]
        return _FIXED + sum(known) if len(known) == len(sizes) else None
    if pt.is_primitive(kind) or pt.is_null(kind) or pt.is_decimal(kind):
        return _FIXED
    return None


def _fixed(array: pa.Array) -> Int64s:
    return np.full(len(array), _FIXED, dtype=np.int64)


def _text_sizes(array: pa.Array, offset_type: Any) -> Int64s:
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), dtype=np.int64)
    if offset_type is None:  # a view has 16 bytes, of which the first four are its size
        numbers = np.frombuffer(buffer, np.int32, 4 * len(array), 16 * array.offset)
        sizes = numbers[::4]
    else:
        width = np.dtype(offset_type).itemsize
        sizes = np.diff(np.frombuffer(buffer, offset_type, len(array) + 1, width * array.offset))
    return np.maximum(sizes.astype(np.int64), 0)


def _list_sizes(array: pa.Array, starts: Int64s, counts: Int64s) -> Int64s:
    """Sizes of lists whose elements begin at `starts`."""
    counts = np.where(array.is_null().to_numpy(zero_copy_only=False), 0, counts)
    if not counts.any():
        return _fixed(array)
    size = _constant_size(array.type.value_type) if not pt.is_map(array.type) else None
    if size is not None:  # nulls may be billions
        told: Int64s = np.minimum(counts, _MOST_SIZE // size + 1) * size
        return _fixed(array) + told
    filled = counts > 0
    first, end = int(starts[filled].min()), int((starts + counts)[filled].max())
    if end - first > max(_MOST_EMPTY, 8 * array.values.get_total_buffer_size()):
        raise BadInputError(
            f"lists claim {end - first:,} elements, which their bytes do not have; elements "
            f"without bytes are read up to {_MOST_EMPTY:,}"
        )
    inside = np.concatenate(([0], np.cumsum(sizes_of(array.values.slice(first, end - first)))))
    begins = np.where(filled, starts - first, 0)
    return _fixed(array) + inside[begins + counts] - inside[begins]


Spans = tuple[Int64s, Int64s]


def spans_of_list(array: pa.Array) -> Spans:
    """The place of the first element of each list or map, and the number of its elements."""
    offsets = array.offsets.to_numpy().astype(np.int64)
    return offsets[:-1], np.diff(offsets)


def spans_of_view(array: pa.Array) -> Spans:
    """As spans_of_list, of a list view."""
    return array.offsets.to_numpy().astype(np.int64), array.sizes.to_numpy().astype(np.int64)


def spans_of_fixed(array: pa.Array) -> Spans:
    """As spans_of_list, of lists of the same size."""
    size = array.type.list_size
    starts = (array.offset + np.arange(len(array), dtype=np.int64)) * size
    return starts, np.full(len(array), size, dtype=np.int64)


_Test = Callable[[pa.DataType], bool]
_LISTS: list[tuple[_Test, Callable[[pa.Array], Spans]]] = [
    (pt.is_list, spans_of_list),
    (pt.is_large_list, spans_of_list),
    (pt.is_map, spans_of_list),
    (pt.is_list_view, spans_of_view),
    (pt.is_large_list_view, spans_of_view),
    (pt.is_fixed_size_list, spans_of_fixed),
]
_TEXTS: list[tuple[_Test, Any]] = [
    (pt.is_binary, np.int32),
    (pt.is_string, np.int32),
    (pt.is_large_binary, np.int64),
    (pt.is_large_string, np.int64),
    (pt.is_binary_view, None),
    (pt.is_string_view, None),
]
