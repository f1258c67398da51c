"""Schemas from files: .avsc files, a registry's JSON, and the log of a registry's topic."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

from kafkajit.errors import InvalidSchemaError
from kafkajit.places.locations import find_files
from kafkajit.places.uri import parts_of
from kafkajit.storage.named_file import read_named
from kafkajit.storage.stored_file import StoredFile
from kafkajit.system.acting import reading_for
from kafkajit.values.registry import schemas_in, segments_in
from kafkajit.values.schema import AVRO, JSON, PROTOBUF, Schema, registered

_TYPES = {".avsc": AVRO, ".proto": PROTOBUF}
SUFFIXES = tuple(_TYPES)
_EXPORT = ".json"
# A .proto file begins with a statement or a comment, an Avro schema with JSON or a type's name.
_PROTO = re.compile(r"\s*(//|/\*|(syntax|edition)\s*=|(package|import|option|message|enum)\s)")


def named_schema(schema: Any, type_: str | None = None) -> Schema:
    """A schema as a caller gives it: text, JSON or a path; with its format, which it may tell.

    >>> named_schema("message Order { int64 id = 1; }").type
    'PROTOBUF'
    """
    if isinstance(schema, Schema):
        return schema
    text = schema_text(schema)
    if type_ is None and _is_path(schema):
        type_ = _TYPES.get(_suffix(schema))
    return Schema(text, type_ or _type_of(text))


def _type_of(text: str) -> str:
    """The format of a schema by its text. Avro has no type object."""
    if _PROTO.match(text):
        return PROTOBUF
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return AVRO
    is_json = isinstance(schema, dict) and (
        "$schema" in schema or "properties" in schema or schema.get("type") == "object"
    )
    return JSON if is_json else AVRO


def _suffix(path: str | os.PathLike[str]) -> str:
    return "." + os.fspath(path).rpartition(".")[2]


def is_schema_text(text: str) -> bool:
    """Whether a text is a schema, and not the path of one."""
    return text.lstrip().startswith(("{", "[", '"')) or _PROTO.match(text) is not None


def _is_path(schema: Any) -> bool:
    """Whether this is the path of a schema. A schema may end like one, in a comment."""
    if not isinstance(schema, str):
        return isinstance(schema, os.PathLike)
    is_text = is_schema_text(schema) and re.search(r'[{;"]', schema) is not None
    return schema.endswith(SUFFIXES) and not is_text


def schema_text(schema: Any) -> str:
    """A schema as text; the path of an .avsc or .proto file is read."""
    if isinstance(schema, bytes):
        return schema.decode()
    if _is_path(schema):
        return read_named(schema).decode("utf-8")
    try:
        return schema if isinstance(schema, str) else json.dumps(schema)
    except RecursionError:
        raise InvalidSchemaError("the schema is nested too deeply") from None


def schemas_at(location: str) -> list[Schema]:
    """The schemas at a path or URI.

    A file is one schema (.avsc, .proto) or what a registry has answered (.json). A folder has such
    files, or the log of a registry's topic, or partitions' folders with one of that topic.
    """
    if parts_of(location) is None:
        with reading_for(location):
            return _schemas_at(location)
    return _schemas_at(location)


def _schemas_at(location: str) -> list[Schema]:
    if segments_in(location):
        return schemas_in(location)
    files = [file for file in find_files(location) if file.name.endswith((*SUFFIXES, _EXPORT))]
    if not files:
        raise InvalidSchemaError(
            "there are no .avsc or .proto files, no registry's .json and no log of _schemas",
            path=location,
        )
    return [schema for file in files for schema in _in_file(file)]


def _in_file(file: StoredFile) -> Iterator[Schema]:
    try:
        text = file.read().decode()
    except UnicodeDecodeError:
        raise InvalidSchemaError("a schema must be UTF-8 text", path=file.path) from None
    if file.name.endswith(SUFFIXES):
        yield Schema(text, _TYPES[_suffix(file.name)])
        return
    try:
        content = json.loads(text)
        # GET /schemas answers with a list, GET /subjects/…/versions/… with an object.
        for given in content if isinstance(content, list) else [content]:
            yield registered(given)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidSchemaError(
            f"it is not a registry's answer to GET /schemas: {error!r}", path=file.path
        ) from None
