"""Kafka's own messages (its generated protocol classes): bytes and a schema → JSON values.

The encoding is that of flexible versions: a compact string or array is led by its size plus one as
an unsigned varint, and every struct ends with tagged fields, which are stepped over here.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafkajit.errors import InvalidRecordError

_NUMBERS = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
}


@dataclass(frozen=True)
class ArrayOf:
    """The type of a field that holds any number of structs."""

    fields: Fields


# A struct: its fields' names and types, in order. A type is a name (a number's, string or uuid),
# a struct of its own, or an array of structs.
Fields = Sequence[tuple[str, "str | Fields | ArrayOf"]]


def read_message(data: bytes, fields: Fields) -> dict[str, Any]:
    """The message as Kafka's JsonConverters give it.

    >>> read_message(bytes([0, 0, 0, 2, 3, 104, 105, 0]), [("version", "int16"), ("id", "int16"),
    ...     ("name", "string")])
    {'version': 0, 'id': 2, 'name': 'hi'}
    """
    try:
        return _Reader(data).struct(fields)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise InvalidRecordError(f"Message is cut or malformed ({error})") from error


def message_json(message: dict[str, Any]) -> str:
    """As kafka-dump-log prints it.

    >>> message_json({"version": 0, "voters": []})
    '{"version":0,"voters":[]}'
    """
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def struct(self, fields: Fields) -> dict[str, Any]:
        values = {name: self._value(type_) for name, type_ in fields}
        for _ in range(self._unsigned_varint()):
            self._unsigned_varint()  # the tag
            self._take(self._unsigned_varint())
        return values

    def _value(self, type_: str | Fields | ArrayOf) -> Any:
        if isinstance(type_, ArrayOf):
            return [self.struct(type_.fields) for _ in range(self._unsigned_varint() - 1)]
        if not isinstance(type_, str):
            return self.struct(type_)
        if type_ == "string":
            size = self._unsigned_varint() - 1
            return None if size < 0 else self._take(size).decode()
        if type_ == "uuid":
            return base64.urlsafe_b64encode(self._take(16)).decode().rstrip("=")
        number = _NUMBERS[type_]
        return number.unpack(self._take(number.size))[0]

    def _take(self, size: int) -> bytes:
        start = self._position
        if size > len(self._data) - start:
            raise IndexError(f"{size} bytes wanted, {len(self._data) - start} left")
        self._position += size
        return self._data[start : start + size]

    def _unsigned_varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise IndexError("varint is too long")
