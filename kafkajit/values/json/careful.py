"""The careful reader: a value at a time, in Python, with the reason if it is malformed.

It decides about every value at which the kernel gives up. The kernel reads the others as this
reader would. JSON is that of RFC 8259: no NaN, no comments, UTF-8 without a byte order mark. The
last of several fields with the same name counts, as Jackson has it.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
from decimal import Decimal
from typing import Any

from kafkajit.values.json.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    INTEGER,
    JSON,
    LIST,
    MAP,
    MAX_DEPTH,
    NUMBER,
    STRING,
    STRUCT,
    TIMESTAMP,
    Column,
)
from kafkajit.values.matching import end_of_pieces

_SPACE = re.compile(rb"[ \t\n\r]*+")
_INSIDE = re.compile(rb'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){0,1000}')
_BLANK = re.compile(rb"[ \t\r\n]")
_NUMBER = re.compile(rb"(-?)(0|[1-9][0-9]*+)(?:\.([0-9]++))?(?:[eE]([+-]?[0-9]++))?")
_LITERAL = re.compile(rb"null|true|false")
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?"
    r"(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)",
    re.ASCII,
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_EPOCH = datetime.datetime(1970, 1, 1)
_MOST_SHOWN = 40
_LARGEST_SINGLE = 3.4028235677973366e38  # larger ones are rounded to infinity
_KINDS = {
    b'"': "a string",
    b"{": "an object",
    b"[": "an array",
    b"t": "true",
    b"f": "false",
    b"n": "null",
}


class MalformedError(Exception):
    """A value is malformed: the words, the field and the byte."""

    def __init__(self, words: str, position: int, field: str = "") -> None:
        super().__init__(words)
        self.words, self.position, self.field = words, position, field

    def __str__(self) -> str:
        field = f", field {self.field}" if self.field else ""
        return f"{self.words}{field}, byte {self.position}"


def read_value(body: bytes, column: Column) -> Any:
    """A value, as pyarrow builds an array of the column's type of it.

    >>> import pyarrow as pa
    >>> from kafkajit.values.json.types import column_of
    >>> read_value(b'{"a": 1.0, "b": []}', column_of(pa.struct({"a": pa.int64()})))
    {'a': 1}
    """
    reader = _Reader(body)
    return reader.value(column, reader.check(), "")


def check(body: bytes) -> None:
    """Check the syntax of a value."""
    _Reader(body).check()


class _Reader:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def check(self) -> int:
        """Check the syntax of the whole value; the position of its first byte."""
        body = self._body
        start = self._space(0)
        if start == len(body):
            raise MalformedError("the value is empty", start)
        try:
            body.decode()
        except UnicodeDecodeError as error:
            raise MalformedError("the text is not valid UTF-8", error.start) from None
        end = self._space(self._skip(start))
        if end < len(body):
            raise MalformedError(f"expected the end of the value, found {self._found(end)}", end)
        return start

    def _space(self, p: int) -> int:
        found = _SPACE.match(self._body, p)
        assert found is not None
        return found.end()

    def _found(self, p: int) -> str:
        """The thing at a position, for an error."""
        first = self._body[p : p + 1]
        if not first:
            return "the end of the value"
        if first in b"-0123456789":
            number = _NUMBER.match(self._body, p)
            return _shown(number[0] if number else first)
        if first in b"tfn":
            literal = _LITERAL.match(self._body, p)
            return literal[0].decode() if literal else _shown(self._body[p : p + 10])
        return _KINDS.get(first) or _shown(_BLANK.split(self._body[p : p + 4])[0])

    def _skip(self, p: int) -> int:
        """The end of a value that begins at p, whose syntax is checked."""
        body = self._body
        ends: list[int] = []  # the closing brackets of those around
        while True:
            first = body[p : p + 1]
            if first == b'"':
                p = self._end_of_string(p)
            elif first in (b"{", b"["):
                if len(ends) == MAX_DEPTH:
                    raise MalformedError(f"the value is nested deeper than {MAX_DEPTH} levels", p)
                ends.append(ord("}") if first == b"{" else ord("]"))
                p = self._space(p + 1)
                if body[p : p + 1] != bytes([ends[-1]]):
                    if first == b"{":
                        p = self._behind_key(p)
                    continue
            else:
                number = _NUMBER.match(body, p) or _LITERAL.match(body, p)
                if number is None:
                    raise MalformedError(f"expected a value, found {self._found(p)}", p)
                p = number.end()
            while ends:
                p = self._space(p)
                byte = body[p : p + 1]
                if byte == b",":
                    p = self._space(p + 1)
                    if ends[-1] == ord("}"):
                        p = self._behind_key(p)
                    break
                if byte != bytes([ends[-1]]):
                    raise MalformedError(
                        f"expected a comma or {chr(ends[-1])}, found {self._found(p)}", p
                    )
                ends.pop()
                p += 1
            else:
                return p

    def _end_of_string(self, p: int) -> int:
        body = self._body
        at = end_of_pieces(_INSIDE, body, p + 1)
        if body[at : at + 1] == b'"':
            return at + 1
        if at == len(body):
            raise MalformedError("a string has no end", at)
        is_escape = body[at] == ord("\\")
        what = "an escape that JSON does not have" if is_escape else "a control character"
        raise MalformedError(f"a string has {what}", at)

    def _behind_key(self, p: int) -> int:
        """The position of the value whose key begins at p."""
        if self._body[p : p + 1] != b'"':
            raise MalformedError(f"expected a key, found {self._found(p)}", p)
        p = self._space(self._end_of_string(p))
        if self._body[p : p + 1] != b":":
            raise MalformedError(f"expected a colon, found {self._found(p)}", p)
        return self._space(p + 1)

    def value(self, column: Column, p: int, field: str) -> Any:
        """A value that begins at p, whose syntax has been checked."""
        body = self._body
        first = body[p : p + 1]
        if first == b"n":
            return None
        kind = column.kind
        if kind == JSON:
            return body[p : self._skip(p)].decode()
        if kind == BOOLEAN and first in (b"t", b"f"):
            return first == b"t"
        if kind == LIST and first == b"[":
            items = column.children[0]
            return [self.value(items, at, f"{field}[]") for at in self._elements(p)]
        if kind in (STRUCT, MAP) and first == b"{":
            return self._object(column, p, field)
        if first == b'"' and kind in (STRING, BYTES, DATE, TIMESTAMP, DECIMAL):
            return self._string(column, p, field)
        if first in b"-0123456789" and kind in (INTEGER, NUMBER, DECIMAL):
            return self._number(column, p, field)
        raise MalformedError(f"expected {column.words}, found {self._found(p)}", p, field)

    def _elements(self, p: int) -> list[int]:
        """The positions of an array's elements."""
        found = []
        p = self._space(p + 1)
        while self._body[p : p + 1] != b"]":
            found.append(p)
            p = self._space(self._skip(p))
            if self._body[p : p + 1] == b",":
                p = self._space(p + 1)
        return found

    def fields(self, p: int) -> dict[str, tuple[int, int]]:
        """The positions of an object's values and keys, by the names."""
        found = {}
        p = self._space(p + 1)
        while self._body[p : p + 1] != b"}":
            key = p
            p = self._behind_key(p)
            end = self._end_of_string(key)
            found[json.loads(self._body[key:end])] = p, key
            p = self._space(self._skip(p))
            if self._body[p : p + 1] == b",":
                p = self._space(p + 1)
        return found

    def _object(self, column: Column, p: int, field: str) -> Any:
        fields = self.fields(p)
        if column.kind == STRUCT:
            return {
                name: self.value(child, fields[name][0], f"{field}.{name}" if field else name)
                for name, child in zip(column.names, column.children, strict=True)
                if name in fields
            }
        entries = []
        for name, (at, key) in fields.items():
            _check_text(name, key, field)
            inside = f"{field}.{name}" if field else name
            entries.append((name, self.value(column.children[0], at, inside)))
        return entries

    def _string(self, column: Column, p: int, field: str) -> Any:
        text = json.loads(self._body[p : self._end_of_string(p)])
        if column.kind == STRING:
            _check_text(text, p, field)
            return text
        value: Any = None
        if column.kind in (BYTES, DECIMAL):
            try:
                value = base64.b64decode(text, validate=True)
            except ValueError:
                value = None
            if column.kind == DECIMAL and value is not None:
                unscaled = int.from_bytes(value, "big", signed=True)
                if not value or abs(unscaled) >= 10**column.type.precision:
                    value = None
                else:
                    value = _decimal(unscaled, column.type.scale)
        elif column.kind == TIMESTAMP:
            value = moment_of(text)
        else:
            value = _date_of(text)
        if value is None:
            shown = _shown(json.dumps(text).encode())
            raise MalformedError(f"expected {column.words}, found {shown}", p, field)
        return value

    def _number(self, column: Column, p: int, field: str) -> Any:
        found = _NUMBER.match(self._body, p)
        assert found is not None
        if column.kind == NUMBER:
            number = float(found[0])
            most = _LARGEST_SINGLE if column.type.bit_width == 32 else float("inf")
            if abs(number) >= most:
                raise MalformedError(
                    f"the number {_shown(found[0])} does not fit {column.type}", p, field
                )
            return number
        sign, digits, exponent = number_parts(found)
        if column.kind == DECIMAL:
            exponent += column.type.scale
            if exponent < 0 or (digits and len(digits) + exponent > column.type.precision):
                raise MalformedError(
                    f"the number {_shown(found[0])} does not fit {column.type}", p, field
                )
            number = sign * int(digits or "0") * 10 ** (exponent if digits else 0)
            return _decimal(number, column.type.scale)
        if exponent < 0:
            raise MalformedError(f"expected {column.words}, found {_shown(found[0])}", p, field)
        low, high = column.limits
        is_long = len(digits) + exponent > 19
        number = 0 if is_long or not digits else sign * int(digits) * 10**exponent
        if is_long or not low <= number <= high:
            raise MalformedError(
                f"expected {column.words}, found {_shown(found[0])}, which does not fit", p, field
            )
        if column.is_millis:
            return number * 1000 if abs(number) <= (2**63 - 1) // 1000 else None
        return number


