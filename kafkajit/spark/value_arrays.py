"""Evaluates the SQL functions that read keys and values with a schema."""

from __future__ import annotations

import sys
from functools import lru_cache

import numpy as np
import pyarrow as pa

from kafkajit.errors import InvalidSchemaError, RecordDeserializationError
from kafkajit.schema import VARIANT_TYPE
from kafkajit.spark.arrays import BINARY, TEXT, check_type
from kafkajit.values.framing import APICURIO8, AUTO, CONFLUENT, SchemaKey, places, split_frames
from kafkajit.values.layout import Types
from kafkajit.values.own_schemas import OwnSchemasDecoder
from kafkajit.values.schema_files import SUFFIXES, is_schema_text, schemas_at
from kafkajit.values.variant import variants

_VALUE = "value must be BINARY, as the record has it"
_MOST_ID = 2**31 - 1
_ADVICE = "pass a schema, the path of an .avsc or .proto file, or that of a registry's log"
_KEPT, _KEPT_FILES = 32, 4  # schemas that a worker keeps compiled


def schema_id(value: pa.Array) -> pa.Array:
    """The id of a schema in front of each value; NULL without one of 32 bits."""
    check_type(value, _VALUE, *BINARY)
    if value.null_count == len(value):
        return pa.nulls(len(value), pa.int32())
    frames = split_frames(*places(value), AUTO)
    ids = [_number(key) for key in frames.keys]
    is_null = np.array([id_ is None for id_ in ids])[frames.numbers]
    is_null |= value.is_null().to_numpy(zero_copy_only=False)
    numbers = np.array([id_ or 0 for id_ in ids], dtype=np.int32)[frames.numbers]
    return pa.array(numbers, pa.int32(), mask=is_null)


def _number(key: SchemaKey) -> int | None:
    has_number = key.framing in (CONFLUENT, APICURIO8) and abs(key.number) <= _MOST_ID
    return key.number if has_number else None


def decode_value(value: pa.Array, schema: pa.Array, *, lenient: bool) -> pa.Array:
    """Each value as a VARIANT, by a schema or by those of a registry."""
    check_type(value, _VALUE, *BINARY)
    check_type(schema, "schema must be STRING", *TEXT)
    rows = len(value)
    if value.null_count == rows or schema.null_count == rows:
        return pa.nulls(rows, VARIANT_TYPE)
    # Most often it is a literal, which Spark repeats for each row.
    encoded = schema.dictionary_encode()
    numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    parts, order = [], []
    for number in np.unique(numbers).tolist():
        inside = np.flatnonzero(numbers == number)
        part = value if inside.size == rows else value.take(pa.array(inside))
        if number < 0:
            parts.append(pa.nulls(inside.size, VARIANT_TYPE))
        else:
            decoded = _decoder(encoded.dictionary[number].as_py()).decode(part)
            if decoded.bad.size and not lenient:
                bad = int(decoded.bad[0])
                raise RecordDeserializationError(decoded.words(bad), row=int(inside[bad]))
            parts.append(decoded.values)
        order.append(inside)
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(order))))


def _decoder(schema: str) -> OwnSchemasDecoder:
    """The decoder of a schema's text, of a file, or of a registry's schemas.

    A worker keeps those of texts. It reads a file once for each task: a registry grows.
    """
    text = schema.strip()
    if not text:
        raise InvalidSchemaError("the schema is empty", advice=_ADVICE)
    return _of_text(text) if is_schema_text(text) else _of_path(text, _task())


@lru_cache(_KEPT)
def _of_text(text: str) -> OwnSchemasDecoder:
    return OwnSchemasDecoder(text, None, variants, types=Types.SPARK)


@lru_cache(_KEPT_FILES)
def _of_path(location: str, task: int | None) -> OwnSchemasDecoder:  # noqa: ARG001
    try:
        schemas = schemas_at(location)
    except FileNotFoundError as error:
        raise InvalidSchemaError(
            f"it is neither a schema nor a path: {error}",
            advice=_ADVICE,
        ) from None
    if location.endswith(SUFFIXES):
        return OwnSchemasDecoder(schemas[0], None, variants, types=Types.SPARK)
    return OwnSchemasDecoder(None, schemas, variants, types=Types.SPARK)


def _task() -> int | None:
    """The task that this process runs; None outside of Spark."""
    pyspark = sys.modules.get("pyspark.taskcontext")  # loaded, if there is a task
    context = pyspark and pyspark.TaskContext.get()
    return context.taskAttemptId() if context else None
