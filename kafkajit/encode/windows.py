"""Records in pieces of any size → pieces to be written one by one.

A batch ends where a piece does. So small ones are put together, and where records name their
batches pieces are cut where those end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kafkajit.encode.batch_options import BATCH_NAMES
from kafkajit.encode.rows import numbers_of, rows_counted_from
from kafkajit.errors import InvalidRecordError
from kafkajit.schema import RECORD_COLUMNS, check_columns

# Rows that are laid out at a time: their positions and sizes stay in the processor's cache.
_WINDOW_ROWS = 65536
# Tables of smaller pieces than this are put together first.
_FEW_ROWS = 4096
# Rows of more than this, or about as much, are laid out in several goes: a window's batches are in
# memory, all of them.
_WINDOW_BYTES = 8 << 20

_NO_RECORD_BATCH = (
    "records are a table or record batches of Arrow's, not {}: pyarrow.table(…) makes one of "
    "columns or of a data frame, pyarrow.Table.from_pylist(…) of rows"
)


def pieces_of(records: Any, *, whole_batches: bool) -> Iterator[pa.RecordBatch]:
    """The records of a table, a record batch, or an iterable of those."""
    pieces = _of_some_rows(_record_batches(records))
    return _of_whole_batches(pieces) if whole_batches else pieces


def rows_of_a_window(chunk: pa.RecordBatch) -> int:
    """As many as are laid out at a time, fewer where they are large."""
    size = 0
    for name in {"key", "value", "headers"} & {*chunk.schema.names}:
        column = chunk.column(name)
        if pa.types.is_dictionary(column.type):  # an entry is written for each row that names it
            entries = column.dictionary
            size += entries.nbytes * len(column) // max(len(entries), 1)
        else:
            size += column.nbytes
    rows: int = _WINDOW_BYTES * chunk.num_rows // max(size, 1)
    return min(_WINDOW_ROWS, max(rows, 1))


def _record_batches(records: Any) -> Iterator[pa.RecordBatch]:
    """Whatever holds records, as Arrow record batches of the same columns."""
    if isinstance(records, (pa.Table, pa.RecordBatch)):
        records = [records]
    elif not isinstance(records, Iterable):
        raise TypeError(_NO_RECORD_BATCH.format(type(records).__name__))
    schema = None
    for piece in records:
        if not isinstance(piece, (pa.Table, pa.RecordBatch)):
            # What goes through a dict or a data frame meets the names of columns.
            given = piece if isinstance(records, (list, tuple, Iterator)) else records
            raise TypeError(_NO_RECORD_BATCH.format(type(given).__name__))
        if schema is None:
            schema = piece.schema
            check_columns(schema.names or ["key"], RECORD_COLUMNS)
        elif not piece.schema.equals(schema):
            raise ValueError("records have other columns here than before: they are of one schema")
        yield from piece.to_batches() if isinstance(piece, pa.Table) else [piece]


def _of_some_rows(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Small pieces put together: a batch does not end where one of them does."""
    few: list[pa.RecordBatch] = []
    rows = size = 0
    for piece in records:
        if piece.num_rows == 0:
            continue
        is_small = piece.num_rows < _FEW_ROWS and piece.nbytes < _WINDOW_BYTES
        if is_small:
            few.append(piece)
            rows += piece.num_rows
            size += piece.nbytes
        if few and (not is_small or rows >= _WINDOW_ROWS or size >= _WINDOW_BYTES):
            yield _together(few)
            few, rows, size = [], 0, 0
        if not is_small:
            yield piece
    if few:
        yield _together(few)


def _of_whole_batches(chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pieces cut anew where the batches end that records name."""
    held: list[pa.RecordBatch] = []  # its last batch may go on, and if it is many, is all of it
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
                yield _together(held)
            held, last_batch = [chunk], int(begins[-1])
        last_names = [column[-1] for column in columns]
    if held:
        yield _together(held)


def _together(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(pieces) == 1:
        return pieces[0]
    try:
        return pa.concat_batches(pieces)
    except pa.ArrowInvalid as error:  # of an array whose offsets are int32
        raise InvalidRecordError(
            "the records that name one batch would pass 2 GiB: leave out baseOffset and position, "
            "or give a batch_size"
        ) from error
