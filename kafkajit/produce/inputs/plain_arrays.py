"""Arrow arrays of any type → keys and values, which are bytes.

| Arrow | bytes |
|---|---|
| binary and string of any kind, UUID | as they stand |
| integer, decimal, boolean | 7, 7.50, true |
| float | the shortest decimal that is the same number: 7.0, 1e+22, NaN, Infinity |
| date, time, timestamp | ISO 8601 with the digits of the unit, and Z if it has a zone |
| struct, list of any kind, map | JSON; bytes inside are base64 |

Dictionaries and runs are what they stand for. Every other type is an error: durations, intervals,
unions, VARIANT and other extension types have no text that everyone reads in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from kafkajit.arrow.arrays import bits
from kafkajit.produce.inputs.row_sizes import (
    Spans,
    spans_of_fixed,
    spans_of_list,
    spans_of_view,
)
from kafkajit.produce.inputs.rows import BadInputError
from kafkajit.storage.source import Int64s
from kafkajit.values.json_text import json_text

BYTES = pa.large_binary()
_Test = Callable[[pa.DataType], bool]


def bytes_of(array: pa.Array) -> pa.Array:
    r"""Keys or values as bytes, NULL for NULL.

    >>> bytes_of(pa.array([b"\x00\xff"], pa.binary(2))).to_pylist()
    [b'\x00\xff']
    >>> bytes_of(pa.array([7.0, None])).to_pylist()
    [b'7.0', None]
    >>> bytes_of(pa.array([{"id": 7, "tags": ["a"]}])).to_pylist()
    [b'{"id":7,"tags":["a"]}']
    """
    array = _without_wrapping(array)
    kind = array.type
    if pt.is_null(kind):
        return pa.nulls(len(array), BYTES)
    if _is_text(kind) or pt.is_fixed_size_binary(kind):
        return array.cast(BYTES)
    text = json_text(plain(array))
    if not pt.is_nested(kind):
        text = pc.utf8_trim(text, '"')  # of dates, times, NaN and infinities
    return text.cast(BYTES)


def plain(array: pa.Array) -> pa.Array:
    """The same values in the types that JSON is written from.

    >>> plain(pa.array([["a"], None], pa.large_list(pa.string_view()))).type
    ListType(list<item: string>)
    """
    array = _without_wrapping(array)
    kind = array.type
    if pt.is_struct(kind):
        return _struct(array)
    if pt.is_map(kind):
        return _map(array)
    for is_it, spans in _LISTS:
        if is_it(kind):
            return _list(array, spans(array))
    for is_it, convert in _CASTS:
        if is_it(kind):
            return convert(array)
    if any(is_it(kind) for is_it in _PLAIN):
        return array
    raise BadInputError(f"{kind} cannot become text or JSON: cast it to a number or to text")


def unwrapped(array: pa.Array) -> pa.Array:
    """The array without dictionaries and runs around it, and views as texts."""
    return _without_views(_without_wrapping(array))


def check_extensions(schema: pa.Schema, used: Collection[str]) -> None:
    """Refuse columns of an extension type that Arrow does not know: it shows how one is stored."""
    left = [field for field in schema if field.name in used]
    while left:
        field = left.pop()
        name = (field.metadata or {}).get(_EXTENSION, b"").decode(errors="replace")
        if name and name not in _STORED_AS_IS:
            raise _without_value(name, field.type)
        if pt.is_nested(field.type):
            left += [field.type.field(number) for number in range(field.type.num_fields)]


def _without_value(name: str, storage: pa.DataType) -> BadInputError:
    return BadInputError(
        f"a column of the extension type {name} has no plain value: cast it to {storage}"
    )


def _without_wrapping(array: pa.Array) -> pa.Array:
    while True:
        kind = array.type
        if pt.is_dictionary(kind):
            entries = _without_views(array.dictionary)
            array = pa.DictionaryArray.from_arrays(array.indices, entries).dictionary_decode()
        elif pt.is_run_end_encoded(kind):
            runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, _without_views(array.values))
            array = pc.run_end_decode(runs.slice(array.offset, len(array)))
        elif isinstance(kind, pa.BaseExtensionType):
            if kind.extension_name not in _STORED_AS_IS:
                raise _without_value(kind.extension_name, kind.storage_type)
            array = array.storage
        else:
            return array


def _without_views(array: pa.Array) -> pa.Array:
    """The array with texts instead of views, from which Arrow takes no rows."""
    if pt.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(BYTES) if pt.is_binary_view(array.type) else array


def _is_text(kind: pa.DataType) -> bool:
    return any(is_it(kind) for is_it in (*_STRINGS, *_BINARIES))


_EXTENSION = b"ARROW:extension:name"  # in a field's metadata
_STORED_AS_IS = {"arrow.uuid", "arrow.json"}
_STRINGS: list[_Test] = [pt.is_string, pt.is_large_string, pt.is_string_view]
_BINARIES: list[_Test] = [pt.is_binary, pt.is_large_binary, pt.is_binary_view]


def _as_string(array: pa.Array) -> pa.Array:
    """Text of at most 2 GiB, which is UTF-8: a file's strings need not be."""
    return array.cast(BYTES).cast(pa.binary()).cast(pa.string())


