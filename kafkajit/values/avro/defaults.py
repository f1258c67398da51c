"""Defaults of a schema's fields: JSON → operations that write them into the columns."""

from __future__ import annotations

import math
import struct
from typing import Any, Protocol

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.avro.columns import branch_names
from kafkajit.values.avro.operations import NEW_ELEMENT, SET, SET_INT, SET_LONG
from kafkajit.values.avro.schema import (
    NO_DEFAULT,
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Record,
    Union,
    is_text,
)
from kafkajit.values.layout import LONG, Node
from kafkajit.values.status import TOO_DEEP

_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # as Jackson writes them


class Compiler(Protocol):
    """Writes the rows of a program (`program.py`)."""

    def row(
        self, code: int, field: str, *, cell: int = -1, a: int = 0, b: int = 0, c: int = 0
    ) -> int: ...
    def fail(self, field: str, fault: str, status: int = ...) -> None: ...
    def set(self, node: Node, field: str) -> None: ...
    def text(self, content: bytes) -> int: ...
    def width(self, node: Node) -> int: ...


def write_default(compiler: Compiler, value: Any, type_: AvroType, node: Node, field: str) -> None:
    """Compile the operations that give a column its default; `type_` is that of the column."""
    if not _fits(value, type_):
        raise InvalidSchemaError(
            f"{value!r} is not a default of {field!r}, whose type is {type_.kind}"
        )
    if isinstance(type_, Union):
        # The first branch by the specification; others occur.
        branch = next(branch for branch in type_.branches if _fits(value, branch))
        if branch.kind == "null":
            return
        compiler.set(node, field)
        if isinstance(node.schema, Union):
            others = [other for other in type_.branches if other.kind != "null"]
            name = branch_names(others)[others.index(branch)]
            tag = compiler.text(name.encode())
            compiler.row(SET_LONG, field, cell=node.children[0].cell, a=tag, b=1)
            child = dict(zip(node.type.names, node.children, strict=True)).get(name)
            if child is not None:
                compiler.set(child, field)
                _write(compiler, value, branch, child, field)
            return
        type_ = branch
    else:
        compiler.set(node, field)
    _write(compiler, value, type_, node, field)


def _write(compiler: Compiler, value: Any, type_: AvroType, node: Node, field: str) -> None:
    """A default that is not null, of a type other than a union."""
    if node.form == "null":
        if type_.kind != "null":
            compiler.fail(field, "the default is nested deeper than the columns", TOO_DEEP)
    elif isinstance(type_, Record):
        children = {
            inner.name: child for inner, child in zip(node.type, node.children, strict=True)
        }
        for inner in type_.fields:
            if inner.name in children:
                given = value.get(inner.name, inner.default)
                inside = f"{field}.{inner.name}"
                write_default(compiler, given, inner.type, children[inner.name], inside)
    elif isinstance(type_, Array):
        (items,) = node.children
        for item in value:
            compiler.row(NEW_ELEMENT, field, a=items.space)
            write_default(compiler, item, type_.items, items, field)
        compiler.row(SET_INT, field, cell=node.cell, a=len(value))
    elif isinstance(type_, Map):
        key, values = node.children
        for name, item in value.items():
            compiler.row(NEW_ELEMENT, field, a=key.space)
            compiler.row(SET_LONG, field, cell=key.cell, a=compiler.text(name.encode()), b=1)
            write_default(compiler, item, type_.values, values, field)
        compiler.row(SET_INT, field, cell=node.cell, a=len(value))
    else:
        _write_leaf(compiler, value, type_, node, field)


def _write_leaf(compiler: Compiler, value: Any, type_: AvroType, node: Node, field: str) -> None:
    if node.form == "bool":
        compiler.row(SET, field, cell=node.cell, a=int(value))
    elif node.form in ("bytes", "uuid", "duration"):
        is_text = type_.kind in ("string", "enum")
        content = value.encode() if is_text else value.encode("latin-1")
        compiler.row(SET_LONG, field, cell=node.cell, a=compiler.text(content), b=1)
    elif type_.kind in ("bytes", "fixed"):
        width = compiler.width(node)
        number = int.from_bytes(value.encode("latin-1"), "big", signed=True)
        if type_.logical is None or abs(number) >= 10**type_.logical.precision:
            raise InvalidSchemaError(f"the default of {field!r} does not fit its precision")
        words = struct.unpack(f"<{width // LONG}q", number.to_bytes(width, "little", signed=True))
        for place, word in enumerate(words):
            compiler.row(SET_LONG, field, cell=node.cell, a=word, b=len(words), c=place)
    elif type_.kind == "int":
        compiler.row(SET_INT, field, cell=node.cell, a=value)
    elif type_.kind == "long":
        compiler.row(SET_LONG, field, cell=node.cell, a=value, b=1)
    elif type_.kind == "float":
        compiler.row(SET_INT, field, cell=node.cell, a=_bits(value, "<f", "<i"))
    else:
        compiler.row(SET_LONG, field, cell=node.cell, a=_bits(value, "<d", "<q"), b=1)


def _bits(value: Any, layout: str, as_number: str) -> int:
    """The bits of a float or a double; numbers beyond its range are infinite, as in Java."""
    try:
        packed = struct.pack(layout, float(_SPECIAL.get(value, value)))
    except OverflowError:
        packed = struct.pack(layout, math.inf if value > 0 else -math.inf)
    bits: int = struct.unpack(as_number, packed)[0]
    return bits


def _fits(value: Any, type_: AvroType) -> bool:
    """Whether JSON is a default of a type."""
    if isinstance(type_, Union):
        return any(_fits(value, branch) for branch in type_.branches)
    if isinstance(type_, Record):
        return isinstance(value, dict) and all(
            _fits(given, inner.type)
            for inner in type_.fields
            if (given := value.get(inner.name, inner.default)) is not inner.default
            or given is NO_DEFAULT
        )
    if isinstance(type_, Array):
        return isinstance(value, list) and all(_fits(item, type_.items) for item in value)
    if isinstance(type_, Map):
        return isinstance(value, dict) and all(
            is_text(name) and _fits(item, type_.values) for name, item in value.items()
        )
    if isinstance(type_, Enum):
        return value in type_.symbols
    if type_.kind in ("bytes", "fixed", "string"):
        if not is_text(value) or (isinstance(type_, Fixed) and len(value) != type_.size):
            return False
        is_bytes = all(ord(character) < 256 for character in value)
        if is_bytes and type_.logical and type_.logical.name == "decimal":
            number = int.from_bytes(value.encode("latin-1"), "big", signed=True)
            limit: int = 10**type_.logical.precision
            return abs(number) < limit
        return is_bytes or type_.kind == "string"
    if type_.kind == "null":
        return value is None
    if type_.kind == "boolean":
        return isinstance(value, bool)
    if type_.kind in ("int", "long"):
        bits = 31 if type_.kind == "int" else 63
        return type(value) is int and -(2**bits) <= value < 2**bits
    return type(value) in (int, float) or (isinstance(value, str) and value in _SPECIAL)
