"""Protobuf messages → Arrow columns: the nodes of a layout for a reader's message.

| Protobuf | Arrow |
|---|---|
| int32, sint32, sfixed32; uint32, fixed32 | int32; uint32 |
| int64, sint64, sfixed64; uint64, fixed64 | int64; uint64 |
| float, double, bool, string, bytes | float32, float64, bool, string, binary |
| enum | string: the name; the number if it has no name |
| message | struct, nullable |
| repeated; map | list; map |
| Timestamp; Duration | timestamp in UTC, duration: both in µs |
| wrappers, such as Int64Value | the type inside, nullable |
| Struct, Value, ListValue | string: JSON |

A field with presence is NULL if it is not set, one without it has the zero of its type. The fields
of a oneof are fields of its message: one of them is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.layout import (
    BYTE,
    INT,
    LONG,
    RECURSION,
    TEXT,
    Layout,
    Node,
    Types,
    Wanted,
    check_wanted,
    struct_node,
    wanted_fields,
)
from kafkajit.values.protobuf.json_struct import json_column
from kafkajit.values.protobuf.schema import Enum, Field, Message

TIMESTAMP_TYPE = pa.timestamp("us", tz="UTC")
DURATION_TYPE = pa.duration("us")
_SCALARS: dict[str, tuple[pa.DataType, int]] = {
    "double": (pa.float64(), LONG),
    "float": (pa.float32(), INT),
    "bool": (pa.bool_(), BYTE),
    "string": (TEXT, LONG),
    "bytes": (pa.binary(), LONG),
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (pa.int32(), INT)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (pa.int64(), LONG)),
    **dict.fromkeys(("uint32", "fixed32"), (pa.uint32(), INT)),
    **dict.fromkeys(("uint64", "fixed64"), (pa.uint64(), LONG)),
}
_MOMENTS = {
    "google.protobuf.Timestamp": TIMESTAMP_TYPE,
    "google.protobuf.Duration": DURATION_TYPE,
}
_JSON = {f"google.protobuf.{name}": name for name in ("Struct", "Value", "ListValue")}
_WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in (
        "Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes",
    )
}  # fmt: skip
# Spark has signed numbers only.
_UINT64_IN_SPARK = pa.decimal128(20, 0)


def column_layout(
    reader: Message,
    columns: Iterable[str] | None = None,
    recursion: int = RECURSION,
    *,
    types: Types = Types.OWN,
) -> tuple[Layout, Node]:
    """The layout of a reader's message, and its root; `columns` names the fields that are wanted.

    Spark has no unsigned numbers: those of 32 bits are long there, those of 64 bits decimals.
    """
    builder = _Builder(recursion, types)
    try:
        root = builder.message(reader, 0, wanted_fields(columns), ())
    except RecursionError:
        raise InvalidSchemaError("the schema is nested too deeply for columns") from None
    root.valid = builder.layout.cell(BYTE, 0)
    return builder.layout, root


def is_wrapper(message: Message) -> bool:
    """Whether a message stands for the value in it, or for NULL."""
    return message.name in _WRAPPERS


class _Builder:
    def __init__(self, recursion: int, types: Types) -> None:
        self.layout = Layout()
        self._recursion = recursion
        self._types = types

    def message(
        self, message: Message, space: int, wanted: Wanted, around: tuple[Message, ...]
    ) -> Node:
        self.layout.count_node()
        names = [field.name for field in message.fields]
        check_wanted(wanted, names, f"the Protobuf message {message.name!r}")
        children = {
            field.name: self._field(
                field, space, None if wanted is None else wanted[field.name], (*around, message)
            )
            for field in message.fields
            if (wanted is None or field.name in wanted) and field.type != "group"
        }
        return struct_node(children, space, message)

    def _field(self, field: Field, space: int, wanted: Wanted, around: tuple[Message, ...]) -> Node:
        if not field.is_repeated:
            node = self._single(field, space, wanted, around)
            if field.has_presence and node.form != "null":
                node.valid = self.layout.cell(BYTE, space)
                node.is_nullable = True
            return node
        inside = self.layout.new_space()
        cell = self.layout.cell(INT, space)
        if isinstance(field.of, Message) and field.is_map:
            key, value = field.of.fields
            # The value of an entry that has none written is its zero or an empty message.
            children = [
                self._single(key, inside, None, around),
                self._single(value, inside, wanted, around),
            ]
            type_ = pa.map_(children[0].type, children[1].type)
        else:
            children = [self._single(field, inside, wanted, around)]
            type_ = pa.list_(pa.field("element", children[0].type))
        return Node(type_, "list", space, schema=field, cell=cell, children=children)

    def _single(
        self, field: Field, space: int, wanted: Wanted, around: tuple[Message, ...]
    ) -> Node:
        """A node of a field, or of an element of it."""
        of = field.of
        if isinstance(of, Message) and of.name not in _MOMENTS and of.name not in _JSON:
            if is_wrapper(of):
                return self._single(of.fields[0], space, wanted, around)
            if around.count(of) >= self._recursion:
                self.layout.count_node()
                return Node(pa.null(), "null", space, schema=of)  # deeper ones are an error
            return self.message(of, space, wanted, around)
        if wanted:
            raise InvalidSchemaError(
                f"columns names the field {next(iter(wanted))!r} of {field.name!r}, which is a "
                f"value of the type {of.name if of else field.type}"
            )
        self.layout.count_node()
        return self._leaf(field, space)

    def _leaf(self, field: Field, space: int) -> Node:
        of = field.of
        if isinstance(of, Enum):
            return self._cell(pa.int32(), INT, field, space, partial(_names, of), TEXT)
        if isinstance(of, Message):
            if of.name in _JSON:
                finish = partial(json_column, _JSON[of.name])
                return self._cell(pa.binary(), LONG, field, space, finish, TEXT)
            return self._cell(_MOMENTS[of.name], LONG, field, space)
        type_, width = _SCALARS[field.type]
        if self._types is not Types.OWN and type_ == pa.uint32():
            return self._cell(pa.int64(), LONG, field, space)
        if self._types is not Types.OWN and type_ == pa.uint64():
            finish = partial(pc.cast, target_type=_UINT64_IN_SPARK)
            return self._cell(type_, width, field, space, finish, _UINT64_IN_SPARK)
        return self._cell(type_, width, field, space)

    def _cell(
        self,
        type_: pa.DataType,
        width: int,
        field: Field,
        space: int,
        finish: Callable[[pa.Array], pa.Array] | None = None,
        finished: pa.DataType | None = None,
    ) -> Node:
        form: Any = "number"
        if pa.types.is_string(type_) or pa.types.is_binary(type_):
            form = "bytes"
        elif pa.types.is_boolean(type_):
            form = "bool"
        node = Node(type_, form, space, schema=field, cell=self.layout.cell(width, space))
        if finish is not None and finished is not None:
            node.stored, node.type, node.finish = type_, finished, finish
        return node


def _names(enum: Enum, numbers: pa.Array) -> pa.Array:
    """The names of an enum's numbers; a number without a name is shown as it is."""
    encoded = pc.dictionary_encode(numbers)
    names = [enum.names.get(number, str(number)) for number in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(names, TEXT)).cast(TEXT)
