"""Avro's schema resolution: whether and how one type is read as another."""

from __future__ import annotations

from kafkajit.values.avro.operations import (
    BOOL,
    BYTES,
    DOUBLE,
    FLOAT,
    FLOAT_TO_DOUBLE,
    INT,
    INT_TO_DOUBLE,
    INT_TO_FLOAT,
    INT_TO_LONG,
    LONG,
    LONG_TO_DOUBLE,
    LONG_TO_FLOAT,
    STRING,
)
from kafkajit.values.avro.schema import Array, AvroType, Enum, Fixed, Map, Named, Record, Union

DIRECT = {
    ("int", "int"): INT,
    ("int", "long"): INT_TO_LONG,
    ("int", "float"): INT_TO_FLOAT,
    ("int", "double"): INT_TO_DOUBLE,
    ("long", "long"): LONG,
    ("long", "float"): LONG_TO_FLOAT,
    ("long", "double"): LONG_TO_DOUBLE,
    ("float", "float"): FLOAT,
    ("float", "double"): FLOAT_TO_DOUBLE,
    ("double", "double"): DOUBLE,
    ("boolean", "boolean"): BOOL,
    ("string", "string"): STRING,
    ("string", "bytes"): BYTES,
    ("bytes", "bytes"): BYTES,
    ("bytes", "string"): STRING,
}
_LEAST = {"null": 0, "float": 4, "double": 8}  # of other types 1


def contains_itself(record: Record) -> bool:
    """Whether values of a record may hold others of it, at any depth."""
    seen: set[int] = set()

    def reaches(type_: AvroType) -> bool:
        if type_ is record:
            return True
        if id(type_) in seen:
            return False
        seen.add(id(type_))
        return any(map(reaches, _parts(type_)))

    return any(map(reaches, _parts(record)))


def _parts(type_: AvroType) -> list[AvroType]:
    if isinstance(type_, Record):
        return [field.type for field in type_.fields]
    if isinstance(type_, Array):
        return [type_.items]
    if isinstance(type_, Map):
        return [type_.values]
    return type_.branches if isinstance(type_, Union) else []


def least(type_: AvroType, known: dict[AvroType, int] | None = None) -> int:
    """The fewest bytes that a value of a type has; 2 GiB stands for more."""
    if isinstance(type_, Record):
        known = {} if known is None else known
        if type_ not in known:
            known[type_] = 0  # inside itself
            known[type_] = min(sum(least(field.type, known) for field in type_.fields), 2**31)
        return known[type_]
    if isinstance(type_, Fixed):
        return type_.size
    return _LEAST.get(type_.kind, 1)


def has_fixed_size(type_: AvroType) -> bool:
    """Whether all values of a type have the same number of bytes."""
    return isinstance(type_, Fixed) or type_.kind in _LEAST


def fits(writer: AvroType, reader: AvroType) -> bool:
    """Whether a type, itself and not its parts, can be read as another."""
    return not fault(writer, reader)


def fault(writer: AvroType, reader: AvroType) -> str:
    """Why a writer's type, itself and not its parts, cannot be read as a reader's; or nothing."""
    cannot = f"{shown(writer)} cannot be read as {shown(reader)}"
    if isinstance(writer, (Enum, Fixed)) or isinstance(reader, (Enum, Fixed)):
        if writer.kind != reader.kind or not _has_same_name(writer, reader):
            return cannot
        if isinstance(writer, Fixed) and isinstance(reader, Fixed) and writer.size != reader.size:
            return f"{cannot}: {writer.size} bytes and {reader.size} bytes"
    elif writer.kind != reader.kind and (writer.kind, reader.kind) not in DIRECT:
        return cannot
    if writer.logical and reader.logical:
        # A local timestamp has the same number; one of another unit or scale would mean another.
        meanings = {
            (logical.name.removeprefix("local-"), logical.scale)
            for logical in (writer.logical, reader.logical)
        }
        if len(meanings) > 1:
            return cannot
    return ""


def _has_same_name(writer: AvroType, reader: AvroType) -> bool:
    assert isinstance(writer, Named)
    assert isinstance(reader, Named)
    return writer.short_name in {
        reader.short_name,
        *(alias.rpartition(".")[2] for alias in reader.aliases),
    }


def branch_for(writer: AvroType, branches: list[AvroType]) -> AvroType | None:
    """The branch of a reader's union that a writer's type is read into.

    As in Java: the same type first, by full name and then, of records, by short name; then the
    first branch to which the type can be promoted.
    """
    same = [branch for branch in branches if branch.kind == writer.kind]
    if isinstance(writer, Named):
        for branch in same:
            if isinstance(branch, Named) and writer.name in (branch.name, *branch.aliases):
                return branch
        same = [branch for branch in same if _has_same_name(writer, branch)]
    if same:
        return same[0]
    return next((b for b in branches if (writer.kind, b.kind) in DIRECT), None)


def shown(type_: AvroType) -> str:
    """A type as error messages name it."""
    if isinstance(type_, Named):
        return f"{type_.kind} {type_.short_name}"
    if isinstance(type_, Union):
        return f"a union of {', '.join(shown(branch) for branch in type_.branches)}"
    return type_.logical.name if type_.logical else type_.kind
