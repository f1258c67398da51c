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
from kafkajit.values.avro.schema import (
    NO_DEFAULT,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Union,
)

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


_Pairs = dict[tuple[int, int], bool]  # of writers' and readers' records


def branch_for(
    writer: AvroType, branches: list[AvroType], seen: _Pairs | None = None
) -> AvroType | None:
    """The branch of a reader's union that a writer's type is read into.

    As in Java: the same type first, by full name and then by short name; then a record with another
    name whose fields fit; then the first branch to which the type can be promoted.
    """
    same = [branch for branch in branches if branch.kind == writer.kind]
    if isinstance(writer, Named):
        for branch in same:
            if isinstance(branch, Named) and writer.name in (branch.name, *branch.aliases):
                return branch
        alike = [branch for branch in same if _has_same_name(writer, branch)]
        if isinstance(writer, Record):
            seen = {} if seen is None else seen
            fitting = [branch for branch in same if _fields_fit(writer, branch, seen)]
            # Two short names are the same in different namespaces only; Java takes the last.
            alike = [b for b in fitting if b in alike][-1:] or fitting[:1] or alike
        same = alike
    if same:
        return same[0]
    return next((b for b in branches if (writer.kind, b.kind) in DIRECT), None)


def matching_fields(writer: Record, reader: Record) -> dict[str, Field]:
    """The reader's field that each field of a writer is read into, by the writer's name.

    An alias counts more than a name, because it renames the writer's field; but a field that is
    there by its own name needs no alias. As in Java, aliases count for a record of the same full
    name, or of one that is an alias itself.
    """
    names = {field.name for field in writer.fields}
    found = {field.name: field for field in reader.fields if field.name in names}
    if writer.name not in (reader.name, *reader.aliases):
        return found
    for field in reader.fields:
        if field.name not in names:
            alias = next((alias for alias in field.aliases if alias in names), None)
            found |= {} if alias is None else {alias: field}
    return found


def _fields_fit(writer: Record, reader: AvroType, seen: _Pairs) -> bool:
    """Whether each field that a reader's record has, itself and not its parts, can be read."""
    assert isinstance(reader, Record)
    pair = id(writer), id(reader)
    if pair not in seen:
        seen[pair] = True  # if a record contains itself
        found = matching_fields(writer, reader)
        seen[pair] = not _lacks_field(writer, reader) and all(
            _can_be_read(field.type, found[field.name].type, seen)
            for field in writer.fields
            if field.name in found
        )
    return seen[pair]


def _lacks_field(writer: Record, reader: Record) -> bool:
    found = {field.name for field in matching_fields(writer, reader).values()}
    return any(f.default is NO_DEFAULT and f.name not in found for f in reader.fields)


def _can_be_read(writer: AvroType, reader: AvroType, seen: _Pairs) -> bool:
    if isinstance(writer, Union):
        return True  # it depends on the branch
    if isinstance(reader, Union):
        return branch_for(writer, reader.branches, seen) is not None
    if isinstance(writer, Record) and isinstance(reader, Record):
        return not _lacks_field(writer, reader)
    return fits(writer, reader)


def shown(type_: AvroType) -> str:
    """A type as error messages name it."""
    if isinstance(type_, Named):
        return f"{type_.kind} {type_.short_name}"
    if isinstance(type_, Union):
        return f"a union of {', '.join(shown(branch) for branch in type_.branches)}"
    return type_.logical.name if type_.logical else type_.kind
