"""decode_values: keys and values with a schema → typed Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kafkajit.errors import RecordDeserializationError
from kafkajit.values.decoder import ValueDecoder
from kafkajit.values.formats import READABLE
from kafkajit.values.framing import FRAMINGS
from kafkajit.values.layout import RECURSION
from kafkajit.values.schema import JSON
from kafkajit.values.schemas import SchemaSource
from kafkajit.values.status import Decoded
from kafkajit.walk.damage import FAILFAST, PERMISSIVE, mode_named

Framing = Literal["auto", "confluent", "apicurio8", "glue", "single-object", "bare"]

_TYPES = (pa.binary(), pa.large_binary(), pa.string(), pa.large_string())


def decode_values(
    values: Any,
    schema: Any = None,
    *,
    schemas: SchemaSource | None = None,
    format: str | None = None,  # noqa: A002  # what callers look for
    framing: Framing = "auto",
    columns: Iterable[str] | None = None,
    message: str | None = None,
    mode: str = FAILFAST,
    recursion: int = RECURSION,
) -> pa.Array | pa.ChunkedArray:
    r"""Decode keys or values that are Avro, Protobuf or JSON into Arrow columns.

    >>> import kafkajit
    >>> schema = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
    >>> kafkajit.decode_values([b"\0\0\0\0\7\x54"], schemas={7: schema}).to_pylist()
    [{'id': 42}]

    Args:
        values: an Arrow array of binary, chunked or not, or bytes. NULL stays NULL.
        schema: the schema to read into, as text, JSON or a path to an .avsc or .proto file. Without
            it, the newest version of the subject whose schemas the values name.
        schemas: the schemas that values name: a mapping of ids to schemas, a file or a folder of
            .avsc or .proto files, a registry's JSON, or what `read_schemas` returns. Without them,
            all values have been written with `schema`.
        format: "avro", "protobuf" or "json", if `schema` does not tell. JSON without a schema gets
            the type that fits all values. Its schema may also be an Arrow type.
        framing: the bytes in front of a value. "auto" recognizes the framing of each value; without
            schemas, the first values decide whether they have one.
        columns: the names of the fields to decode, such as "customer.id" for a field inside another
            one; the others are skipped.
        message: the name of the Protobuf message to read into. By default it is that of the first
            value, or the first of the .proto file if values have no indexes in front.
        mode: FAILFAST raises an error at the first value that is malformed. PERMISSIVE returns a
            struct of `value` and `error`, of which one is NULL. DROPMALFORMED leaves malformed
            values out.
        recursion: how often a type may contain itself. A value that is nested deeper is malformed.
    """
    mode = mode_named(mode)
    if framing not in FRAMINGS:
        raise ValueError(f"framing must be one of {', '.join(FRAMINGS)}, not {framing!r}")
    type_ = None if format is None else format.upper()
    if type_ is not None and type_ not in READABLE:
        known = ", ".join(map(str.lower, READABLE))
        raise ValueError(f"format must be one of {known}, not {format!r}")
    if schema is None and schemas is None and type_ != JSON:
        raise ValueError("name a schema to read into, or schemas, or both")
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = pa.array(values, pa.binary())
    if values.type not in _TYPES:
        raise TypeError(f"values must be binary, not {values.type}")
    decoder = ValueDecoder(
        schema,
        schemas,
        FRAMINGS[framing],
        columns,
        stops=mode == FAILFAST,
        type_=type_,
        message=message,
        recursion=recursion,
    )
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    decoder.settle(chunks)
    decoded = []
    first = 0
    for chunk in chunks:
        decoded.append(_by_mode(decoder.decode(chunk), mode, first))
        first += len(chunk)
    if not isinstance(values, pa.ChunkedArray):
        return decoded[0]
    type_ = decoder.type if mode != PERMISSIVE else _with_error(decoder.type)
    return pa.chunked_array(decoded, type_)


def _by_mode(decoded: Decoded, mode: str, first: int) -> pa.Array:
    """An array in the form of a mode; `first` is the number of its first value."""
    if mode == PERMISSIVE:
        arrays = [decoded.values, error_column(decoded)]
        return pa.StructArray.from_arrays(arrays, fields=list(_with_error(decoded.values.type)))
    if not decoded.bad.size:
        return decoded.values
    if mode == FAILFAST:
        row = int(decoded.bad[0])
        raise RecordDeserializationError(decoded.words(row), row=first + row)
    return decoded.values.filter(sound_rows(decoded))


def _with_error(type_: pa.DataType) -> pa.DataType:
    return pa.struct([("value", type_), ("error", pa.string())])


def error_column(decoded: Decoded) -> pa.Array:
    """The reason why each value is malformed; NULL if it is not."""
    errors = np.full(len(decoded.values), None, dtype=object)
    for row in decoded.bad.tolist():
        errors[row] = decoded.words(row)
    return pa.array(errors, pa.string())


def sound_rows(decoded: Decoded) -> pa.Array:
    """Whether each value is not malformed."""
    is_sound = np.ones(len(decoded.values), dtype=bool)
    is_sound[decoded.bad] = False
    return pa.array(is_sound)
