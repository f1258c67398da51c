"""Random Avro schemas, values of them, and schemas that a reader may have instead."""

from __future__ import annotations

import copy
import io
import json
import os
import random
from typing import Any

import fastavro
from corpus import NO_JIT

# Random schemas that the tests take, and values of each.
COUNT = int(os.environ.get("KAFKAJIT_SCHEMAS", "200" if NO_JIT else "2000"))
AT_ONCE = 25
VALUES = 12
DEEP = 9  # how often a record contains itself at most in the values of an Author

Json = Any
PROMOTIONS = {
    "int": ["long", "double"],
    "long": ["double"],  # fastavro does not round to a float
    "float": ["double"],
    "string": ["bytes"],
    "bytes": ["string"],
}
ALIKE = {"bytes": "string"} | dict.fromkeys(["int", "long", "float", "double"], "number")
MOST_THEMSELVES = 1  # with each one more, the columns are a power more
PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]


class Author:
    """Writes schemas and values of them, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._names = 0
        self._themselves = 0
        self._records: list[str] = []  # those that are being written, which may contain themselves

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def record(self, depth: int = 3) -> Json:
        name = self._name("Record")
        self._records.append(name)
        fields = [
            {"name": f"f{number}", "type": self.type(depth - 1)}
            for number in range(self.random.randrange(7))
        ]
        self._records.pop()
        return {"type": "record", "name": name, "namespace": "com.acme", "fields": fields}

    def type(self, depth: int, *, in_union: bool = False) -> Json:
        kinds = [*PRIMITIVES, "enum", "fixed"]
        if depth > 0:
            kinds += ["record", "array", "map"]
            kinds += [] if in_union else ["union", "union", "nullable", "nullable", "itself"]
        kind = self.random.choice(kinds)
        if kind == "record":
            return self.record(depth)
        if kind == "enum":
            symbols = [f"S{number}" for number in range(self.random.randrange(1, 5))]
            return {"type": "enum", "name": self._name("Enum"), "symbols": symbols}
        if kind == "fixed":
            size = self.random.randrange(1, 20)
            return {"type": "fixed", "name": self._name("Fixed"), "size": size}
        if kind == "array":
            return {"type": "array", "items": self.type(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": self.type(depth - 1)}
        if kind == "nullable":
            branches = ["null", self._other_than_null(depth)]
            self.random.shuffle(branches)
            return branches
        if kind == "itself":
            self._themselves += 1
            if not self._records or self._themselves > MOST_THEMSELVES:
                return "long"
            return ["null", self.random.choice(self._records)]
        if kind == "union":
            return self._union(depth)
        return kind

    def _other_than_null(self, depth: int) -> Json:
        while (type_ := self.type(depth - 1, in_union=True)) == "null":
            pass
        return type_

    def _union(self, depth: int) -> Json:
        branches: list[Json] = []
        seen = set()
        for _ in range(self.random.randrange(1, 5)):
            branch = self.type(depth - 1, in_union=True)
            kind = branch if isinstance(branch, str) else branch["type"]
            # fastavro reads a string into a branch for bytes, if that comes first; Java does not.
            seen_as = ALIKE.get(kind, kind)
            if seen_as not in seen or kind in ("record", "enum", "fixed"):
                branches.append(branch)
                seen.add(seen_as)
        return branches

    def value(self, schema: Json, named: dict[str, Json], depth: int = 0) -> Any:
        """A value of a schema; `named` has the schemas that it refers to."""
        r = self.random
        if isinstance(schema, list):
            if depth > 5 and "null" in schema:
                return None
            branch = r.choice(schema)
            value = self.value(branch, named, depth + 1)
            # Without the branch, fastavro guesses.
            kind = branch if isinstance(branch, str) else branch["type"]
            if kind in ("record", "enum", "fixed") or kind in named:
                name = branch if isinstance(branch, str) else branch["name"]
                space = (named[name] if isinstance(branch, str) else branch).get(
                    "namespace", "com.acme"
                )
                return (f"{space}.{name}", value)
            return (kind, value)
        if isinstance(schema, str) and schema in named:
            schema = named[schema]
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind == "record":
            return {
                field["name"]: self.value(field["type"], named, depth + 1)
                for field in schema["fields"]
            }
        if kind == "array":
            return [self.value(schema["items"], named, depth + 1) for _ in range(self._few())]
        if kind == "map":
            return {
                f"k{number}": self.value(schema["values"], named, depth + 1)
                for number in range(self._few())
            }
        if kind == "enum":
            return r.choice(schema["symbols"])
        if kind == "fixed":
            return r.randbytes(schema["size"])
        return self._primitive(kind)

    def _few(self) -> int:
        return self.random.choice([0, 0, 1, 1, 2, 3, 5])

    def _primitive(self, kind: str) -> Any:
        r = self.random
        if kind == "null":
            return None
        if kind == "boolean":
            return r.random() < 0.5
        if kind in ("int", "long"):
            bits = r.randrange(32 if kind == "int" else 64)
            number = r.getrandbits(bits) if bits else 0
            return -number - 1 if r.random() < 0.5 else number
        if kind == "float":
            return float(r.randrange(-(2**20), 2**20)) / 8
        if kind == "double":
            return r.uniform(-1e9, 1e9)
        if kind == "bytes":
            return r.randbytes(r.randrange(12))
        return "".join(r.choice("abc é€😀") for _ in range(r.randrange(12)))

    def reader_of(self, schema: Json) -> Json:
        """A schema into which what another one has written can be read, at least in part."""
        return self._changed(copy.deepcopy(schema))

    def _changed(self, schema: Json) -> Json:
        r = self.random
        if isinstance(schema, list):
            return [self._changed_branch(branch) for branch in schema]
        if isinstance(schema, str):
            if schema in PROMOTIONS and r.random() < 0.3:
                return r.choice(PROMOTIONS[schema])
            if schema in PRIMITIVES and schema != "null" and r.random() < 0.15:
                return ["null", schema]
            return schema
        if schema["type"] == "array":
            schema["items"] = self._changed(schema["items"])
        elif schema["type"] == "map":
            schema["values"] = self._changed(schema["values"])
        elif schema["type"] == "record":
            self._change_record(schema)
        elif schema["type"] == "enum" and r.random() < 0.5:
            schema["symbols"] = [*reversed(schema["symbols"]), "OTHER"]
            if r.random() < 0.5:
                schema["symbols"] = schema["symbols"][1:]
                schema["default"] = "OTHER"
        return schema

    def _changed_branch(self, branch: Json) -> Json:
        return branch if isinstance(branch, str) else self._changed(branch)

    def _change_record(self, record: Json) -> None:
        r = self.random
        # What defines a name that others use has to stay.
        fields = [field for field in record["fields"] if defines(field["type"]) or r.random() < 0.8]
        for field in fields:
            field["type"] = self._changed(field["type"])
            if r.random() < 0.2:
                field["aliases"] = [field["name"]]
                field["name"] = f"renamed_{field['name']}"
        if r.random() < 0.3:
            fields.insert(r.randrange(len(fields) + 1), self._added())
        record["fields"] = fields

    def _added(self) -> Json:
        type_, default = self.random.choice(
            [
                ("long", 2**40),
                ("string", "né"),
                ("double", 0.5),
                (["null", "int"], None),
                (["int", "null"], -7),
                ({"type": "array", "items": "string"}, ["a", "bc"]),
                ({"type": "map", "values": "int"}, {"k": 1}),
                ("boolean", True),
                (["string", "long"], "tagged"),
            ]
        )
        return {"name": self._name("added"), "type": type_, "default": default}


def defines(schema: Json) -> bool:
    """Whether a schema defines a name."""
    if isinstance(schema, list):
        return any(map(defines, schema))
    if isinstance(schema, str):
        return False
    if schema["type"] in ("array", "map"):
        return defines(schema["items" if schema["type"] == "array" else "values"])
    return True


def named_types(schema: Json) -> dict[str, Json]:
    """The records of a schema, by their short names."""
    found: dict[str, Json] = {}

    def look(schema: Json) -> None:
        if isinstance(schema, list):
            for branch in schema:
                look(branch)
        elif isinstance(schema, dict):
            if "name" in schema:
                found[schema["name"]] = schema
            for field in schema.get("fields", ()):
                look(field["type"])
            for inside in ("items", "values"):
                if inside in schema:
                    look(schema[inside])

    look(schema)
    return found


def as_fastavro_has_it(value: Any, type_: Any) -> Any:
    """What our columns show → as fastavro reads it."""
    if type_.kind == "union":
        others = [branch for branch in type_.branches if branch.kind != "null"]
        if value is None or not others:
            return None
        if len(others) == 1:
            return as_fastavro_has_it(value, others[0])
        (branch,) = (b for b in others if value["tag"] in (b.kind, getattr(b, "short_name", None)))
        for name, inside in value.items():
            if name not in ("tag", value["tag"]):
                assert inside is None
        return as_fastavro_has_it(value[value["tag"]], branch)
    if type_.kind == "record":
        return {
            field.name: as_fastavro_has_it(value[field.name], field.type) for field in type_.fields
        }
    if type_.kind == "array":
        return [as_fastavro_has_it(item, type_.items) for item in value]
    if type_.kind == "map":
        return {key: as_fastavro_has_it(item, type_.values) for key, item in value}
    return value


def encoded(schema: Any, *values: Any) -> list[bytes]:
    """Values as fastavro writes them."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    written = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        written.append(out.getvalue())
    return written


def broken(value: bytes, r: random.Random) -> bytes:
    """The value with a few bytes changed, added or left out."""
    changed = bytearray(value)
    for _ in range(r.randrange(1, 4)):
        place = r.randrange(len(changed) + 1)
        kind = r.randrange(4)
        if kind == 0:
            changed[place:place] = r.choice([b"\xff" * 9, b"\x80", b"\xfe\xff\xff\xff\x0f", b"\1"])
        elif kind == 1:
            del changed[place : place + r.randrange(1, 4)]
        elif kind == 2:
            del changed[place:]
        elif place < len(changed):
            changed[place] = r.randrange(256)
    return bytes(changed)
