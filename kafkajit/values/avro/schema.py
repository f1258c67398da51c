"""Avro schemas: JSON → types, and the fingerprint that names a schema.

Follows the specification of Avro 1.12. A logical type that Avro does not know, or whose attributes
are wrong, is ignored, as the specification asks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkajit.errors import InvalidSchemaError

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NO_DEFAULT = object()
MAX_DEPTH = 500  # of the JSON: Python's own recursion ends at 1,000

# Each logical type, and the types that may carry it.
_LOGICAL = {
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": ("fixed",),
}
_FIXED_SIZES = {"uuid": 16, "duration": 12}
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Logical:
    """A logical type; precision and scale are those of a decimal."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(eq=False)
class AvroType:
    """A type of a schema. Two types are equal only if they are the same object."""

    kind: str
    logical: Logical | None = None


@dataclass(eq=False)
class Named(AvroType):
    """A record, an enum or a fixed; `name` is the full one, with its namespace."""

    name: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(eq=False)
class Field:
    """A field of a record; its default is as JSON has it, or NO_DEFAULT."""

    name: str
    type: AvroType
    default: Any = NO_DEFAULT
    aliases: tuple[str, ...] = ()


@dataclass(eq=False)
class Record(Named):
    """A record, or an error."""

    fields: list[Field] = field(default_factory=list)


@dataclass(eq=False)
class Enum(Named):
    """An enum; the default stands for symbols that a reader does not know."""

    symbols: list[str] = field(default_factory=list)
    default: str | None = None


@dataclass(eq=False)
class Fixed(Named):
    """Bytes of a fixed number."""

    size: int = 0


@dataclass(eq=False)
class Array(AvroType):
    """An array."""

    items: AvroType = field(default_factory=lambda: AvroType("null"))


@dataclass(eq=False)
class Map(AvroType):
    """A map with strings as keys."""

    values: AvroType = field(default_factory=lambda: AvroType("null"))


@dataclass(eq=False)
class Union(AvroType):
    """A union; its branches are other types."""

    branches: list[AvroType] = field(default_factory=list)


def parse_schema(schema: str | bytes | Mapping[str, Any] | Sequence[Any], *others: Any) -> AvroType:
    """The type that a schema describes; `others` are schemas whose names it may use.

    >>> parse_schema('{"type": "array", "items": "long"}').items.kind
    'long'
    """
    parser = _Parser()
    try:
        for other in others:
            parser.type(_json(other), "", 0)
        return parser.type(_json(schema), "", 0)
    except RecursionError:
        raise InvalidSchemaError("the Avro schema is nested too deeply") from None


