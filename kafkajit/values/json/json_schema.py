"""JSON Schema, drafts 4 to 2020-12 → columns.

| JSON Schema | column |
|---|---|
| object with properties; with additionalProperties alone | struct; map |
| array with items | list |
| integer, number, boolean, string | int64, float64, bool, string |
| string of format date-time, date | timestamp in µs, UTC; date32 |
| null and one more type, oneOf or anyOf with null | that type |
| allOf; oneOf and anyOf beside properties | all properties together |
| enum and const without a type | the type of their values |
| anything else: {}, true, several types, arrays as tuples | JSON text |

Kafka Connect's `connect.type` and its logical types in `title` decide a type, too. A schema that
contains itself has columns for some levels; deeper ones are JSON text.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.json.documents import Documents, Place
from kafkajit.values.json.selection import check_names
from kafkajit.values.json.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    INTEGER,
    JSON_TEXT,
    MILLIS,
    MOMENT,
    NULL,
    NUMBER,
    STRING,
    TIMESTAMP,
    Column,
    list_of,
    map_of,
    struct_of,
)
from kafkajit.values.layout import MAX_CELLS, TEXT, Types, wanted_fields

RECURSION = 4  # how often a type may contain itself, unless a caller says more
_MOST_LEVELS = 64  # deeper parts become JSON text
_MOST_PARTS = 1_000  # schemas that allOf and references put together in one place

_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_PYTHON_TYPES = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip
_KEYWORDS = {
    "properties": "object", "additionalProperties": "object", "patternProperties": "object",
    "items": "array", "prefixItems": "array",
}  # fmt: skip
_INTEGERS = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
}  # fmt: skip
_LOGICAL = "org.apache.kafka.connect.data."
_ALTERNATIVES = ("oneOf", "anyOf")


class _TooManyError(InvalidSchemaError):
    """A schema has too many columns."""


class JsonSchema:
    """A schema with those that it refers to."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents

    def column(
        self, columns: Iterable[str] | None, recursion: int, *, types: Types = Types.OWN
    ) -> Column:
        builder = _Builder(self.documents, recursion, types)
        try:
            return builder.root(wanted_fields(columns))
        except RecursionError:
            raise InvalidSchemaError("the JSON Schema is nested too deeply") from None


def parse_json_schema(schema: Any, others: Mapping[str, Any] | None = None) -> JsonSchema:
    """A schema as text or JSON; `others` are schemas that it may refer to, by their names.

    >>> schema = parse_json_schema('{"type": "array", "items": {"type": "integer"}}')
    >>> json_column(schema).type
    ListType(list<element: int64>)
    """
    parsed = JsonSchema(Documents(schema, others or {}))
    # A schema with too many columns is of use with some of them.
    with contextlib.suppress(_TooManyError):
        parsed.column(None, 1)
    return parsed


def json_column(
    schema: JsonSchema,
    columns: Iterable[str] | None = None,
    recursion: int = RECURSION,
    *,
    types: Types = Types.OWN,
) -> Column:
    """The column of a schema; `columns` names the fields that are wanted, such as "customer.id".

    Spark has timestamps in microseconds only, and no times of day: these are numbers there.
    """
    if not isinstance(recursion, int) or recursion < 1:
        raise ValueError(f"recursion must be a number from 1 on, not {recursion!r}")
    return schema.column(columns, recursion, types=types)


Around = tuple[frozenset[tuple[str, str]], ...]


