"""Arrow arrays of any type → steps for a kernel that writes their rows one after the other.

A row is written by a walk over the steps: a value is one step; a struct, a list and a map enclose
those of their fields, elements and entries. Lists may repeat their steps, so nothing recurses,
however deep a type is nested. All buffers stand behind each other in one array of bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.storage.source import Bytes

# The columns of a step: its code, the places of its bits of validity (-1: none), its data and its
# offsets, the array's own offset, a number, and the step behind it.
CODE, VALID, DATA, OFFSETS, SHIFT, NUMBER, AFTER = range(7)
(
    NULL,
    BOOL,
    INT,
    FLOAT,
    DECIMAL,
    DATE,
    TIME,
    TIMESTAMP,
    LOCAL_TIMESTAMP,
    STRING,
    BYTES,
    STRUCT,
    LIST,
    MAP,
    # These have no validity.
    FIELD,  # the name of a field
    KEY,  # the key of an entry
    NEXT,  # the end of an element
    NEXT_ENTRY,
    CLOSE,  # the end of a struct
) = range(19)
FRAME = 4  # numbers that a kernel keeps of each list, map or struct in which it is
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


class Steps(NamedTuple):
    """The steps of an array, the bytes to which they point, and room for a kernel's stack."""

    rows: npt.NDArray[np.int64]
    content: Bytes
    stack: npt.NDArray[np.int64]


_NOTHING = np.zeros(0, dtype=np.uint8)

Leaf = Callable[["Builder", pa.Array, int], None]