def _json(schema: Any) -> Any:
    if not isinstance(schema, (str, bytes)):
        return schema
    try:
        text = schema.decode() if isinstance(schema, bytes) else schema
        if text.strip().strip('"') in PRIMITIVES:  # as people write it: long, "long"
            return text.strip().strip('"')
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchemaError(f"an Avro schema must be JSON: {error}") from None


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, Named] = {}

    def type(self, schema: Any, namespace: str, depth: int) -> AvroType:
        if depth > MAX_DEPTH:
            raise InvalidSchemaError(f"an Avro schema is nested deeper than {MAX_DEPTH} types")
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if isinstance(schema, list):
            branches = [self.type(branch, namespace, depth + 1) for branch in schema]
            _check_union(branches)
            return Union("union", branches=branches)
        if not isinstance(schema, Mapping) or "type" not in schema:
            raise InvalidSchemaError(
                f"an Avro type needs a name or a type, unlike {_shown(schema)}"
            )
        kind = schema["type"]
        if not isinstance(kind, str):  # {"type": {"type": …}}
            return self.type(kind, namespace, depth + 1)
        if kind in ("record", "error"):
            return self._record(schema, namespace, depth)
        if kind == "enum":
            return self._enum(schema, namespace)
        if kind == "fixed":
            return self._fixed(schema, namespace)
        if kind == "array":
            items = self.type(_attribute(schema, "items"), namespace, depth + 1)
            return Array(kind, items=items)
        if kind == "map":
            values = self.type(_attribute(schema, "values"), namespace, depth + 1)
            return Map(kind, values=values)
        if kind in PRIMITIVES:
            return AvroType(kind, _logical(schema, kind))
        return self._by_name(kind, namespace)

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = f"{namespace}.{name}" if namespace and "." not in name else name
        # A name without a namespace, too: schemas before Avro 1.8 refer to types so.
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise InvalidSchemaError(f"the Avro schema uses {name!r}, but does not define it")
        return found

    def _names(self, schema: Mapping[str, Any], namespace: str) -> tuple[str, str, tuple[str, ...]]:
        """(full name, namespace of what is inside, aliases as full names)."""
        name = _attribute(schema, "name")
        if not isinstance(name, str) or not all(map(_NAME.fullmatch, name.split("."))):
            raise InvalidSchemaError(f"an Avro name must have letters, digits and _, not {name!r}")
        if "." in name:
            space = name.rpartition(".")[0]
        else:
            space = schema.get("namespace", namespace) or ""
            if not isinstance(space, str):
                raise InvalidSchemaError(f"the namespace of {name!r} is not a string")
            name = f"{space}.{name}" if space else name
        if name in self._named:
            raise InvalidSchemaError(f"the Avro schema defines {name!r} twice")
        aliases = tuple(
            f"{space}.{alias}" if space and "." not in alias else alias
            for alias in _texts(schema.get("aliases") or [], f"aliases of {name!r}")
        )
        return name, space, aliases

    def _record(self, schema: Mapping[str, Any], namespace: str, depth: int) -> Record:
        name, space, aliases = self._names(schema, namespace)
        record = Record("record", name=name, aliases=aliases)
        self._named[name] = record
        fields = _attribute(schema, "fields")
        if not isinstance(fields, (list, tuple)):
            raise InvalidSchemaError(f"the fields of {name!r} must be a list, not {_shown(fields)}")
        for given in fields:
            if not isinstance(given, Mapping):
                raise InvalidSchemaError(
                    f"a field of {name!r} must be an object, not {_shown(given)}"
                )
            if not is_text(_attribute(given, "name")):
                raise InvalidSchemaError(f"the name of a field of {name!r} must be text")
            type_ = _attribute(given, "type")
            # A field may carry a logical type beside its type, as some tools write it.
            if isinstance(type_, str) and type_ in PRIMITIVES and "logicalType" in given:
                type_ = {**given, "type": type_}
            field_name = _attribute(given, "name")
            if not is_text(field_name):
                raise InvalidSchemaError(
                    f"a field of {name!r} must have a name, not {_shown(field_name)}"
                )
            record.fields.append(
                Field(
                    field_name,
                    self.type(type_, space, depth + 1),
                    given.get("default", NO_DEFAULT),
                    _texts(given.get("aliases") or [], f"aliases of a field of {name!r}"),
                )
            )
        names = [field.name for field in record.fields]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidSchemaError(f"{name!r} has two fields named {twice!r}")
        return record

    def _enum(self, schema: Mapping[str, Any], namespace: str) -> Enum:
        name, _, aliases = self._names(schema, namespace)
        symbols = list(_texts(_attribute(schema, "symbols"), f"symbols of {name!r}"))
        default = schema.get("default")
        if len(set(symbols)) < len(symbols):
            raise InvalidSchemaError(f"two symbols of {name!r} are the same")
        if default is not None and default not in symbols:
            raise InvalidSchemaError(f"the default of {name!r} is not one of its symbols")
        enum = Enum("enum", name=name, aliases=aliases, symbols=symbols, default=default)
        self._named[name] = enum
        return enum

    def _fixed(self, schema: Mapping[str, Any], namespace: str) -> Fixed:
        name, _, aliases = self._names(schema, namespace)
        size = _attribute(schema, "size")
        if type(size) is not int or not 0 <= size < 2**31:
            raise InvalidSchemaError(
                f"the size of {name!r} must be a number from 0 on, not {_shown(size)}"
            )
        fixed = Fixed("fixed", _logical(schema, "fixed"), name=name, aliases=aliases, size=size)
        self._named[name] = fixed
        return fixed


