"""Schemas → programs: rows of numbers that one kernel interprets (`message.py`).

Each version of a message is a program of its own, so the kernel never checks versions. A row is an
operation with its operands. The rows of a struct's fields follow each other in the order of Kafka's
JSON, with nested structs in their place. Texts, such as the names of fields, are in one array of
bytes.

Tagged fields are the difficulty: they come last in a struct's bytes, in any order, but some come
between other fields in its JSON. TAGS stores the position of each in a slot, and TAGGED rows then
read from there. A struct with a tagged field before another field is read twice: silently up to its
tags, then again to write it (LOOK_AHEAD).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafkajit.kernel.intrinsics import WIDE
from kafkajit.topics.schemas import NUMBERS, Field, Message, record_types

# Columns of a row.
CODE, TEXT, TEXT_SIZE, A, B, C, NAME = range(7)
COLUMNS = 8

# Operations, with the contents of their columns. TEXT is written before the value: `,"name":`.
(
    INT8,
    INT16,
    UINT16,
    INT32,
    INT64,  # the last of the numbers
    END,  # of a message
    BOOL,
    FLOAT64,
    UUID,
    STRING,  # A: is compact, B: may be null, C: decides whether `holds` applies
    BYTES,  # A, B: as in STRING; C: the MESSAGE row of the message they hold, or -1
    ARRAY,  # A, B: as in STRING; C: the row after the array
    ARRAY_END,  # A: the row of an element
    STRUCT,  # A: LOOK_AHEAD; B: 0 never null, 1 by a byte, 2 by a varint; C: the row after it
    STRUCT_END,
    TAGS,  # A: how many TAG rows follow; C: the row after those
    TAG,  # A: the tag, B: its TAGGED row, or -1 if it is not of this version; C: its slot
    TAGGED,  # A: its slot; B, C: where its default is, and its size; NAME: the row after it
    TAGGED_END,
    CONSTANT,  # only TEXT
    TOO_NEW,  # in a nested struct of a message newer than those known: Kafka cannot read it
    MESSAGE,  # A: the lowest version, B: the highest; VERSION rows follow, one more than versions
    VERSION,  # A: the row where the program begins
) = range(23)
LOOK_AHEAD = 1

_CODES = {
    "int8": INT8,
    "int16": INT16,
    "uint16": UINT16,
    "int32": INT32,
    "int64": INT64,
    "bool": BOOL,
    "float64": FLOAT64,
    "uuid": UUID,
    "string": STRING,
    "bytes": BYTES,
}
NUMBER_SIZES = np.array([NUMBERS[name] for name in list(_CODES)[:5]], dtype=np.int64)
_NEVER, _BY_BYTE, _BY_VARINT = range(3)
_SELECTING = "protocolType"  # the field that decides whether `holds` applies


@dataclass(frozen=True)
class Programs:
    """Programs as the kernel takes them, and the row of each message."""

    rows: npt.NDArray[np.int32]
    texts: npt.NDArray[np.uint8]
    names: list[str]  # of fields, for error messages, by the column NAME
    messages: dict[str, int]  # the MESSAGE row of each message, by its class's name
    text_at: dict[str, tuple[int, int]]  # the position and size of each text
    slots: int  # how many the kernel needs
    depth: int  # the deepest nesting of structs and arrays


@functools.cache
def programs(*topics: str) -> Programs:
    """The programs of all keys and values of these topics, with the names of their types.

    >>> compiled = programs("offsets", "consumer_protocol")
    >>> compiled.rows[compiled.messages["OffsetCommitValue"], :5].tolist()[3:]
    [0, 4]
    """
    compiler = _Compiler()
    for topic in topics:
        for type_ in record_types(topic).values():
            compiler.text(type_.name)
            for message in filter(None, (type_.key, type_.value)):
                compiler.message(message)
    return compiler.programs()


def written_program(topic: str, type_id: int, written: int) -> Programs:
    """The program that reads version 0 of a message, and writes the fields of version `written`.

    Kafka's tool prints Raft's control records this way: fields that version 0 lacks have defaults.
    """
    message = record_types(topic)[type_id].value
    return _written(message, min(max(written, message.versions[0]), message.versions[-1]))


@functools.cache
def _written(message: Message, version: int) -> Programs:
    compiler = _Compiler()
    compiler.message(message, version)
    return compiler.programs()


class _Compiler:
    def __init__(self) -> None:
        self._rows: list[list[int]] = []
        self._texts = bytearray()
        self._text_at: dict[str, tuple[int, int]] = {}
        self._names: dict[str, int] = {}
        self._messages: dict[str, int] = {}
        self._slots = 0
        self._depth = 0

    def programs(self) -> Programs:
        rows = np.array(self._rows, dtype=np.int32)
        rows.setflags(write=False)  # one signature of the kernels
        return Programs(
            rows=rows,
            texts=np.frombuffer(bytes(self._texts) + bytes(2 * WIDE), dtype=np.uint8),
            names=list(self._names),
            messages=self._messages,
            text_at=self._text_at,
            slots=self._slots,
            depth=self._depth,
        )

    def message(self, message: Message, written: int | None = None) -> int:
        """Compile a message; return its MESSAGE row. Its last program is for newer versions."""
        if message.name in self._messages:
            return self._messages[message.name]
        held = [
            record_types("consumer_protocol")[type_id].value
            for type_id, name in enumerate(("SUBSCRIPTION", "ASSIGNMENT"))
            if name in {field.holds for field in _all_fields(message.fields)}
        ]
        for inner in held:
            self.message(inner)
        first = self._row(MESSAGE, a=message.versions[0], b=message.versions[-1])
        self._messages[message.name] = first
        for _ in range(len(message.versions) + 1):
            self._row(VERSION)
        for number, version in enumerate([*message.versions, message.versions[-1]]):
            self._rows[first + 1 + number][A] = len(self._rows)
            program = _Program(
                self,
                version,
                written=version if written is None else written,
                is_flexible=version in message.flexible,
                is_newer=number == len(message.versions),
            )
            program.struct(message.fields, "", _NEVER, slot=0, depth=1)
            self._row(END)
        return first

    def _row(
        self,
        code: int,
        text: str = "",
        *,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        name: int = 0,
    ) -> int:
        at, size = self.text(text)
        assert size <= 2 * WIDE, text
        row = [code, at, size, a, b, c, name]
        self._rows.append(row + [0] * (COLUMNS - len(row)))
        return len(self._rows) - 1

    def text(self, text: str) -> tuple[int, int]:
        if text not in self._text_at:
            raw = text.encode()
            self._text_at[text] = len(self._texts), len(raw)
            self._texts += raw
        return self._text_at[text]

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _reserve(self, slots: int, depth: int) -> None:
        self._slots = max(self._slots, slots)
        self._depth = max(self._depth, depth)


class _Program:
    """One version of one message."""

    def __init__(
        self, compiler: _Compiler, version: int, *, written: int, is_flexible: bool, is_newer: bool
    ) -> None:
        self._compiler = compiler
        self._version = version
        self._written = written
        self._is_flexible = is_flexible
        self._is_newer = is_newer

    def struct(
        self,
        fields: tuple[Field, ...],
        text: str,
        nullable: int,
        slot: int,
        depth: int,
        name: str = "",
    ) -> None:
        rows, row = self._compiler._rows, self._compiler._row
        self._compiler._reserve(slot, depth)
        there = [f for f in fields if self._version in f.versions]
        tagged = [f for f in there if f.tag is not None]
        plain = [f for f in there if f.tag is None]
        ahead = bool(tagged) and there.index(tagged[0]) < len(plain)
        head = row(STRUCT, text, a=LOOK_AHEAD if ahead else 0, b=nullable)
        if self._is_newer and depth > 1:
            row(TOO_NEW, name=self._compiler._name(name))
        slots = {f.name: slot + number for number, f in enumerate(tagged)}
        free = slot + len(tagged)
        self._compiler._reserve(free, depth)
        places: dict[str, int] = {}
        for field in fields:
            if field not in there:
                if self._written in field.versions:
                    row(CONSTANT, f',"{field.name}":{field.default}')
            elif field.tag is None:
                self.field(field, field.name, f',"{field.name}":', free, depth)
            elif ahead:
                places[field.name] = self.tagged(field, slots[field.name], free, depth)
        if self._is_flexible:
            known = [f for f in fields if f.tag is not None]
            tags = row(TAGS, a=len(known))
            for field in known:
                row(TAG, a=field.tag or 0, b=-1, c=slots.get(field.name, 0))
            rows[tags][C] = len(rows)
            if not ahead:
                for field in tagged:
                    places[field.name] = self.tagged(field, slots[field.name], free, depth)
            for number, field in enumerate(known):
                rows[tags + 1 + number][B] = places.get(field.name, -1)
        row(STRUCT_END)
        rows[head][C] = len(rows)

    def tagged(self, field: Field, slot: int, free: int, depth: int) -> int:
        rows, row = self._compiler._rows, self._compiler._row
        text = f',"{field.name}":'
        at, size = self._compiler.text(text + field.default)
        head = row(TAGGED, a=slot, b=at, c=size)
        self.field(field, field.name, text, free, depth + 1)
        row(TAGGED_END)
        rows[head][NAME] = len(rows)
        return head

    def field(self, field: Field, name: str, text: str, slot: int, depth: int) -> None:
        """Compile a field, or an element of an array, whose name is empty."""
        rows, row = self._compiler._rows, self._compiler._row
        if field.is_array:
            head = row(
                ARRAY,
                text,
                a=self._is_flexible,
                b=field.is_nullable,
                name=self._compiler._name(name),
            )
            element = Field(**{**vars(field), "is_array": False, "is_nullable": False, "tag": None})
            self.field(element, f"{name} element", ",", slot, depth + 1)
            row(ARRAY_END, a=head + 1)
            rows[head][C] = len(rows)
        elif field.type == "struct":
            nullable = _NEVER
            if field.is_nullable:
                nullable = _BY_BYTE if field.tag is None else _BY_VARINT
            self.struct(field.fields, text, nullable, slot, depth + 1, name)
        else:
            held = 0
            if field.type == "bytes":
                held = self._held(field)
                self._compiler._reserve(slot, depth + 2)
            row(
                _CODES[field.type],
                text,
                a=self._is_flexible,
                b=field.is_nullable,
                c=field.name == _SELECTING if field.type == "string" else held,
                name=self._compiler._name(name),
            )

    def _held(self, field: Field) -> int:
        if field.holds is None:
            return -1
        types = record_types("consumer_protocol").values()
        (message,) = [type_.value for type_ in types if type_.name == field.holds]
        return self._compiler._messages[message.name]


def _all_fields(fields: Iterable[Field]) -> Iterable[Field]:
    for field in fields:
        yield field
        yield from _all_fields(field.fields)
