"""Tables of any size → chunks of rows, and how many rows of a chunk are a window.

A batch ends where its chunk ends. So small tables are joined, and if records name their batches,
chunks are cut where those end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kafkajit.encode.encode_options import BATCH_NAMES
from kafkajit.encode.rows import numbers_of, rows_counted_from
from kafkajit.errors import InvalidRecordError
from kafkajit.schema import RECORD_COLUMNS, check_columns

# The most rows of a window: their positions and sizes stay in the processor's cache.
_WINDOW_ROWS = 65536
# Tables with fewer rows are joined first.
_FEW_ROWS = 4096
# About the most bytes of a window: all of its batches are in memory.
_WINDOW_BYTES = 8 << 20

_NO_RECORD_BATCH = (
    "records must be an Arrow table or record batches, not {}: pyarrow.table(…) makes one of "
    "columns or of a data frame, pyarrow.Table.from_pylist(…) of rows"
)


def chunks_of(records: Any, *, whole_batches: bool) -> Iterator[pa.RecordBatch]:
    """The records of a table, a record batch, or an iterable of those, as chunks to encode."""
    chunks = _joined_small(_record_batches(records))
    return _cut_at_batches(chunks) if whole_batches else chunks


def window_rows(chunk: pa.RecordBatch) -> int:
    """The rows of a window of this chunk: fewer if the rows are large."""
    size = 0
    for name in {"key", "value", "headers"} & {*chunk.schema.names}:
        column = chunk.column(name)
        if pa.types.is_dictionary(
            column.type
        ):  # an entry is written once per row that refers to it
            entries = column.dictionary
            size += entries.nbytes * len(column) // max(len(entries), 1)
        else:
            size += column.nbytes
    rows: int = _WINDOW_BYTES * chunk.num_rows // max(size, 1)
    return min(_WINDOW_ROWS, max(rows, 1))


def _record_batches(records: Any) -> Iterator[pa.RecordBatch]:
    """The given records as Arrow record batches of one schema."""
    if isinstance(records, (pa.Table, pa.RecordBatch)):
        records = [records]
    elif not isinstance(records, Iterable):
        raise TypeError(_NO_RECORD_BATCH.format(type(records).__name__))
    schema = None
    for part in records:
        if not isinstance(part, (pa.Table, pa.RecordBatch)):
            # Iterating a dict or a data frame yields the names of columns: report the whole.
            given = part if isinstance(records, (list, tuple, Iterator)) else records
            raise TypeError(_NO_RECORD_BATCH.format(type(given).__name__))
        if schema is None:
            schema = part.schema
            check_columns(schema.names or ["key"], RECORD_COLUMNS)
        elif not part.schema.equals(schema):
            raise ValueError(
                "records change their columns: all record batches must have one schema"
            )
        yield from part.to_batches() if isinstance(part, pa.Table) else [part]


def _joined_small(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Small record batches joined: a batch may then span several of them."""
    few: list[pa.RecordBatch] = []
    rows = size = 0
    for part in records:
        if part.num_rows == 0:
            continue
        is_small = part.num_rows < _FEW_ROWS and part.nbytes < _WINDOW_BYTES
        if is_small:
            few.append(part)
            rows += part.num_rows
            size += part.nbytes
        if few and (not is_small or rows >= _WINDOW_ROWS or size >= _WINDOW_BYTES):
            yield _concatenated(few)
            few, rows, size = [], 0, 0
        if not is_small:
            yield part
    if few:
        yield _concatenated(few)


def _cut_at_batches(chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Chunks cut where the batches end that their records name."""
    held: list[pa.RecordBatch] = []  # its last batch may continue; several parts are one batch
    last_batch, last_names = 0, None
    before = 0
    for chunk in chunks:
        names = [name for name in BATCH_NAMES if name in chunk.schema.names]
        if not names:
            yield chunk
            continue
        with rows_counted_from(before):
            columns = [numbers_of(chunk.column(name), name) for name in names]
        before += chunk.num_rows
        begins = np.any([column[1:] != column[:-1] for column in columns], axis=0)
        begins = np.append(0, np.flatnonzero(begins) + 1)
        if last_names == [column[0] for column in columns]:
            if last_batch:
                yield held[0].slice(0, last_batch)
                held[0] = held[0].slice(last_batch)
                last_batch = 0
            cut = int(begins[1]) if begins.size > 1 else chunk.num_rows
            held.append(chunk.slice(0, cut))
            chunk, begins = chunk.slice(cut), begins[1:] - cut
        if chunk.num_rows:
            if held:
                yield _concatenated(held)
            held, last_batch = [chunk], int(begins[-1])
        last_names = [column[-1] for column in columns]
    if held:
        yield _concatenated(held)


def _concatenated(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_batches(parts)
    except pa.ArrowInvalid as error:  # the offsets of a binary array are int32
        raise InvalidRecordError(
            "the records that name one batch are more than 2 GiB: leave out baseOffset and "
            "position, or give a batch_size"
        ) from error
