"""Columns of imported files → the columns of records."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from kafkajit.format.moment import milliseconds
from kafkajit.schema import HEADERS_TYPE, RECORD_COLUMNS, TIMESTAMP_TYPE
from kafkajit.values.arrow_text import text_of

_SUFFIX = "Base64"
_MILLIS = pa.timestamp("ms")


@dataclass(frozen=True)
class InputColumns:
    """The columns that hold keys, values and timestamps; by default those of these names."""

    key: str = "key"
    value: str = "value"
    timestamp: str = "timestamp"
    keeps_offsets: bool = True

    def records(self, rows: pa.RecordBatch, folders: dict[str, str]) -> pa.RecordBatch:
        """Records of rows, and of the columns in the path of their file."""
        if "corruption" in rows.schema.names:  # of an export in the mode PERMISSIVE
            rows = rows.filter(rows["corruption"].is_null())
        for name in (self.value, *({self.key, self.timestamp} - {"key", "timestamp"})):
            if not any(_sources(name, rows)):
                there = ", ".join(rows.schema.names)
                raise ValueError(f"there is no column {name!r}: name it; there are {there}")
        columns = {}
        for name in RECORD_COLUMNS:
            source = {"key": self.key, "value": self.value, "timestamp": self.timestamp}
            if name == "offset" and not self.keeps_offsets:
                continue
            for found, is_base64 in _sources(source.get(name, name), rows):
                columns[name] = _column(name, rows[found], is_base64)
                break
            else:
                if name in folders and name != "date":
                    type_ = RECORD_COLUMNS[name].type
                    columns[name] = pa.array([folders[name]] * rows.num_rows).cast(type_)
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def ignored(self, rows: pa.RecordBatch) -> list[str]:
        """The columns that are not imported."""
        used = {self.key, self.value, self.timestamp, *RECORD_COLUMNS, "corruption"}
        used |= {"rawKey", "rawValue", "keyError", "valueError", f"key{_SUFFIX}", f"value{_SUFFIX}"}
        return [name for name in rows.schema.names if name not in used]


def _sources(name: str, rows: pa.RecordBatch) -> Iterator[tuple[str, bool]]:
    """The columns that may have a column's bytes, and whether they are base64."""
    raw = f"raw{name[:1].upper()}{name[1:]}"
    for found, is_base64 in ((raw, False), (f"{name}{_SUFFIX}", True), (name, False)):
        if found in rows.schema.names and (found == name or name in ("key", "value")):
            yield found, is_base64


def _column(name: str, column: pa.Array, is_base64: bool) -> pa.Array:
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    if name in ("key", "value"):
        return _decoded(column) if is_base64 else _bytes(column)
    if name == "timestamp":
        return _timestamps(column)
    if name == "headers":
        return _headers(column)
    type_ = RECORD_COLUMNS[name].type
    if pt.is_boolean(type_) and pt.is_string(column.type):
        return pc.equal(column, "true")
    try:
        return column.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"column {name} must be {type_}, not {column.type}: {reason}") from None


def _bytes(column: pa.Array) -> pa.Array:
    kind = column.type
    if pt.is_binary(kind) or pt.is_string(kind):
        return column.cast(pa.binary())
    if pt.is_null(kind):
        return pa.nulls(len(column), pa.binary())
    if not (pt.is_large_binary(kind) or pt.is_large_string(kind)):
        column = text_of(column, as_json=pt.is_nested(kind))
    return column.cast(pa.large_binary()).cast(pa.binary())


def _decoded(column: pa.Array) -> pa.Array:
    contents = [
        None if text is None else b64decode(text, validate=True) for text in column.to_pylist()
    ]
    return pa.array(contents, pa.binary())


def _timestamps(column: pa.Array) -> pa.Array:
    kind = column.type
    if pt.is_timestamp(kind):
        return column.cast(pa.timestamp("ms", kind.tz), safe=False).cast(TIMESTAMP_TYPE)
    if pt.is_integer(kind):
        return column.cast(pa.int64()).cast(TIMESTAMP_TYPE)
    if pt.is_null(kind):
        return pa.nulls(len(column), TIMESTAMP_TYPE)
    if not (pt.is_string(kind) or pt.is_large_string(kind)):
        raise ValueError(f"a timestamp must be a time, text or milliseconds, not {kind}")
    try:
        return column.cast(TIMESTAMP_TYPE)
    except pa.ArrowInvalid:
        times = [None if text is None else milliseconds(text) for text in column.to_pylist()]
        return pa.array(times, pa.int64()).cast(TIMESTAMP_TYPE)


def _headers(column: pa.Array) -> pa.Array:
    kind = column.type
    if kind == HEADERS_TYPE or pt.is_map(kind):
        return column
    if pt.is_null(kind) or column.null_count == len(column):
        return pa.nulls(len(column), HEADERS_TYPE)
    if pt.is_string(kind):
        lists = [None if text is None else json.loads(text) for text in column.to_pylist()]
    else:
        lists = column.to_pylist()
    return pa.array([_pairs(headers) for headers in lists], HEADERS_TYPE)


def _pairs(
    headers: list[dict[str, str | bytes | None]] | None,
) -> list[dict[str, str | bytes | None]] | None:
    if headers is None:
        return None
    pairs = []
    for header in headers:
        value = header.get("value")
        if header.get(f"value{_SUFFIX}") is not None:
            value = b64decode(header[f"value{_SUFFIX}"] or "", validate=True)
        elif isinstance(value, str):
            value = value.encode()
        pairs.append({"key": header["key"], "value": value})
    return pairs
