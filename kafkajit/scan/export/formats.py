"""Writers of one file each: rows → Parquet, Arrow, CSV, JSON lines or Avro.

A writer takes tables of about ROW_GROUP_BYTES and holds no more than one of them.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from kafkajit.format.compressor import TextCompressor, text_compressor
from kafkajit.scan.export.avro_file import AvroFile, avro_schema
from kafkajit.scan.export.long_rows import csv_line, is_long, json_line, slices
from kafkajit.scan.export.options import ExportOptions
from kafkajit.scan.export.text_rows import as_text, json_lines

ROW_GROUP_BYTES = 64 << 20
# Rising numbers: as differences they take a tenth of the room and of the time.
_DELTAS = ("offset", "timestamp")
_SAMPLE = 10_000  # rows
_LONG = 1 << 20  # bytes of a text


class FileWriter(Protocol):
    """Writes the tables of one file."""

    def write(self, table: pa.Table) -> None: ...

    def close(self, metadata: Mapping[str, str]) -> None:
        """Write the file's end; the sink stays open. Only Parquet has metadata there."""


def file_writer(
    sink: pa.NativeFile,
    schema: pa.Schema,
    options: ExportOptions,
    metadata: Mapping[str, str],
    *,
    is_stream: bool = False,
) -> FileWriter:
    """The writer of the format that the options ask for.

    Args:
        sink: the file.
        schema: its columns.
        options: the options of the export.
        metadata: the origin of the records, as far as it is known before they are written.
        is_stream: whether Arrow is written as a stream, without a footer.
    """
    if options.format == "parquet":
        return _Parquet(sink, schema, options)
    if options.format == "arrow":
        return _Arrow(sink, schema, options, metadata, is_stream=is_stream)
    if options.format == "avro":
        return AvroFile(sink, schema, options.codec, options.level, metadata)
    return _Text(sink, schema, options)


def check_types(schema: pa.Schema, format_: str) -> None:
    """Raise an error for columns that files of a format cannot have, before one is written.

    >>> check_types(pa.schema([("value", pa.struct([]))]), "parquet")
    Traceback (most recent call last):
    ValueError: Parquet has no structs without fields, as value is: export to Arrow or JSON lines, \
or choose other columns
    """
    if format_ == "avro":
        avro_schema(schema)
    if format_ == "parquet":
        for field in schema:
            _check_fields(field, field.name)


def _check_fields(field: pa.Field, path: str) -> None:
    kind = field.type
    if pa.types.is_struct(kind) and not kind.num_fields:
        raise ValueError(
            f"Parquet has no structs without fields, as {path} is: export to Arrow or JSON lines, "
            "or choose other columns"
        )
    for at in range(kind.num_fields):
        inner = kind.field(at)
        _check_fields(inner, f"{path}.{inner.name}")


class _ParquetWriter(pq.ParquetWriter):  # type: ignore[misc]
    def __del__(self) -> None:
        """Do not finish a file that is abandoned: its stream is closed."""


class _Parquet:
    def __init__(self, sink: pa.NativeFile, schema: pa.Schema, options: ExportOptions) -> None:
        self._sink = sink
        self._schema = schema
        self._options = options
        self._writer: _ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        table = _with_words(table)
        if self._writer is None:
            self._writer = self._opened(table)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def _opened(self, table: pa.Table) -> _ParquetWriter:
        plain = {name for name in table.schema.names if not _repeats(table[name])}
        deltas = [name for name in _DELTAS if name in table.schema.names]
        leaves = _leaves(self._schema)
        words = [path for path in leaves if path not in plain and path not in deltas]
        long = {name for name in table.schema.names if _is_long(table, name)}
        short = [path for path in leaves if path.partition(".")[0] not in long]
        return _ParquetWriter(
            self._sink,
            table.schema,
            compression=self._options.codec,
            compression_level=self._options.level,
            use_dictionary=words or False,
            column_encoding=dict.fromkeys(deltas, "DELTA_BINARY_PACKED") or None,
            write_statistics=short or False,
            write_page_index=True,
            write_page_checksum=True,
            store_schema=False,  # or readers would return topics as dictionaries
        )

    def close(self, metadata: Mapping[str, str]) -> None:
        if self._writer is None:
            self._writer = self._opened(self._schema.empty_table())
        self._writer.add_key_value_metadata(dict(metadata))
        self._writer.close()


