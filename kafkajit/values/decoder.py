"""Arrays of keys or values → typed columns, whatever schemas and framings they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import InvalidSchemaError, RecordDeserializationError
from kafkajit.storage.source import Bytes
from kafkajit.values.avro.columns import RECURSION, column_layout
from kafkajit.values.avro.interpreter import ROOM, read_values
from kafkajit.values.avro.operations import BASE, CELL, CHECKED_STRING, CODE, COLUMNS, STRING
from kafkajit.values.avro.program import Compiler, Programs
from kafkajit.values.avro.schema import AvroType, parse_schema
from kafkajit.values.block import FAILED, FULL, Block, Columns
from kafkajit.values.framing import (
    AUTO,
    BARE,
    CONFLUENT,
    HEADER_SIZES,
    MOST_BYTES,
    UNFRAMED,
    UNINFLATED,
    Frames,
    SchemaKey,
    first_values,
    places,
    split_frames,
)
from kafkajit.values.schema import AVRO, Schema
from kafkajit.values.schema_files import schema_text
from kafkajit.values.schemas import Schemas, SchemaSource
from kafkajit.values.status import (
    MISMATCH,
    NOT_FRAMED,
    NULL,
    TOO_DEEP,
    UNKNOWN_SCHEMA,
    UNUSABLE_SCHEMA,
    WORDS,
)

# Values of a block: enough to make the work between blocks small, and few enough for the cache.
_BLOCK_VALUES = 16_384
_SAMPLE = 64  # values that tell a framing


class Faults(NamedTuple):
    """The status of each value, the row of the program that failed, and the position."""

    statuses: npt.NDArray[np.uint8]
    places: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]


class Decoded(NamedTuple):
    """Decoded values, NULL if they are malformed; the malformed ones, and why they are."""

    values: pa.Array
    bad: npt.NDArray[np.int64]
    words: Callable[[int], str]


class ValueDecoder:
    """Decodes arrays of values, one after the other, into the same columns."""

    def __init__(
        self,
        schema: Any,
        schemas: SchemaSource | None,
        framing: int,
        columns: Iterable[str] | None,
        *,
        stops: bool,
        recursion: int = RECURSION,
        for_spark: bool = False,
    ) -> None:
        self._schema = schema
        self._schemas = None if schemas is None else Schemas.of(schemas)
        self._for_spark = for_spark
        # Without schemas, values may be bare although a framing is not named.
        self._framing = None if framing == AUTO and schemas is None else framing
        if not isinstance(recursion, int) or recursion < 1:
            raise ValueError(f"recursion must be a number from 1 on, not {recursion!r}")
        self._columns = None if columns is None else list(columns)
        if not all(isinstance(name, str) for name in self._columns or ()):
            raise TypeError("columns are names of fields")
        self._stops = stops
        self._recursion = recursion
        self._reader: AvroType | None = None
        self._entries: dict[SchemaKey, int] = {}
        self._why: dict[SchemaKey, str] = {}
        if isinstance(schema, Schema):
            self._read_into((self._schemas or Schemas()).parsed(schema))
        elif schema is not None:
            self._read_into(parse_schema(schema_text(schema)))

    def settle(self, arrays: Sequence[pa.Array]) -> None:
        """Decide what the values themselves decide: their framing, and the schema to read into."""
        if self._framing is None:
            self._framing = self._guess(first_values(arrays, _SAMPLE))
        if self._reader is None:
            self._read_into(self._newest(arrays))

    @property
    def type(self) -> pa.DataType:
        """The type of the columns, once it is settled."""
        return self._root.type

    def _read_into(self, reader: AvroType) -> None:
        self._reader = reader
        self._layout, self._root = column_layout(
            reader, self._columns, self._recursion, for_spark=self._for_spark
        )
        self._compiler = Compiler(self._layout, self._root)
        self._programs: Programs | None = None
        self._block: Block | None = None
        self._own: dict[bool, int] = {}  # where the reader's own program begins

    def _guess(self, sample: list[bytes]) -> int:
        """Whether most of some values can be read as they are, or with a schema's name in front."""
        values = pa.array(sample, pa.large_binary())
        counts = {}
        for framing in (BARE, AUTO):
            trial = ValueDecoder(
                self._schema, None, framing, self._columns, stops=False, recursion=self._recursion
            )
            trial._framing = framing
            counts[framing] = len(values) - len(trial.decode(values).bad)
        return AUTO if counts[AUTO] > counts[BARE] else BARE

    def _newest(self, arrays: Sequence[pa.Array]) -> AvroType:
        """The newest version of the subject of the first value whose schema is known."""
        assert self._schemas is not None
        assert self._framing is not None
        # Most often the first values decide.
        for array in (*(array[:_SAMPLE] for array in arrays[:1]), *arrays):
            for key in _frames(array, self._framing).keys:
                schema = self._schemas.find(key)
                if schema is not None and schema.type == AVRO:
                    newest = schema.subject and self._schemas.newest(schema.subject)
                    return self._schemas.parsed(newest or schema)
        raise RecordDeserializationError(
            "no value names a schema that is known", advice="pass the schema to read into"
        )

    def decode(self, values: pa.Array) -> Decoded:
        """Decode an array, by what `settle` has decided."""
        assert self._framing is not None
        frames = _frames(values, self._framing)
        entries = self._entries_of(frames)
        if values.null_count:
            entries[np.asarray(values.is_null())] = -NULL
        size = len(values)
        faults = Faults(
            np.zeros(size, dtype=np.uint8),
            np.full(size, -1, dtype=np.int32),
            np.full(size, -1, dtype=np.int32),
        )
        columns = Columns(self._layout, self._root, size)
        self._decode(frames, entries, faults, columns)
        bad = np.flatnonzero(faults.statuses > NULL)
        # If the first malformed value is an error, the others have not been read.
        has_failed = self._stops and bad.size
        decoded = pa.nulls(0, self.type) if has_failed else columns.array()
        return Decoded(decoded, bad, partial(self._words, frames, faults))

    def _entries_of(self, frames: Frames) -> npt.NDArray[np.int64]:
        """The row where the program of each value begins; negative: a status."""
        for key in frames.keys:
            if key not in self._entries:
                self._entries[key] = self._entry(key)
                self._programs = None
        if self._programs is None:
            self._programs = self._compiler.programs()
        return np.array([self._entries[key] for key in frames.keys] or [0])[frames.numbers]

    def _entry(self, key: SchemaKey) -> int:
        if key.framing == UNFRAMED:
            return -NOT_FRAMED
        try:
            if key.framing == BARE or self._schemas is None:
                assert self._reader is not None
                # Ids that are skipped can be many: the program is the same one.
                is_raw = key.framing == CONFLUENT
                if is_raw not in self._own:
                    self._own[is_raw] = self._compiler.add(self._reader, is_raw=is_raw)
                return self._own[is_raw]
            schema = self._schemas.find(key)
            if schema is None:
                return -UNKNOWN_SCHEMA
            if schema.type != AVRO:
                raise InvalidSchemaError(f"it is of the type {schema.type}, not {AVRO}")
            return self._compiler.add(self._schemas.parsed(schema), is_raw=key.framing == CONFLUENT)
        except InvalidSchemaError as error:
            self._why[key] = str(error)
            return -UNUSABLE_SCHEMA

    def _decode(
        self,
        frames: Frames,
        entries: npt.NDArray[np.int64],
        faults: Faults,
        columns: Columns,
    ) -> None:
        if self._block is None:
            self._block = Block(self._layout, _BLOCK_VALUES)
        content, starts, ends = frames.content, frames.starts, frames.ends
        if content.size <= MOST_BYTES:
            self._decode_part(frames, 0, entries.size, entries, faults, columns)
            return
        first = 0
        while first < entries.size:
            base = int(starts[first])
            stop = int(np.searchsorted(ends, base + MOST_BYTES - ROOM, "right"))
            if stop <= first:
                raise RecordDeserializationError("a value has more than 2 GiB", row=first)
            part = frames._replace(
                content=content[base : int(ends[stop - 1]) + ROOM],
                starts=starts - base,
                ends=ends - base,
            )
            self._decode_part(part, first, stop, entries, faults, columns)
            if self._stops and (faults.statuses > NULL).any():
                return
            first = stop

    def _decode_part(
        self,
        frames: Frames,
        first: int,
        stop: int,
        entries: npt.NDArray[np.int64],
        faults: Faults,
        columns: Columns,
    ) -> None:
        """Decode the values from `first` to `stop`, which lie in at most 2 GiB."""
        # The kernel may read ROOM bytes behind a value: the last ones are read from a copy.
        content = frames.content
        is_far = frames.ends[first:stop] <= content.size - ROOM
        last = stop if is_far.all() else first + int(is_far.argmin())
        self._decode_some(content, frames, first, last, entries, faults, columns)
        if last < stop and not (self._stops and (faults.statuses > NULL).any()):
            rest = slice(last, stop)
            base = int(frames.starts[rest].min())
            copy = np.zeros(content.size - base + ROOM, dtype=np.uint8)
            copy[:-ROOM] = content[base:]
            copy.setflags(write=False)
            frames = frames._replace(
                starts=frames.starts[rest] - base, ends=frames.ends[rest] - base
            )
            statuses, places, positions = faults
            faults = Faults(statuses[rest], places[rest], positions[rest])
            self._decode_some(copy, frames, 0, stop - last, entries[rest], faults, columns)

    def _decode_some(
        self,
        content: Bytes,
        frames: Frames,
        first: int,
        end: int,
        entries: npt.NDArray[np.int64],
        faults: Faults,
        columns: Columns,
    ) -> None:
        """Decode the values from `first` to `end`."""
        assert self._programs is not None
        assert self._block is not None
        values = (content, frames.starts, frames.ends, entries)
        checks_text = False
        program = self._bound(checks_text)
        while first < end:
            stop = min(first + _BLOCK_VALUES, end)
            state, after = read_values(
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
                self._block.grow()
                program = self._bound(checks_text)
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
                program = self._bound(checks_text)

    def _bound(self, checks_text: bool) -> Any:
        """The program with the places of the block's cells."""
        assert self._programs is not None
        assert self._block is not None
        rows = self._programs.rows.copy()
        table = rows.reshape(-1, COLUMNS)
        table[:, BASE] = self._block.bases[table[:, CELL]] if len(self._block.bases) else 0
        if checks_text:
            table[table[:, CODE] == STRING, CODE] = CHECKED_STRING
        rows.setflags(write=False)
        return rows, self._programs.texts, self._programs.symbols, self._programs.limits

    def _words(self, frames: Frames, faults: Faults, row: int) -> str:
        """The reason why a value is malformed: with the field, the position and the schema."""
        status, place, position = (int(numbers[row]) for numbers in faults)
        key = frames.keys[frames.numbers[row]]
        if key == UNINFLATED:
            return "the value's zlib data is broken"
        assert self._programs is not None
        words = WORDS.get(status, "")
        if status in (MISMATCH, TOO_DEEP):
            words = self._programs.faults.get(place, words)
        if status == NOT_FRAMED:
            return words
        if status in (UNKNOWN_SCHEMA, UNUSABLE_SCHEMA):
            why = f": {self._why[key]}" if key in self._why else ""
            return f"{words}, {key}{why}"
        field = self._programs.fields[place] if place >= 0 else ""
        if field:
            words += f", field {field}"
        if position >= 0:
            words += f", byte {position + HEADER_SIZES[key.framing]}"
        return words if key.framing == BARE else f"{words}, {key}"


def _frames(values: pa.Array, framing: int) -> Frames:
    content, starts, ends = places(values)
    return split_frames(content, starts, ends, framing)
