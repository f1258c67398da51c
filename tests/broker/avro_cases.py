"""Random schemas, schemas that a reader may have instead, and values in any encoding.

In: a random.Random. Out: JSON and bytes. Inside, a named type has its full name, whatever is around
it; `dressed` writes it in one of the ways that the specification allows.
"""

from __future__ import annotations

import copy
import random
import struct
from collections.abc import Callable
from typing import Any

from kafkajit.values.avro.schema import Array, AvroType, Enum, Fixed, Map, Record, Union

Json = Any
PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
PROMOTIONS = {
    "int": ["long", "float", "double"],
    "long": ["float", "double"],
    "float": ["double"],
    "string": ["bytes"],
    "bytes": ["string"],
}
LOGICAL: list[Json] = [
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-nanos"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 40},
    {"type": "string", "logicalType": "uuid"},
]
DEEPEST = 6  # below it, values are as short as they can be


class Author:
    """Writes the schemas of one case."""

    def __init__(self, rng: random.Random) -> None:
        self.random = rng
        self._count = 0
        self._spaces = rng.choice([[""], ["a"], ["a", "b.c"]])
        self._open: list[str] = []  # records that are being written, which may contain themselves
        self._closed: list[str] = []  # types that later ones may name
        self._themselves = 0

    def _chance(self, of: float) -> bool:
        return self.random.random() < of

    def _name(self, kind: str) -> str:
        self._count += 1
        # Few short names, so that two types may differ in the namespace alone.
        short = f"{kind}{self._count}" if self._chance(0.8) else f"{kind}{self._count % 2}x"
        space = self.random.choice(self._spaces)
        name = f"{space}.{short}" if space else short
        return name if name not in (*self._open, *self._closed) else f"{name}{self._count}"

    def root(self) -> Json:
        """A schema, most often a record."""
        while True:
            schema = self.record(3) if self._chance(0.85) else self.type(2)
            if kind_of(schema) != "bytes":  # which Confluent's serializer writes without a size
                return schema

    def record(self, depth: int) -> Json:
        name = self._name("Record")
        self._open.append(name)
        fields = [
            {"name": f"f{number}", "type": self.type(depth - 1)}
            for number in range(self.random.choice([0, 1, 1, 2, 2, 3, 4, 5]))
        ]
        self._open.pop()
        self._closed.append(name)
        return {"type": "record", "name": name, "fields": fields}

    def type(self, depth: int, *, in_union: bool = False) -> Json:
        r = self.random
        kinds = [*PRIMITIVES, "enum", "fixed", "logical"]
        if self._closed:
            kinds += ["named"]
        if depth > 0:
            kinds += ["record", "record", "array", "map"]
            kinds += [] if in_union else ["union"] * 3 + ["nullable"] * 2 + ["itself"]
        kind = r.choice(kinds)
        if kind == "record":
            return self.record(depth)
        if kind == "enum":
            return self._enum()
        if kind == "fixed":
            return self._fixed()
        if kind == "array":
            return {"type": "array", "items": self.type(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": self.type(depth - 1)}
        if kind == "nullable":
            return self.union([self.type(depth - 1, in_union=True)])
        if kind == "union":
            others = range(r.randrange(1, 5))
            return self.union([self.type(depth - 1, in_union=True) for _ in others], null=0.4)
        if kind == "named":
            return r.choice(self._closed)
        if kind == "logical":
            return copy.deepcopy(r.choice(LOGICAL)) if self._chance(0.5) else "long"
        if kind == "itself":
            return self._itself()
        return kind

    def _enum(self) -> Json:
        symbols = [f"S{number}" for number in range(self.random.randrange(1, 5))]
        enum = {"type": "enum", "name": self._name("Enum"), "symbols": symbols}
        self._closed.append(enum["name"])
        return enum

    def _fixed(self) -> Json:
        fixed = {"type": "fixed", "size": self.random.choice([0, 1, 2, 5, 12, 16])}
        fixed["name"] = self._name("Fixed")
        if fixed["size"] > 2 and self._chance(0.3):
            logical = {5: "decimal", 12: "duration", 16: "uuid"}[fixed["size"]]
            fixed |= {"logicalType": logical}
            fixed |= {"precision": 11, "scale": 3} if logical == "decimal" else {}
        self._closed.append(fixed["name"])
        return fixed

    def _itself(self) -> Json:
        self._themselves += 1
        if not self._open or self._themselves > 1:  # with each one more, columns are a power more
            return "long"
        name = self.random.choice(self._open)
        return self.random.choice(
            [
                ["null", name],
                [name, "null"],
                {"type": "array", "items": name},
                ["int", "null", name],
            ]
        )

    def union(self, branches: list[Json], null: float = 1) -> Json:
        """A union of those branches that it may have."""
        if self._chance(null):
            branches = [*branches, "null"]
        self.random.shuffle(branches)
        seen: set[str] = set()
        kept = []
        for branch in branches:
            if kind_of(branch) not in seen:
                kept.append(branch)
                seen.add(kind_of(branch))
        return kept

    # What a reader has instead.

    def reader_of(self, schema: Json) -> Json:
        """A schema into which values of another one can be read, most often and in part."""
        schema = copy.deepcopy(schema)
        renamed = {}
        for name in self._closed:
            if self._chance(0.15):
                space, _, short = name.rpartition(".")
                space = self.random.choice(["a", "b.c", space]) if space else ""
                short = short if self._chance(0.4) else f"{short}New"
                renamed[name] = f"{space}.{short}" if space else short
        self._renamed = {old: new for old, new in renamed.items() if old != new}
        self._has_aliases = self._chance(0.8)
        return self._changed(schema)

    def _changed(self, schema: Json) -> Json:
        r = self.random
        if isinstance(schema, list):
            return self._changed_union(schema)
        if self._chance(0.02):
            return self.type(1)
        changed = self._changed_type(schema)
        if self._chance(0.1) and not isinstance(changed, list):
            others = [self.type(0, in_union=True) for _ in range(r.randrange(3))]
            return self.union([changed, *others], null=0.7)
        return changed

    def _changed_type(self, schema: Json) -> Json:
        r = self.random
        if isinstance(schema, str):
            if schema in PROMOTIONS and self._chance(0.25):
                return r.choice(PROMOTIONS[schema])
            return self._renamed.get(schema, schema)
        kind = schema["type"]
        if kind == "array":
            schema["items"] = self._changed(schema["items"])
        elif kind == "map":
            schema["values"] = self._changed(schema["values"])
        elif kind == "record":
            self._rename(schema)
            self._change_fields(schema)
        elif kind == "enum":
            self._rename(schema)
            self._change_symbols(schema)
        elif kind == "fixed":
            self._rename(schema)
            if self._chance(0.04):
                schema["size"] += 1
        elif self._chance(0.4):
            return r.choice([kind, *(other for other in LOGICAL if other["type"] == kind)])
        return schema

    def _rename(self, schema: Json) -> None:
        if schema["name"] in self._renamed:
            old = schema["name"]
            schema["name"] = self._renamed[old]
            if self._has_aliases:
                schema["aliases"] = [old]

    def _changed_union(self, branches: list[Json]) -> Json:
        r = self.random
        changed = [self._changed_type(branch) for branch in branches]
        if len(changed) > 1 and self._chance(0.15):
            del changed[r.randrange(len(changed))]
        if self._chance(0.15):
            changed.append(self.type(0, in_union=True))
        if self._chance(0.07):
            return r.choice(changed)
        return self.union(changed, null=0) if self._chance(0.25) else changed

    def _change_fields(self, record: Json) -> None:
        r = self.random
        fields = [field for field in record["fields"] if self._chance(0.88)]
        for field in fields:
            field["type"] = self._changed(field["type"])
            if self._chance(0.15):
                field["aliases"] = [field["name"]]
                field["name"] = f"new_{field['name']}"
        if len(fields) > 1 and self._chance(0.05):
            one, other = r.sample(fields, 2)
            one["aliases"] = [other["name"]]
        if self._chance(0.15):
            r.shuffle(fields)
        for _ in range(r.choice([0, 0, 0, 1, 2])):
            fields.insert(r.randrange(len(fields) + 1), self._added())
        record["fields"] = fields

    def _added(self) -> Json:
        field = {"name": f"added{self._count}", "type": self.type(2)}
        self._count += 1
        if self._chance(0.9):
            field["default"] = self.default(field["type"])
            if field["default"] is NOTHING:
                del field["default"]
        return field

    def _change_symbols(self, enum: Json) -> None:
        r = self.random
        symbols = enum["symbols"]
        if self._chance(0.5):
            symbols = [*symbols, "OTHER"]
            r.shuffle(symbols)
        if len(symbols) > 1 and self._chance(0.3):
            del symbols[r.randrange(len(symbols))]
        if self._chance(0.4):
            enum["default"] = r.choice(symbols)
        enum["symbols"] = symbols

    def default(self, schema: Json) -> Json:
        """A default of a type; NOTHING for those that are named here and defined elsewhere."""
        r = self.random
        if isinstance(schema, list):
            # Of another branch than the first only null is the same to everyone.
            if "null" in schema and self._chance(0.4) and all(map(is_plain, schema)):
                return None
            return self.default(schema[0])
        if isinstance(schema, str):
            return self._plain_default(schema)
        kind = schema["type"]
        if kind == "record":
            given = {field["name"]: self.default(field["type"]) for field in schema["fields"]}
            if NOTHING in given.values():
                return NOTHING
            for field in schema["fields"]:
                if self._chance(0.2):
                    field["default"] = given.pop(field["name"])
            return given
        if kind == "enum":
            return r.choice(schema["symbols"])
        if kind == "fixed":
            start = "\0\0" if "precision" in schema else ""  # not too many digits
            return start + r.randbytes(schema["size"] - len(start)).decode("latin-1")
        if kind in ("array", "map"):
            inside = schema["items" if kind == "array" else "values"]
            items = [self.default(inside) for _ in range(r.randrange(3))]
            if NOTHING in items:
                return NOTHING
            return items if kind == "array" else {f"k{n}é": item for n, item in enumerate(items)}
        if schema.get("logicalType") == "decimal":
            return "\x01\xff"
        return self._plain_default(kind)

    def _plain_default(self, kind: str) -> Json:
        r = self.random
        defaults: dict[str, Callable[[], Json]] = {
            "null": lambda: None,
            "boolean": lambda: self._chance(0.5),
            "int": lambda: r.choice([0, -(2**31), 2**31 - 1, 7]),
            "long": lambda: r.choice([0, -(2**63), 2**63 - 1, 2**40]),
            "float": lambda: r.choice([0, 0.1, -3, 1e39, 16777217, 1e-46, -0.0]),
            "double": lambda: r.choice([0, 0.1, -3, 1e300, 2**63 + 1025, -0.0]),
            "bytes": lambda: r.choice(["", "\xff\0", "a"]),
            "string": lambda: r.choice(["", "né€😀", "a", "\0"]),
        }
        return defaults[kind]() if kind in defaults else NOTHING


NOTHING = object()


def is_plain(schema: Json) -> bool:
    return isinstance(schema, str) and schema in PRIMITIVES


def kind_of(branch: Json) -> str:
    """What the branches of a union have to differ in."""
    if isinstance(branch, str):
        return branch
    if isinstance(branch, list):
        return "union"
    kind: str = branch.get("name", branch["type"])
    return kind


def dressed(schema: Json, rng: random.Random, around: str = "") -> Json:
    """A schema as the specification allows to write it, within the namespace `around`."""
    if isinstance(schema, list):
        return [dressed(branch, rng, around) for branch in schema]
    if isinstance(schema, str):
        space, _, short = schema.rpartition(".")
        if schema in PRIMITIVES:
            return {"type": schema} if rng.random() < 0.1 else schema
        return short if space == around and rng.random() < 0.5 else schema
    schema = dict(schema)
    for inside in ("items", "values"):
        if inside in schema:
            schema[inside] = dressed(schema[inside], rng, around)
    if "name" not in schema:
        return schema
    space, _, short = schema["name"].rpartition(".")
    if space and rng.random() < 0.4:
        schema["namespace"] = "ignored"
    elif space == around and rng.random() < 0.5:
        schema["name"] = short
    else:
        schema |= {"name": short, "namespace": space}
    if "aliases" in schema and rng.random() < 0.5:
        aliases = [alias.rpartition(".") for alias in schema["aliases"]]
        schema["aliases"] = [s if a == space else f"{a}.{s}" for a, _, s in aliases]
    if "fields" in schema:
        schema["fields"] = [
            field | {"type": dressed(field["type"], rng, space)} for field in schema["fields"]
        ]
    return schema


class Writer:
    """Writes values of a type, in any of the encodings that a reader has to know."""

    def __init__(self, rng: random.Random) -> None:
        self.random = rng

    def value(self, type_: AvroType, depth: int = 0) -> bytes:
        r = self.random
        if isinstance(type_, Union):
            number = r.randrange(len(type_.branches))
            kinds = [branch.kind for branch in type_.branches]
            if depth > DEEPEST and "null" in kinds:
                number = kinds.index("null")
            return varint(number) + self.value(type_.branches[number], depth + 1)
        if isinstance(type_, Record):
            return b"".join(self.value(field.type, depth + 1) for field in type_.fields)
        if isinstance(type_, (Array, Map)):
            return self._list(type_, depth)
        if isinstance(type_, Enum):
            return varint(r.randrange(len(type_.symbols)))
        if isinstance(type_, Fixed):
            is_number = type_.logical is not None and type_.logical.name == "decimal"
            return self._number(type_.size, 10**11) if is_number else r.randbytes(type_.size)
        return self._primitive(type_)

    def _number(self, size: int, limit: int) -> bytes:
        number = r % limit if (r := self.random.getrandbits(8 * size - 1)) >= limit else r
        return (number if self.random.random() < 0.5 else -number).to_bytes(
            size, "big", signed=True
        )

    def _list(self, type_: Array | Map, depth: int) -> bytes:
        r = self.random
        inside = type_.items if isinstance(type_, Array) else type_.values
        out = b""
        for _ in range(0 if depth > DEEPEST else r.choice([0, 1, 1, 1, 2, 3])):
            items = []
            for _ in range(r.choice([1, 1, 2, 3])):
                key = self._text() if isinstance(type_, Map) else b""
                items.append(key + self.value(inside, depth + 1))
            content = b"".join(items)
            if r.random() < 0.4:
                out += varint(-len(items)) + varint(len(content)) + content
            else:
                out += varint(len(items)) + content
        return out + b"\0"

    def _text(self) -> bytes:
        text = "".join(self.random.choice("abc é€😀") for _ in range(self.random.randrange(8)))
        return varint(len(text.encode())) + text.encode()

    def _primitive(self, type_: AvroType) -> bytes:
        r = self.random
        kind = type_.kind
        if kind == "null":
            return b""
        if kind == "boolean":
            return bytes([r.randrange(2)])
        if kind in ("int", "long"):
            bits = r.randrange(32 if kind == "int" else 64)
            number = r.getrandbits(bits) if bits else 0
            if kind == "long" and r.random() < 0.2:  # halfway between two floats, or nearly
                number = ((r.getrandbits(24) | 2**23) * 2 + 1 << r.randrange(38)) + r.randrange(
                    -1, 2
                )
            return varint(-number - 1 if r.random() < 0.5 else number)
        if kind == "float":
            special = [0x7FC00000, 0x7F800001, 0xFFC12345, 0x80000000, 0x7F800000, 1]
            return struct.pack("<I", r.choice([*special, *(r.getrandbits(32) for _ in special)]))
        if kind == "double":
            return struct.pack("<Q", r.choice([r.getrandbits(64), 0x7FF0000000000001, 2**63]))
        if type_.logical is not None and type_.logical.name == "decimal":
            size = r.randrange(1, 4)
            return varint(size) + self._number(size, 10**9)
        if kind == "string" or r.random() < 0.6:
            return self._text()
        content = r.randbytes(r.randrange(6))
        return varint(len(content)) + content

    def broken(self, value: bytes) -> bytes:
        """A value with a few bytes more, fewer or different."""
        r = self.random
        changed = bytearray(value)
        for _ in range(r.choice([1, 1, 2, 3])):
            place = r.randrange(len(changed) + 1)
            kind = r.randrange(6)
            if kind == 0:
                more = [b"\xff" * 9, b"\x80", b"\xfe\xff\xff\xff\x0f", b"\1", b"\0", b"\x80\0"]
                changed[place:place] = r.choice(more)
            elif kind == 1:
                del changed[place : place + r.randrange(1, 4)]
            elif kind == 2:
                del changed[place:]
            elif place < len(changed):
                flipped = changed[place] ^ 1 << r.randrange(8)
                changed[place] = r.choice([r.randrange(256), flipped, changed[place] + 2 & 255])
        return bytes(changed)


def varint(number: int) -> bytes:
    """A zigzag varint of 64 bits."""
    raw = (number << 1 ^ number >> 63) & 2**64 - 1
    out = bytearray()
    while raw > 127:
        out.append(raw & 127 | 128)
        raw >>= 7
    return bytes([*out, raw])
