"""Reads frames of JSON values into one column, as `program_reader` reads those of other formats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.values.framing import HEADER_SIZES, Frames
from kafkajit.values.json.reading import Bodies, JsonReader, why_malformed
from kafkajit.values.json.types import Column
from kafkajit.values.status import BAD_JSON, NULL, OK, Faults


class JsonValueReader:
    """Reads values into a column. JSON names its fields, so whoever wrote them does not matter."""

    def __init__(self, column: Column, *, stops: bool) -> None:
        self.target = column
        self._reader = JsonReader(column, stops=stops)
        self._arrays: list[pa.Array] = []

    @property
    def type(self) -> pa.DataType:
        """The type of the column."""
        return self.target.type

    def add(self, writer: Any, framing: int) -> int:  # noqa: ARG002  # as of other formats
        """Nothing is compiled for a writer."""
        return 0

    def begin(self, rows: int) -> None:  # noqa: ARG002
        """Begin an array."""
        self._arrays = []

    def array(self) -> pa.Array:
        """The values that have been read since `begin`."""
        return pa.concat_arrays(self._arrays) if self._arrays else pa.array([], self.type)

    def read(self, frames: Frames, entries: npt.NDArray[np.int64]) -> Faults:
        """Read values; entries that are negative are statuses."""
        faults = Faults.none_of(entries.size)
        np.negative(entries, out=faults.statuses, where=entries < 0, casting="unsafe")
        # What cannot be read is NULL: it ends before it starts.
        starts = np.where(entries < OK, frames.ends + 1, frames.starts)
        found = self._reader.decode(frames.content, starts, frames.ends)
        faults.statuses[found.bad] = BAD_JSON
        self._arrays.append(found.values)
        return faults

    def words(self, frames: Frames, faults: Faults, row: int) -> tuple[str, int]:
        """The reason why a value is malformed, with the field and the position."""
        assert faults.statuses[row] > NULL
        bodies = Bodies(frames.content, frames.starts, frames.ends)
        head = int(HEADER_SIZES[frames.keys[frames.numbers[row]].framing])
        return why_malformed(bodies, self.target, row, head), -1
