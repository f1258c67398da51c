"""The columns that a reader wants of a type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.json.types import LIST, MAP, STRUCT, Column, list_of, map_of, struct_of
from kafkajit.values.layout import check_wanted, wanted_fields


def selected(column: Column, columns: Iterable[str] | None) -> Column:
    """The fields that paths such as "customer.id" name, also of all elements of an array.

    >>> from kafkajit.values.json.types import column_of
    >>> import pyarrow as pa
    >>> selected(column_of(pa.struct({"a": pa.int64(), "b": pa.bool_()})), ["b"]).type
    StructType(struct<b: bool>)
    """
    return _selected(column, wanted_fields(columns))


def _selected(column: Column, wanted: dict[str, Any] | None) -> Column:
    if wanted is None:
        return column
    if column.kind == LIST:
        return list_of(_selected(column.children[0], wanted))
    if column.kind == MAP:
        return map_of(_selected(column.children[0], wanted))
    check_names(wanted, column.names if column.kind == STRUCT else None, column.words)
    fields = zip(column.names, column.children, strict=True)
    return struct_of(
        {name: _selected(child, wanted[name]) for name, child in fields if name in wanted}
    )


def check_names(wanted: dict[str, Any], names: Iterable[str] | None, words: str) -> None:
    """Refuse the name of a field that an object does not have."""
    if names is not None:
        check_wanted(wanted, names, "the JSON object")
    elif wanted:
        raise InvalidSchemaError(f"columns names the field {next(iter(wanted))!r} of {words}")
