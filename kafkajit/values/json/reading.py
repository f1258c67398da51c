"""Bodies of JSON → an array: the kernel reads most, the careful reader the others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import RecordDeserializationError
from kafkajit.storage.source import Bytes, Int64s
from kafkajit.values.block import DONE, FULL, Block
from kafkajit.values.columns import Columns, too_large
from kafkajit.values.framing import (
    AUTO,
    MOST_BYTES,
    UNINFLATED,
    places,
    split_frames,
)
from kafkajit.values.json.careful import MalformedError, read_value
from kafkajit.values.json.interpreter import MARKS, ROOM, STACK, read_values
from kafkajit.values.json.numbers import powers
from kafkajit.values.json.program import Compiler
from kafkajit.values.json.types import Column
from kafkajit.values.status import Decoded

# Values of a block: enough to make the work between blocks small, and few enough for the cache.
BLOCK_VALUES = 8192
_SLICE = 1024  # values that the careful reader has as Python objects at a time
_TEXTS = 1 << 16  # bytes for strings with escapes, at first

Flags = npt.NDArray[np.uint8]


class Bodies(NamedTuple):
    """Values of JSON: where each begins and ends in the content. NULL ends before it starts."""

    content: Bytes
    starts: Int64s
    ends: Int64s

    def body(self, row: int) -> bytes:
        return self.content[int(self.starts[row]) : int(self.ends[row])].tobytes()


def bodies_of(values: pa.Array, framing: int = AUTO) -> Bodies:
    """The bodies of values, behind their framing. A NULL ends before it starts."""
    content, starts, ends = places(values)
    frames = split_frames(content, starts, ends, framing)
    bodies, stops = frames.starts.copy(), frames.ends.copy()
    if UNINFLATED in frames.keys:
        # Nothing is left of a value whose compression is broken.
        is_broken = frames.numbers == frames.keys.index(UNINFLATED)
        stops[is_broken] = bodies[is_broken]
    if values.null_count:
        is_null = np.asarray(values.is_null())
        bodies[is_null] = stops[is_null] + 1
    return Bodies(frames.content, bodies, stops)


class JsonReader:
    """Reads bodies of JSON, array after array, into a column."""

    def __init__(self, column: Column, *, stops: bool = False) -> None:
        self.column = column
        self._stops = stops
        self._kernel = KernelReader(column)

    @property
    def type(self) -> pa.DataType:
        """The type of the arrays."""
        return self.column.type

    def decode(self, content: Bytes, starts: Int64s, ends: Int64s) -> Decoded:
        """Decode the bodies between `starts` and `ends`; one that is NULL ends before it starts.

        With `stops`, the first malformed value ends the work: it is the only one in `bad`, and
        there are no values.
        """
        bodies = Bodies(content, starts, ends)
        columns = Columns(self._kernel.layout, self._kernel.root, starts.size)
        bad: list[int] = []
        patches = _Patches(self.column)
        for part, first in parts(bodies):
            for _, _, troubles in self._kernel.blocks(part, columns):
                for row in troubles.tolist():
                    try:
                        value = read_value(part.body(row), self.column)
                    except MalformedError:
                        bad.append(first + row)
                        if self._stops:
                            return self._decoded(bodies, pa.nulls(0, self.type), bad)
                    else:
                        patches.add(first + row, value)
        return self._decoded(bodies, patches.into(columns.array()), bad)

    def _decoded(self, bodies: Bodies, values: pa.Array, bad: list[int]) -> Decoded:
        rows = np.array(bad, dtype=np.int64)
        return Decoded(values, rows, partial(why_malformed, bodies, self.column))


def why_malformed(bodies: Bodies, column: Column, row: int, head: int = 0) -> str:
    """The reason why a value is malformed. Its positions count `head` bytes in front of it."""
    try:
        read_value(bodies.body(row), column)
    except MalformedError as error:
        error.position += head
        return str(error)
    raise ValueError(f"the value {row} is not malformed")


class _Patches:
    """The values that the careful reader has read, which replace NULL in an array."""

    def __init__(self, column: Column) -> None:
        self._type = column.type
        self._rows: list[int] = []
        self._values: list[object] = []
        self._arrays: list[pa.Array] = []

    def add(self, row: int, value: object) -> None:
        self._rows.append(row)
        self._values.append(value)
        if len(self._values) == _SLICE:
            self._flush()

    def _flush(self) -> None:
        self._arrays.append(pa.array(self._values, self._type))
        self._values = []

    def into(self, array: pa.Array) -> pa.Array:
        if not self._rows:
            return array
        if self._values:
            self._flush()
        places = np.arange(len(array))
        places[self._rows] = len(array) + np.arange(len(self._rows))
        try:
            return pa.concat_arrays([array, *self._arrays]).take(pa.array(places))
        except pa.ArrowInvalid:
            raise too_large("the values have more than 2 GiB") from None


def parts(bodies: Bodies) -> list[tuple[Bodies, int]]:
    """Bodies in parts of at most 2 GiB, each with the number of its first one.

    The kernel may read ROOM bytes behind a body: the last ones are in a part of their own, a copy.
    """
    content, starts, ends = bodies
    found = []
    first = 0
    while first < starts.size:
        base = 0
        stop = starts.size
        if content.size > MOST_BYTES:
            base = int(min(starts[first], ends[first]))
            stop = int(np.searchsorted(ends, base + MOST_BYTES - ROOM, "right"))
            if stop <= first:
                raise RecordDeserializationError("a value has more than 2 GiB", row=first)
        is_far = ends[first:stop] <= content.size - ROOM
        last = stop if is_far.all() else first + int(is_far.argmin())
        piece = content[base : base + MOST_BYTES]
        if last > first:
            part = Bodies(piece, starts[first:last] - base, ends[first:last] - base)
            found.append((part, first))
        if last < stop:
            base = int(starts[last:stop].min())
            copy = np.zeros(content.size - base + ROOM, dtype=np.uint8)
            copy[:-ROOM] = content[base:]
            copy.setflags(write=False)
            found.append((Bodies(copy, starts[last:stop] - base, ends[last:stop] - base), last))
        first = stop
    return found


class KernelReader:
    """Reads bodies block after block into columns. It gives up at some; these are NULL."""

    def __init__(self, column: Column, *, is_strict: bool = False) -> None:
        self._compiler = Compiler(column)
        self.layout, self.root = self._compiler.layout, self._compiler.root
        self._is_strict = is_strict
        self._block: Block | None = None

    def blocks(
        self, bodies: Bodies, columns: Columns | None, first: int = 0
    ) -> Iterator[tuple[int, int, Int64s]]:
        """Yield (first row, next row, rows at which the kernel gives up) of each block."""
        if self._block is None:
            self._block = Block(self.layout, BLOCK_VALUES)
            self._scratch = _scratch(_TEXTS)
            self._program = self._compiler.program(self._block)
        size = bodies.starts.size
        troubles: Flags = np.zeros(size, dtype=np.uint8)
        while first < size:
            state, after = read_values(
                self._program,
                powers(),
                self._block.cells,
                self._block.items,
                self._scratch,
                bodies,
                first,
                min(first + BLOCK_VALUES, size),
                self._is_strict,
                troubles,
            )
            if state != DONE and after == first:
                if state == FULL:
                    self._block.grow()
                    self._program = self._compiler.program(self._block)
                else:
                    self._scratch = _scratch(2 * self._scratch[1].size)
                continue
            if columns is not None:
                columns.append(self._block, bodies.content, self._scratch[1], after - first)
            self._block.clear()
            yield first, after, first + np.flatnonzero(troubles[first:after])
            first = after


def _scratch(texts: int) -> tuple[Int64s, Flags, Int64s]:
    """The kernel's stack, memory for texts without their escapes, and for a hash table."""
    stack, marks = np.zeros(STACK, dtype=np.int64), np.zeros(MARKS, dtype=np.int64)
    return stack, np.zeros(texts, dtype=np.uint8), marks
