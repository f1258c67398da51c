"""decode_json: values that are JSON → typed Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kafkajit.errors import RecordDeserializationError
from kafkajit.storage.source import Int64s
from kafkajit.values.framing import AUTO, FRAMINGS, HEADER_SIZES, UNINFLATED, places, split_frames
from kafkajit.values.json.inference import infer_column
from kafkajit.values.json.json_schema import RECURSION, json_column, parse_json_schema
from kafkajit.values.json.reading import Bodies, DecodedJson, JsonReader
from kafkajit.values.json.selection import selected
from kafkajit.values.json.types import Column, column_of
from kafkajit.walk.damage import FAILFAST, PERMISSIVE, mode_named

_TYPES = (pa.binary(), pa.large_binary(), pa.string(), pa.large_string())


def decode_json(
    values: Any,
    schema: Any = None,
    *,
    others: Mapping[str, Any] | None = None,
    framing: str = "auto",
    columns: Iterable[str] | None = None,
    mode: str = FAILFAST,
    recursion: int = RECURSION,
    infer_from: int | None = None,
) -> pa.Array | pa.ChunkedArray:
    r"""Decode JSON into Arrow columns.

    >>> decode_json([b'{"id": 42, "tags": ["a"]}', b'\0\0\0\0\7{"id": 0.5}', None]).to_pylist()
    [{'id': 42.0, 'tags': ['a']}, {'id': 0.5, 'tags': None}, None]

    Args:
        values: an Arrow array of binary or strings, chunked or not, or bytes. NULL stays NULL.
        schema: a JSON Schema as text or JSON, or an Arrow type. Without it, the type is that which
            fits all values.
        others: the schemas that it refers to, by their names.
        framing: the name of what stands in front of a value. JSON does not begin with any of it, so
            "auto" is always right.
        columns: names of fields, "customer.id" for one inside; the others are skipped.
        mode: FAILFAST raises an error at the first value that is malformed. PERMISSIVE returns a
            struct of `value` and `error`, of which one is NULL. DROPMALFORMED leaves it out.
        recursion: the levels of a type that contains itself. Deeper parts become JSON text.
        infer_from: the number of values that decide the type, without a schema.
    """
    mode = mode_named(mode)
    if framing not in FRAMINGS:
        raise ValueError(f"framing must be one of {', '.join(FRAMINGS)}, not {framing!r}")
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = pa.array(values, pa.binary())
    if values.type not in _TYPES:
        raise TypeError(f"values must be binary, not {values.type}")
    names = None if columns is None else list(columns)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    if schema is None:
        together = pa.concat_arrays(chunks) if len(chunks) != 1 else chunks[0]
        inferred = infer_column(bodies_of(together, FRAMINGS[framing]), infer_from)
        column = selected(inferred, names)
    elif isinstance(schema, pa.DataType):
        column = selected(column_of(schema), names)
    else:
        column = json_column(parse_json_schema(schema, others or {}), names, recursion)
    reader = JsonReader(column, stops=mode == FAILFAST)
    decoded = []
    first = 0
    for chunk in chunks:
        found = reader.decode(*bodies_of(chunk, FRAMINGS[framing]))
        decoded.append(_by_mode(found, mode, first))
        first += len(chunk)
    if not isinstance(values, pa.ChunkedArray):
        return decoded[0]
    return pa.chunked_array(decoded, column.type if mode != PERMISSIVE else _with_error(column))


def bodies_of(values: pa.Array, framing: int = AUTO) -> Bodies:
    """The bodies of values, behind their framing. A NULL ends before it starts."""
    content, starts, ends = places(values)
    frames = split_frames(content, starts, ends, framing)
    sizes = np.array([HEADER_SIZES[key.framing] for key in frames.keys] or [0], dtype=np.int64)
    bodies, stops = frames.starts.copy(), frames.ends.copy()
    if UNINFLATED in frames.keys:
        # Nothing is left of a value whose compression is broken.
        is_broken = frames.numbers == frames.keys.index(UNINFLATED)
        stops[is_broken] = bodies[is_broken]
    if values.null_count:
        is_null = np.asarray(values.is_null())
        bodies[is_null] = stops[is_null] + 1
    heads: Int64s = sizes[frames.numbers]
    return Bodies(frames.content, bodies, stops, heads)


def _with_error(column: Column) -> pa.DataType:
    return pa.struct([("value", column.type), ("error", pa.string())])


def _by_mode(decoded: DecodedJson, mode: str, first: int) -> pa.Array:
    """An array in the form of a mode; `first` is the number of its first value."""
    values, bad = decoded.values, decoded.bad
    if mode == PERMISSIVE:
        errors = np.full(len(values), None, dtype=object)
        for row in bad.tolist():
            errors[row] = decoded.words(row)
        arrays = [values, pa.array(errors, pa.string())]
        return pa.StructArray.from_arrays(arrays, names=["value", "error"])
    if not bad.size:
        return values
    if mode == FAILFAST:
        row = int(bad[0])
        raise RecordDeserializationError(decoded.words(row), row=first + row)
    is_sound = np.ones(len(values), dtype=bool)
    is_sound[bad] = False
    return values.filter(pa.array(is_sound))
