"""Tokens of a .proto file → what it declares; names of other types are not yet looked up.

Follows protoc's parser: proto2, proto3 and editions. Options are kept as they are written, because
only a few of them change how values are read. Services, extensions of other messages and ranges of
numbers are checked for their form and forgotten.
"""

from __future__ import annotations

from typing import cast

from kafkajit.errors import InvalidSchemaError, did_you_mean
from kafkajit.values.protobuf.declared import (
    Declared,
    DeclaredField,
    Import,
    Scope,
    SourceFile,
)
from kafkajit.values.protobuf.options import (
    INT32,
    parse_option_statement,
    parse_options,
    skip_block,
    skip_ranges,
)
from kafkajit.values.protobuf.schema import SCALARS, Enum, Field, Message, Scalar
from kafkajit.values.protobuf.tokens import Token, Tokens, shown

EDITIONS = ("2023", "2024")
MAX_DEPTH = 32  # of messages in messages: protoc's own limit
MOST_FIELD = 2**29 - 1
RESERVED = range(19000, 20000)  # numbers for Protobuf's implementations
_KEYS = frozenset(SCALARS) - {"double", "float", "bytes"}  # what a map's key may be


def parse_file(text: str, path: str | None = None) -> SourceFile:
    """The declarations of a .proto file."""
    parser = _Parser(SourceFile(Tokens(text, path)))
    parser.syntax()
    while parser.tokens.token.kind != "end":
        parser.statement()
    return parser.file


