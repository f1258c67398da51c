"""The footer of a Parquet file as a tree of Thrift's fields, to change what a writer cannot.

A struct is a list of fields, which are lists of a number, a type and a value.
"""

from __future__ import annotations

import random
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_ODD = (0, 1, -1, 7, 255, 65_536, 1 << 24, 2**31 - 1, -(2**31), 1 << 32, 1 << 40, 2**63 - 1)
Struct = list[list[Any]]


def footer_of(content: bytes) -> Struct:
    """The footer of a file."""
    return _Reader(content[-8 - _length(content) : -8]).struct()


def with_footer(content: bytes, footer: Struct) -> bytes:
    """The file with another footer."""
    new = _struct(footer)
    return content[: -8 - _length(content)] + new + len(new).to_bytes(4, "little") + b"PAR1"


def value_of(struct: Struct, field: int) -> Any:
    """The value of a field."""
    return next(value for number, _, value in struct if number == field)


def mutated_footer(content: bytes, chance: random.Random) -> bytes:
    """The file with some fields of its footer changed, removed, repeated or exchanged."""
    footer = footer_of(content)
    for _ in range(chance.choice((1, 1, 2, 4))):
        fields = list(_fields(footer))
        if not fields:
            break
        struct, field = chance.choice(fields)
        kind, value = field[1], field[2]
        choice = chance.randrange(6)
        if choice == 0 and field in struct:
            struct.remove(field)
        elif choice == 1:
            struct.append([field[0] + chance.choice((0, 1)), kind, value])
        elif choice == 2:
            field[0] = max(1, field[0] + chance.choice((-1, 1, 2)))
        elif kind in (I16, I32, I64):
            near = value + chance.choice((-1, 1, 8, -8))
            field[2] = chance.choice((near, chance.choice(_ODD)))
        elif kind == BINARY:
            cut = value[: chance.randrange(len(value) + 1)]
            field[2] = chance.choice((b"", cut, value * 20, b"value", b"list", b"\xff\xfe"))
        elif kind == LIST and value[1]:
            at = chance.randrange(len(value[1]))
            change = chance.randrange(3)
            if change == 0:
                del value[1][at]
            elif change == 1:
                value[1].append(value[1][at])
            elif value[0] in (I32, I64):
                value[1][at] = chance.choice(_ODD)
        elif kind in (TRUE, FALSE):
            field[1] = TRUE + FALSE - kind
    return with_footer(content, footer)


def _length(content: bytes) -> int:
    return int.from_bytes(content[-8:-4], "little")


def _fields(struct: Struct) -> list[tuple[Struct, list[Any]]]:
    found = []
    for field in struct:
        found.append((struct, field))
        inside = field[2][1] if field[1] in (LIST, SET) and field[2][0] == STRUCT else []
        for one in [field[2]] if field[1] == STRUCT else inside:
            found += _fields(one)
    return found


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def struct(self) -> Struct:
        fields: Struct = []
        number = 0
        while head := self._take(1)[0]:
            number = number + (head >> 4) if head >> 4 else self._number()
            fields.append([number, head & 15, self._value(head & 15)])
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):
            return None
        if kind in (I16, I32, I64):
            return self._number()
        if kind == BINARY:
            return self._take(self._varint())
        if kind in (LIST, SET):
            head = self._take(1)[0]
            count = head >> 4 if head >> 4 < 15 else self._varint()
            inside = BYTE if head & 15 in (TRUE, FALSE) else head & 15
            return [head & 15, [self._value(inside) for _ in range(count)]]
        if kind == STRUCT:
            return self.struct()
        return self._take({BYTE: 1, DOUBLE: 8}[kind])

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._content[self._at - count : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._take(1)[0]) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _number(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


def _struct(fields: Struct) -> bytes:
    written = bytearray()
    before = 0
    for number, kind, value in fields:
        if 0 < number - before < 16:
            written.append((number - before) << 4 | kind)
        else:
            written += bytes([kind]) + _zigzag(number)
        written += _written(kind, value)
        before = number
    return bytes(written) + b"\0"


def _written(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE):
        return b""
    if kind in (I16, I32, I64):
        return _zigzag(value)
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    if kind in (LIST, SET):
        inside, elements = value
        plain = BYTE if inside in (TRUE, FALSE) else inside
        head = bytes([0xF0 | inside]) + _varint(len(elements))
        return head + b"".join(_written(plain, element) for element in elements)
    return _struct(value) if kind == STRUCT else bytes(value)


def _zigzag(value: int) -> bytes:
    return _varint((value << 1 ^ value >> 63) & (1 << 64) - 1)


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])
