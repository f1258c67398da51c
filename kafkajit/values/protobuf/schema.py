"""Protobuf's types: what a .proto file declares, with all names resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Scalar = Literal[
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32",
    "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes",
]  # fmt: skip
SCALARS: tuple[str, ...] = Scalar.__args__  # type: ignore[attr-defined]


@dataclass(eq=False)
class Enum:
    """An enum by its full name; `names` has the first name of each number."""

    name: str
    names: dict[int, str]


@dataclass(eq=False)
class Field:
    """A field of a message; `of` is its message or enum.

    A map is a repeated message of two fields, `key` and `value`. A field without presence has the
    zero of its type if it is not written.
    """

    name: str
    number: int
    type: Scalar | Literal["message", "group", "enum"]
    is_repeated: bool = False
    has_presence: bool = False
    oneof: str | None = None
    of: Message | Enum | None = field(default=None, repr=False)  # the type may contain itself

    @property
    def is_map(self) -> bool:
        return isinstance(self.of, Message) and self.of.is_map_entry


@dataclass(eq=False)
class Message:
    """A message by its full name, with those declared inside it in their order."""

    name: str
    fields: list[Field] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    is_map_entry: bool = False


@dataclass(eq=False)
class ProtoFile:
    """The messages of a .proto file in their order: a framing names one of them by its number."""

    package: str
    messages: list[Message]
