"""The schemas of Kafka's messages, parsed from the table messages.schema beside this file.

Answers to the JSON files that Kafka generates its message classes from. The table explains its
notation at its head; tests/broker/make_schemas.py writes it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

# The default, as JSON, of a field whose schema has none.
_IMPLIED = {
    "bool": "false",
    "float64": "0.0",
    "uuid": '"AAAAAAAAAAAAAAAAAAAAAA"',
    "string": '""',
    "bytes": '""',
}
NUMBERS = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8}  # with their sizes in bytes

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
    holds: str | None  # the type of the message that its bytes hold
    default: str  # as JSON
    fields: tuple[Field, ...]  # of a struct, or of an array's structs


@dataclass(frozen=True)
class Message:
    """A message, which one of Kafka's generated classes reads and writes."""

    name: str
    versions: range
    flexible: range
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class RecordType:
    """A type of record in a topic, with the number that payloads have for it."""

    id: int
    name: str
    key: Message | None
    value: Message


@functools.cache
def record_types(topic: str) -> dict[int, RecordType]:
    """The types of a topic's records, by number.

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
    """The lines after a line that are indented further."""
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
        found = _MESSAGE.fullmatch(line)
        assert found, line
        versions = _range(found["versions"], None)
        flexible = _range(found["flexible"], versions) if found["flexible"] else range(0)
        yield found["role"], Message(found["name"], versions, flexible, _fields(below, versions))


def _fields(lines: list[str], every: range) -> tuple[Field, ...]:
    return tuple(_field(line, below, every) for line, below in _heads(lines))


def _field(line: str, below: list[str], every: range) -> Field:
    found = _FIELD.fullmatch(line)
    assert found, line
    versions = _range(found["versions"], every) if found["versions"] else every
    fields = _fields(below, versions) if below else ()
    default = found["default"]
    if found["array"]:
        default = default or "[]"
    elif default is None and found["type"] == "struct":
        default = "{" + ",".join(f'"{f.name}":{f.default}' for f in fields) + "}"
    return Field(
        name=found["name"],
        type=found["type"],
        versions=versions,
        is_array=found["array"] is not None,
        is_nullable=found["nullable"] is not None,
        tag=int(found["tag"]) if found["tag"] else None,
        holds=found["holds"],
        default=default or _IMPLIED.get(found["type"], "0"),
        fields=fields,
    )


def _range(text: str, every: range | None) -> range:
    """Parse 3, 1-3 or 2+; 2+ ends where `every` does."""
    first, last = re.fullmatch(r"(\d+)(-\d+|\+)?", text).groups()  # type: ignore[union-attr]
    if last is None:
        return range(int(first), int(first) + 1)
    if last == "+":
        assert every is not None, text
        return range(int(first), every[-1] + 1)
    return range(int(first), int(last[1:]) + 1)
