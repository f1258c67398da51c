"""The types that JSON is read into: a tree of columns, each with its Arrow type.

| kind | JSON | Arrow |
|---|---|---|
| NULL | null | null |
| BOOLEAN | true, false | bool |
| INTEGER | a number without a fraction | int8 to int64; date32, time32, timestamp in ms |
| NUMBER | a number | float32, float64 |
| STRING | a string | string |
| JSON | anything | string: the JSON text as it stands in the value |
| BYTES | a string in base64 | binary |
| DECIMAL | a number, or the unscaled number's bytes in base64 | decimal128 |
| DATE, TIMESTAMP | a string, as RFC 3339 has it | date32, timestamp in µs, UTC |
| STRUCT, LIST, MAP | an object, an array, an object | struct, list, map with string keys |
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.layout import BYTE, INT, LONG, TEXT, WIDE_DECIMAL, Form, Layout, Node

(
    SKIP, NULL, BOOLEAN, INTEGER, NUMBER, STRING, JSON, BYTES, DECIMAL, DATE, TIMESTAMP,
    STRUCT, LIST, MAP,
) = range(14)  # fmt: skip

MAX_DEPTH = 500  # arrays and objects inside each other
DAY = 86_400_000  # milliseconds
MOMENT = pa.timestamp("us", tz="UTC")
MILLIS = pa.timestamp("ms", tz="UTC")

_WORDS = {
    NULL: "null",
    JSON: "JSON of any type",
    BOOLEAN: "a boolean",
    INTEGER: "an integer",
    NUMBER: "a number",
    STRING: "a string",
    BYTES: "a string in base64",
    DECIMAL: "a decimal",
    DATE: "a date such as 2024-12-31",
    TIMESTAMP: "a time such as 2024-12-31T23:59:59Z",
    STRUCT: "an object",
    LIST: "an array",
    MAP: "an object",
}


@dataclass(frozen=True)
class Column:
    """A column; `children` are the fields of a struct, or the elements, or a map's values.

    `is_millis` marks milliseconds that become microseconds.
    """

    kind: int
    type: pa.DataType
    names: tuple[str, ...] = ()
    children: tuple[Column, ...] = ()
    is_millis: bool = False

    @property
    def words(self) -> str:
        """The JSON that the column expects, in words."""
        if self.kind == INTEGER and pa.types.is_integer(self.type) and self.type.bit_width < 64:
            return f"an integer of {self.type.bit_width} bits"
        return _WORDS[self.kind]

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest integer."""
        if pa.types.is_time(self.type):
            return 0, DAY - 1
        bits = 32 if pa.types.is_date(self.type) else self.type.bit_width
        return -(1 << bits - 1), (1 << bits - 1) - 1


JSON_TEXT = Column(JSON, TEXT)


def struct_of(fields: dict[str, Column]) -> Column:
    """A struct."""
    type_ = pa.struct([(name, child.type) for name, child in fields.items()])
    return Column(STRUCT, type_, tuple(fields), tuple(fields.values()))


def list_of(items: Column) -> Column:
    """A list."""
    return Column(LIST, pa.list_(pa.field("element", items.type)), children=(items,))


def map_of(values: Column) -> Column:
    """A map with strings as keys."""
    return Column(MAP, pa.map_(TEXT, values.type), children=(values,))


def column_of(type_: pa.DataType) -> Column:
    """The column that has an Arrow type.

    >>> column_of(pa.list_(pa.int32())).kind == LIST
    True
    """
    kinds = {pa.null(): NULL, pa.bool_(): BOOLEAN, TEXT: STRING, pa.binary(): BYTES}
    kinds |= {pa.date32(): DATE, MOMENT: TIMESTAMP, pa.float32(): NUMBER, pa.float64(): NUMBER}
    if type_ in kinds:
        return Column(kinds[type_], type_)
    if pa.types.is_signed_integer(type_):
        return Column(INTEGER, type_)
    if pa.types.is_decimal128(type_) and type_.scale >= 0:
        return Column(DECIMAL, type_)
    if pa.types.is_struct(type_):
        fields = {field.name: column_of(field.type) for field in type_}
        if len(fields) == type_.num_fields:
            return struct_of(fields)
    if pa.types.is_list(type_):
        return list_of(column_of(type_.value_type))
    if pa.types.is_map(type_) and type_.key_type == TEXT:
        return map_of(column_of(type_.item_type))
    raise InvalidSchemaError(f"JSON cannot be read into the type {type_}")


def column_layout(root: Column) -> tuple[Layout, Node]:
    """The cells of a column and of all inside. Each can be NULL: a field may be missing."""
    layout = Layout()
    return layout, _node(root, layout, 0)


def _node(column: Column, layout: Layout, space: int) -> Node:
    layout.count_node()
    if column.kind == NULL:
        return Node(pa.null(), "null", space, schema=column)
    node = Node(column.type, _form(column), space, schema=column, is_nullable=True)
    node.valid = layout.cell(BYTE, space)
    if column.kind == STRUCT:
        node.children = [_node(child, layout, space) for child in column.children]
        return node
    if column.kind in (LIST, MAP):
        inside = layout.new_space()
        node.cell = layout.cell(INT, space)
        if column.kind == MAP:
            key = layout.cell(LONG, inside)
            node.children.append(Node(TEXT, "bytes", inside, schema=Column(STRING, TEXT), cell=key))
        node.children.append(_node(column.children[0], layout, inside))
        return node
    node.cell = layout.cell(_width(column), space)
    return node


def _form(column: Column) -> Form:
    if column.kind == STRUCT:
        return "struct"
    if column.kind in (LIST, MAP):
        return "list"
    if column.kind == BOOLEAN:
        return "bool"
    if column.is_millis:
        return "millis"
    return "bytes" if column.kind in (STRING, JSON, BYTES) else "number"


def _width(column: Column) -> int:
    if column.kind in (STRING, JSON, BYTES):
        return LONG
    if column.kind == DECIMAL:
        return WIDE_DECIMAL
    return BYTE if column.kind == BOOLEAN else column.type.bit_width // 8
