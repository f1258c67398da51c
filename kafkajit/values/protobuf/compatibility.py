"""Whether a message that one schema has written can be read as that of another."""

from __future__ import annotations

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.protobuf.schema import Field, Message

# Types that are written alike: the bytes of one are those of another.
_ALIKE = [
    {"int32", "int64", "uint32", "uint64", "bool", "enum"},
    {"sint32", "sint64"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
    {"string", "bytes"},
    {"bytes", "message"},
]


def check_compatible(writer: Message, reader: Message) -> None:
    """Raise an InvalidSchemaError if a field's number stands for another kind of type."""
    _check(writer, reader, set())


def _check(writer: Message, reader: Message, seen: set[tuple[int, int]]) -> None:
    if writer is reader or (id(writer), id(reader)) in seen:
        return
    seen.add((id(writer), id(reader)))
    numbers = {field.number: field for field in writer.fields}
    for field in reader.fields:
        written = numbers.get(field.number)
        if written is None:
            continue
        if not _is_alike(written, field):
            raise InvalidSchemaError(
                f"the field {field.number} of {writer.name} was written as {written.type}, but is "
                f"to be read as {field.type}"
            )
        if isinstance(written.of, Message) and isinstance(field.of, Message):
            _check(written.of, field.of, seen)


def _is_alike(written: Field, read: Field) -> bool:
    types = {written.type, read.type}
    return len(types) == 1 or any(types <= alike for alike in _ALIKE)