def _with_words(table: pa.Table) -> pa.Table:
    """The topic as numbers of a dictionary, which is written in a third of the time."""
    if "topic" not in table.schema.names:
        return table
    at = table.schema.get_field_index("topic")
    return table.set_column(at, "topic", table["topic"].dictionary_encode())


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether bytes are worth a dictionary, by the first of them.

    Parquet's writer gives up a dictionary when it has a megabyte, which takes as long as all else.
    """
    if not pa.types.is_binary(column.type):
        return True
    sample = column.slice(0, _SAMPLE)
    distinct: int = pc.count_distinct(sample).as_py()
    return 2 * distinct <= len(sample)


def _is_long(table: pa.Table, name: str) -> bool:
    """Whether the writer should not compare a column's values, of which it keeps copies.

    Nobody looks for a value or a header by its bytes.
    """
    column = table[name]
    if name in ("value", "headers") and not pa.types.is_struct(column.type):
        return True
    lengths = (_longest(chunk) for chunk in column.chunks)
    return column.nbytes > _LONG and any(length > _LONG for length in lengths)


def _longest(array: pa.Array) -> int:
    """The bytes of the longest text in an array, at any depth."""
    kind = array.type
    if pa.types.is_struct(kind):
        parts = array.flatten()
    elif pa.types.is_map(kind):
        parts = [array.keys, array.items]
    elif pa.types.is_list(kind):
        parts = [array.flatten()]
    elif _has_length(kind):
        return pc.max(pc.binary_length(array)).as_py() or 0
    else:
        return 0
    return max(map(_longest, parts), default=0)


def _has_length(kind: pa.DataType) -> bool:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _leaves(schema: pa.Schema) -> list[str]:
    """The columns of a Parquet file by their paths."""
    sink = io.BytesIO()
    pq.write_table(schema.empty_table(), sink)
    described = pq.ParquetFile(sink).schema
    return [described.column(number).path for number in range(len(described.names))]


class _Arrow:
    def __init__(
        self,
        sink: pa.NativeFile,
        schema: pa.Schema,
        options: ExportOptions,
        metadata: Mapping[str, str],
        *,
        is_stream: bool,
    ) -> None:
        codec: Any = None
        if options.codec != "none":
            codec = pa.Codec(options.codec, compression_level=options.level)
        new = pa.ipc.new_stream if is_stream else pa.ipc.new_file
        self._writer = new(
            sink,
            schema.with_metadata(dict(metadata)),
            options=pa.ipc.IpcWriteOptions(compression=codec),
        )

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    def close(self, metadata: Mapping[str, str]) -> None:  # noqa: ARG002
        self._writer.close()


class _Text:
    """CSV with a line of names, or a JSON object in each line."""

    def __init__(self, sink: pa.NativeFile, schema: pa.Schema, options: ExportOptions) -> None:
        self._options = options
        self._sink = sink
        self._compressor: TextCompressor | None = None
        if options.codec != "none":
            self._compressor = text_compressor(options.codec, options.level)
        self._is_csv = options.format == "csv"
        if self._is_csv:
            names = as_text(schema.empty_table(), options.encoding)
            self._put(_csv(names, header=True))

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=1 << 16):
            for rows in slices(batch):
                for text in self._texts(rows):
                    self._put(text)

    def _texts(self, rows: pa.RecordBatch) -> Iterator[Any]:
        text = as_text(pa.Table.from_batches([rows]), self._options.encoding, self._is_csv)
        if not is_long(rows):
            yield _csv(text, header=False) if self._is_csv else json_lines(text)
            return
        (row,) = text.to_batches()
        if self._is_csv:
            yield from csv_line(row, partial(_csv, header=False))
        else:
            yield from json_line(row)

    def _put(self, text: Any) -> None:
        compressor = self._compressor
        self._sink.write(text if compressor is None else compressor.compress(memoryview(text)))

    def close(self, metadata: Mapping[str, str]) -> None:  # noqa: ARG002
        if self._compressor is not None:
            self._sink.write(self._compressor.flush())


def _csv(table: pa.Table | pa.RecordBatch, *, header: bool) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    # Text is always in quotes, and NULL never: so "" is not NULL.
    options = pa.csv.WriteOptions(include_header=header, quoting_style="needed")
    pa.csv.write_csv(table, sink, options)
    return sink.getvalue()