class _Parser:
    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.tokens = file.tokens

    # The file.

    def syntax(self) -> None:
        keyword = self.tokens.token
        if keyword.text not in ("syntax", "edition"):
            return
        self.tokens.take()
        self.tokens.expect("=")
        token = self.tokens.token
        name = self.tokens.string("a name in quotes")
        self.tokens.expect(";")
        known = EDITIONS if keyword.text == "edition" else ("proto2", "proto3")
        if name not in known:
            message = f"the {keyword.text} {shown(name)} is not known"
            raise self.tokens.error(message, token, f"kafkajit reads {' and '.join(known)}")
        self.file.syntax = name

    def statement(self) -> None:
        top = self.file.top
        if self._is_common_statement(top):
            return
        if self.tokens.accept("service"):
            name = self.tokens.name("the name of the service")
            self._declare(top, name, Scope(name.text, top))
            skip_block(self.tokens)
        elif self.tokens.accept("import"):
            self._import()
        elif self.tokens.token.text == "package":
            self._package()
        else:
            raise self._no_statement()

    def _is_common_statement(self, scope: Scope) -> bool:
        """Whether a statement that files and messages share stood here; it is then parsed."""
        if self.tokens.accept(";"):
            return True
        self._visibility()
        if self.tokens.accept("message"):
            self._body(self._message(scope, self.tokens.name("the name of the message")))
        elif self.tokens.accept("enum"):
            self._enum(scope)
        elif self.tokens.accept("extend"):
            self._extend(scope)
        elif self.tokens.accept("option"):
            parse_option_statement(self.tokens, scope.options)
        else:
            return False
        return True

    def _visibility(self) -> None:
        """Take `export` or `local`, which edition 2024 has in front of a type."""
        if self.file.syntax in ("proto2", "proto3", "2023"):
            return
        if self.tokens.token.text in ("export", "local"):
            self.tokens.take()
            if self.tokens.token.text not in ("message", "enum"):
                raise self.tokens.expected("'message' or 'enum'")

    def _no_statement(self) -> InvalidSchemaError:
        token = self.tokens.token
        if token.text in ("syntax", "edition"):
            return self.tokens.error(f"{token.text!r} must be the first statement of the file")
        statements = ("message", "enum", "import", "package", "option", "service", "extend")
        advice = did_you_mean(shown(token.text), (*statements, "syntax", "edition"))
        return self.tokens.expected("a statement such as 'message'", advice)

    def _import(self) -> None:
        kind = self.tokens.token.text
        if kind in ("public", "weak", "option"):
            self.tokens.take()
        position = self.tokens.token.position
        path = self.tokens.string("the path of a file in quotes")
        self.tokens.expect(";")
        if kind != "option":  # such a file declares options only, which values do not need
            self.file.imports.append(Import(path, kind == "public", position))

    def _package(self) -> None:
        keyword = self.tokens.take()
        if self.file.package is not None:
            raise self.tokens.error("the file has two packages", keyword, "remove one of them")
        first = self.tokens.token
        self.file.package = first._replace(text=self.tokens.full_name("the name of the package"))
        self.tokens.expect(";")

    def _declare(self, scope: Scope, name: Token, inner: Scope | None = None) -> None:
        first = scope.names.get(name.text)
        if first is not None:
            line, column = self.tokens.place(first.position)
            advice = f"rename it, or the first one at line {line}, column {column}"
            raise self.tokens.error(f"{shown(name.text)} is declared twice", name, advice)
        scope.names[name.text] = Declared(self.file, name.position, inner)

    # Messages and enums.

    def _message(self, outer: Scope, name: Token) -> Scope:
        """The scope of a new message."""
        message = Message(name.text)
        scope = Scope(name.text, outer, message, message.messages, outer.depth + 1)
        if scope.depth > MAX_DEPTH:
            advice = "declare the inner ones outside"
            message_ = f"messages are nested deeper than {MAX_DEPTH}"
            raise self.tokens.error(message_, name, advice)
        self._declare(outer, name, scope)
        outer.messages.append(message)
        self.file.scopes.append(scope)
        return scope

    def _body(self, scope: Scope) -> None:
        assert isinstance(scope.of, Message)
        self.tokens.expect("{")
        while not self.tokens.closes():
            if self._is_common_statement(scope):
                continue
            if self.tokens.accept("oneof"):
                self._oneof(scope)
            elif self.tokens.token.text in ("extensions", "reserved"):
                skip_ranges(self.tokens)
            else:
                self._field(scope)
        # Only registries write the option: Confluent's did until version 7.8.
        if scope.options.get("map_entry") == "true":
            self._check_entry(scope, scope.of)
        self._check_numbers(scope, scope.of)

    def _check_entry(self, scope: Scope, message: Message) -> None:
        message.is_map_entry = True
        parts = [(part.number, part.name, part.is_repeated) for part in message.fields]
        if parts != [(1, "key", False), (2, "value", False)]:
            text = f"{shown(message.name)} is an entry of a map, but does not have the fields"
            assert scope.parent is not None
            position = scope.parent.names[scope.name].position
            raise self.tokens.error_at(position, f"{text} key = 1 and value = 2")

    def _check_numbers(self, scope: Scope, message: Message) -> None:
        names: dict[int, str] = {}
        for member in message.fields:
            first = names.setdefault(member.number, member.name)
            if first != member.name:
                text = (
                    f"the fields {shown(first)} and {shown(member.name)} of {shown(message.name)}"
                    f" have the same number {member.number}"
                )
                position = scope.names[member.name].position
                raise self.tokens.error_at(position, text, "give one of them another number")

    def _oneof(self, scope: Scope) -> None:
        name = self.tokens.name("the name of the oneof")
        self._declare(scope, name)
        self.tokens.expect("{")
        while not self.tokens.closes():
            if self.tokens.accept("option"):
                parse_option_statement(self.tokens, {})
            elif not self.tokens.accept(";"):
                self._field(scope, oneof=name.text)

    def _extend(self, scope: Scope) -> None:
        """Extension fields are ignored, but a group among them declares its message here."""
        self._type()
        self.tokens.expect("{")
        while not self.tokens.closes():
            if not self.tokens.accept(";"):
                self._field(scope, is_extension=True)

    def _enum(self, outer: Scope) -> None:
        name = self.tokens.name("the name of the enum")
        enum = Enum(name.text, {})
        scope = Scope(name.text, outer, enum)
        self._declare(outer, name, scope)
        self.file.scopes.append(scope)
        self.tokens.expect("{")
        alias: Token | None = None
        while not self.tokens.closes():
            if self.tokens.token.text == "reserved":
                skip_ranges(self.tokens)
            elif self.tokens.accept("option"):
                parse_option_statement(self.tokens, scope.options)
            elif not self.tokens.accept(";"):
                value, number = self._value(outer)
                if enum.names.setdefault(number, value.text) != value.text:
                    alias = alias or value
        if not enum.names:
            raise self.tokens.error(f"the enum {shown(name.text)} has no values", name)
        if alias is not None and scope.options.get("allow_alias") != "true":
            message = f"{shown(alias.text)} has the number of another value of {shown(name.text)}"
            raise self.tokens.error(message, alias, "change it, or set option allow_alias = true")

    def _value(self, outer: Scope) -> tuple[Token, int]:
        """An enum's value, whose name belongs to the scope around the enum, as in C++."""
        name = self.tokens.name("the name of a value")
        self.tokens.expect("=")
        number = self.tokens.integer("the number of a value", *INT32)
        parse_options(self.tokens)
        self.tokens.expect(";")
        self._declare(outer, name)
        return name, number

    # Fields.

    def _field(self, scope: Scope, *, oneof: str | None = None, is_extension: bool = False) -> None:
        label = self._label(oneof)
        start = self.tokens.token
        type_ = self._type()
        if type_ == "map" and self.tokens.token.text == "<":
            if label or oneof or is_extension:
                message = "a map is a field without a label, outside of oneofs and extensions"
                raise self.tokens.error(message, start)
            self._map(scope)
            return
        if self.file.syntax == "proto2" and not label and not oneof:
            advice = "write optional, required or repeated in front of its type"
            raise self.tokens.error("a field of proto2 must have a label", start, advice)
        name = self.tokens.name("the name of the field")
        member = Field(name.text, self._number(), "message", label == "repeated", oneof=oneof)
        options = parse_options(self.tokens)
        if type_ == "group":
            self._group(scope, start, name)
            member.name, member.type, type_ = name.text.lower(), "group", name.text
        else:
            self.tokens.expect(";")
        self._declare(scope, name._replace(text=member.name))
        if not is_extension:
            self._add(DeclaredField(member, scope, start.position, label, options, type_))

    def _label(self, oneof: str | None) -> str:
        label = self.tokens.token.text
        if label not in ("optional", "required", "repeated"):
            return ""
        if oneof is not None:
            raise self.tokens.error(
                "a field of a oneof must not have a label", advice=f"remove {label}"
            )
        if label != "repeated" and self.file.syntax in EDITIONS:
            advice = "set features.field_presence of the field"
            raise self.tokens.error(f"an edition does not have the label {label}", advice=advice)
        if label == "required" and self.file.syntax == "proto3":
            raise self.tokens.error("proto3 does not have the label required", advice="remove it")
        return self.tokens.take().text

    def _type(self) -> str:
        """The name of a type, with a dot in front if it has one."""
        if self.tokens.token.text in SCALARS:
            return self.tokens.take().text
        dot = "." if self.tokens.accept(".") else ""
        return dot + self.tokens.full_name("the name of a type")

    def _number(self) -> int:
        self.tokens.expect("=")
        token = self.tokens.token
        number = self.tokens.integer("the number of a field", 1, MOST_FIELD)
        if number in RESERVED:
            message = f"the number {number} of a field is reserved for Protobuf itself"
            advice = f"choose one outside of {RESERVED.start} to {RESERVED.stop - 1}"
            raise self.tokens.error(message, token, advice)
        return number

    def _add(self, declared: DeclaredField) -> None:
        message, member = declared.scope.of, declared.field
        assert isinstance(message, Message)
        message.fields.append(member)
        if declared.type in SCALARS:
            member.type = cast(Scalar, declared.type)
            declared = declared._replace(type="")
        self.file.fields.append(declared)

    def _group(self, scope: Scope, start: Token, name: Token) -> None:
        if self.file.syntax != "proto2":
            raise self.tokens.error("only proto2 has groups", start, "declare a message")
        if not name.text[0].isupper():
            raise self.tokens.error("the name of a group begins with a capital letter", name)
        self._body(self._message(scope, name))

    def _map(self, scope: Scope) -> None:
        """A map: a repeated message of a key and a value, which it declares beside itself."""
        self.tokens.expect("<")
        key_place = self.tokens.token
        key = self._type()
        if key not in _KEYS:
            message = f"the key of a map has the type {shown(key)}"
            raise self.tokens.error(message, key_place, "integers, bool and string can be keys")
        self.tokens.expect(",")
        value_place = self.tokens.token
        value = self._type()
        if value == "group":
            raise self.tokens.error("the value of a map cannot be a group", value_place)
        self.tokens.expect(">")
        name = self.tokens.name("the name of the field")
        member = Field(name.text, self._number(), "message", is_repeated=True)
        options = parse_options(self.tokens)
        self.tokens.expect(";")
        entry = self._message(scope, name._replace(text=_entry_name(name.text)))
        assert isinstance(entry.of, Message)
        entry.of.is_map_entry = True
        for number, part, type_, place in (
            (1, "key", key, key_place),
            (2, "value", value, value_place),
        ):
            part_ = Field(part, number, "message")
            self._add(DeclaredField(part_, entry, place.position, "", options, type_))
        self._declare(scope, name)
        self._add(DeclaredField(member, scope, name.position, "repeated", options, entry.name))


def _entry_name(name: str) -> str:
    """The name of the message of a map's entries, as protoc forms it.

    >>> _entry_name("unit_prices")
    'UnitPricesEntry'
    """
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"
