"""The message of a .proto file that values hold: by its name, or by indexes in front of a value."""

from __future__ import annotations

from kafkajit.errors import InvalidSchemaError, did_you_mean
from kafkajit.values.framing import GLUE
from kafkajit.values.protobuf.schema import Message, ProtoFile

_DEEPEST = 1000  # messages within messages: the parser takes fewer
_VARINT_BITS = 70  # of ten bytes, the longest


def message_to_read(
    schema: ProtoFile,
    written: ProtoFile,
    framing: int,
    body: bytes,
    name: str | None = None,
) -> Message:
    """The message to read into: the one of that name, else the one that the first value has.

    The first value was written with another version of the schema, maybe, in which messages have
    other indexes. Without a value, it is the first message of the file.
    """
    known = {message.name: message for message in _all_messages(schema.messages)}
    if not known:
        raise InvalidSchemaError("the .proto file has no message")
    if name is None:
        found = _named(written, framing, body) if body else schema.messages[0]
        return known.get(found.name, found)
    matching = [full for full in known if full == name or full.endswith("." + name)]
    if len(matching) != 1:
        guess = did_you_mean(name, list(known))
        raise InvalidSchemaError(
            f"the .proto file has {len(matching) or 'no'} messages {name!r}; there are: "
            f"{', '.join(known)}" + (f"; {guess}" if guess else "")
        )
    return known[matching[0]]


def messages_by_name(written: ProtoFile) -> list[Message]:
    """The messages of a .proto file in the order in which AWS Glue's serializer numbers them."""
    found = list(written.messages)
    for message in found:  # those inside follow
        found += message.messages
    return sorted(found, key=lambda message: message.name)


def _named(written: ProtoFile, framing: int, body: bytes) -> Message:
    """The message that indexes in front of a value name; the first one if they name none."""
    if framing == GLUE:
        numbered = messages_by_name(written)
        number, _ = _varint(body, 0)
        return numbered[number] if number < len(numbered) else written.messages[0]
    if len(body) > 2 and body[1] == 0x0A and body[0] == body[2] + 2:
        name = body[3 : 3 + body[2]].decode(errors="replace")
        for message in written.messages:
            if message.name.rpartition(".")[2] == name:
                return message
    messages = written.messages
    found = messages[0]
    p = 0
    numbers: list[int] = []
    while p < len(body) and (not numbers or len(numbers) <= _count(numbers[0])):
        raw, p = _varint(body, p)
        numbers.append(raw)
        if len(numbers) > _DEEPEST:
            return written.messages[0]
    if numbers and numbers[0] % 2 == 0:  # signed, as clients write them by now
        numbers = [raw >> 1 ^ -(raw & 1) for raw in numbers]
    for index in numbers[1:]:
        if not 0 <= index < len(messages):
            return written.messages[0]
        found = messages[index]
        messages = found.messages
    return found


def _varint(body: bytes, p: int) -> tuple[int, int]:
    """An unsigned varint, which may be cut short, and the position behind it."""
    raw = shift = 0
    while p < len(body) and shift < _VARINT_BITS:
        raw |= (body[p] & 0x7F) << shift
        shift += 7
        p += 1
        if body[p - 1] < 0x80:
            break
    return raw, p


def _count(raw: int) -> int:
    """The number of indexes, if it is not written as an old client has it."""
    return raw if raw % 2 else raw >> 1


def _all_messages(messages: list[Message]) -> list[Message]:
    return [
        one
        for message in messages
        if not message.is_map_entry
        for one in (message, *_all_messages(message.messages))
    ]
