"""The schemas of Kafka's messages: the table beside this file, read.

Answers to the JSON files that Kafka generates its message classes from. messages.schema explains
its notation at its head; tests/broker/make_schemas.py writes it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

# The value of a field that its schema gives no default, as JSON.
_IMPLIED = {
    "bool": "false",
    "float64": "0.0",
    "uuid": '"AAAAAAAAAAAAAAAAAAAAAA"',
    "string": '""',
    "bytes": '""',
}
NUMBERS = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8}  # and their bytes

_FIELD = re.compile(
    r"(?P<name>\w+) (?P<array>\[\])?(?P<type>\w+)(?P<nullable>\?)?"
    r"( (?P<versions>\d[-+\d]*))?( tag (?P<tag>\d+))?( holds (?P<holds>\w+))?( = (?P<default>.+))?"
)
_MESSAGE = re.compile(
    r"(?P<role>key|value) (?P<name>\w+) (?P<versions>[-+\d]+)( flexible (?P<flexible>[-+\d]+))?"
)


@dataclass(frozen=True)
class Field:
    """A field of a message or struct."""

    name: str
    type: str
    versions: range
    is_array: bool
    is_nullable: bool
    tag: int | None
    holds: str | None  # the type of the message that its bytes are
    default: str  # as JSON
    fields: tuple[Field, ...]  # of a struct, or of each in an array


@dataclass(frozen=True)
class Message:
    """A message: what one of Kafka's generated classes reads and writes."""

    name: str
    versions: range
    flexible: range
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class RecordType:
    """What a payload's number stands for in a topic."""

    id: int
    name: str
    key: Message | None
    value: Message


@functools.cache
def record_types(topic: str) -> dict[int, RecordType]:
    """The types of a topic's records, by their numbers.

    >>> record_types("offsets")[1].value.fields[1].name
    'leaderEpoch'
    """
    return {type_.id: type_ for type_ in _topics()[topic]}


@functools.cache
def _topics() -> dict[str, list[RecordType]]:
    text = files(__package__).joinpath("messages.schema").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    topics: dict[str, list[RecordType]] = {}
    for number, line in enumerate(lines):
        words = line.split()
        if line.startswith("topic "):
            of_topic = topics.setdefault(words[1], [])
        elif line[0] != " ":
            messages = dict(_messages(_below(lines, number)))
            of_topic.append(
                RecordType(int(words[0]), words[1], messages.get("key"), messages["value"])
            )
    return topics


def _below(lines: list[str], number: int) -> list[str]:
    """The lines under a line that are indented further."""
    indent = _indent(lines[number])
    end = number + 1
    while end < len(lines) and _indent(lines[end]) > indent:
        end += 1
    return lines[number + 1 : end]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _heads(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The least indented lines, each with those below it."""
    for number, line in enumerate(lines):
        if _indent(line) == _indent(lines[0]):
            yield line.strip(), _below(lines, number)


def _messages(lines: list[str]) -> Iterator[tuple[str, Message]]:
    for line, below in _heads(lines):
        told = _MESSAGE.fullmatch(line)
        assert told, line
        versions = _range(told["versions"], None)
        flexible = _range(told["flexible"], versions) if told["flexible"] else range(0)
        yield told["role"], Message(told["name"], versions, flexible, _fields(below, versions))


def _fields(lines: list[str], every: range) -> tuple[Field, ...]:
    return tuple(_field(line, below, every) for line, below in _heads(lines))


def _field(line: str, below: list[str], every: range) -> Field:
    told = _FIELD.fullmatch(line)
    assert told, line
    versions = _range(told["versions"], every) if told["versions"] else every
    fields = _fields(below, versions) if below else ()
    default = told["default"]
    if told["array"]:
        default = default or "[]"
    elif default is None and told["type"] == "struct":
        default = "{" + ",".join(f'"{f.name}":{f.default}' for f in fields) + "}"
    return Field(
        name=told["name"],
        type=told["type"],
        versions=versions,
        is_array=told["array"] is not None,
        is_nullable=told["nullable"] is not None,
        tag=int(told["tag"]) if told["tag"] else None,
        holds=told["holds"],
        default=default or _IMPLIED.get(told["type"], "0"),
        fields=fields,
    )


def _range(text: str, every: range | None) -> range:
    """3, 1-3 or 2+, the last within `every`."""
    first, last = re.fullmatch(r"(\d+)(-\d+|\+)?", text).groups()  # type: ignore[union-attr]
    if last is None:
        return range(int(first), int(first) + 1)
    if last == "+":
        assert every is not None, text
        return range(int(first), every[-1] + 1)
    return range(int(first), int(last[1:]) + 1)
