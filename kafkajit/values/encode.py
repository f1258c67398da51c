"""encode_values: typed Arrow columns → keys and values with a schema."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa

from kafkajit.arrow.arrays import bits
from kafkajit.values.avro.pieces import constant, joined, pieces_of
from kafkajit.values.avro.schema import AvroType, Union, fingerprint, parse_schema
from kafkajit.values.framing import (
    APICURIO8,
    AUTO,
    BARE,
    CONFLUENT,
    FRAMINGS,
    GLUE,
    SINGLE_OBJECT,
)
from kafkajit.values.schema_files import schema_text


def encode_values(
    values: pa.Array | pa.ChunkedArray,
    schema: Any,
    *,
    schema_id: int | str | None = None,
    framing: str | None = None,
) -> pa.Array | pa.ChunkedArray:
    r"""Encode Arrow columns as Avro keys or values, the way back from `decode_values`.

    >>> import kafkajit, pyarrow
    >>> schema = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
    >>> values = kafkajit.encode_values(pyarrow.array([{"id": 42}]), schema, schema_id=7)
    >>> values.to_pylist()
    [b'\x00\x00\x00\x00\x07T']

    Args:
        values: an Arrow array of the types that `decode_values` returns for the schema, or of types
            that can be cast to these. Fields may be in any order. NULL stays NULL, unless the
            schema is a union with null.
        schema: the schema, as text, JSON or a path to an .avsc file.
        schema_id: the id in front of each value; the UUID of the schema's version for glue.
        framing: confluent, apicurio8, glue, single-object or bare. By default confluent with a
            schema_id, and bare without one.
    """
    type_ = parse_schema(schema_text(schema))
    name = framing or ("bare" if schema_id is None else "confluent")
    if name not in FRAMINGS or FRAMINGS[name] == AUTO:
        names = ", ".join(name for name, number in FRAMINGS.items() if number != AUTO)
        raise ValueError(f"framing must be one of {names}, not {name!r}")
    header = _header(FRAMINGS[name], name, schema_id, type_)
    if isinstance(values, pa.ChunkedArray):
        chunks = [_encoded(chunk, type_, header) for chunk in values.chunks]
        return pa.chunked_array(chunks, pa.binary())
    return _encoded(values, type_, header)


def _header(framing: int, name: str, schema_id: int | str | None, type_: AvroType) -> bytes:
    if framing == SINGLE_OBJECT:
        return b"\xc3\x01" + fingerprint(type_).to_bytes(8, "little")
    if framing == BARE:
        return b""
    if schema_id is None:
        raise ValueError(f"framing {name} needs a schema_id")
    if framing == GLUE:
        return b"\x03\x00" + uuid.UUID(str(schema_id)).bytes
    size = {CONFLUENT: 4, APICURIO8: 8}[framing]
    return b"\x00" + int(schema_id).to_bytes(size, "big", signed=True)


def _encoded(array: pa.Array, type_: AvroType, header: bytes) -> pa.Array:
    # Parts of an array that begins at another array's first row need no offsets.
    if array.offset:
        array = pa.concat_arrays([array])
    is_there = np.ones(len(array), dtype=bool)
    is_nullable = isinstance(type_, Union) and "null" in {b.kind for b in type_.branches}
    if not is_nullable and type_.kind != "null":
        is_there = ~np.asarray(array.is_null())
    pieces = [constant(header, is_there), *pieces_of(type_, array, is_there, "")]
    data, offsets = joined(pieces, len(array))
    if offsets[-1] >= 2**31:
        raise OverflowError("the values have more than 2 GiB; encode fewer at once")
    validity = None if is_there.all() else bits(is_there)
    buffers = [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(array), buffers)
