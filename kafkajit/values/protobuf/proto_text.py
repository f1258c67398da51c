"""Text in Protobuf's .proto language → the messages that it declares.

Follows protoc, which looks names up as C++ does. Texts that protoc accepts are read as it reads
them. Some that it refuses are read, too, if they leave no doubt about the bytes of a value: the
values of options, for example, are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from kafkajit.errors import InvalidSchemaError, did_you_mean
from kafkajit.values.protobuf.declared import (
    Declared,
    DeclaredField,
    Import,
    Scope,
    SourceFile,
)
from kafkajit.values.protobuf.grammar import EDITIONS, parse_file
from kafkajit.values.protobuf.options import ENCODING, PRESENCE
from kafkajit.values.protobuf.schema import SCALARS, Enum, Message, ProtoFile
from kafkajit.values.protobuf.tokens import shown
from kafkajit.values.protobuf.well_known import WELL_KNOWN

MAX_NAME = 1000  # characters of a full name, so that many names in a long package stay small
_MOST_CANDIDATES = 1000  # difflib compares a thousand names in 20 ms


def parse_proto(text: str, imports: Mapping[str, str] | None = None) -> ProtoFile:
    """The messages that a .proto file declares, with all names resolved.

    `imports` maps the paths of import statements to the texts of those files. Files that come with
    Protobuf, google/type and confluent's own need not be there.

    >>> file = parse_proto('syntax = "proto3"; package shop; message Order { int64 id = 1; }')
    >>> file.messages[0].name, file.messages[0].fields[0].type
    ('shop.Order', 'int64')
    """
    files = _Files(imports or {})
    root = files.load(text)
    return ProtoFile(root.top.name, root.top.messages)


class _Files:
    """A file and all that it imports, and the packages that they share."""

    def __init__(self, imports: Mapping[str, str]) -> None:
        self._imports = imports
        self._files: dict[str | None, SourceFile] = {}
        self._root = Scope("")
        self._packages: dict[Scope, set[SourceFile]] = {}

    def load(self, text: str) -> SourceFile:
        """The file of a text, after those that it imports."""
        self._parse(text)
        for path in self._imported_first():
            file = self._files[path]
            self._place(file)
            visible = self._visible(file) if file.fields else set()
            for declared in file.fields:
                self._resolve(file, declared, visible)
        return self._files[None]

    # Files.

    def _parse(self, text: str) -> None:
        root = self._files[None] = parse_file(text)
        waiting = [root]
        while waiting:
            file = waiting.pop()
            for item in file.imports:
                if item.path not in self._files:
                    imported = parse_file(self._text(file, item), item.path)
                    self._files[item.path] = imported
                    waiting.append(imported)

    def _text(self, file: SourceFile, item: Import) -> str:
        text = self._imports.get(item.path, WELL_KNOWN.get(item.path))
        if text is not None:
            return text
        meant = did_you_mean(item.path[:MAX_NAME], [*self._imports, *WELL_KNOWN], cutoff=0.8)
        raise file.tokens.error_at(
            item.position,
            f"the imported file {shown(item.path)} is missing",
            meant or "give its text, which a registry keeps as a reference of the schema",
        )

    def _imported_first(self) -> Iterator[str | None]:
        graph = {path: [i.path for i in file.imports] for path, file in self._files.items()}
        try:
            return iter(list(TopologicalSorter(graph).static_order()))
        except CycleError as error:
            circle = error.args[1][::-1]
            file = self._files[circle[0]]
            position = next(item.position for item in file.imports if item.path == circle[1])
            message = f"files import each other in a circle: {shown(' -> '.join(circle))}"
            raise file.tokens.error_at(position, message, "remove one of the imports") from None

    def _visible(self, file: SourceFile) -> set[SourceFile]:
        """The files whose names a file may use: its imports, and what those import publicly."""
        visible = {file}
        waiting = [self._files[item.path] for item in file.imports]
        while waiting:
            imported = waiting.pop()
            if imported not in visible:
                visible.add(imported)
                public = (item.path for item in imported.imports if item.is_public)
                waiting.extend(self._files[path] for path in public)
        return visible

    # Names.

    def _place(self, file: SourceFile) -> None:
        """Put the names of a file into its package, and give its types their full names."""
        package = file.top.parent = self._package(file)
        file.top.name = package.name
        for name, declared in file.top.names.items():
            first = package.names.setdefault(name, declared)
            if first is not declared:
                advice = f"rename it, or the first one at {_place_of(first)}"
                message = f"{shown(name)} is declared twice"
                raise file.tokens.error_at(declared.position, message, advice)
        for scope in file.scopes:
            assert scope.parent is not None
            assert scope.of is not None
            short, outer = scope.name, scope.parent
            scope.name = scope.of.name = _joined(outer.name, short)
            if len(scope.name) > MAX_NAME:
                raise _too_long(file, outer.names[short].position, short)

    def _package(self, file: SourceFile) -> Scope:
        package = self._root
        if file.package is None:
            return package
        _, name, position = file.package
        if len(name) > MAX_NAME:
            raise _too_long(file, position, name)
        for part in name.split("."):
            declared = package.names.get(part)
            if declared is None:
                scope = Scope(_joined(package.name, part), package)
                declared = package.names[part] = Declared(file, position, scope)
                self._packages[scope] = set()
            if declared.scope is None or declared.scope not in self._packages:
                message = f"the package {shown(name)} has the name of something else"
                advice = f"rename it, or {shown(part)} at {_place_of(declared)}"
                raise file.tokens.error_at(position, message, advice)
            package = declared.scope
            self._packages[package].add(file)
        return package

    # Types.

    def _resolve(self, file: SourceFile, declared: DeclaredField, visible: set[SourceFile]) -> None:
        member = declared.field
        if declared.type:
            found = self._find(declared.scope, declared.type, visible)
            if found is None:
                raise self._unknown(file, declared, visible)
            member.of = found
            if isinstance(found, Enum):
                member.type = "enum"
            elif _is_delimited(file, declared, found):
                member.type = "group"
        if member.is_map and not member.is_repeated:
            message = f"the field {shown(member.name)} is an entry of a map, but is not repeated"
            raise file.tokens.error_at(declared.position, message)
        member.has_presence = not member.is_repeated and _has_presence(file, declared)

    def _find(
        self, scope: Scope, name: str, visible: set[SourceFile] | None
    ) -> Message | Enum | None:
        """The type that a name means inside a scope; `visible` files are all without it.

        The first part of the name is looked up in each scope from the innermost one. The rest must
        be in the first scope that has it.
        """
        first, *rest = name.split(".")
        found = self._first(scope, first, visible, is_all=not rest) if first else self._root
        return None if found is None else self._inside(found, rest, visible)

    def _first(
        self, scope: Scope, name: str, visible: set[SourceFile] | None, *, is_all: bool
    ) -> Scope | None:
        """The scope that the first part of a name opens; it is a type if it is all of the name."""
        around: Scope | None = scope
        while around is not None:
            found = self._opened(around, name, visible)
            if found is not None and (found.of is not None or not is_all):
                return found
            around = around.parent
        return None

    def _inside(
        self, scope: Scope, parts: list[str], visible: set[SourceFile] | None
    ) -> Message | Enum | None:
        for part in parts:
            found = self._opened(scope, part, visible)
            if found is None:
                return None
            scope = found
        return scope.of

    def _opened(self, scope: Scope, name: str, visible: set[SourceFile] | None) -> Scope | None:
        """The scope that a name in a scope opens, if the name may be used."""
        declared = scope.names.get(name)
        if declared is None or declared.scope is None:
            return None
        files = self._packages.get(declared.scope, {declared.file})
        return declared.scope if visible is None or not files.isdisjoint(visible) else None

    def _unknown(
        self, file: SourceFile, declared: DeclaredField, visible: set[SourceFile]
    ) -> InvalidSchemaError:
        """An error for a type that is not found; it advises an import or another name."""
        name = declared.type
        message = f"the type {shown(name)} is not known"
        elsewhere = self._find(declared.scope, name, None)
        part, _, rest = name.partition(".")
        inner = self._first(declared.scope, part, visible, is_all=not rest) if part else None
        if elsewhere is not None:
            home = next(f for f in self._files.values() if any(s.of is elsewhere for s in f.scopes))
            advice = f"import {shown(home.tokens.path or '')}, which declares it"
        elif inner is not None:
            advice = (
                f"{shown(part)} means {shown(inner.name)} here; write a dot in front of the name "
                "to begin outside"
            )
        else:
            types = [scope.name for other in visible for scope in other.scopes]
            meant = did_you_mean(
                name[-MAX_NAME:],
                [*SCALARS, *types[:_MOST_CANDIDATES]],
                spelled=lambda full: full.rpartition(".")[2].lower(),
            )
            advice = meant or "declare it, or import the file that does"
        return file.tokens.error_at(declared.position, message, advice)


def _joined(outer: str, name: str) -> str:
    return f"{outer}.{name}" if outer else name


def _place_of(declared: Declared) -> str:
    line, column = declared.file.tokens.place(declared.position)
    path = declared.file.tokens.path
    return f"line {line}, column {column}" + (f" of {path}" if path else "")


def _too_long(file: SourceFile, position: int, name: str) -> InvalidSchemaError:
    message = f"the full name of {shown(name)} has more than {MAX_NAME} characters"
    return file.tokens.error_at(position, message, "shorten it")


def _feature(declared: DeclaredField, name: str) -> str | None:
    """The value of a feature, which a field inherits from its message and its file."""
    value = declared.options.get(name)
    scope: Scope | None = declared.scope
    while value is None and scope is not None:
        value = scope.options.get(name)
        scope = scope.parent
    return value


def _is_delimited(file: SourceFile, declared: DeclaredField, found: Message) -> bool:
    """Whether a message is written as a group is; those of a map never are."""
    assert isinstance(declared.scope.of, Message)
    return (
        file.syntax in EDITIONS
        and not found.is_map_entry
        and not declared.scope.of.is_map_entry
        and _feature(declared, ENCODING) == "DELIMITED"
    )


def _has_presence(file: SourceFile, declared: DeclaredField) -> bool:
    """Whether a value shows that a field was not written; it is not a repeated one."""
    assert isinstance(declared.scope.of, Message)
    if isinstance(declared.field.of, Message) or declared.field.oneof is not None:
        return True
    if declared.scope.of.is_map_entry:
        return False  # a missing key or value is the zero of its type in every syntax
    if file.syntax in EDITIONS:
        return _feature(declared, PRESENCE) != "IMPLICIT"
    return file.syntax == "proto2" or declared.label == "optional"
