"""JSON Schema documents and the schemas that they refer to: `$ref`, `$id`, anchors, pointers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.json.types import MAX_DEPTH

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_MOST_SHOWN = 200  # characters of a place


class Place(NamedTuple):
    """A schema, and where it is: its base URI, its document and the JSON pointer there."""

    schema: Any
    base: str
    document: str
    pointer: str

    def inside(self, *keys: Any) -> Place:
        """A part of the schema, which is a schema itself."""
        schema, pointer = self.schema, self.pointer
        for key in keys:
            schema = schema[key]
            pointer += "/" + str(key).replace("~", "~0").replace("/", "~1")
        return Place(schema, _base_of(schema, self.base), self.document, pointer)

    def error(self, words: str) -> InvalidSchemaError:
        """An error about this place."""
        where = f"{self.document}#{self.pointer}" if self.document else f"#{self.pointer}"
        if len(where) > _MOST_SHOWN:
            where = f"{where[:_MOST_SHOWN]}…"
        return InvalidSchemaError(f"{words}, JSON Schema {where}")


def _base_of(schema: Any, base: str) -> str:
    own = _id_of(schema)
    return _joined(base, own) if own else base


def _joined(base: str, uri: str) -> str:
    """A URI as it is seen from another one; as it is, if one of them is malformed."""
    try:
        return urljoin(base, uri)
    except ValueError:
        return uri


def _id_of(schema: Any) -> str:
    """The `$id` of a schema without a fragment; draft 4 has `id`."""
    if not isinstance(schema, Mapping):
        return ""
    for name in ("$id", "id"):
        own = schema.get(name)
        if isinstance(own, str):
            return own.partition("#")[0]
    return ""


class Documents:
    """A schema, and others by their names."""

    def __init__(self, schema: Any, others: Mapping[str, Any]) -> None:
        self._places: dict[str, Place] = {}
        self._anchors: dict[tuple[str, str], Place] = {}
        self.root = self._document("", schema)
        for name, other in others.items():
            self._document(name, other)

    def _document(self, name: str, text: Any) -> Place:
        schema = text
        if isinstance(text, (str, bytes)):
            try:
                schema = json.loads(text)
            except (ValueError, RecursionError) as error:
                shown = f"the schema {name!r}" if name else "a JSON Schema"
                raise InvalidSchemaError(f"{shown} must be JSON: {error}") from None
        place = Place(schema, _base_of(schema, name), name, "")
        self._places[name] = place
        for part in _parts(place):
            own = _id_of(part.schema)
            if own:
                self._places.setdefault(part.base, part)
                self._places.setdefault(own, part)
            for keyword in ("$anchor", "$dynamicAnchor", "$id", "id"):
                anchor = part.schema.get(keyword)
                if isinstance(anchor, str) and keyword.endswith("id"):
                    anchor = anchor[1:] if anchor.startswith("#") else None
                if isinstance(anchor, str):
                    self._anchors.setdefault((part.base, anchor), part)
        return place

    def reference(self, place: Place) -> Place | None:
        """The schema that a schema refers to, None if it refers to no other."""
        for keyword in _REFERENCES:
            if keyword in place.schema:
                return self._resolve(place, place.schema[keyword], keyword)
        return None

    def _resolve(self, place: Place, reference: Any, keyword: str) -> Place:
        if not isinstance(reference, str):
            raise place.error(f"a {keyword} must be a string, not {reference!r:.40}")
        uri, _, fragment = reference.partition("#")
        target = None
        if not uri:
            target = self._places.get(place.base) or self._places[place.document]
        for name in (uri, _joined(place.base, uri)):
            target = target or self._places.get(name)
        if target is None:
            raise place.error(f"the schema refers to {reference!r}, which does not exist")
        if fragment and not fragment.startswith("/"):
            found = self._anchors.get((target.base, unquote(fragment)))
            if found is None:
                raise place.error(f"the schema refers to {reference!r}, which does not exist")
            return found
        for key in unquote(fragment).split("/")[1:]:
            step: Any = key.replace("~1", "/").replace("~0", "~")
            try:
                if isinstance(target.schema, list) and step.isdecimal():
                    step = int(step)
                target = target.inside(step)
            except (KeyError, IndexError, TypeError, ValueError):  # of thousands of digits, too
                raise place.error(
                    f"the schema refers to {reference!r}, which does not exist"
                ) from None
        return target


def _parts(place: Place, depth: int = 0) -> Iterator[Place]:
    """All objects in a document, in the order of the text."""
    if depth > MAX_DEPTH:
        raise place.error(f"the schema is nested deeper than {MAX_DEPTH} levels")
    if isinstance(place.schema, Mapping):
        yield place
        for key in place.schema:
            if key not in ("enum", "const", "default", "examples"):
                yield from _parts(place.inside(key), depth + 1)
    elif isinstance(place.schema, list):
        for key in range(len(place.schema)):
            yield from _parts(place.inside(key), depth + 1)