class Builder:
    """Collects the steps of an array and its buffers. `leaf` adds a value that has no parts."""

    def __init__(self, leaf: Leaf, *, is_sorted: bool = False) -> None:
        self.names: list[str] = []  # of all fields; a step has the name's number
        self.entries = 0  # of all maps
        self._leaf = leaf
        self._is_sorted = is_sorted
        self._rows: list[list[int]] = []
        self._parts: list[Bytes] = []
        self._size = 0
        self._depth = 0
        self._most = 1

    def steps(self) -> Steps:
        """The steps, when all arrays have been added."""
        content = np.concatenate([*self._parts, np.zeros(2 * WIDE, dtype=np.uint8)])
        content.setflags(write=False)
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, AFTER + 1)
        rows.setflags(write=False)
        return Steps(rows, content, np.zeros(FRAME * self._most, dtype=np.int64))

    def step(self, code: int, array: pa.Array, base: int, **places: int) -> list[int]:
        """Add the step of an array, whose rows have numbers from `base` on."""
        valid = -1
        if array.null_count and array.type != pa.null():
            valid = self.bits(array, 0)
        return self._step(code, valid=valid, shift=array.offset % 8 - base, **places)

    def _step(
        self,
        code: int,
        *,
        valid: int = -1,
        data: int = -1,
        offsets: int = -1,
        shift: int = 0,
        number: int = 0,
    ) -> list[int]:
        row = [code, valid, data, offsets, shift, number, len(self._rows) + 1]
        self._rows.append(row)
        return row

    def bits(self, array: pa.Array, number: int) -> int:
        """The place of a copy of a buffer of bits, from the byte with the first row on."""
        return self._copy(array.buffers()[number], array.offset // 8, array.offset % 8, array, 0)

    def longs(self, array: pa.Array, width: int = 8) -> int:
        """The place of a copy of numbers of eight bytes, or of another width."""
        first = array.offset // 8 * 8
        return self._copy(array.buffers()[1], width * first, array.offset - first, array, width)

    def texts(self, array: pa.Array) -> dict[str, int]:
        """The places of copies of texts, and of their offsets."""
        offsets, first, end = self._offsets(array)
        data = array.buffers()[2]
        content = np.frombuffer(data, dtype=np.uint8)[first:end] if end > first else _NOTHING
        return {"data": self.place(content) - first, "offsets": offsets}

    def _offsets(self, array: pa.Array) -> tuple[int, int, int]:
        """The place of an array's offsets, the first and the last of them."""
        buffer, first = array.buffers()[1], array.offset // 8 * 8
        if not len(array) or buffer is None:
            return self.place(np.zeros(16, dtype=np.uint8)), 0, 0
        place = self._copy(buffer, 4 * first, array.offset - first + 1, array, 4)
        offsets = np.frombuffer(buffer, dtype=np.int32)[
            array.offset : array.offset + len(array) + 1
        ]
        return place, int(offsets[0]), int(offsets[-1])

    def _copy(
        self, buffer: pa.Buffer | None, start: int, before: int, array: pa.Array, width: int
    ) -> int:
        """Copy the bytes of an array's rows, and of `before` more; a width of 0 is that of bits."""
        rows = before + len(array)
        size = -(-rows // 8) if width == 0 else width * rows
        if buffer is None:
            return self.place(np.zeros(size, dtype=np.uint8))
        return self.place(np.frombuffer(buffer, dtype=np.uint8)[start : start + size])

    def place(self, content: Bytes) -> int:
        """The place of a copy of some bytes."""
        place = self._size
        self._parts.append(content)
        self._size += content.size
        return place

    def add(self, array: pa.Array, base: int = 0) -> None:
        """Add the steps of an array, whose rows have numbers from `base` on."""
        type_ = array.type
        if pa.types.is_struct(type_):
            self._struct(array, base)
        elif pa.types.is_map(type_) or pa.types.is_list(type_):
            self._list(array, base, is_map=pa.types.is_map(type_))
        else:
            self._leaf(self, array, base)

    def _struct(self, array: pa.Array, base: int) -> None:
        names = [field.name for field in array.type]
        order = list(range(len(names)))
        if self._is_sorted:
            order.sort(key=lambda number: java_order(names[number]))
        first = len(self.names)
        self.names += [names[number] for number in order]
        opening = self.step(STRUCT, array, base, number=len(names), data=first)
        self._enter()
        for place, number in enumerate(order):
            self._step(FIELD, number=first + place, data=place)
            self.add(array.field(number), base)
        self._leave(opening, self._step(CLOSE))

    def _list(self, array: pa.Array, base: int, *, is_map: bool) -> None:
        if is_map and self._is_sorted:
            array = _sorted_map(array)
        offsets, first, end = self._offsets(array)
        opening = self.step(MAP if is_map else LIST, array, base, offsets=offsets)
        self._enter()
        body = len(self._rows)
        if is_map:
            self.entries += end - first
            keys = array.keys.slice(first, end - first)
            self._step(KEY, shift=keys.offset % 8 - first, **self.texts(keys))
        inside = array.items if is_map else array.values
        self.add(inside.slice(first, end - first), first)
        self._leave(opening, self._step(NEXT_ENTRY if is_map else NEXT, number=body))

    def _enter(self) -> None:
        self._depth += 1
        self._most = max(self._most, self._depth)

    def _leave(self, opening: list[int], closing: list[int]) -> None:
        self._depth -= 1
        opening[AFTER] = closing[AFTER]


def java_order(text: str) -> bytes:
    """The sort key of a text in the order of Java's strings."""
    return text.encode("utf-16-be", "surrogatepass")


def _sorted_map(array: pa.Array) -> pa.Array:
    """A map with the keys of each row in order; the last entry counts if a key is there twice."""
    offsets = np.asarray(array.offsets).astype(np.int64)
    keys = array.keys.slice(offsets[0], offsets[-1] - offsets[0])
    items = array.items.slice(offsets[0], offsets[-1] - offsets[0])
    encoded = keys.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    ranks = np.empty(len(distinct), dtype=np.int64)
    ranks[sorted(range(len(distinct)), key=lambda i: java_order(distinct[i]))] = np.arange(
        len(distinct)
    )
    rows = np.repeat(np.arange(len(array)), np.diff(offsets))
    ranked = ranks[np.asarray(encoded.indices)]
    order = np.lexsort((ranked, rows))
    rows, ranked = rows[order], ranked[order]
    is_last = np.ones(len(order), dtype=bool)
    is_last[:-1] = (rows[1:] != rows[:-1]) | (ranked[1:] != ranked[:-1])
    kept = pa.array(order[is_last])
    ends = np.zeros(len(array) + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows[is_last], minlength=len(array)), out=ends[1:])
    entries = pa.StructArray.from_arrays(
        [keys.take(kept), items.take(kept)], fields=[array.type.key_field, array.type.item_field]
    )
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(
        array.type, len(array), [validity, pa.py_buffer(ends)], children=[entries]
    )


def as_longs(array: pa.Array) -> pa.Array:
    """Whole numbers, dates and times as int64."""
    type_ = array.type
    if not pa.types.is_integer(type_):
        array = array.view(pa.int32() if type_.bit_width == 32 else pa.int64())
    return array.cast(pa.int64())


def durations(array: pa.Array) -> pa.Array:
    """Durations as Protobuf's JSON has them, in microseconds.

    >>> durations(pa.array([1_500_000, -2, None], pa.duration("us"))).to_pylist()
    ['1.500000s', '-0.000002s', None]
    """
    micros = array.cast(pa.duration("us")).cast(pa.int64()).to_pylist()
    return pa.array([None if number is None else _seconds(number) for number in micros])


def _seconds(micros: int) -> str:
    seconds, rest = divmod(abs(micros), 1_000_000)
    return f"{'-' * (micros < 0)}{seconds}{f'.{rest:06}' if rest else ''}s"


def fraction_digits(type_: pa.DataType) -> int:
    """The digits behind the second that a time or a timestamp has.

    >>> fraction_digits(pa.timestamp("us"))
    6
    """
    return _DIGITS[type_.unit]


@kernel
def is_null(content, step, row):
    """Whether a row of a step's array is NULL."""
    valid = step[VALID]
    return valid >= 0 and content[valid + (row >> 3)] >> (row & 7) & 1 == 0
