"""Avro types → Arrow columns: the nodes of a layout for a reader's schema.

| Avro | Arrow |
|---|---|
| null, boolean, int, long, float, double | null, bool, int32, int64, float32, float64 |
| bytes, fixed; string, enum | binary; string |
| record | struct |
| array, map | list, map with string keys |
| a union of null and one more type | that type, nullable |
| any other union | struct: `tag`, the name of the branch, and a column for each branch |
| decimal | decimal128, from 39 digits on decimal256 |
| date; time-millis, time-micros | date32; time32 ms, time64 µs |
| timestamp-millis, -micros, -nanos | timestamp of that unit in UTC; the local ones without a zone |
| uuid | string, also that of 16 bytes |
| duration | struct of months, days, milliseconds |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.avro.schema import (
    Array,
    AvroType,
    Fixed,
    Map,
    Named,
    Record,
    Union,
)
from kafkajit.values.layout import (
    BYTE,
    DURATION,
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

_NUMBERS = {
    "int": (pa.int32(), INT),
    "long": (pa.int64(), LONG),
    "float": (pa.float32(), INT),
    "double": (pa.float64(), LONG),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "timestamp-nanos": pa.timestamp("ns", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}


def column_layout(
    reader: AvroType,
    columns: Iterable[str] | None = None,
    recursion: int = RECURSION,
    *,
    types: Types = Types.OWN,
) -> tuple[Layout, Node]:
    """The layout of a reader's schema, and its root; `columns` names the fields that are wanted.

    Spark has microseconds only, decimals of at most 38 digits, and no times of day in Arrow: longer
    decimals are text there, and times are the numbers that Avro has for them.
    """
    builder = _Builder(recursion, types)
    try:
        root = builder.nullable(reader, 0, wanted_fields(columns), ())
    except RecursionError:
        raise InvalidSchemaError("the schema is nested too deeply for columns") from None
    if root.valid < 0:
        root.valid = builder.layout.cell(BYTE, 0)
    return builder.layout, root


def leaf_type(type_: AvroType) -> pa.DataType:
    """The Arrow type of a type without parts."""
    logical = type_.logical.name if type_.logical else ""
    if logical == "decimal" and type_.logical:
        precision, scale = type_.logical.precision, type_.logical.scale
        return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
    if logical == "duration":
        return DURATION
    if type_.kind == "boolean":
        return pa.bool_()
    if type_.kind in _NUMBERS:
        return _LOGICAL.get(logical, _NUMBERS[type_.kind][0])
    is_text = type_.kind in ("string", "enum") or logical == "uuid"
    return TEXT if is_text else pa.binary()


class _Builder:
    def __init__(self, recursion: int, types: Types) -> None:
        self.layout = Layout()
        self._recursion = recursion
        self._types = types

    def nullable(
        self, type_: AvroType, space: int, wanted: Wanted, around: tuple[Named, ...]
    ) -> Node:
        """A node of a type that may be a union."""
        if not isinstance(type_, Union):
            return self._node(type_, space, wanted, around)
        others = [branch for branch in type_.branches if branch.kind != "null"]
        has_null = len(others) < len(type_.branches)
        if not others:
            return self._node(AvroType("null"), space, wanted, around)
        if len(others) == 1:
            node = self._node(others[0], space, wanted, around)
        else:
            node = self._union(type_, others, space, wanted, around)
        if has_null:
            self._make_nullable(node)
        return node

    def _make_nullable(self, node: Node) -> None:
        node.is_nullable = True
        if node.form != "null":
            node.valid = self.layout.cell(BYTE, node.space)

    def _union(
        self,
        union: Union,
        others: list[AvroType],
        space: int,
        wanted: Wanted,
        around: tuple[Named, ...],
    ) -> Node:
        all_names = branch_names(others)
        for name in wanted or ():
            if name != "tag" and name not in all_names:
                raise InvalidSchemaError(
                    f"the union of {', '.join(all_names)} has no branch {name!r}"
                )
        tag = Node(TEXT, "bytes", space, cell=self.layout.cell(LONG, space))
        children = {"tag": tag}
        for name, branch in zip(all_names, others, strict=True):
            if wanted is None or name in wanted:
                inside = None if wanted is None else wanted[name]
                child = self._node(branch, space, inside, around)
                self._make_nullable(child)
                children[name] = child
        return struct_node(children, space, union)

    def _node(self, type_: AvroType, space: int, wanted: Wanted, around: tuple[Named, ...]) -> Node:
        self.layout.count_node()
        if isinstance(type_, Named) and around.count(type_) >= self._recursion:
            return Node(pa.null(), "null", space, schema=type_)  # deeper ones are an error
        if isinstance(type_, Record):
            return self._record(type_, space, wanted, (*around, type_))
        if isinstance(type_, Array):
            inside = self.layout.new_space()
            items = self.nullable(type_.items, inside, wanted, around)
            return self._list(pa.list_(pa.field("element", items.type)), space, type_, [items])
        if isinstance(type_, Map):
            inside = self.layout.new_space()
            key = Node(
                TEXT,
                "bytes",
                inside,
                schema=AvroType("string"),
                cell=self.layout.cell(LONG, inside),
            )
            values = self.nullable(type_.values, inside, wanted, around)
            return self._list(pa.map_(TEXT, values.type), space, type_, [key, values])
        if wanted and not (type_.logical and type_.logical.name == "duration"):
            raise InvalidSchemaError(
                f"columns names the field {next(iter(wanted))!r} of a value of the type "
                f"{type_.kind}"
            )
        return self._leaf(type_, space)

    def _record(
        self, record: Record, space: int, wanted: Wanted, around: tuple[Named, ...]
    ) -> Node:
        names = [field.name for field in record.fields]
        check_wanted(wanted, names, f"the Avro record {record.name!r}")
        children = {
            field.name: self.nullable(
                field.type, space, None if wanted is None else wanted[field.name], around
            )
            for field in record.fields
            if wanted is None or field.name in wanted
        }
        return struct_node(children, space, record)

    def _list(self, type_: pa.DataType, space: int, schema: AvroType, children: list[Node]) -> Node:
        cell = self.layout.cell(INT, space)
        return Node(type_, "list", space, schema=schema, cell=cell, children=children)

    def _leaf(self, type_: AvroType, space: int) -> Node:
        if type_.kind == "null":
            return Node(pa.null(), "null", space, schema=type_)
        arrow = leaf_type(type_)
        logical = type_.logical.name if type_.logical else ""
        if logical == "decimal":
            is_text = self._types is not Types.OWN and arrow.precision > 38
            form = "long decimal" if is_text else "number"
            width = arrow.bit_width // 8
            return self._cell(TEXT if is_text else arrow, form, type_, space, width)
        if type_.kind == "boolean":
            return self._cell(arrow, "bool", type_, space, BYTE)
        if type_.kind in _NUMBERS:
            number, width = _NUMBERS[type_.kind]
            if self._types is Types.SPARK and pa.types.is_timestamp(arrow):
                form = {"ms": "millis", "us": "number", "ns": "nanos"}[arrow.unit]
                return self._cell(pa.timestamp("us", tz=arrow.tz), form, type_, space, width)
            if self._types is not Types.OWN and pa.types.is_time(arrow):
                arrow = number
            return self._cell(arrow, "number", type_, space, width)
        form = logical if isinstance(type_, Fixed) and logical in ("uuid", "duration") else "bytes"
        return self._cell(arrow, form, type_, space, LONG)

    def _cell(self, arrow: pa.DataType, form: Any, type_: AvroType, space: int, width: int) -> Node:
        return Node(arrow, form, space, schema=type_, cell=self.layout.cell(width, space))


def branch_names(branches: list[AvroType]) -> list[str]:
    """Short names of a union's branches; full ones if two are the same, or if one is "tag"."""
    short = [b.short_name if isinstance(b, Named) else b.kind for b in branches]
    counts = Counter([*short, "tag"])
    names = [
        name if counts[name] == 1 or not isinstance(branch, Named) else branch.name
        for name, branch in zip(short, branches, strict=True)
    ]
    while "tag" in names:  # it has no namespace
        other = "tag_"
        while other in names:
            other += "_"
        names[names.index("tag")] = other
    return names