class _Builder:
    def __init__(self, documents: Documents, recursion: int, types: Types) -> None:
        self._documents = documents
        self._recursion = recursion
        self._types = types
        self._count = 0

    def root(self, wanted: dict[str, Any] | None) -> Column:
        return self._column([self._documents.root], wanted, ())

    def _column(self, places: list[Place], wanted: dict[str, Any] | None, around: Around) -> Column:
        """The column of a value for which all of some schemas hold."""
        self._count += 1
        if self._count > MAX_CELLS:
            raise _TooManyError(
                f"the schema has more than {MAX_CELLS:,} columns; name those that you need"
            )
        parts: list[Place] = []
        for place in places:
            self._gather(place, parts, ())
        keys = frozenset((part.document, part.pointer) for part in parts)
        is_deep = any(sum(key in level for level in around) >= self._recursion for key in keys)
        if is_deep or len(around) == _MOST_LEVELS:
            return self._text(wanted)
        around = (*around, keys)
        kind = self._kind(parts)
        if kind == "object":
            return self._object(parts, wanted, around)
        if kind == "array":
            return self._array(parts, wanted, around)
        if wanted:
            check_names(wanted, None, f"a value of the type {kind or 'JSON'}")
        return self._scalar(kind, parts)

    @staticmethod
    def _text(wanted: dict[str, Any] | None) -> Column:
        if wanted:
            check_names(wanted, None, "JSON text")
        return JSON_TEXT

    def _gather(self, place: Place, parts: list[Place], seen: tuple[Place, ...]) -> None:
        """The schemas that hold with one: its references, allOf, a branch that is alone."""
        schema = place.schema
        if isinstance(schema, bool):
            return
        if not isinstance(schema, Mapping):
            raise place.error(f"a schema must be an object, not {schema!r:.40}")
        names = [(part.document, part.pointer) for part in parts]
        if (place.document, place.pointer) in names:
            return
        if len(parts) == _MOST_PARTS:
            raise place.error(f"more than {_MOST_PARTS:,} schemas apply in one place")
        parts.append(place)
        target = self._documents.reference(place)
        if target is not None:
            self._gather(target, parts, seen)
        for index in range(len(_list_of(place, "allOf"))):
            self._gather(place.inside("allOf", index), parts, seen)
        for keyword in _ALTERNATIVES:
            branches = self._branches(place, keyword)
            if len(branches) == 1:
                self._gather(branches[0], parts, seen)

    def _branches(self, place: Place, keyword: str) -> list[Place]:
        """The branches of oneOf or anyOf that are not null."""
        found = []
        for index in range(len(_list_of(place, keyword))):
            branch = place.inside(keyword, index)
            schema = branch.schema
            is_null = isinstance(schema, Mapping) and (
                schema.get("type") == "null" or schema.get("const", branch) is None
            )
            if not is_null:
                found.append(branch)
        return found

    def _kind(self, parts: list[Place]) -> str:
        """The type of JSON that a value has, empty if it is not one."""
        kinds = set(_TYPES)
        is_typed = False
        for part in parts:
            allowed = _types_of(part)
            if allowed is not None:
                is_typed = True
                kinds &= allowed | ({"integer"} if "number" in allowed else set())
        if not is_typed:
            kinds = {_KEYWORDS[name] for part in parts for name in _KEYWORDS if name in part.schema}
        branches = [self._branch_kind(branch) for branch in self._all_branches(parts)]
        if branches and not is_typed and not kinds:
            # All branches have one type, or it is a union.
            kinds = set(branches)
        elif any(branch not in ("", *kinds) for branch in branches):
            return ""
        kinds.discard("null")
        if kinds == {"integer", "number"}:
            return "number"
        if not kinds:
            return "null" if is_typed else ""
        return kinds.pop() if len(kinds) == 1 else ""

    def _all_branches(self, parts: list[Place]) -> list[Place]:
        found = []
        for part in parts:
            for keyword in _ALTERNATIVES:
                branches = self._branches(part, keyword)
                if len(branches) > 1:
                    found += branches
        return found

    def _branch_kind(self, branch: Place) -> str:
        parts: list[Place] = []
        self._gather(branch, parts, ())
        if self._all_branches(parts):
            return "union"
        return self._kind(parts)

    def _object(self, parts: list[Place], wanted: dict[str, Any] | None, around: Around) -> Column:
        fields: dict[str, list[Place]] = {}
        values: list[Place] = []
        is_map = True
        alternatives = self._all_branches(parts)
        own = any("properties" in part.schema for part in parts)
        if alternatives and not own and any(map(_has_properties, alternatives)):
            return self._text(wanted)
        together = list(parts)
        for branch in alternatives:
            self._gather(branch, together, ())
        for part in together:
            properties = part.schema.get("properties", {})
            if not isinstance(properties, Mapping):
                raise part.error(f"properties must be an object, not {properties!r:.40}")
            is_map = is_map and not properties
            for name in properties:
                _check_name(part, name)
                fields.setdefault(name, []).append(part.inside("properties", name))
            more = part.schema.get("additionalProperties")
            if isinstance(more, Mapping):
                values.append(part.inside("additionalProperties"))
            elif more is not None and not isinstance(more, bool):
                raise part.error(f"additionalProperties must be a schema, not {more!r:.40}")
            patterns = part.schema.get("patternProperties")
            if isinstance(patterns, Mapping) and len(patterns) == 1 and more is not True:
                values.append(part.inside("patternProperties", next(iter(patterns))))
        if is_map:
            if len(values) != 1:
                return self._text(wanted)
            return map_of(self._column(values, wanted, around))
        if wanted is not None:
            check_names(wanted, fields, "")
        return struct_of(
            {
                name: self._column(places, None if wanted is None else wanted[name], around)
                for name, places in fields.items()
                if wanted is None or name in wanted
            }
        )

    def _array(self, parts: list[Place], wanted: dict[str, Any] | None, around: Around) -> Column:
        items = []
        for part in parts:
            given = part.schema.get("items")
            if isinstance(given, list) or "prefixItems" in part.schema:
                return self._text(wanted)
            if isinstance(given, Mapping):
                items.append(part.inside("items"))
            elif given is not None and not isinstance(given, bool):
                raise part.error(f"items must be a schema, not {given!r:.40}")
        return list_of(self._column(items, wanted, around) if items else self._text(wanted))

    def _scalar(self, kind: str, parts: list[Place]) -> Column:
        given = {name: value for part in reversed(parts) for name, value in part.schema.items()}
        # Connect puts what it knows beside the type, which may be a branch of a oneOf.
        connect, title, form = (
            value if isinstance(value, str) else ""
            for value in map(given.get, ("connect.type", "title", "format"))
        )
        logical = title.removeprefix(_LOGICAL) if title.startswith(_LOGICAL) else ""
        if logical == "Decimal" and kind in ("number", "string"):
            return _decimal(given)
        if kind == "null":
            return Column(NULL, pa.null())
        if kind == "boolean":
            return Column(BOOLEAN, pa.bool_())
        if kind == "integer":
            return self._integer(connect, logical)
        if kind == "number":
            is_single = connect == "float32"
            return Column(NUMBER, pa.float32() if is_single else pa.float64())
        if kind == "string":
            if connect == "bytes":
                return Column(BYTES, pa.binary())
            if form == "date-time":
                return Column(TIMESTAMP, MOMENT)
            return Column(DATE, pa.date32()) if form == "date" else Column(STRING, TEXT)
        return JSON_TEXT

    def _integer(self, connect: str, logical: str) -> Column:
        if logical == "Date":
            return Column(INTEGER, pa.date32())
        if logical == "Time":
            return Column(INTEGER, pa.time32("ms") if self._types is Types.OWN else pa.int32())
        if logical == "Timestamp":
            if self._types is Types.SPARK:
                return Column(INTEGER, MOMENT, is_millis=True)
            return Column(INTEGER, MILLIS)
        return Column(INTEGER, _INTEGERS.get(connect, pa.int64()))


