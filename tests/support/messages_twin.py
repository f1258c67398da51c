"""The slow twin of the message reader: plain Python, with its own reading of the same table.

It reads a message into Python objects as Kafka's generated classes do, and writes them as their
JsonConverters and Jackson do. It shares nothing with kafkajit but the table's file.
"""

from __future__ import annotations

import base64
import functools
import math
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kafkajit

TABLE = Path(kafkajit.__file__).parent / "topics" / "messages.schema"

_WELL_FORMED = (
    rb"[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]"
    rb"|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
_REPLACED = (
    rb"\xed[\xa0-\xbf][\x80-\xbf]|\xe0[\xa0-\xbf]|[\xe1-\xef][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]?|[\xf1-\xf3][\x80-\xbf]{1,2}|\xf4[\x80-\x8f][\x80-\xbf]?|."
)
_PART = re.compile(rb"(?P<good>(?:" + _WELL_FORMED + rb")+)|" + _REPLACED, re.DOTALL)
_NUMBERS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q"}
_ESCAPES = {'"': '\\"', "\\": "\\\\"} | {chr(i): f"\\u{i:04X}" for i in range(32)}
_ESCAPES |= {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


class Malformed(Exception):
    """The text of Java's exception."""


@dataclass
class Message:
    """A message of the table: each field as words, with the fields below it."""

    name: str
    lowest: int
    highest: int
    flexible: int  # the first such version
    fields: list[Any]


@dataclass
class Type:
    """A type of record."""

    name: str
    messages: dict[str, Message] = field(default_factory=dict)


@dataclass
class Struct:
    """A struct that was read: its fields in the table's order, and its unknown tagged fields."""

    values: dict[str, Any]
    unknown: list[tuple[int, bytes]]


@functools.cache
def table() -> dict[str, dict[int, Type]]:
    """All types of all topics."""
    topics: dict[str, dict[int, Type]] = {}
    stack: list[tuple[int, list[Any]]] = []
    for line in TABLE.read_text().splitlines():
        words = line.split()
        if not words or words[0] == "#" or line.startswith("#"):
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        if depth == 0 and words[0] == "topic":
            types = topics[words[1]] = {}
        elif depth == 0:
            type_ = types[int(words[0])] = Type(words[1])
        elif depth == 1:
            lowest, highest = bounds(words[2], 99)
            flexible = bounds(words[4], 99)[0] if len(words) > 4 else 99
            message = Message(words[1], lowest, highest, flexible, [])
            type_.messages[words[0]] = message
            stack = [(2, message.fields)]
        else:
            while stack[-1][0] > depth:
                stack.pop()
            below: list[Any] = []
            stack[-1][1].append((words, below))
            stack.append((depth + 1, below))
    return topics


def bounds(text: str, highest: int) -> tuple[int, int]:
    """The bounds of a range of versions: 3, 1-3 or 2+."""
    first, sign, last = re.fullmatch(r"(\d+)([-+]?)(\d*)", text).groups()  # type: ignore[union-attr]
    return int(first), int(last) if last else highest if sign else int(first)


def said(words: list[str], word: str) -> str | None:
    return words[words.index(word) + 1] if word in words else None


def is_there(words: list[str], version: int) -> bool:
    versions = words[2] if len(words) > 2 and words[2][0].isdigit() else "0+"
    lowest, highest = bounds(versions, 99)
    return lowest <= version <= highest


class Reader:
    """Java's Readable, with its errors."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def number(self, format_: str) -> Any:
        size = struct.calcsize(format_)
        if size > self.left:
            raise Malformed("null")
        (value,) = struct.unpack_from(format_, self.data, self.at)
        self.at += size
        return value

    def array(self, size: int) -> bytes:
        if size > self.left:
            raise Malformed(
                f"Error reading byte array of {size} byte(s): only {self.left} byte(s) available"
            )
        if size < 0:
            raise Malformed(str(size))
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        value = 0
        for i in range(5):
            byte = self.number(">b")
            value |= (byte & 0x7F if i < 4 else byte) << (7 * i)
            if byte >= 0:
                return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
        raise Malformed(
            "Varint is too long, the most significant bit in the 5th byte is set, "
            f"converted value: {value & 0xFFFFFFFF:x}"
        )


class MessageReader:
    """One message in one version."""

    def __init__(self, message: Message, version: int) -> None:
        self.message = message
        self.asked = version
        self.version = min(max(version, message.lowest), message.highest)
        self.is_flexible = self.version >= message.flexible

    def read(self, reader: Reader) -> Struct:
        return self.struct(reader, self.message.fields)

    def struct(self, reader: Reader, fields: list[Any]) -> Struct:
        if fields is not self.message.fields and self.asked > self.message.highest:
            raise Malformed(f"Can't read version {self.asked} of a struct")
        values: dict[str, Any] = {}
        tags = {}
        for words, below in fields:
            tag = said(words, "tag")
            if tag is not None:
                tags[int(tag)] = (words, below)
                values[words[0]] = None
            elif is_there(words, self.version):
                values[words[0]] = self.value(reader, words, below, tagged=False)
        found: dict[str, Any] = {}
        unknown = []
        for _ in range(reader.varint() if self.is_flexible else 0):
            tag, size = reader.varint(), reader.varint()
            if tag not in tags:
                unknown.append((tag, reader.array(size)))
                continue
            words, below = tags[tag]
            if not is_there(words, self.version):
                raise Malformed(f"Tag {tag} is not valid for version {self.asked}")
            found[words[0]] = self.value(reader, words, below, tagged=True)
        for words, below in tags.values():
            name = words[0]
            if name in found and found[name] != self.default(words, below):
                values[name] = found[name]
            else:
                del values[name]
        return Struct(values, unknown)

    def default(self, words: list[str], below: list[Any]) -> Any:
        stated, type_ = said(words, "="), words[1].rstrip("?")
        if stated == "null":
            return None
        if type_.startswith("[]"):
            return []
        if type_ == "struct":
            return Struct({w[0]: self.default(w, b) for w, b in below}, [])
        if type_ == "uuid":
            return bytes(16)
        if type_ == "bool":
            return stated == "true"
        return int(stated or 0) if type_ in _NUMBERS else ""

    def value(self, reader: Reader, words: list[str], below: list[Any], *, tagged: bool) -> Any:
        name, type_ = words[0], words[1].removesuffix("?")
        nullable = words[1].endswith("?")
        if type_.startswith("[]"):
            size = self.size(reader, ">i")
            if size < 0:
                return self.null(name, nullable=nullable)
            if size > reader.left:
                raise Malformed(
                    f"Tried to allocate a collection of size {size}, but there are only "
                    f"{reader.left} bytes remaining."
                )
            element = type_[2:]
            return [
                self.one(reader, f"{name} element", element, below, nullable=False)
                for _ in range(size)
            ]
        if (
            type_ == "struct"
            and nullable
            and (reader.varint() <= 0 if tagged else reader.number(">b") < 0)
        ):
            return None
        return self.one(reader, name, type_, below, nullable=nullable)

    def one(
        self, reader: Reader, name: str, type_: str, below: list[Any], *, nullable: bool
    ) -> Any:
        if type_ in _NUMBERS:
            return reader.number(_NUMBERS[type_])
        if type_ == "bool":
            return reader.number(">b") != 0
        if type_ == "float64":
            return reader.number(">d")
        if type_ == "uuid":
            # two longs
            first = reader.number(">8s")
            return first + reader.number(">8s")
        if type_ == "struct":
            return self.struct(reader, below)
        size = self.size(reader, ">h" if type_ == "string" else ">i")
        if size < 0:
            return self.null(name, nullable=nullable)
        if type_ == "string":
            if size > 0x7FFF:
                raise Malformed(f"string field {name} had invalid length {size}")
            raw = reader.array(size)
            return "".join(p["good"].decode() if p["good"] else "�" for p in _PART.finditer(raw))
        return bytearray(reader.array(size))

    def size(self, reader: Reader, plain: str) -> int:
        if not self.is_flexible:
            return int(reader.number(plain))
        return (reader.varint() - 1 & 0xFFFFFFFF ^ 0x80000000) - 0x80000000

    def null(self, name: str, *, nullable: bool) -> None:
        if not nullable:
            raise Malformed(f"non-nullable field {name} was serialized as null")


def json_text(value: Any) -> str:
    """The text that Jackson writes; bytes are a UUID, a bytearray is bytes."""
    if isinstance(value, Struct):
        value = value.values
    if isinstance(value, dict):
        return "{" + ",".join(f'"{name}":{json_text(v)}' for name, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, bytearray):
        return f'"{base64.b64encode(value).decode()}"'
    if isinstance(value, bytes):
        return f'"{base64.urlsafe_b64encode(value).decode().rstrip("=")}"'
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, str):
        return '"' + "".join(_ESCAPES.get(letter, letter) for letter in value) + '"'
    return str(value)


def double_text(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    for digits in range(1, 18):
        text = f"{value:.{digits}e}"
        if float(text) == value:
            mantissa, _, exponent = text.partition("e")
            return f"{mantissa}E{int(exponent)}"
    raise AssertionError(value)


def message_json(message: Message, version: int, data: bytes) -> tuple[str, int]:
    """The JSON of a message, and where it ends."""
    reader = Reader(data)
    read = MessageReader(message, version).read(reader)
    types = table()["consumer_protocol"]
    if message.name == "GroupMetadataValue" and read.values["protocolType"] == "consumer":
        for member in read.values["members"]:
            for name, type_ in (("subscription", types[0]), ("assignment", types[1])):
                member.values[name] = held(type_.messages["value"], member.values[name])
    return json_text(read), reader.at


def held(message: Message, raw: bytearray) -> Any:
    """A message in a field, if it is one."""
    reader = Reader(bytes(raw))
    try:
        version = reader.number(">h")
        return MessageReader(message, version).read(reader)
    except Malformed:
        return raw
