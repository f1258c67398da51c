"""A schema with the names that a registry has for it."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"


# Whether a version is marked as deleted, or its record, too.
SOFT, HARD = "soft", "hard"


class Reference(NamedTuple):
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
    deletion: str | None = None
    context: str = "."
    metadata: str | None = None
    offset: int | None = None


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
        deletion=SOFT if given.get("deleted") else None,
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