def _as_binary(array: pa.Array) -> pa.Array:
    return array.cast(BYTES).cast(pa.binary())


def _without_negative_scale(array: pa.Array) -> pa.Array:
    kind = array.type
    if kind.scale >= 0:
        return array
    return array.cast(pa.decimal256(min(76, kind.precision - kind.scale), 0))


_PLAIN: list[_Test] = [
    pt.is_null,
    pt.is_boolean,
    pt.is_integer,
    pt.is_floating,
    pt.is_date32,
    pt.is_time,
    pt.is_timestamp,
]
_CASTS: list[tuple[_Test, Callable[[pa.Array], pa.Array]]] = [
    *((is_it, _as_string) for is_it in _STRINGS),
    *((is_it, _as_binary) for is_it in _BINARIES),
    (pt.is_fixed_size_binary, _as_binary),
    (pt.is_date64, lambda array: array.cast(pa.date32())),
    (pt.is_decimal128, _without_negative_scale),
    (pt.is_decimal256, _without_negative_scale),
    (
        lambda kind: pt.is_decimal(kind),  # of 32 or 64 bits
        lambda array: _without_negative_scale(array.cast(pa.decimal128(38, array.type.scale))),
    ),
]
_LISTS: list[tuple[_Test, Callable[[pa.Array], Spans]]] = [
    (pt.is_list, spans_of_list),
    (pt.is_large_list, spans_of_list),
    (pt.is_list_view, spans_of_view),
    (pt.is_large_list_view, spans_of_view),
    (pt.is_fixed_size_list, spans_of_fixed),
]


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list of any kind."""
    return any(is_it(kind) for is_it, _ in _LISTS)


def _struct(array: pa.Array) -> pa.Array:
    kind = array.type
    names = [field.name for field in kind]
    if _is_variant(kind):
        raise BadInputError(
            "a column of VARIANT values has no plain value: cast it to text, for example with "
            "CAST(value AS VARCHAR) in DuckDB or to_json(value) in Spark"
        )
    if len(set(names)) < len(names):
        raise BadInputError(f"{kind} has several fields of one name, which JSON cannot have")
    children = [plain(array.field(number)) for number in range(kind.num_fields)]
    fields = [pa.field(name, child.type) for name, child in zip(names, children, strict=True)]
    return pa.Array.from_buffers(
        pa.struct(fields), len(array), [_validity(array)], children=children
    )


def _is_variant(kind: pa.DataType) -> bool:
    """Whether a struct is how Parquet stores VARIANT: Arrow does not tell, and Spark did not."""
    types = {field.name: field.type for field in kind}
    rest = types.keys() - {"metadata", "value", "typed_value"}
    is_stored = "metadata" in types and len(types) > 1
    binary = (types.get("metadata"), types.get("value", pa.binary()))
    return not rest and is_stored and all(map(pt.is_binary, binary))


def _list(array: pa.Array, spans: Spans) -> pa.Array:
    inside, offsets = _elements(array, array.values, spans)
    return pa.Array.from_buffers(
        pa.list_(inside.type), len(array), [_validity(array), offsets], children=[inside]
    )


def _map(array: pa.Array) -> pa.Array:
    spans = spans_of_list(array)
    keys, offsets = _elements(array, array.keys, spans)
    items, _ = _elements(array, array.items, spans)
    if pt.is_nested(keys.type):
        raise BadInputError(f"the keys of {array.type} are not text, and those of JSON are")
    keys = _as_string(bytes_of(keys))
    kind = pa.map_(keys.type, items.type)
    entries = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
    return pa.Array.from_buffers(kind, len(array), [_validity(array), offsets], children=[entries])


def _elements(array: pa.Array, values: pa.Array, spans: Spans) -> tuple[pa.Array, pa.Buffer]:
    """The plain elements of lists one after the other, and the lists' offsets."""
    starts, counts = spans
    counts = np.where(array.is_null().to_numpy(zero_copy_only=False), 0, counts)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    if total >= 2**31:
        raise BadInputError("a batch has more than 2 Gi elements of lists")
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    if not total:
        return plain(values.slice(0, 0)), pa.py_buffer(offsets)
    filled = counts > 0
    first, end = int(starts[filled].min()), int((starts + counts)[filled].max())
    inside = plain(values.slice(first, end - first))
    at: Int64s = np.repeat(starts - first - offsets[:-1], counts) + np.arange(total)
    if end - first > total or (np.diff(at) != 1).any():
        inside = inside.take(pa.array(at))
    return inside, pa.py_buffer(offsets)


def _validity(array: pa.Array) -> pa.Buffer | None:
    if not array.null_count:
        return None
    return bits(array.is_valid().to_numpy(zero_copy_only=False))
