"""Arrow types that JSON is read into, values for them, and ways to compare what is read."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import kafkajit
from kafkajit.values.json import reading
from kafkajit.values.json.reading import KernelReader, bodies_of
from kafkajit.values.json.types import Column

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NAMES = ["a", "b", "long name of a field", 'quo"te', "é", "back\\", "", 'a":1,"b', "a/b"]


def decode_json(values: Any, schema: Any = None, **options: Any) -> pa.Array:
    return kafkajit.decode_values(values, schema, format="json", **options)


def types(depth: int = 3) -> st.SearchStrategy[pa.DataType]:
    leaves = st.sampled_from(
        [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.string()]
    )
    if not depth:
        return leaves
    inside = types(depth - 1)
    structs = st.lists(
        st.tuples(st.sampled_from(NAMES), inside), max_size=5, unique_by=lambda f: f[0]
    )
    return st.one_of(
        leaves,
        inside.map(lambda type_: pa.list_(pa.field("element", type_))),
        inside.map(lambda type_: pa.map_(pa.string(), type_)),
        structs.filter(bool).map(pa.struct),
    )


def values_of(type_: pa.DataType) -> st.SearchStrategy[Any]:
    return st.none() | _present(type_)


def _present(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_integer(type_):
        bits = type_.bit_width
        return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if pa.types.is_floating(type_):
        return st.floats(allow_nan=False, allow_infinity=False)
    if pa.types.is_boolean(type_):
        return st.booleans()
    if pa.types.is_list(type_):
        return st.lists(values_of(type_.value_type), max_size=4)
    if pa.types.is_map(type_):
        return st.dictionaries(TEXT, values_of(type_.item_type), max_size=12)
    if pa.types.is_struct(type_):
        return st.fixed_dictionaries({f.name: values_of(f.type) for f in type_})
    return TEXT


def as_python(value: Any, type_: pa.DataType) -> Any:
    """A value as to_pylist returns it, with maps as dicts."""
    if value is None:
        return None
    if pa.types.is_list(type_):
        return [as_python(item, type_.value_type) for item in value]
    if pa.types.is_map(type_):
        return {key: as_python(item, type_.item_type) for key, item in value}
    if pa.types.is_struct(type_):
        return {field.name: as_python(value[field.name], field.type) for field in type_}
    return value


def bits(value: Any) -> Any:
    """A value to compare, in which -0.0 is not 0.0."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    return [bits(item) for item in value] if isinstance(value, list) else value


def gives_up(values: list[bytes], column: Column) -> list[int]:
    """The values at which the kernel gives up."""
    found: list[int] = []
    for part, first in reading.parts(bodies_of(pa.array(values, pa.binary()))):
        for _, _, troubles in KernelReader(column).blocks(part, None):
            found += (first + troubles).tolist()
    return found
