"""Rows → columns of text for CSV, and lines of JSON.

Keys, values and headers are bytes in Kafka. As text they have to be UTF-8; with base64 they are
columns of other names, `keyBase64` and so on, so that nobody takes one for the other.
"""

from __future__ import annotations

from base64 import b64encode

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.errors import RecordSerializationError
from kafkajit.scan.export.options import BASE64
from kafkajit.values.arrow_text import join, named, scalar, text_of

SUFFIX = "Base64"


def as_text(table: pa.Table, encoding: str, is_csv: bool = True) -> pa.Table:
    r"""The rows with text instead of bytes; in CSV, nested columns are JSON.

    >>> rows = pa.table({"offset": [7], "key": [b"k"], "value": [b"\xff"]})
    >>> as_text(rows, "base64").to_pylist()
    [{'offset': 7, 'keyBase64': 'aw==', 'valueBase64': '/w=='}]
    """
    names, columns = [], []
    for name, column in zip(table.schema.names, table.columns, strict=True):
        array = _in_one(column)
        new = _textual(array, encoding, table, name)
        is_plain = not pa.types.is_nested(new.type)
        if is_csv and (pa.types.is_timestamp(new.type) or not is_plain):
            new = text_of(new, as_json=not is_plain)
        names.append(_name(name, array.type, encoding))
        columns.append(new)
    return pa.Table.from_arrays(columns, names)


def json_lines(table: pa.Table) -> pa.Buffer:
    r"""The rows as JSON objects, a line each.

    >>> json_lines(pa.table({"offset": [7], "key": ["k"]})).to_pybytes()
    b'{"offset":7,"key":"k"}\n'
    """
    if not table.num_rows:
        return pa.py_buffer(b"")
    pieces: list[pa.Array | pa.Scalar] = []
    for name, column in zip(table.schema.names, table.columns, strict=True):
        pieces += [
            scalar(("," if pieces else "{") + named(name, as_json=True)),
            text_of(_in_one(column), as_json=True),
        ]
    lines = join(*pieces, scalar("}\n"), null="null")
    return lines.buffers()[2]


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    """A column as an array, which is not copied if it is one already."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays([pa.array([], column.type), *column.chunks])


def _name(name: str, type_: pa.DataType, encoding: str) -> str:
    return name + SUFFIX if encoding == BASE64 and pa.types.is_binary(type_) else name


def _textual(array: pa.Array, encoding: str, table: pa.Table, name: str) -> pa.Array:
    """An array with text instead of bytes, at any depth."""
    kind = array.type
    if pa.types.is_binary(kind):
        if encoding == BASE64:
            texts = [None if value is None else b64encode(value) for value in array.to_pylist()]
            return pa.array(texts, pa.binary()).view(pa.string())
        try:
            return array.cast(pa.string())
        except pa.ArrowInvalid:
            raise _not_text(table, name) from None
    if pa.types.is_map(kind):
        entries = _textual(_entries(array), encoding, table, name)
        items = entries.values
        return pa.MapArray.from_arrays(_offsets(entries), items.field(0), items.field(1))
    if pa.types.is_list(kind):
        items = _textual(array.flatten(), encoding, table, name)
        return pa.ListArray.from_arrays(_offsets(array), items)
    if pa.types.is_struct(kind) and kind.num_fields:
        parts = [_textual(part, encoding, table, name) for part in array.flatten()]
        inside = [_name(field.name, field.type, encoding) for field in kind]
        return pa.StructArray.from_arrays(parts, inside, mask=array.is_null())
    return array


def _offsets(lists: pa.Array) -> pa.Array:
    """The beginning of each list in the flattened ones, and the end of the last."""
    counts = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int64())
    ends = pc.cumulative_sum(counts).cast(pa.int32())
    # A list that is NULL has NULL as its offset: pyarrow before 26 takes no mask here.
    starts = pc.if_else(lists.is_null(), None, pc.subtract(ends, counts.cast(pa.int32())))
    return pa.concat_arrays([starts, ends[-1:] if len(ends) else pa.array([0], pa.int32())])


def _entries(maps: pa.Array) -> pa.Array:
    """Maps as lists of their entries."""
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], ["key", "value"])
    bounds = maps.buffers()[:2]
    kind = pa.list_(entries.type)
    return pa.Array.from_buffers(kind, len(maps), bounds, offset=maps.offset, children=[entries])


def _not_text(table: pa.Table, name: str) -> RecordSerializationError:
    """The error for bytes that are not UTF-8, with the first record that has some."""
    column = _in_one(table[name])
    row = next(row for row in range(table.num_rows) if not _is_text(column.slice(row, 1)))
    where = [
        f"{place} {table[place][row].as_py()}"
        for place in ("topic", "partition", "offset")
        if place in table.column_names
    ]
    return RecordSerializationError(
        f"{name} is not UTF-8 text at {', '.join(where) or f'row {row}'}: pass --encoding "
        f"{BASE64}, or export to a format that has bytes"
    )


def _is_text(array: pa.Array) -> bool:
    """Whether all bytes in it, at any depth, are UTF-8."""
    kind = array.type
    if pa.types.is_binary(kind):
        try:
            array.cast(pa.string())
        except pa.ArrowInvalid:
            return False
    if pa.types.is_map(kind):
        return _is_text(_entries(array))
    if pa.types.is_list(kind):
        return _is_text(array.flatten())
    if pa.types.is_struct(kind):
        return all(map(_is_text, array.flatten()))
    return True
