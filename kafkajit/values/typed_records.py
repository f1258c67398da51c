"""Records whose keys and values are typed columns: the schemas to read into, and the rows.

The columns `key` and `value` become typed, `rawKey` and `rawValue` have the bytes, and in the mode
PERMISSIVE `keyError` and `valueError` the reason why a key or a value is malformed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kafkajit.errors import InvalidSchemaError, RecordDeserializationError
from kafkajit.places.location import as_location
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.schema import RECORD_COLUMNS, check_columns
from kafkajit.values.decode import error_column
from kafkajit.values.decoder import ValueDecoder, message_in
from kafkajit.values.first_records import first_records_in
from kafkajit.values.formats import READABLE
from kafkajit.values.framing import AUTO, HEADERS
from kafkajit.values.header_framing import framed_by_headers
from kafkajit.values.layout import RECURSION, Types, Wanted
from kafkajit.values.registry import SCHEMAS_TOPIC, segments_in
from kafkajit.values.schema import PROTOBUF, Schema
from kafkajit.values.schema_files import named_schema
from kafkajit.values.schemas import Schemas, SchemaSource
from kafkajit.values.status import Decoded
from kafkajit.walk.damage import DROPMALFORMED, FAILFAST, PERMISSIVE

AUTO_SCHEMAS = "auto"
PARTS = ("key", "value")
RAW = {"rawKey": "key", "rawValue": "value"}
ERRORS = {"keyError": "key", "valueError": "value"}
_BINARY = RECORD_COLUMNS["value"].type
_PLACE = ("topic", "partition", "offset")


class PartitionFolder(NamedTuple):
    """The folder of a partition, and how it was reached: URIs may have credentials."""

    path: str
    locations: tuple[str, ...] = ()
    keys: PrivateKeys = NO_KEYS

    @property
    def location(self) -> str:
        return as_location(self.path, self.locations)

    def registry(self) -> str | None:
        """The location of a registry's log beside the folder."""
        parent = self.path.rpartition("/")[0]
        for path in (f"{parent}/{SCHEMAS_TOPIC}-0", f"{self.path}/{SCHEMAS_TOPIC}-0"):
            location = as_location(path, self.locations)
            if segments_in(location):
                return location
        return None


@dataclass(frozen=True)
class TypedColumns:
    """The schemas into which keys and values are read."""

    readers: dict[str, Schema]  # by the names of the columns that are typed
    schemas: Schemas | None  # those that keys and values name; None: they were written with these
    messages: Mapping[str, str] | None = None  # of Protobuf, by column
    mode: str = FAILFAST
    framing: int = AUTO
    recursion: int = RECURSION
    types: Types = Types.OWN

    def schema(self, plain: pa.Schema) -> pa.Schema:
        """All columns of records with these types."""
        fields = [
            self.field(field.name) if field.name in self.readers else field for field in plain
        ]
        return pa.schema([*fields, *map(self.field, self.names)])

    @property
    def names(self) -> list[str]:
        """The columns that there are beside those of plain records."""
        names = [name for name, part in RAW.items() if part in self.readers]
        if self.mode == PERMISSIVE:
            names += [name for name, part in ERRORS.items() if part in self.readers]
        return names

    def asked(self, columns: Iterable[str] | None, known: Iterable[str]) -> pa.Schema:
        """The columns of these names; "value.customer.id" is a field of a value."""
        names = known if columns is None else [columns] if isinstance(columns, str) else columns
        inside: dict[str, list[str] | None] = {}
        for name in names:
            part, _, path = name.partition(".")
            if part not in self.readers or not path:
                inside[name] = None
            elif inside.setdefault(part, []) is not None:
                inside[part] += [path]  # type: ignore[operator]  # it is not None
        all_ = check_columns(inside, [*known, *self.names])
        if columns is None and self.mode == PERMISSIVE:
            all_ += [name for name, part in ERRORS.items() if part in self.readers]
        return pa.schema(
            [
                self.field(name, inside.get(name))
                if name in self.readers or name in self.names
                else pa.field(name, RECORD_COLUMNS[name].type)
                for name in all_
            ]
        )

    def field(self, name: str, columns: Iterable[str] | None = None) -> pa.Field:
        """A column; `columns` names the fields that are wanted of a key or a value."""
        if name in self.readers:
            return pa.field(name, self._decoder(name, columns).type)
        return pa.field(name, _BINARY if name in RAW else pa.string())

    def _decoder(self, part: str, columns: Iterable[str] | Wanted) -> ValueDecoder:
        return ValueDecoder(
            self.readers[part],
            self.schemas,
            self.framing,
            columns,
            stops=self.mode == FAILFAST,
            message=(self.messages or {}).get(part),
            recursion=self.recursion,
            types=self.types,
        )

    def raw_schema(self, asked: pa.Schema) -> pa.Schema:
        """The columns of plain records from which `rows` makes the columns that are asked for."""
        names = dict.fromkeys(RAW.get(name, name) for name in asked.names if name not in ERRORS)
        used = self._used(asked)
        names |= dict.fromkeys(used)
        if self.framing == HEADERS and used:
            names |= {"headers": None}
        if self.mode == FAILFAST and used:
            names |= dict.fromkeys(_PLACE)  # for an error
        return pa.schema(
            [
                asked.field(name)
                if name in asked.names and name not in self.readers
                else pa.field(name, RECORD_COLUMNS[name].type)
                for name in names
            ]
        )

    def _used(self, asked: pa.Schema) -> list[str]:
        """The columns to decode for those that are asked for; a malformed one may drop its row."""
        if self.mode == DROPMALFORMED:
            return list(self.readers)
        names = {ERRORS.get(name, name) for name in asked.names}
        return [part for part in self.readers if part in names]

    def rows(self, batches: Iterable[pa.RecordBatch], asked: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Rows of the columns that are asked for, from those of `raw_schema`."""
        decoders = {
            part: self._decoder(part, _fields_of(asked.field(part).type))
            if part in asked.names
            else self._decoder(part, [])
            for part in self._used(asked)
        }
        for batch in batches:
            yield from self._typed(batch, asked, decoders)

    def _typed(
        self, batch: pa.RecordBatch, asked: pa.Schema, decoders: dict[str, ValueDecoder]
    ) -> Iterator[pa.RecordBatch]:
        parts: dict[str, Decoded] = {}
        is_sound = np.ones(batch.num_rows, dtype=bool)
        for part, decoder in decoders.items():
            values = _framed(batch, part, self.framing)
            decoder.settle([values])
            parts[part] = decoded = decoder.decode(values)
            if decoded.bad.size and self.mode == FAILFAST:
                raise _error(batch, part, decoded)
            is_sound[decoded.bad] = False
        columns = []
        for field in asked:
            if field.name in parts:
                column = conform(parts[field.name].values, field.type)
            elif field.name in ERRORS:
                column = error_column(parts[ERRORS[field.name]])
            else:
                column = batch[RAW.get(field.name, field.name)]
            columns.append(column)
        typed = pa.RecordBatch.from_arrays(columns, schema=asked)
        if self.mode == PERMISSIVE or is_sound.all():
            yield typed
        else:
            yield typed.filter(pa.array(is_sound))


def typed_columns(
    topics: Iterable[str | None],
    key_schema: Any,
    value_schema: Any,
    source: SchemaSource | None,
    *,
    beside: PartitionFolder | None,
    is_auto: bool = False,
    messages: tuple[str | None, str | None] = (None, None),
    **options: Any,
) -> TypedColumns | None:
    """The schemas for records of these topics: those that are named, else the topics' newest.

    `messages` are the Protobuf messages of keys and of values; without a name, the first that a
    partition has.

    If `source` is AUTO_SCHEMAS, these are in the registry's log beside a partition's folder. With
    `is_auto`, as then, columns are not typed if there are no schemas for the topics.
    """
    if isinstance(source, str) and source == AUTO_SCHEMAS:
        is_auto = True
        source = None if beside is None else beside.registry()
    schemas = None if source is None else Schemas.of(source)
    topics = sorted({topic for topic in topics if topic is not None})
    readers = {}
    for part, named in zip(PARTS, (key_schema, value_schema), strict=True):
        if named is not None:
            readers[part] = named_schema(named)
        elif schemas is not None:
            newest = {topic: schemas.newest(f"{topic}-{part}") for topic in topics}
            found = {topic: it for topic, it in newest.items() if it and it.type in READABLE}
            if len({(it.text, it.references) for it in found.values()}) > 1:
                raise InvalidSchemaError(
                    f"the {part}s of the topics {', '.join(found)} have different schemas",
                    advice=f"read one topic at a time, or name the {part}'s schema",
                )
            if found:
                readers[part] = next(iter(found.values()))
    pairs = zip(PARTS, messages, strict=True)
    named = {part: message for part, message in pairs if message is not None}
    for part, message in named.items():
        if part not in readers:
            raise InvalidSchemaError(
                f"the message {message} is named, but no schema of {part}s",
                advice=f"also name the {part}'s schema",
            )
    if not readers and not is_auto:
        known = sorted({schema.subject for schema in schemas or () if schema.subject})
        raise InvalidSchemaError(
            f"no schema is known for the topic {', '.join(topics) or '(unknown)'}; there are "
            f"schemas of {', '.join(known) or 'no subjects'}",
            advice="name the value's schema",
        )
    if not readers:
        return None
    rest = {part: schema for part, schema in readers.items() if part not in named}
    named |= _messages(rest, schemas, options.get("framing", AUTO), beside)
    return TypedColumns(readers, schemas, named, **options)


def _framed(records: pa.RecordBatch, part: str, framing: int) -> pa.Array:
    """Keys or values with what names their schema in front."""
    if framing != HEADERS:
        return records[part]
    return framed_by_headers(records[part], records["headers"], part)


def _messages(
    readers: Mapping[str, Schema],
    schemas: Schemas | None,
    framing: int,
    folder: PartitionFolder | None,
) -> dict[str, str]:
    """The messages that keys and values have by the first of them in a folder, if there is one."""
    messages: dict[str, str] = {}
    for part, schema in readers.items():
        if schema.type != PROTOBUF or folder is None:
            continue
        first = first_records_in(folder.location, part, folder.keys)
        if first is not None:
            name = message_in(_framed(first, part, framing), schema, schemas, framing)
            messages |= {} if name is None else {part: name}
    return messages


def _error(batch: pa.RecordBatch, part: str, decoded: Decoded) -> RecordDeserializationError:
    """The error of the first malformed key or value, in Kafka's words."""
    row = int(decoded.bad[0])
    topic, partition, offset = (
        batch[name][row].as_py() if name in batch.schema.names else None for name in _PLACE
    )
    place = f"at offset {offset}" if offset is not None else f"of row {row}"
    if topic is not None:
        place = f"for partition {topic}-{partition} {place}"
    return RecordDeserializationError(
        f"Error deserializing {part.upper()} {place}: {decoded.words(row)}"
    )


def _fields_of(type_: pa.DataType) -> Wanted:
    """The fields of a type by their names, which may have dots; None if it has none."""
    fields = _inner_fields(type_)
    return None if fields is None else {it.name: _fields_of(it.type) or None for it in fields}


def _inner_fields(type_: pa.DataType) -> list[pa.Field] | None:
    """The fields of a struct, or of the structs in a list or a map."""
    if pa.types.is_struct(type_):
        return list(type_)
    if pa.types.is_map(type_):
        return _inner_fields(type_.item_type)
    return _inner_fields(type_.value_type) if pa.types.is_list(type_) else None


def conform(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """An array that is not a slice, with only the fields of a type, in its order."""
    if array.type == type_:
        return array
    buffers = array.buffers()
    if pa.types.is_struct(type_):
        children = [conform(array.field(field.name), field.type) for field in type_]
        kept = buffers[:1]
    elif pa.types.is_map(type_):
        parts = [conform(array.keys, type_.key_type), conform(array.items, type_.item_type)]
        entries = pa.struct([type_.key_field, type_.item_field])
        children = [pa.Array.from_buffers(entries, len(parts[0]), [None], children=parts)]
        kept = buffers[:2]
    else:
        children = [conform(array.values, type_.value_type)]
        kept = buffers[:2]
    return pa.Array.from_buffers(type_, len(array), kept, children=children)
