"""Keys and values of any mixture of schemas → one array of text or of other bytes.

Each value is read into the newest version of its own schema's subject, or into its own schema if
that does not fit. `decode_values` reads all values into one schema, so that they share columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.decoder import ValueDecoder
from kafkajit.values.formats import READABLE
from kafkajit.values.framing import AUTO, Frames, SchemaKey, places, split_frames
from kafkajit.values.layout import Types
from kafkajit.values.protobuf.messages import message_to_read
from kafkajit.values.schema import PROTOBUF, Schema
from kafkajit.values.schemas import Schemas, SchemaSource
from kafkajit.values.status import Decoded

Render = Callable[[pa.Array], pa.Array]
Rows = npt.NDArray[np.int64]

_UNKNOWN = Schema('"null"')  # to have words for values of which no schema can be read


class OwnSchemasDecoder:
    """Decodes arrays of keys or values, each value by the schema that it names.

    Args:
        schema: the schema to read all of them into; it is also the one that wrote them if there are
            no `schemas`.
        schemas: the schemas that they name.
        type_: the format of `schema`, if its text could be of several.
        message: the name of its Protobuf message, if it is not the one that the first value has.
        render: makes of columns what `decode` returns, an array of one type for all columns.
    """

    def __init__(
        self,
        schema: Any,
        schemas: SchemaSource | None,
        render: Render,
        *,
        type_: str | None = None,
        message: str | None = None,
        types: Types = Types.OWN,
    ) -> None:
        self._schemas = None if schemas is None else Schemas.of(schemas)
        self._type = type_
        self._render = render
        self._types = types
        self._decoders: dict[Schema, ValueDecoder | None] = {}
        self._messages: dict[tuple[Schema, str], ValueDecoder] = {}
        self._only = None if schema is None else self._decoder(schema, message)

    def _decoder(self, schema: Any, message: str | None = None) -> ValueDecoder:
        return ValueDecoder(
            schema,
            self._schemas,
            AUTO,
            None,
            stops=False,
            type_=self._type,
            message=message,
            types=self._types,
        )

    def decode(self, values: pa.Array) -> Decoded:
        """The rendered values, NULL if they are malformed or were NULL."""
        if values.null_count == len(values):
            return Decoded(self._render(pa.nulls(len(values))), np.zeros(0, dtype=np.int64), str)
        found = _Found(len(values), self._render)
        if self._only is not None:
            self._only.settle([values], anew=True)
            found.add(self._only.decode(values), np.arange(len(values)))
            return found.decoded()
        frames = split_frames(*places(values), AUTO)
        own = [self._own(key) for key in frames.keys]
        newest = [schema and self._newest(schema) for schema in own]
        self._decode(values, np.arange(len(values)), newest, frames.numbers, found)
        # A subject's versions need not be compatible.
        other = np.array([a is not b for a, b in zip(own, newest, strict=True)] or [False])
        bad = found.bad()
        again = bad[other[frames.numbers[bad]]]
        if again.size:
            self._decode(values.take(pa.array(again)), again, own, frames.numbers[again], found)
        if any(schema is not None and schema.type == PROTOBUF for schema in own):
            self._decode_messages(values, own, frames, found)
        return found.decoded()

    def _decode_messages(
        self, values: pa.Array, own: list[Schema | None], frames: Frames, found: _Found
    ) -> None:
        """Decode Protobuf values that are of other messages than the first one of their schema."""
        groups: dict[tuple[Schema, str], list[int]] = {}
        assert self._schemas is not None
        for row in found.bad().tolist():
            schema = own[frames.numbers[row]]
            if schema is not None and schema.type == PROTOBUF:
                file = self._schemas.parsed(schema)
                framing = frames.keys[frames.numbers[row]].framing
                message = message_to_read(file, file, framing, frames.body(row))
                groups.setdefault((schema, message.name), []).append(row)
        for (schema, name), rows in groups.items():
            decoder = self._messages.get((schema, name))
            if decoder is None:
                decoder = self._messages[schema, name] = self._decoder(schema, name)
            decoder.settle([])
            found.add(decoder.decode(values.take(pa.array(rows))), np.array(rows))

    def _decode(
        self,
        values: pa.Array,
        rows: Rows,
        readers: Sequence[Schema | None],
        numbers: npt.NDArray[np.int32],
        found: _Found,
    ) -> None:
        """Decode values, each into the reader that has its key's number."""
        known = [*dict.fromkeys(reader for reader in readers if reader is not None)]
        groups = np.array(
            [0 if reader is None else known.index(reader) for reader in readers] or [0]
        )[numbers]
        for group, reader in enumerate(known or [_UNKNOWN]):
            decoder = self._of(reader) or self._decoder(_UNKNOWN)
            decoder.settle([])
            inside = np.flatnonzero(groups == group)
            if inside.size == len(values):
                found.add(decoder.decode(values), rows)
            elif inside.size:
                found.add(decoder.decode(values.take(pa.array(inside))), rows[inside])

    def _own(self, key: SchemaKey) -> Schema | None:
        """The schema that a value names, if values can be read into it."""
        assert self._schemas is not None
        schema = self._schemas.find(key)
        return schema if schema is not None and self._of(schema) is not None else None

    def _newest(self, schema: Schema) -> Schema:
        """The newest version of a schema's subject; the schema itself if that cannot be read."""
        assert self._schemas is not None
        newest = schema.subject and self._schemas.newest(schema.subject)
        return newest if newest and self._of(newest) is not None else schema

    def _of(self, schema: Schema) -> ValueDecoder | None:
        """The decoder into a schema; None if it cannot be read."""
        if schema not in self._decoders:
            try:
                self._decoders[schema] = self._decoder(schema) if schema.type in READABLE else None
            except InvalidSchemaError:
                self._decoders[schema] = None
        return self._decoders[schema]


class _Found:
    """Rendered parts of an array, in any order, and why some values are malformed."""

    def __init__(self, size: int, render: Render) -> None:
        self._render = render
        self._parts: list[pa.Array] = []
        self._places = np.zeros(size, dtype=np.int64)
        self._size = 0
        self._why: dict[int, tuple[Decoded, int]] = {}

    def add(self, decoded: Decoded, rows: Rows) -> None:
        """Add values with the rows in which they are; some may replace others."""
        self._parts.append(self._render(decoded.values))
        self._places[rows] = np.arange(self._size, self._size + len(rows))
        self._size += len(rows)
        for row in rows.tolist() if self._why else ():
            self._why.pop(row, None)
        for row in decoded.bad.tolist():
            self._why[int(rows[row])] = decoded, row

    def bad(self) -> Rows:
        """The rows of malformed values."""
        return np.array(sorted(self._why), dtype=np.int64)

    def decoded(self) -> Decoded:
        """All values in the order of their rows."""
        values = self._parts[0]
        if len(self._parts) > 1:
            values = pa.concat_arrays(self._parts).take(pa.array(self._places))
        return Decoded(values, self.bad(), self._words)

    def _words(self, row: int) -> str:
        decoded, inside = self._why[row]
        return decoded.words(inside)
