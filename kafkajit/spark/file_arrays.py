"""Evaluates the SQL functions that read a small file beside a log, such as a snapshot."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from kafkajit.arrow.record_batches import table_in_microseconds
from kafkajit.schema import in_microseconds, table_schema
from kafkajit.spark.arrays import Parts, as_lists, as_structs, buffers, each
from kafkajit.state.sidecar_files import SIDECAR_FILES
from kafkajit.storage.source import as_bytes


def rows(content: pa.Array, *, kind: str, lenient: bool) -> pa.Array:
    """The entries of each file, as an array of structs."""
    found = each(partial(parse, kind), buffers(content), lenient=lenient)
    return as_lists(found, schema_of(kind))


def row(content: pa.Array, *, kind: str, lenient: bool) -> pa.Array:
    """The content of each file, as a struct."""
    found = each(partial(parse, kind), buffers(content), lenient=lenient)
    is_null = np.array([parts is None for parts in found], dtype=bool)
    places = pa.array(np.cumsum(~is_null) - 1, mask=is_null)
    table = pa.Table.from_batches(
        [part for parts in found for part in parts or ()], schema=schema_of(kind)
    )
    return as_structs(table.take(places), is_null)


def schema_of(kind: str) -> pa.Schema:
    """The columns of a kind of file, with Spark's types."""
    return in_microseconds(table_schema(SIDECAR_FILES[kind].columns))


def parse(kind: str, held: pa.Buffer, base_offset: int | None = None) -> Parts:
    """The content of one file."""
    table = SIDECAR_FILES[kind].parse(as_bytes(held), None, base_offset)
    parts: Parts = table_in_microseconds(table).to_batches()
    return parts