def _attribute(schema: Mapping[str, Any], name: str) -> Any:
    if name not in schema:
        raise InvalidSchemaError(
            f"an Avro {schema.get('type', 'field')} lacks {name!r}: {_shown(schema)}"
        )
    return schema[name]


def is_text(value: Any) -> bool:
    """Whether JSON is a string that UTF-8 can hold, which half a surrogate pair is not."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _texts(given: Any, what: str) -> tuple[str, ...]:
    if not isinstance(given, (list, tuple)) or not all(map(is_text, given)):
        raise InvalidSchemaError(f"the {what} must be a list of strings, not {_shown(given)}")
    return tuple(given)


def _check_union(branches: list[AvroType]) -> None:
    names = [branch.name if isinstance(branch, Named) else branch.kind for branch in branches]
    if "union" in names:
        raise InvalidSchemaError("a union of an Avro schema has another union as a branch")
    if len(set(names)) < len(names):
        raise InvalidSchemaError(f"two branches of a union are the same: {', '.join(names)}")


def _logical(schema: Mapping[str, Any], kind: str) -> Logical | None:
    name = schema.get("logicalType")
    if not isinstance(name, str) or kind not in _LOGICAL.get(name, ()):
        return None
    size = schema.get("size")
    if kind == "fixed" and name in _FIXED_SIZES and size != _FIXED_SIZES[name]:
        return None
    if name != "decimal":
        return Logical(name)
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision:
        return None
    # The digits that a fixed can hold, and those of Arrow's largest decimal.
    most = 76
    if kind == "fixed" and type(size) is int and 0 < size <= 32:  # larger ones hold 76, too
        most = len(str(2 ** (8 * size - 1) - 1)) - 1
    return Logical(name, precision, scale) if 0 < precision <= min(most, 76) else None


def _shown(schema: Any) -> str:
    text = json.dumps(schema, default=str)
    return text if len(text) < 80 else f"{text[:77]}..."


def canonical_form(type_: AvroType) -> str:
    """The Parsing Canonical Form: what two schemas share if they read the same bytes.

    >>> canonical_form(parse_schema({"type": "fixed", "size": 2, "name": "F", "namespace": "a"}))
    '{"name":"a.F","type":"fixed","size":2}'
    """
    try:
        return json.dumps(_canonical(type_, set()), separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        raise InvalidSchemaError("the Avro schema is nested too deeply") from None


def _canonical(type_: AvroType, seen: set[str]) -> Any:
    if isinstance(type_, Named):
        if type_.name in seen:
            return type_.name
        seen.add(type_.name)
        form: dict[str, Any] = {"name": type_.name, "type": type_.kind}
        if isinstance(type_, Record):
            form["fields"] = [
                {"name": field.name, "type": _canonical(field.type, seen)} for field in type_.fields
            ]
        elif isinstance(type_, Enum):
            form["symbols"] = type_.symbols
        elif isinstance(type_, Fixed):
            form["size"] = type_.size
        return form
    if isinstance(type_, Array):
        return {"type": "array", "items": _canonical(type_.items, seen)}
    if isinstance(type_, Map):
        return {"type": "map", "values": _canonical(type_.values, seen)}
    if isinstance(type_, Union):
        return [_canonical(branch, seen) for branch in type_.branches]
    return type_.kind


_EMPTY = 0xC15D213AA4D7A795  # the fingerprint of nothing


def _table() -> Iterator[int]:
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_EMPTY if crc & 1 else 0)
        yield crc


_TABLE = tuple(_table())


def fingerprint(type_: AvroType) -> int:
    """CRC-64-AVRO of the canonical form, which stands in front of single-object values.

    >>> hex(fingerprint(parse_schema("int")))
    '0x7275d51a3f395c8f'
    """
    crc = _EMPTY
    for byte in canonical_form(type_).encode():
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc
