"""Schemas by the names that stand in front of values, and by their subjects."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Union

import pyarrow as pa

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.avro.schema import fingerprint, parse_schema
from kafkajit.values.framing import APICURIO8, CONFLUENT, GLUE, GUID, SINGLE_OBJECT, SchemaKey
from kafkajit.values.json.json_schema import parse_json_schema
from kafkajit.values.protobuf.proto_text import parse_proto
from kafkajit.values.registry import schemas_of
from kafkajit.values.schema import AVRO, JSON, PROTOBUF, Schema
from kafkajit.values.schema_files import named_schema, schemas_at

SchemaSource = Union[
    "Schemas", str, os.PathLike[str], pa.Table, Mapping[int, Any], Iterable[Schema]
]


_MOST_AROUND = 200  # schemas that refer to each other, one after the other


class Schemas:
    """A collection of schemas.

    >>> schemas = Schemas.of({7: '"string"'})
    >>> schemas.find(SchemaKey(CONFLUENT, 7)).text
    '"string"'
    """

    def __init__(self, schemas: Iterable[Schema] = ()) -> None:
        self._all = list(schemas)
        self._parsed: dict[Schema, Any] = {}

    @classmethod
    def of(cls, source: SchemaSource) -> Schemas:
        """From a mapping of ids to schemas, a path, a table, or as they are."""
        if isinstance(source, Schemas):
            return source
        if isinstance(source, Mapping):
            return cls(replace(named_schema(text), id=int(id_)) for id_, text in source.items())
        if isinstance(source, (str, os.PathLike)):
            return cls(schemas_at(os.fspath(source)))
        if isinstance(source, pa.Table):
            return cls(schemas_of(source))
        return cls(source)

    def __iter__(self) -> Iterator[Schema]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _by_id(self) -> dict[int, Schema]:
        # Ids are those of a context; the default one, which most have alone, comes first.
        by_id: dict[int, Schema] = {}
        for schema in sorted(self._all, key=lambda schema: schema.context != "."):
            if schema.id is not None:
                by_id.setdefault(schema.id, schema)
        return by_id

    @cached_property
    def _by_guid(self) -> dict[uuid.UUID, Schema]:
        return {schema.guid: schema for schema in self._all if schema.guid is not None}

    @cached_property
    def _by_fingerprint(self) -> dict[int, Schema]:
        found = {}
        for schema in self._all:
            if schema.type == AVRO:
                try:
                    found[fingerprint(self.parsed(schema))] = schema
                except InvalidSchemaError:
                    continue
        return found

    @cached_property
    def _by_subject(self) -> dict[tuple[str | None, int | None], Schema]:
        return {(schema.subject, schema.version): schema for schema in self._all}

    def find(self, key: SchemaKey) -> Schema | None:
        """The schema that a value names."""
        if key.framing in (CONFLUENT, APICURIO8):
            return self._by_id.get(key.number)
        if key.framing in (GLUE, GUID):
            return self._by_guid.get(key.uuid)
        if key.framing == SINGLE_OBJECT:
            return self._by_fingerprint.get(key.number % 2**64)
        return None

    def newest(self, subject: str) -> Schema | None:
        """The newest version of a subject, or of one with that alias, that is not deleted.

        If all are deleted, it is the newest of them.
        """
        # The registry looks at an alias first, also if there is a subject of that name.
        named = next((schema.subject for schema in self._all if subject in schema.aliases), subject)
        versions = [schema for schema in self._all if schema.subject == named]
        return max(
            versions,
            key=lambda schema: (schema.deletion is None, schema.version or 0),
            default=None,
        )

    def parsed(self, schema: Schema) -> Any:
        """The type of an Avro or JSON Schema, or a .proto file; with those that it refers to."""
        if schema not in self._parsed:
            others = self._referred(schema, [])
            if schema.type == PROTOBUF:
                self._parsed[schema] = parse_proto(schema.text, self._imports(schema, others))
            elif schema.type == JSON:
                self._parsed[schema] = parse_json_schema(schema.text, self._imports(schema, others))
            else:
                self._parsed[schema] = parse_schema(schema.text, *(it.text for it in others))
        return self._parsed[schema]

    def _imports(self, schema: Schema, others: Iterable[Schema]) -> dict[str, str]:
        """The texts of schemas by the names under which others refer to them."""
        return {
            reference.name: self._by_subject[reference.subject, reference.version].text
            for one in (schema, *others)
            for reference in one.references
        }

    def _referred(
        self, schema: Schema, found: list[Schema], around: tuple[Schema, ...] = ()
    ) -> list[Schema]:
        """The schemas that one refers to, each behind those that it refers to itself."""
        if schema in around:  # they refer to each other
            return found
        if len(around) == _MOST_AROUND:
            raise InvalidSchemaError("the schema refers to too long a chain of schemas")
        for reference in schema.references:
            other = self._by_subject.get((reference.subject, reference.version))
            if other is None:
                raise InvalidSchemaError(
                    f"the schema refers to version {reference.version} of {reference.subject!r}, "
                    "which does not exist"
                )
            if other not in found and other is not schema:
                self._referred(other, found, (*around, schema))
                if other not in found and other not in around:
                    found.append(other)
        return found
