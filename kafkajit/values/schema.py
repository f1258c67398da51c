"""A schema with the names that a registry has for it."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, NamedTuple

from kafkajit.errors import InvalidSchemaError

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"


_TYPES = {"schema": str, "schemaType": str, "subject": str, "version": int, "id": int}

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
    aliases: tuple[str, ...] = ()  # of the subject
    metadata: str | None = None
    offset: int | None = None


def registered(given: Mapping[str, Any], *, offset: int | None = None) -> Schema:
    """A schema from a registry's JSON. Other JSON raises an InvalidSchemaError."""
    try:
        return _registered(given, offset)
    except InvalidSchemaError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidSchemaError(f"it is not a schema of a registry: {error!r}") from None


def _registered(given: Mapping[str, Any], offset: int | None) -> Schema:
    for name, type_ in _TYPES.items():
        value = given.get(name)
        if not isinstance(value, (type_, NoneType)) or isinstance(value, bool):
            raise InvalidSchemaError(f"a schema cannot have the {name} {value!r:.60}")
        if isinstance(value, int) and not -(2**31) <= value < 2**31:
            raise InvalidSchemaError(f"the {name} of a schema does not fit 32 bits: {value}")
        if isinstance(value, str):
            value.encode()
    if not isinstance(given.get("schema"), str):
        raise InvalidSchemaError("the text of a schema is missing")
    subject = given.get("subject")
    references = tuple(
        Reference(
            _name(reference["name"]), _name(reference["subject"]), _int32(reference["version"])
        )
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
        context=context_of(subject),
        metadata=None if metadata is None else json.dumps(metadata),
        offset=offset,
    )


def _name(value: Any) -> str:
    name = str(value)
    name.encode()  # half a surrogate pair is not UTF-8
    return name


def _int32(value: Any) -> int:
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise InvalidSchemaError(f"the version of a schema must be an int32, not {value!r:.60}")
    return value


def context_of(subject: str | None) -> str:
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
