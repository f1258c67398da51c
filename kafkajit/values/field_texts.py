"""The texts in one field of columns, whatever it holds: what a search for a field looks at.

columns ─▶ the field, in items of lists and in maps ─▶ all that has no parts ─▶ texts of each row
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.values.json_text import json_text

Rows = npt.NDArray[np.int64]
_TEXT = pa.large_binary()


class FieldTexts(NamedTuple):
    """The texts in a field."""

    texts: pa.Array  # a list for each row
    has_field: bool  # in a row at least, be it NULL


class _Nodes(NamedTuple):
    """Values, and the row in which each is."""

    values: pa.Array
    rows: Rows


def field_texts(array: pa.Array, names: Sequence[str]) -> FieldTexts:
    """The texts in a field of each row, as JSON would have them, without quotes and escapes.

    The names lead to the field through structs, maps and the items of lists. NULL has no text.

    >>> orders = pa.array([{"lines": [{"sku": "a"}, {"sku": "b"}]}, {"lines": None}, None])
    >>> field_texts(orders, ["lines", "sku"]).texts.to_pylist()
    [[b'a', b'b'], [], []]
    """
    nodes = _Nodes(array, np.arange(len(array)))
    for name in names:
        inside = _field(_items(nodes), name)
        if inside is None:
            return FieldTexts(_lists([], len(array)), has_field=False)
        nodes = inside
    return FieldTexts(_lists([*_leaves(nodes)], len(array)), has_field=len(nodes.values) > 0)


def _items(nodes: _Nodes) -> _Nodes:
    """The items of lists in lists, or the values themselves; none of them NULL."""
    nodes = _valid(nodes)
    while pa.types.is_list(nodes.values.type) or pa.types.is_large_list(nodes.values.type):
        parents = np.asarray(pc.list_parent_indices(nodes.values))
        nodes = _valid(_Nodes(pc.list_flatten(nodes.values), nodes.rows[parents]))
    return nodes


def _field(nodes: _Nodes, name: str) -> _Nodes | None:
    """The field of structs, or the entry of maps, that has this name; None if they have none."""
    type_ = nodes.values.type
    if pa.types.is_struct(type_):
        numbers = type_.get_all_field_indices(name)
        return _Nodes(nodes.values.flatten()[numbers[0]], nodes.rows) if numbers else None
    if pa.types.is_map(type_):
        keys, items, rows = _entries(nodes)
        is_it = pc.equal(_texts(keys), pa.scalar(name.encode(), _TEXT))
        return (
            _Nodes(items.filter(is_it), rows[np.asarray(is_it)]) if pc.any(is_it).as_py() else None
        )
    return None


def _leaves(nodes: _Nodes) -> Iterator[_Nodes]:
    """The texts of all parts that have no parts."""
    nodes = _items(nodes)
    type_ = nodes.values.type
    if pa.types.is_struct(type_):
        for part in nodes.values.flatten():
            yield from _leaves(_Nodes(part, nodes.rows))
    elif pa.types.is_map(type_):
        _, items, rows = _entries(nodes)
        yield from _leaves(_Nodes(items, rows))
    elif len(nodes.values):
        yield _Nodes(_texts(nodes.values), nodes.rows)


def _texts(values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return values.cast(_TEXT)
    # Base64 and times are in quotes, without any escapes inside.
    return pc.utf8_trim(json_text(values), '"').cast(_TEXT)


def _valid(nodes: _Nodes) -> _Nodes:
    if not nodes.values.null_count:
        return nodes
    return _Nodes(nodes.values.drop_null(), nodes.rows[np.asarray(nodes.values.is_valid())])


def _entries(nodes: _Nodes) -> tuple[pa.Array, pa.Array, Rows]:
    """The keys and the values of maps, and the rows in which they are."""
    offsets = np.asarray(nodes.values.offsets)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    rows = np.repeat(nodes.rows, np.diff(offsets))
    # These are those of the whole array, of which the values may be a slice.
    keys, items = nodes.values.keys.slice(first, count), nodes.values.items.slice(first, count)
    return keys, items, rows


def _lists(parts: list[_Nodes], count: int) -> pa.Array:
    """Texts of several arrays as a list for each row."""
    texts = pa.concat_arrays([part.values for part in parts] or [pa.array([], _TEXT)])
    rows = np.concatenate([part.rows for part in parts] or [np.zeros(0, dtype=np.int64)])
    if len(parts) > 1:
        order = np.argsort(rows, kind="stable")
        texts, rows = texts.take(pa.array(order)), rows[order]
    offsets = np.searchsorted(rows, np.arange(count + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), texts)
