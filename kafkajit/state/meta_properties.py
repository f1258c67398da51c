"""meta.properties: the cluster and the node that a log folder belongs to (MetaProperties).

Reads the bytes, which are in java.util.Properties' format, into a row for each property, in the
file's order. As in Java, the last value of a repeated key counts. What MetaProperties refuses is
refused in its words: versions other than 0 (broker.id) and 1 (node.id and cluster.id), and
malformed ids. Other properties are kept as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kafkajit.errors import CorruptCheckpointError
from kafkajit.schema import META_PROPERTIES_COLUMNS, table_schema
from kafkajit.state.text_lines import parse_number, shown
from kafkajit.state.uuid import parse_uuid
from kafkajit.storage.source import Bytes, whole

META_PROPERTIES = "meta.properties"
# Kafka has no limit; it writes a few hundred bytes.
MAX_SIZE = 1 << 20

_WHITE_SPACE = " \t\f"
_LINE_END = re.compile("\r\n|\r|\n")
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f]++)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*+(?:[=:][ \t\f]*+)?")
_ESCAPED = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_MEANINGS = {"t": "\t", "r": "\r", "n": "\n", "f": "\f"}
_TRIMMED = "".join(map(chr, range(33)))  # what String.trim removes


class _MalformedEscapeError(ValueError):
    """A backslash and u are not followed by four hexadecimal digits."""


def read_meta_properties(source: Any) -> pa.Table:
    r"""Read a meta.properties file, in `kafkajit.schema.META_PROPERTIES_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.

    >>> read_meta_properties(b"version=0\nbroker.id=7\n").to_pylist()
    [{'key': 'version', 'value': '0'}, {'key': 'broker.id', 'value': '7'}]
    """
    return parse_meta_properties(*whole(source))


def parse_meta_properties(content: Bytes, path: str | None = None) -> pa.Table:
    """As `read_meta_properties`, from bytes and the path that they came from."""
    if content.size > MAX_SIZE:
        raise CorruptCheckpointError(
            f"the file has {content.size} bytes, and Kafka writes no meta.properties that large",
            path=path,
        )
    properties: dict[str, str] = {}
    for number, line in _logical_lines(content.tobytes().decode("latin-1")):
        key_end = _KEY.match(line).end()  # type: ignore[union-attr]  # it matches the empty text
        value_start = _SEPARATOR.match(line, key_end).end()  # type: ignore[union-attr]
        try:
            properties[_unescaped(line[:key_end])] = _unescaped(line[value_start:])
        except _MalformedEscapeError as error:
            raise CorruptCheckpointError(str(error), path=path, line=number) from error
    complaint = _complaint(properties)
    if complaint is not None:
        raise CorruptCheckpointError(complaint, path=path)
    columns = [list(properties), list(properties.values())]
    return pa.Table.from_arrays(
        [pa.array(column, pa.string()) for column in columns],
        schema=table_schema(META_PROPERTIES_COLUMNS),
    )


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join lines with their continuations, and number them by the first; skip comments."""
    parts: list[str] = []  # none of them empty
    first = 0
    for number, line in enumerate(_LINE_END.split(text), start=1):
        line = line.lstrip(_WHITE_SPACE)
        if not parts:
            if line.startswith(("#", "!")):
                continue
            first = number
        continues = len(line) % 2 != len(line.rstrip("\\")) % 2
        if continues:
            line = line[:-1]
        if line:
            parts.append(line)
        if parts and not continues:
            yield first, "".join(parts)
            parts = []
    if parts:
        yield first, "".join(parts)


def _unescaped(text: str) -> str:
    def meaning(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped == "u":
            raise _MalformedEscapeError("Malformed \\uxxxx encoding.")
        return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _MEANINGS.get(escaped, escaped)

    utf16 = _ESCAPED.sub(meaning, text).encode("utf-16-le", "surrogatepass")
    return utf16.decode("utf-16-le", "replace")  # pairs become one character


def _complaint(properties: dict[str, str]) -> str | None:
    """Kafka's reason to refuse these properties; None if it accepts them."""
    stated = properties.get("version", "0")
    version = parse_number(stated.strip(_TRIMMED), 32)
    if version is None:
        return f"Invalid meta.properties version string '{shown(stated)}'"
    if version not in (0, 1):
        return f"Unknown meta.properties version number {version}"
    id_key = "node.id" if version else "broker.id"
    if version and id_key not in properties:
        return f"Failed to find {id_key}"
    if id_key in properties and parse_number(properties[id_key], 32) is None:
        return f"Unable to read {id_key} as a base-10 number."
    directory_id = properties.get("directory.id")
    if directory_id is not None and parse_uuid(directory_id) is None:
        return f"Unable to read directory.id as a Uuid: {shown(directory_id)}"
    if version and "cluster.id" not in properties:
        return "cluster.id was not found."
    return None
