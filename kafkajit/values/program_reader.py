"""Reads values by programs: frames of values → columns, block after block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.storage.source import Bytes
from kafkajit.values.block import FAILED, FULL, ROOM, Block
from kafkajit.values.columns import Columns
from kafkajit.values.formats import Format
from kafkajit.values.framing import Frames
from kafkajit.values.layout import Types
from kafkajit.values.programs import Programs
from kafkajit.values.status import MISMATCH, NULL, TOO_DEEP, TOO_LARGE, WORDS, Faults

# Values of a block: enough to make the work between blocks small, and few enough for the cache.
BLOCK_VALUES = 16_384


class ProgramReader:
    """Reads values into the columns of one schema, by the programs of those that wrote them."""

    def __init__(
        self,
        format_: Format,
        target: Any,
        columns: Iterable[str] | None,
        *,
        stops: bool,
        recursion: int,
        types: Types,
    ) -> None:
        self.target = target
        self._stops = stops
        self._read_values = format_.read_values
        self._layout, self._root = format_.layout(target, columns, recursion, types=types)
        self._compiler = format_.compiler(self._layout, self._root)
        self._programs: Programs | None = None
        self._block: Block | None = None
        self._columns: Columns | None = None

    @property
    def type(self) -> pa.DataType:
        """The type of the columns."""
        return self._root.type

    def add(self, writer: Any, framing: int) -> int:
        """Compile a writer's schema; return the row where its program begins."""
        self._programs = None
        return self._compiler.add(writer, framing)

    def begin(self, rows: int) -> None:
        """Begin an array of that many values."""
        self._columns = Columns(self._layout, self._root, rows)

    def array(self) -> pa.Array:
        """The values that have been read since `begin`."""
        assert self._columns is not None
        return self._columns.array()

    def read(self, frames: Frames, entries: npt.NDArray[np.int64]) -> Faults:
        """Read values, whose programs begin at `entries`; these are statuses if negative."""
        if self._programs is None:
            self._programs = self._compiler.programs()
        if self._block is None:
            self._block = Block(self._layout, BLOCK_VALUES)
        faults = Faults.none_of(entries.size)
        assert self._columns is not None
        self._read_part(frames, entries, faults, self._columns)
        return faults

    def _read_part(
        self,
        frames: Frames,
        entries: npt.NDArray[np.int64],
        faults: Faults,
        columns: Columns,
    ) -> None:
        # The kernel may read ROOM bytes behind a value: the last ones are read from a copy.
        content = frames.content
        is_far = frames.ends <= content.size - ROOM
        last = entries.size if is_far.all() else int(is_far.argmin())
        self._read_some(content, frames, 0, last, entries, faults, columns)
        if last < entries.size and not (self._stops and (faults.statuses > NULL).any()):
            rest = slice(last, None)
            base = int(frames.starts[rest].min())
            copy = np.zeros(content.size - base + ROOM, dtype=np.uint8)
            copy[:-ROOM] = content[base:]
            copy.setflags(write=False)
            frames = frames._replace(
                starts=frames.starts[rest] - base, ends=frames.ends[rest] - base
            )
            statuses, places, positions = faults
            faults = Faults(statuses[rest], places[rest], positions[rest])
            self._read_some(copy, frames, 0, entries.size - last, entries[rest], faults, columns)

    def _read_some(
        self,
        content: Bytes,
        frames: Frames,
        first: int,
        end: int,
        entries: npt.NDArray[np.int64],
        faults: Faults,
        columns: Columns,
    ) -> None:
        """Read the values from `first` to `end`."""
        assert self._programs is not None
        assert self._block is not None
        entries = entries.copy()
        values = (content, frames.starts, frames.ends, entries)
        checks_text = False
        program = self._programs.bound(self._block.bases, checks_text)
        while first < end:
            stop = min(first + BLOCK_VALUES, end)
            state, after = self._read_values(
                program,
                self._block.cells,
                self._block.items,
                values,
                first,
                stop,
                self._stops,
                faults,
            )
            if state == FULL and after == first:
                if self._block.may_grow():
                    self._block.grow()
                else:
                    self._block.clear()
                    entries[first] = -TOO_LARGE
                program = self._programs.bound(self._block.bases, checks_text)
                continue
            is_text = columns.append(self._block, content, self._programs.texts, after - first)
            self._block.clear()
            if is_text:
                first = after
            if state == FAILED and is_text:
                return
            # If a text is not UTF-8, the block is read again to find out which.
            if checks_text == is_text:
                checks_text = not is_text
                program = self._programs.bound(self._block.bases, checks_text)

    def words(self, frames: Frames, faults: Faults, row: int) -> tuple[str, int]:
        """The reason why a value is malformed, with the field; and the position, or -1."""
        del frames
        assert self._programs is not None
        status, place, position = (int(numbers[row]) for numbers in faults)
        words = WORDS.get(status, "")
        if status in (MISMATCH, TOO_DEEP):
            words = self._programs.faults.get(place, words)
        field = self._programs.fields[place] if place >= 0 else ""
        return (f"{words}, field {field}" if field else words), position
