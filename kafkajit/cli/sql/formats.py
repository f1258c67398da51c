"""Writes results for other programs: CSV, JSON, Arrow and Parquet, one record batch at a time.

Each task of Spark encodes its rows itself, so that cores share the work. The driver writes the
encoded pieces in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.values.arrow_text import TEXT, join, named, scalar, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

# Rows of Parquet are gathered up to this size before they are written as a group.
_ROW_GROUP_BYTES = 64 << 20
# Fields with one of these letters, and empty texts, are quoted. An empty field without quotes is
# NULL.
_QUOTED_IN_CSV = r'^$|[",\r\n]'

Encode = Callable[[pa.RecordBatch], bytes]


def to_csv(batch: pa.RecordBatch) -> bytes:
    r"""Lines of CSV (RFC 4180 with line feeds); NULL is empty, and an empty text two quotes."""
    fields = [_csv_field(column) for column in batch.columns]
    return _bytes_of(join(join(*fields, between=","), scalar("\n")))


def csv_header(names: Sequence[str]) -> bytes:
    """The header line of a CSV file."""
    fields = [_quoted_in_csv(pa.array([name], TEXT))[0].as_py() for name in names]
    return f"{','.join(fields)}\n".encode()


def _csv_field(column: pa.Array) -> pa.Array:
    is_text = not pa.types.is_nested(column.type)
    text = text_of(column, as_json=not is_text)
    if pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type):
        return text
    return _quoted_in_csv(text)


def _quoted_in_csv(text: pa.Array) -> pa.Array:
    odd = pc.match_substring_regex(text, _QUOTED_IN_CSV)
    if not pc.any(odd).as_py():
        return text
    quoted = join(scalar('"'), pc.replace_substring(text, '"', '""'), scalar('"'))
    return pc.if_else(odd, quoted, text)


def to_json(batch: pa.RecordBatch, names: Sequence[str]) -> bytes:
    """Lines of JSON (JSON Lines, NDJSON), an object for each row."""
    pieces: list[Any] = []
    for name, column in zip(names, batch.columns, strict=True):
        pieces.append(scalar(("," if pieces else "{") + named(name, as_json=True)))
        pieces.append(text_of(column, as_json=True))
    return _bytes_of(join(*pieces, scalar("}\n"), null="null"))


def to_ipc(batch: pa.RecordBatch) -> bytes:
    """The batch with its schema in Arrow's IPC format, for another process."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _bytes_of(lines: pa.Array) -> bytes:
    """The bytes of all texts of an array, one behind the other."""
    if not len(lines):
        return b""
    _, offsets, data = lines.buffers()
    ends = memoryview(offsets).cast("q")
    return memoryview(data)[ends[lines.offset] : ends[lines.offset + len(lines)]].tobytes()


class Format(NamedTuple):
    """An output format: tasks encode record batches, and the driver writes the pieces."""

    encode: Encode
    write: Callable[[IO[bytes], Iterable[bytes]], None]


def format_named(name: str, schema: pa.Schema, *, has_header: bool = True) -> Format:
    """The format csv, json, arrow or parquet, for rows of this schema; a header is csv's."""
    if name == "csv":
        header = csv_header(schema.names) if has_header else b""
        return Format(to_csv, partial(_write_text, header))
    if name == "json":
        return Format(partial(to_json, names=schema.names), partial(_write_text, b""))
    return Format(to_ipc, partial(_write_arrow if name == "arrow" else _write_parquet, schema))


def _write_text(header: bytes, out: IO[bytes], pieces: Iterable[bytes]) -> None:
    started = iter(pieces)
    first = next(started, b"")  # a query that fails at once prints nothing
    out.write(header)
    out.write(first)
    for piece in started:
        out.write(piece)
    out.flush()


def _batches(schema: pa.Schema, pieces: Iterable[bytes]) -> Iterable[pa.RecordBatch]:
    for piece in pieces:
        for batch in pa.ipc.open_stream(piece):
            yield pa.RecordBatch.from_arrays(
                [
                    column if column.type == field.type else column.cast(field.type)
                    for column, field in zip(batch.columns, schema, strict=True)
                ],
                schema=schema,
            )


def _write_arrow(schema: pa.Schema, out: IO[bytes], pieces: Iterable[bytes]) -> None:
    """Write Arrow's file format (Feather), which can be mapped, to a file; a stream to a pipe."""
    new = pa.ipc.new_file if out.seekable() else pa.ipc.new_stream
    with new(pa.PythonFile(out, "w"), schema) as writer:
        for batch in _batches(schema, pieces):
            writer.write_batch(batch)
    out.flush()


def _write_parquet(schema: pa.Schema, out: IO[bytes], pieces: Iterable[bytes]) -> None:
    import pyarrow.parquet as pq

    held: list[pa.RecordBatch] = []
    sink = pa.PythonFile(out, "w")
    with pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in _batches(schema, pieces):
            held.append(batch)
            if sum(batch.nbytes for batch in held) >= _ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(held, schema))
                held = []
        if held:
            writer.write_table(pa.Table.from_batches(held, schema))
    out.flush()
