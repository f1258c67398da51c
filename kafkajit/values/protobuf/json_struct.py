"""Protobuf's Struct, Value and ListValue as JSON text.

The kernel has checked the bytes; they are few, and read one after the other.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kafkajit.values.layout import TEXT
from kafkajit.values.protobuf.operations import NARROW, SIZED, VARINT, WIDE

_EXACT = 2.0**53


def json_column(kind: str, values: pa.Array) -> pa.Array:
    """JSON texts of encoded messages: "Struct", "Value" or "ListValue"."""
    read = {"Struct": _struct, "Value": _value, "ListValue": _list}[kind]
    return pa.array(
        [
            None if value is None else json.dumps(read(value), ensure_ascii=False)
            for value in values.to_pylist()
        ],
        TEXT,
    )


def _struct(content: bytes) -> dict[str, Any]:
    members = {}
    for number, entry in _fields(content):
        if number == 1 and isinstance(entry, bytes):
            parts = {name: part for name, part in _fields(entry) if isinstance(part, bytes)}
            members[parts.get(1, b"").decode()] = _value(parts.get(2, b""))
    return members


def _list(content: bytes) -> list[Any]:
    return [
        _value(item) for number, item in _fields(content) if number == 1 and isinstance(item, bytes)
    ]


def _value(content: bytes) -> Any:
    found: Any = None
    for number, part in _fields(content):
        if number == 1:
            found = None
        elif number == 2 and isinstance(part, float):
            found = part
            if abs(part) < _EXACT and part.is_integer():
                found = int(part)
            elif part - part != 0:  # JSON has neither NaN nor infinity
                found = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(part)]
        elif number == 3 and isinstance(part, bytes):
            found = part.decode()
        elif number == 4:
            found = bool(part)
        elif number == 5 and isinstance(part, bytes):
            found = _struct(part)
        elif number == 6 and isinstance(part, bytes):
            found = _list(part)
    return found


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """The numbers and contents of a message's fields; those of groups are left out."""
    p = 0
    depth = 0
    while p < len(content):
        tag, p = _varint(content, p)
        wire = tag & 7
        part: Any = None
        if wire == VARINT:
            part, p = _varint(content, p)
        elif wire == WIDE:
            (part,) = struct.unpack_from("<d", content, p)
            p += 8
        elif wire == SIZED:
            size, p = _varint(content, p)
            part = content[p : p + size]
            p += size
        elif wire == NARROW:
            p += 4
        else:
            depth += 1 if wire == 3 else -1
            continue
        if depth == 0:
            yield tag >> 3, part


def _varint(content: bytes, p: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = content[p]
        number |= (byte & 0x7F) << shift
        p += 1
        shift += 7
        if byte < 0x80:
            return number, p