def _decimal(given: Mapping[str, Any]) -> Column:
    parameters = given.get("connect.parameters")
    parameters = parameters if isinstance(parameters, Mapping) else {}
    try:
        scale = int(parameters.get("scale", 0))
        precision = int(parameters.get("connect.decimal.precision", 38))
    except (TypeError, ValueError):
        return JSON_TEXT
    if not 0 <= scale <= 38 or not 0 < precision <= 38:
        return JSON_TEXT
    return Column(DECIMAL, pa.decimal128(max(precision, scale), scale))


def _types_of(place: Place) -> set[str] | None:
    """The types of JSON that a schema allows by its own keywords, None if they do not decide it."""
    schema = place.schema
    given = schema.get("type")
    if given is not None:
        kinds = given if isinstance(given, list) else [given]
        for kind in kinds:
            if kind == "any":  # of draft 3, which some generators still write
                return None
            if kind not in _TYPES:
                raise place.error(f"JSON has no type {kind!r:.40}")
        return set(kinds)
    if "const" in schema:
        return {_type_of(schema["const"])}
    if "enum" in schema:
        if not isinstance(schema["enum"], list):
            raise place.error(f"enum must be a list, not {schema['enum']!r:.40}")
        return set(map(_type_of, schema["enum"]))
    return None


def _type_of(value: Any) -> str:
    return "null" if value is None else _PYTHON_TYPES.get(type(value), "object")


def _has_properties(place: Place) -> bool:
    return isinstance(place.schema, Mapping) and bool(
        {"properties", "$ref", "allOf", "additionalProperties"} & place.schema.keys()
    )


def _list_of(place: Place, keyword: str) -> list[Any]:
    given = place.schema.get(keyword, [])
    if not isinstance(given, list):
        raise place.error(f"{keyword} must be a list, not {given!r:.40}")
    return given


def _check_name(place: Place, name: Any) -> None:
    if not isinstance(name, str) or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise place.error(f"a property has the name {name!r:.40}")
