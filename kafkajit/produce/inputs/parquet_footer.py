"""The row groups of a Parquet file, from its footer.

pyarrow ends the process over a footer whose column chunks contradict the schema or themselves, if
it is asked about one. So what is needed of them is read here, from Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from kafkajit.produce.inputs.rows import BadInputError

BYTE_ARRAY = 6
_DICTIONARIES = {2, 8}  # PLAIN_DICTIONARY, RLE_DICTIONARY
# The types of fields. That of a boolean field is its value.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DEEPEST = 32
_TAIL = 8  # bytes behind the footer: its length, and PAR1


class Chunk(NamedTuple):
    """The values of a column in a row group."""

    path: str
    physical_type: int
    has_dictionary: bool
    values: int
    size: int  # without compression


class RowGroup(NamedTuple):
    """Some rows of the file."""

    rows: int
    size: int  # without compression
    chunks: list[Chunk]


def row_groups_in(opened: pa.NativeFile) -> list[RowGroup]:
    """The row groups that the footer of an open file has."""
    end = opened.size()
    tail = opened.read_at(_TAIL, max(0, end - _TAIL))
    length = int.from_bytes(tail[:4], "little")
    if len(tail) < _TAIL or length + _TAIL > end:
        raise BadInputError("its footer is longer than the file")
    try:
        return _Footer(opened.read_at(length, end - _TAIL - length)).row_groups()
    except (IndexError, KeyError, TypeError, UnicodeDecodeError):
        raise BadInputError("its footer is damaged") from None


class _Footer:
    """Reads the structs of a footer one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def row_groups(self) -> list[RowGroup]:
        found: list[RowGroup] = []
        for field, kind in self._fields():
            if field == 4 and kind == _LIST:
                found = self._list(self._row_group)
            else:
                self._skip(kind)
        return found

    def _row_group(self) -> RowGroup:
        found: dict[int, Any] = {1: []}
        for field, kind in self._fields():
            if field == 1 and kind == _LIST:
                found[1] = self._list(self._chunk)
            elif kind == _I64:
                found[field] = self._number()
            else:
                self._skip(kind)
        return RowGroup(found[3], found[2], found[1])

    def _chunk(self) -> Chunk:
        found: Chunk | None = None
        for field, kind in self._fields():
            if field == 3 and kind == _STRUCT:
                found = self._column()
            else:
                self._skip(kind)
        if found is None:
            raise BadInputError("its footer has a column chunk that lies in another file")
        return found

    def _column(self) -> Chunk:
        found: dict[int, Any] = {}
        for field, kind in self._fields():
            if field in (2, 3) and kind == _LIST:
                found[field] = self._list(self._number if field == 2 else self._text)
            elif kind in (_I32, _I64):
                found[field] = self._number()
            else:
                self._skip(kind)
        has_dictionary = not _DICTIONARIES.isdisjoint(found[2])
        return Chunk(".".join(found[3]), found[1], has_dictionary, found[5], found[6])

    def _fields(self) -> Iterator[tuple[int, int]]:
        """The number and the type of each field of a struct; the caller reads its value."""
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number()
            yield field, head & 15

    def _list(self, read: Callable[[], Any]) -> list[Any]:
        count, _ = self._list_head()
        return [read() for _ in range(count)]

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > len(self._content) - self._at:
            raise IndexError
        return count, head & 15

    def _skip(self, kind: int, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise IndexError
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self._at += 1
        elif kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _DOUBLE:
            self._at += 8
        elif kind == _BINARY:
            self._bytes()
        elif kind in (_LIST, _SET):
            count, inside = self._list_head()
            for _ in range(count):
                self._skip_element(inside, depth)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            if count > len(self._content) - self._at:
                raise IndexError
            for _ in range(count):
                self._skip_element(kinds >> 4, depth)
                self._skip_element(kinds & 15, depth)
        elif kind == _STRUCT:
            for _, inside in self._fields():
                self._skip(inside, depth + 1)
        else:
            raise IndexError

    def _skip_element(self, kind: int, depth: int) -> None:
        # A boolean takes a byte here.
        self._skip(_BYTE if kind in (_TRUE, _FALSE) else kind, depth + 1)

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise IndexError
        return value | byte << shift

    def _number(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def _bytes(self) -> bytes:
        length = self._varint()
        self._at += length
        if self._at > len(self._content):
            raise IndexError
        return self._content[self._at - length : self._at]

    def _text(self) -> str:
        return self._bytes().decode()
