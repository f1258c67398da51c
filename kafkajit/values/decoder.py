"""Arrays of keys or values → typed columns, whatever schemas and framings they have."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import InvalidSchemaError, RecordDeserializationError
from kafkajit.values.block import ROOM
from kafkajit.values.formats import FORMATS, READABLE
from kafkajit.values.framing import (
    AUTO,
    BARE,
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
from kafkajit.values.json.inference import infer_column
from kafkajit.values.json.json_schema import JsonSchema, json_column
from kafkajit.values.json.reading import bodies_of
from kafkajit.values.json.selection import selected
from kafkajit.values.json.types import Column, column_of
from kafkajit.values.json.value_reader import JsonValueReader
from kafkajit.values.layout import RECURSION, Types
from kafkajit.values.program_reader import BLOCK_VALUES, ProgramReader
from kafkajit.values.protobuf.schema import Message
from kafkajit.values.schema import AVRO, JSON, Schema
from kafkajit.values.schema_files import named_schema
from kafkajit.values.schemas import Schemas, SchemaSource
from kafkajit.values.status import (
    NOT_FRAMED,
    NULL,
    UNKNOWN_SCHEMA,
    UNUSABLE_SCHEMA,
    WORDS,
    Decoded,
    Faults,
)

# Values whose places are held at once: memory that is used again is faster than memory that is new.
_PART_VALUES = 4 * BLOCK_VALUES
_SAMPLE = 64  # values that tell a framing


class Part(NamedTuple):
    """Values of an array from the row `first` on, with their frames and faults."""

    first: int
    frames: Frames
    faults: Faults


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
        type_: str | None = None,
        message: str | None = None,
        recursion: int = RECURSION,
        types: Types = Types.OWN,
    ) -> None:
        self._schema = schema
        self._message = message
        self._schemas = None if schemas is None else Schemas.of(schemas)
        self._types = types
        # Without schemas, values may be bare although a framing is not named.
        self._guesses = framing == AUTO and schemas is None
        self._framing = None if self._guesses else framing
        if not isinstance(recursion, int) or recursion < 1:
            raise ValueError(f"recursion must be a number from 1 on, not {recursion!r}")
        self._columns = columns
        if columns is not None and not isinstance(columns, dict):
            self._columns = list(columns)
        if not all(isinstance(name, str) for name in self._columns or ()):
            raise TypeError("columns must be the names of fields")
        self._stops = stops
        self._recursion = recursion
        self._type = type_ or AVRO
        self._parsed: Any = None  # the schema that was named
        self._reader: ProgramReader | JsonValueReader | None = None
        self._entries: dict[SchemaKey, int] = {}
        self._why: dict[SchemaKey, str] = {}
        if isinstance(schema, pa.DataType):
            self._read_into(JSON, selected(column_of(schema), self._columns), None)
        elif schema is not None:
            given = schema if isinstance(schema, Schema) else named_schema(schema, type_)
            self._parsed = (self._schemas or Schemas()).parsed(given)
            self._read_into(given.type, self._parsed, self._parsed)

    def settle(self, arrays: Sequence[pa.Array], *, anew: bool = False) -> None:
        """Decide what the values themselves decide: their framing, and the schema to read into.

        With `anew`, these values may have another framing than those before.
        """
        if self._framing is None or (anew and self._guesses):
            # No framing begins as JSON does.
            is_json = self._type == JSON
            self._framing = AUTO if is_json else self._guess(first_values(arrays, _SAMPLE))
        if self._reader is None and self._schemas is None:
            self._read_into(JSON, self._inferred(arrays), None)
        elif self._reader is None:
            self._read_into(*self._newest(arrays))

    def _inferred(self, arrays: Sequence[pa.Array]) -> Column:
        """The column that fits values of JSON."""
        together = pa.concat_arrays(arrays) if len(arrays) != 1 else arrays[0]
        assert self._framing is not None
        return selected(infer_column(bodies_of(together, self._framing)), self._columns)

    @property
    def type(self) -> pa.DataType:
        """The type of the columns, once it is settled."""
        return self._settled.type

    def _read_into(
        self, type_: str, schema: Any, written: Any, framing: int = BARE, body: bytes = b""
    ) -> None:
        self._type = type_
        self._own: dict[int, int] = {}  # where the programs of the named schema begin, by framing
        if type_ == JSON:
            if self._message is not None:
                raise ValueError(f"JSON has no messages, such as {self._message!r}")
            column = schema
            if isinstance(schema, JsonSchema):
                column = json_column(schema, self._columns, self._recursion, types=self._types)
            self._reader = JsonValueReader(column, stops=self._stops)
            return
        format_ = FORMATS[type_]
        self._reader = ProgramReader(
            format_,
            format_.reader(schema, written, framing, body, self._message),
            self._columns,
            stops=self._stops,
            recursion=self._recursion,
            types=self._types,
        )

    @property
    def target(self) -> Any:
        """The schema or message to read into, once it is settled."""
        return self._settled.target

    @property
    def _settled(self) -> ProgramReader | JsonValueReader:
        assert self._reader is not None
        return self._reader

    def _guess(self, sample: list[bytes]) -> int:
        """Whether most of some values can be read as they are, or with a schema's name in front."""
        values = pa.array(sample, pa.large_binary())
        counts = {}
        for framing in (BARE, AUTO):
            trial = ValueDecoder(
                self._schema,
                None,
                framing,
                self._columns,
                stops=False,
                type_=self._type,
                message=self._message,
                recursion=self._recursion,
            )
            trial._framing = framing
            counts[framing] = len(values) - len(trial.decode(values).bad)
        return AUTO if counts[AUTO] > counts[BARE] else BARE

    def _newest(self, arrays: Sequence[pa.Array]) -> tuple[str, Any, Any, int, bytes]:
        """The newest version of the subject of the first value whose schema is known."""
        assert self._schemas is not None
        assert self._framing is not None
        # Most often the first values decide.
        for array in (*(array[:_SAMPLE] for array in arrays[:1]), *arrays):
            for _, part in _parts_of(array):
                frames = _frames(part, self._framing)
                for number, key in enumerate(frames.keys):
                    schema = self._schemas.find(key)
                    if schema is not None and schema.type in READABLE:
                        newest = schema.subject and self._schemas.newest(schema.subject)
                        row = int(np.argmax(frames.numbers == number))
                        written = self._schemas.parsed(schema)
                        into = self._schemas.parsed(newest or schema)
                        return schema.type, into, written, key.framing, frames.body(row)
        raise RecordDeserializationError(
            "no value names a known schema", advice="pass the schema to read into"
        )

    def decode(self, values: pa.Array) -> Decoded:
        """Decode an array, by what `settle` has decided."""
        reader = self._settled
        reader.begin(len(values))
        bad = []
        parts = []
        for first, part in _parts_of(values):
            frames = self._frames(part, first)
            faults = reader.read(frames, self._entries_of(frames, part))
            rows = np.flatnonzero(faults.statuses > NULL)
            if rows.size:
                bad.append(first + rows)
                parts.append(Part(first, frames, faults))
                if self._stops:
                    # The others have not been read.
                    return Decoded(pa.nulls(0, self.type), bad[0], partial(self._words, parts))
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *bad])
        return Decoded(reader.array(), rows, partial(self._words, parts))

    def _frames(self, values: pa.Array, row: int) -> Frames:
        """The frames of values, which begin at that row."""
        assert self._framing is not None
        frames = _frames(values, self._framing)
        if frames.content.size > MOST_BYTES:
            raise RecordDeserializationError("a value has more than 2 GiB", row=row)
        return frames

    def _entries_of(self, frames: Frames, values: pa.Array) -> npt.NDArray[np.int64]:
        """The row where the program of each value begins; negative: a status."""
        for key in frames.keys:
            if key not in self._entries:
                self._entries[key] = self._entry(key)
        entries = np.array([self._entries[key] for key in frames.keys] or [0])[frames.numbers]
        if values.null_count:
            entries[np.asarray(values.is_null())] = -NULL
        return entries

    def _entry(self, key: SchemaKey) -> int:
        is_bare_json = self._type == JSON and self._schemas is None and key != UNINFLATED
        if key.framing == UNFRAMED and not is_bare_json:
            return -NOT_FRAMED
        try:
            if key.framing in (BARE, UNFRAMED) or self._schemas is None:
                # Ids that are skipped can be many: the program is the same one.
                if key.framing not in self._own:
                    self._own[key.framing] = self._settled.add(self._parsed, key.framing)
                return self._own[key.framing]
            schema = self._schemas.find(key)
            if schema is None:
                return -UNKNOWN_SCHEMA
            if schema.type != self._type:
                raise InvalidSchemaError(f"its type is {schema.type}, not {self._type}")
            return self._settled.add(self._schemas.parsed(schema), key.framing)
        except InvalidSchemaError as error:
            self._why[key] = str(error)
            return -UNUSABLE_SCHEMA

    def _words(self, parts: list[Part], row: int) -> str:
        """The reason why a value is malformed: with the field, the position and the schema."""
        first, frames, faults = parts[bisect_right(parts, row, key=lambda part: part.first) - 1]
        row -= first
        status = int(faults.statuses[row])
        key = frames.keys[frames.numbers[row]]
        if key == UNINFLATED:
            return "the value's zlib data is broken"
        if status == NOT_FRAMED:
            return WORDS[status]
        if status in (UNKNOWN_SCHEMA, UNUSABLE_SCHEMA):
            why = f": {self._why[key]}" if key in self._why else ""
            return f"{WORDS[status]}, {key}{why}"
        words, position = self._settled.words(frames, faults, row)
        if position >= 0:
            words += f", byte {position + HEADER_SIZES[key.framing]}"
        return words if key.framing in (BARE, UNFRAMED) else f"{words}, {key}"


def message_in(
    values: pa.Array, schema: Schema, schemas: Schemas | None, framing: int
) -> str | None:
    """The name of the Protobuf message of the first of some values; None if it is not known."""
    decoder = ValueDecoder(None if schemas else schema, schemas, framing, [], stops=False)
    try:
        decoder.settle([values])
    except RecordDeserializationError:
        return None
    return decoder.target.name if isinstance(decoder.target, Message) else None


def _parts_of(values: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    """Parts of an array with the row where each begins: of some values, and of at most 2 GiB."""
    first = 0
    while first < len(values):
        part = values[first : first + _PART_VALUES]
        while len(part) > 1 and part.nbytes > MOST_BYTES - ROOM:
            part = part[: len(part) // 2]
        yield first, part
        first += len(part)


def _frames(values: pa.Array, framing: int) -> Frames:
    content, starts, ends = places(values)
    return split_frames(content, starts, ends, framing)
