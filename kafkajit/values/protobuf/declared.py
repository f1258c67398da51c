"""Declarations of a .proto file, before the names of types in it are looked up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kafkajit.values.protobuf.schema import Enum, Field, Message
from kafkajit.values.protobuf.tokens import Token, Tokens


@dataclass(eq=False, repr=False)  # a repr would follow every name to every other
class Scope:
    """A file, a package, a message, an enum or a service, and the names declared in it.

    The name of a message's scope is its short one until the whole file is read, because the
    package may come last. An option of `features` holds for all that is declared inside.
    """

    name: str
    parent: Scope | None = None
    of: Message | Enum | None = None
    messages: list[Message] = field(default_factory=list)
    depth: int = 0
    names: dict[str, Declared] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)


class Declared(NamedTuple):
    """A name in a scope, its place, and the scope that it opens, if it does."""

    file: SourceFile
    position: int
    scope: Scope | None = None


class DeclaredField(NamedTuple):
    """A field and all that decides its type and its presence; `type` is a name as written."""

    field: Field
    scope: Scope
    position: int
    label: str
    options: dict[str, str]
    type: str


class Import(NamedTuple):
    """The path of an imported file."""

    path: str
    is_public: bool
    position: int


@dataclass(eq=False, repr=False)
class SourceFile:
    """A .proto file: its declarations in their order."""

    tokens: Tokens
    syntax: str = "proto2"
    package: Token | None = None
    imports: list[Import] = field(default_factory=list)
    top: Scope = field(default_factory=lambda: Scope(""))
    scopes: list[Scope] = field(default_factory=list)  # of types: outer ones before inner ones
    fields: list[DeclaredField] = field(default_factory=list)
