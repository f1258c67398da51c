"""Schemas by the names that stand in front of values, and by their subjects."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Union

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.avro.schema import AvroType, fingerprint, parse_schema
from kafkajit.values.framing import APICURIO8, CONFLUENT, GLUE, SINGLE_OBJECT, SchemaKey

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"


@dataclass(frozen=True)
class Reference:
    """A schema that another one uses under a name."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    """A schema, as a registry knows it. One that comes from elsewhere has no subject and no id."""

    text: str
    type: str = AVRO
    id: int | None = None
    subject: str | None = None
    version: int | None = None
    references: tuple[Reference, ...] = ()
    guid: uuid.UUID | None = None
    is_deleted: bool = False
    context: str = "."
    metadata: str | None = None
    offset: int | None = None


SchemaSource = Union["Schemas", str, Path, Mapping[int, Any], Iterable[Schema]]


class Schemas:
    """A collection of schemas.

    >>> schemas = Schemas.of({7: '"string"'})
    >>> schemas.find(SchemaKey(CONFLUENT, 7)).text
    '"string"'
    """

    def __init__(self, schemas: Iterable[Schema] = ()) -> None:
        self._all = list(schemas)
        self._parsed: dict[Schema, AvroType] = {}

    @classmethod
    def of(cls, source: SchemaSource) -> Schemas:
        """From a mapping of ids to schemas, from a file or a folder of them, or as they are."""
        if isinstance(source, Schemas):
            return source
        if isinstance(source, Mapping):
            return cls(Schema(schema_text(text), id=int(id_)) for id_, text in source.items())
        if isinstance(source, (str, Path)):
            return cls(_files(Path(source)))
        return cls(source)

    def __iter__(self) -> Any:
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
        if key.framing == GLUE:
            return self._by_guid.get(key.uuid)
        if key.framing == SINGLE_OBJECT:
            return self._by_fingerprint.get(key.number % 2**64)
        return None

    def newest(self, subject: str) -> Schema | None:
        """The newest version of a subject that is not deleted; if all are, the newest of them."""
        versions = [schema for schema in self._all if schema.subject == subject]
        return max(
            versions, key=lambda schema: (not schema.is_deleted, schema.version or 0), default=None
        )

    def parsed(self, schema: Schema) -> AvroType:
        """The type of an Avro schema, with those that it refers to."""
        if schema not in self._parsed:
            others = [other.text for other in self._referred(schema, [])]
            self._parsed[schema] = parse_schema(schema.text, *others)
        return self._parsed[schema]

    def _referred(self, schema: Schema, found: list[Schema]) -> list[Schema]:
        """The schemas that one refers to, each behind those that it refers to itself."""
        for reference in schema.references:
            other = self._by_subject.get((reference.subject, reference.version))
            if other is None:
                raise InvalidSchemaError(
                    f"the schema refers to version {reference.version} of {reference.subject!r}, "
                    "which is not there"
                )
            if other not in found and other is not schema:
                self._referred(other, found)
                if other not in found:
                    found.append(other)
        return found


def schema_text(schema: Any) -> str:
    """A schema as text; a path to a file with a schema's suffix is read."""
    if isinstance(schema, bytes):
        return schema.decode()
    if isinstance(schema, Path) or (isinstance(schema, str) and schema.endswith(_SUFFIXES)):
        return Path(schema).read_text()
    return schema if isinstance(schema, str) else json.dumps(schema)


_SUFFIXES = (".avsc",)


def _files(path: Path) -> list[Schema]:
    """The schemas of a file or a folder."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES)
        if not files:
            raise InvalidSchemaError(f"there are no schemas (*.avsc) in {path}")
        return [schema for file in files for schema in _files(file)]
    if path.suffix == ".json":
        return list(_exported(json.loads(path.read_text())))
    return [Schema(path.read_text())]


def _exported(content: Any) -> Iterable[Schema]:
    """Schemas as a registry's REST interface lists them (GET /schemas)."""
    for given in content if isinstance(content, list) else [content]:
        yield registered(given)


def registered(given: Mapping[str, Any], *, offset: int | None = None) -> Schema:
    """A schema from a registry's JSON."""
    subject = given.get("subject")
    references = tuple(
        Reference(reference["name"], reference["subject"], reference["version"])
        for reference in given.get("references") or ()
    )
    metadata = given.get("metadata")
    return Schema(
        text=given["schema"],
        type=given.get("schemaType") or AVRO,
        id=given.get("id"),
        subject=subject,
        version=given.get("version"),
        references=references,
        guid=_guid(given, references),
        is_deleted=bool(given.get("deleted")),
        context=_context(subject),
        metadata=None if metadata is None else json.dumps(metadata),
        offset=offset,
    )


def _context(subject: str | None) -> str:
    """The context in a subject's name, :.context:name."""
    if subject is not None and subject.startswith(":."):
        return subject[1:].partition(":")[0]
    return "."


def _guid(given: Mapping[str, Any], references: Sequence[Reference]) -> uuid.UUID | None:
    """The name of a schema in the headers of newer registries: an MD5 of its content."""
    if given.get("guid"):
        return uuid.UUID(given["guid"])
    if given.get("md5"):
        return uuid.UUID(bytes=base64.b64decode(given["md5"]))
    if given.get("ruleSet"):
        return None
    digest = hashlib.md5(given["schema"].encode(), usedforsecurity=False)
    for reference in references:
        digest.update(reference.name.encode())
        digest.update(reference.subject.encode())
        digest.update(reference.version.to_bytes(4, "big", signed=True))
    metadata = given.get("metadata")
    if metadata:
        digest.update(b"\x01")
        for path, tags in sorted((metadata.get("tags") or {}).items()):
            digest.update(path.encode())
            for tag in sorted(tags):
                digest.update(tag.encode())
        for name, value in sorted((metadata.get("properties") or {}).items()):
            digest.update(name.encode() + value.encode())
        for name in sorted(metadata.get("sensitive") or ()):
            digest.update(name.encode())
    return uuid.UUID(bytes=digest.digest())