def number_parts(found: re.Match[bytes]) -> tuple[int, str, int]:
    """(sign, digits without zeros at both ends, exponent) of a number; zero has no digits."""
    sign, whole, fraction, power = found.groups()
    digits = (whole + (fraction or b"")).lstrip(b"0")
    stripped = digits.rstrip(b"0")
    if not stripped:
        return 1, "", 0
    # The exponent may have any number of digits itself.
    power = power or b"0"
    exponent = int(power) if len(power) < 20 else int(b"-1" if power[:1] == b"-" else b"1") * 10**18
    exponent += len(digits) - len(stripped) - len(fraction or b"")
    return -1 if sign else 1, stripped.decode(), exponent


def _decimal(unscaled: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def moment_of(text: str) -> int | None:
    """The microseconds of a time with its offset, None if it is not one."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    day, hour, minute, second, fraction, sign, hours, minutes = found.groups()
    if hour == "24":  # from 3.14 on, Python takes it for the next day
        return None
    try:
        moment = datetime.datetime.fromisoformat(f"{day}T{hour}:{minute}:{second or '00'}")
    except ValueError:
        return None
    offset = int(hours or 0) * 60 + int(minutes or 0)
    if offset >= 24 * 60 or int(minutes or 0) >= 60:
        return None
    seconds = (moment - _EPOCH) // datetime.timedelta(seconds=1)
    seconds -= 60 * (-offset if sign == "-" else offset)
    return seconds * 1_000_000 + int((fraction or "0")[:6].ljust(6, "0"))


def _date_of(text: str) -> int | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        return (datetime.date.fromisoformat(text) - _EPOCH.date()).days
    except ValueError:
        return None


def _check_text(text: str, p: int, field: str) -> None:
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise MalformedError("the text has half a surrogate pair", p, field)


def _shown(content: bytes) -> str:
    text = content.decode(errors="replace")
    if not text.isprintable():
        text = text.encode("unicode_escape").decode()
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."
