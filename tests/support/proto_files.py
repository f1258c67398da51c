"""Files in Protobuf's .proto language: random ones, and what protoc makes of any."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_tools import protoc

from kafkajit.values.protobuf.schema import SCALARS, Enum, Field, Message, ProtoFile

# Random files that the tests take.
COUNT = int(os.environ.get("KAFKAJIT_PROTOS", "300"))
ROOT = "root.proto"
TYPES = {
    value: name.removeprefix("TYPE_").lower()
    for name, value in descriptor_pb2.FieldDescriptorProto.Type.items()
}

Described = tuple[Any, ...]


def compiled(
    roots: list[str], texts: Mapping[str, str], *, include: str | None = None
) -> dict[str, list[Described]] | None:
    """The messages of each root as protoc understands them; None if it refuses a file."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in texts.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("utf-8", "surrogatepass"))
        found = Path(folder, "found")
        arguments = ["protoc", f"-I{folder}", f"-I{_builtin()}", "--include_imports"]
        arguments += [f"-I{include}"] if include else []
        if _quiet([*arguments, f"--descriptor_set_out={found}", *roots]):
            return None
        files = descriptor_pb2.FileDescriptorSet.FromString(found.read_bytes()).file
    pool = DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return {
        file.name: [_protocs(message, file.package, pool) for message in file.message_type]
        for file in files
        if file.name in roots
    }


@cache
def _builtin() -> str:
    return str(files("grpc_tools") / "_proto")


