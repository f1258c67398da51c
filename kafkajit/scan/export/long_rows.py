"""Rows → text in bounded memory: few rows at a time, and a long cell in pieces.

In JSON a byte may become six, and a row's text takes twice its size while it is put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kafkajit.values.arrow_text import named, text_of

# Rows with more bytes are divided, and a cell with more is written in pieces of this size.
MOST_BYTES = 8 << 20


def slices(rows: pa.RecordBatch, most: int = MOST_BYTES) -> Iterator[pa.RecordBatch]:
    """The rows in slices of no more bytes than this, or of one row."""
    if rows.num_rows <= 1 or rows.nbytes <= most:
        yield rows
        return
    half = rows.num_rows // 2
    yield from slices(rows.slice(0, half), most)
    yield from slices(rows.slice(half), most)


def is_long(rows: pa.RecordBatch, most: int = MOST_BYTES) -> bool:
    """Whether this is one row whose cells are written in pieces."""
    return bool(rows.num_rows == 1 and rows.nbytes > most)


def json_line(row: pa.RecordBatch, most: int = MOST_BYTES) -> Iterator[Any]:
    r"""The pieces of one row as a JSON object in a line.

    >>> b"".join(json_line(pa.record_batch({"offset": [7], "key": ['a"b']}), most=2))
    b'{"offset":7,"key":"a\\"b"}\n'
    """
    for number, (name, cell) in enumerate(zip(row.schema.names, row.columns, strict=True)):
        yield (("," if number else "{") + named(name, as_json=True)).encode()
        if _is_long_text(cell, most):
            yield b'"'
            for piece in _pieces(cell, most):
                yield memoryview(_data_of(text_of(piece, as_json=True)))[1:-1]
            yield b'"'
        else:
            yield _data_of(text_of(cell, as_json=True)) if cell.is_valid()[0].as_py() else b"null"
    yield b"}\n"


def csv_line(
    row: pa.RecordBatch, write: Callable[[pa.RecordBatch], pa.Buffer], most: int = MOST_BYTES
) -> Iterator[Any]:
    """The pieces of one row as a line of CSV; `write` makes the line of a row with one cell."""
    for number, (name, cell) in enumerate(zip(row.schema.names, row.columns, strict=True)):
        if number:
            yield b","
        if _is_long_text(cell, most):
            yield b'"'
            for piece in _pieces(cell, most):
                yield bytes(_data_of(piece)).replace(b'"', b'""')
            yield b'"'
        else:
            yield memoryview(write(row.select([name])))[:-1]
    yield b"\n"


def _is_long_text(cell: pa.Array, most: int) -> bool:
    is_text = pa.types.is_string(cell.type) or pa.types.is_large_string(cell.type)
    return bool(is_text and cell.is_valid()[0].as_py() and len(_data_of(cell)) > most)


def _data_of(cell: pa.Array) -> pa.Buffer:
    """The bytes of an array with one text. Its scalar would have a copy of them."""
    _, ends, data = cell.buffers()
    is_large = pa.types.is_large_string(cell.type)
    start, end = np.frombuffer(ends, np.int64 if is_large else np.int32)[cell.offset :][:2]
    return data.slice(start, end - start)


def _pieces(cell: pa.Array, most: int) -> Iterator[pa.Array]:
    """A text in arrays of one text each, none of which ends within a character."""
    whole = _data_of(cell)
    content = np.frombuffer(whole, dtype=np.uint8)
    start = 0
    while start < content.size:
        end = min(start + most, content.size)
        while start < end < content.size and content[end] & 0xC0 == 0x80:
            end -= 1
        if end == start:  # a piece is smaller than the character
            end = start + 1
            while end < content.size and content[end] & 0xC0 == 0x80:
                end += 1
        ends = pa.py_buffer(np.array([0, end - start], dtype=np.int64))
        piece = [None, ends, whole.slice(start, end - start)]
        yield pa.Array.from_buffers(pa.large_string(), 1, piece)
        start = end