def _quiet(arguments: list[str]) -> int:
    """Run protoc in this process, without what it prints."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        return int(protoc.main(arguments))
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _protocs(proto: Any, outer: str, pool: DescriptorPool) -> Described:
    name = f"{outer}.{proto.name}" if outer else proto.name
    fields = pool.FindMessageTypeByName(name).fields_by_name
    members = [_protocs_field(field, fields[field.name], proto) for field in proto.field]
    nested = [_protocs(message, name, pool) for message in proto.nested_type]
    return name, proto.options.map_entry, members, nested


def _protocs_field(proto: Any, found: FieldDescriptor, message: Any) -> Described:
    oneof = None
    if proto.HasField("oneof_index") and not proto.proto3_optional:
        oneof = message.oneof_decl[proto.oneof_index].name
    names: dict[int, str] = {}
    of = found.message_type or found.enum_type
    if found.enum_type is not None:
        values = descriptor_pb2.EnumDescriptorProto()
        found.enum_type.CopyToProto(values)
        for value in values.value:
            names.setdefault(value.number, value.name)
    has_presence = found.has_presence
    if message.options.map_entry:
        # The parts of an entry have presence in proto2, but a missing one is zero there, too.
        has_presence = found.message_type is not None
    return (
        proto.name,
        proto.number,
        TYPES[found.type],
        proto.label == FieldDescriptor.LABEL_REPEATED,
        has_presence,
        oneof,
        of and of.full_name,
        names,
    )


def described(file: ProtoFile) -> list[Described]:
    """Our messages of a file in the form of `compiled`."""
    return [_ours(message) for message in file.messages]


def _ours(message: Message) -> Described:
    members = [_ours_field(member) for member in message.fields]
    return (
        message.name, message.is_map_entry, members, [_ours(inner) for inner in message.messages]
    )  # fmt: skip


def _ours_field(member: Field) -> Described:
    return (
        member.name,
        member.number,
        member.type,
        member.is_repeated,
        member.has_presence,
        member.oneof,
        member.of and member.of.name,
        member.of.names if isinstance(member.of, Enum) else {},
    )


NOISE = ("", ";", ' // of, {, } and "\n', " /* a comment */ ", "\n\t")
KEYS = [name for name in SCALARS if name not in ("double", "float", "bytes")]
SHORT = ["A", "B", "C", "Foo", "Bar", "Map", "Order", "Item", "Optional", "Message"]
PACKAGES = ["a", "b", "a.b", "b.a", "a.b.c", "c.A.b"]
SYNTAXES = ["proto2", "proto3", "2023", "2024"]


class Author:
    """Writes a file and those that it imports, the same ones for the same seed.

    Many names are the same in different scopes. Types are referred to by any part of their names
    that might do, so that some files are wrong.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.texts: dict[str, str] = {}
        self._taken: set[str] = set()
        self._types: dict[str, list[tuple[str, str, bool]]] = {}  # of a path: (name, kind, is open)
        self._imports: dict[str, list[tuple[str, bool]]] = {}

    def files(self) -> dict[str, str]:
        """Texts of files; the last one is the root."""
        for number in range(self.random.randrange(4)):
            self._file(f"{number}.proto")
        self._file(ROOT)
        return self.texts

    def _chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def _file(self, path: str) -> None:
        syntax = self.random.choice(SYNTAXES)
        self.syntax, self.is_edition = syntax, syntax.startswith("2")
        lines = [f'{"edition" if self.is_edition else "syntax"} = "{syntax}";']
        self.package = self.random.choice(PACKAGES) if self._chance(70) else ""
        imports = [(other, self._chance(40)) for other in self.texts if self._chance(60)]
        package = [f"package {self.package};"] if self.package else []
        lines += package if self._chance(50) else []
        lines += [f'import {"public " * public}"{other}";' for other, public in imports]
        lines += package if len(lines) == 1 + len(imports) else []
        self._imports[path] = imports
        self._types[path] = []
        self.visible = [path, *(other for name, _ in imports for other in self._public(name))]
        if self.is_edition:
            lines += self._file_features()
        plan = [self._plan(path, self.package, 3) for _ in range(self.random.randrange(1, 5))]
        lines += [self._text(part) for part in plan if part is not None]
        self.texts[path] = self.random.choice(NOISE).join(f"{line}\n" for line in lines)

    def _public(self, path: str) -> set[str]:
        found = {path}
        for other, public in self._imports[path]:
            found |= self._public(other) if public else set()
        return found

    def _file_features(self) -> list[str]:
        lines = []
        if self.syntax == "2024":
            lines.append("option features.default_symbol_visibility = EXPORT_ALL;")
            lines.append("option features.enforce_naming_style = STYLE_LEGACY;")
        if self._chance(30):
            lines.append("option features.field_presence = IMPLICIT;")
        if self._chance(30):
            lines.append("option features.message_encoding = DELIMITED;")
        return lines

    # First the names of all types, then the texts that refer to them.

    def _plan(self, path: str, scope: str, depth: int) -> tuple[str, str, str, list[Any]] | None:
        name = self.random.choice(SHORT)
        full = f"{scope}.{name}" if scope else name
        taken = full in self._taken or any(other.startswith(f"{full}.") for other in self._taken)
        if taken or self._is_package(full):
            return None
        self._taken.add(full)
        kind = "enum" if self._chance(25) else "message"
        self._types[path].append((full, kind, self.syntax != "proto2"))
        inner: list[Any] = []
        if kind == "message" and depth:
            inner = [self._plan(path, full, depth - 1) for _ in range(self.random.randrange(4))]
        return kind, name, full, [part for part in inner if part is not None]

    def _is_package(self, full: str) -> bool:
        return any(name == full or name.startswith(f"{full}.") for name in PACKAGES)

    def _text(self, part: tuple[str, str, str, list[Any]]) -> str:
        kind, name, full, inner = part
        if kind == "enum":
            return self._enum(name, full)
        lines = [self._text(other) for other in inner]
        members = self._members(full)
        lines = lines + members if self._chance(50) else members + lines
        return f"message {name} {{\n{self.random.choice(NOISE).join(lines)}\n}}"

    def _enum(self, name: str, full: str) -> str:
        prefix = full.replace(".", "_").upper()
        numbers = [0, *self.random.sample(range(-3, 9), 3)]
        written = [self.random.choice([str, hex, _octal])(number) for number in numbers]
        values = [f"{prefix}_V{place} = {text};" for place, text in enumerate(written)]
        alias = "option allow_alias = true;" if len(set(numbers)) < len(numbers) else ""
        return f"enum {name} {{ {' '.join(values)} {alias} }}"

    def _members(self, full: str) -> list[str]:
        self._full = full
        self._number = 0
        lines = [self._member() for _ in range(self.random.randrange(7))]
        if self._chance(20):
            inside = [self._field_text(f"one{place}", "") for place in range(3)]
            lines.append(f"oneof choice {{ {' '.join(inside)} }}")
        if self._chance(20):
            names = '"x", "y"' if not self.is_edition else "x, y"
            lines.append(f"reserved {names}; reserved 900 to 910, 950, 990 to max;")
        return lines

    def _member(self) -> str:
        kind = self.random.randrange(10)
        name = f"field{self._number}"
        if kind == 0:
            key, value = self.random.choice(KEYS), self._type(in_map=True)
            return f"map<{key}, {value}> {name} = {self._next()};"
        if kind == 1 and self.syntax == "proto2":
            label = self.random.choice(["optional", "required", "repeated"])
            inner = f"{label} int32 x = 1;"
            return f"{label} group Group{self._number} = {self._next()} {{ {inner} }}"
        if kind <= 3:
            return self._field_text(name, "repeated ")
        labels = {"proto2": ["optional ", "required "], "proto3": ["", "optional "]}
        return self._field_text(name, self.random.choice(labels.get(self.syntax, [""])))

    def _field_text(self, name: str, label: str) -> str:
        type_ = self._type()
        options = ["deprecated = true", 'json_name = "j' + name + '"']
        chosen = [option for option in options if self._chance(10)]
        if self.is_edition and not label and type_ in SCALARS and name.startswith("field"):
            presence = self.random.choice(["EXPLICIT", "IMPLICIT", "LEGACY_REQUIRED"])
            chosen += [f"features.field_presence = {presence}"] if self._chance(40) else []
        if self.is_edition and self._last_is_message and self._chance(30):
            encoding = self.random.choice(["DELIMITED", "LENGTH_PREFIXED"])
            chosen.append(f"features.message_encoding = {encoding}")
        brackets = f" [{', '.join(chosen)}]" if chosen else ""
        return f"{label}{type_} {name} = {self._next()}{brackets};"

    def _next(self) -> str:
        self._number += 1
        return self.random.choice([str, hex, _octal])(self._number)

    def _type(self, *, in_map: bool = False) -> str:
        types = [found for path in self.visible for found in self._types[path]]
        if self.syntax != "proto2":  # other syntaxes may not use the closed enums of proto2
            types = [found for found in types if found[1] == "message" or found[2]]
        if self.syntax == "proto2" and in_map:
            types = [found for found in types if found[1] == "message"]
        self._last_is_message = False
        if not types or self._chance(40):
            return self.random.choice(SCALARS)
        full, kind, _ = self.random.choice(types)
        self._last_is_message = kind == "message"
        return self._reference(full)

    def _reference(self, full: str) -> str:
        """A name that means the type in the scope of the message, or nearly."""
        parts, around = full.split("."), self._full.split(".")
        shared = 0
        while shared < min(len(parts), len(around)) and parts[shared] == around[shared]:
            shared += 1
        if self._chance(20):
            return f".{full}"
        most = len(parts) - 1 if self._chance(1) else min(shared, len(parts) - 1)
        begin = self.random.randint(0, most)
        # The innermost scope with the first part of the name is mostly the one that is meant.
        scopes = [".".join(around[:end]) for end in range(len(around), -1, -1)]
        firsts = [f"{scope}.{parts[begin]}".lstrip(".") for scope in scopes]
        known = [name for name in firsts if name in self._taken or self._is_package(name)]
        is_meant = known[:1] == [".".join(parts[: begin + 1])]
        return ".".join(parts[begin:]) if is_meant or self._chance(1) else f".{full}"


def _octal(number: int) -> str:
    return f"0{number:o}" if number >= 0 else str(number)
