"""Parquet files, and Arrow's files and streams → rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkajit.produce.inputs.opened import opened_file
from kafkajit.produce.inputs.parquet_footer import BYTE_ARRAY, RowGroup, row_groups_in
from kafkajit.produce.inputs.plain_arrays import check_extensions
from kafkajit.produce.inputs.row_sizes import pieces, sizes_of
from kafkajit.produce.inputs.rows import (
    MOST_RECORD,
    MOST_ROWS,
    BadInputError,
    Rows,
    check_names,
    row_from,
)
from kafkajit.storage.remote_store import Storage

_BATCH_BYTES = 32 << 20  # of Parquet that is read at once
# A value that repeats takes little room in the file. Twice as many rows are read no faster.
_BATCH_ROWS = 1 << 13
# A file is not read ahead into memory, and the checksums that a page has are compared.
_CAREFUL: dict[str, Any] = {"pre_buffer": False, "page_checksum_verification": True}
_MOST_EMPTY_ROWS = 1 << 24  # of a batch that has fewer bits
_CONTINUES = b"\xff\xff\xff\xff"  # before each message of a stream, since Arrow 0.15
_END_OF_STREAM = bytes(4)
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def parquet_rows(filesystem: Storage, path: str, wanted: Collection[str]) -> Iterator[Rows]:
    """The rows of a Parquet file; `wanted` are the names of the columns that are read."""
    with opened_file(filesystem, path) as opened:
        metadata = pq.read_metadata(opened)
        file = pq.ParquetFile(
            opened,
            metadata=metadata,
            # Nanoseconds end in the year 2262.
            coerce_int96_timestamp_unit="us",
            **_CAREFUL,
        )
        names = [*file.schema_arrow.names, *_ranges(file.schema_arrow, wanted)]
        check_names(names)
        used = [name for name in names if name in wanted]
        check_extensions(file.schema_arrow, used)
        _check_types(file.schema, used)
        _check_types_of_spark(metadata, used)
        groups = _row_groups(opened, metadata)
        rows = _batch_rows(groups)
        repeated = _repeated(opened, metadata, groups, rows, used)
        if repeated:  # as numbers they take no more than the dictionary and these
            file = pq.ParquetFile(
                opened,
                metadata=metadata,
                coerce_int96_timestamp_unit="us",
                read_dictionary=repeated,
                **_CAREFUL,
            )
        first = 0
        for number, group in enumerate(groups):
            # pyarrow leaves out rows of some columns: across row groups, their values would move.
            behind = first + group.rows
            for batch in file.iter_batches(rows, row_groups=[number], columns=used):
                yield from _rows(batch, names, first)
                first += batch.num_rows
            if first != behind:
                raise BadInputError(
                    f"pyarrow reads {group.rows - behind + first:,} of the {group.rows:,} rows of "
                    f"row group {number}: write the file with DuckDB, or as an Arrow file"
                )


def _row_groups(opened: pa.NativeFile, metadata: pq.FileMetaData) -> list[RowGroup]:
    """The row groups of a file, which have a chunk for each leaf of the schema."""
    groups = row_groups_in(opened)
    for number, group in enumerate(groups):
        if len(group.chunks) != metadata.num_columns:
            raise BadInputError(
                f"row group {number} has {len(group.chunks)} columns, and the schema "
                f"{metadata.num_columns}"
            )
    return groups


def _ranges(schema: pa.Schema, wanted: Collection[str]) -> Iterator[str]:
    """The names of indexes that pandas has not written as columns, because they are ranges."""
    try:
        indexes = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", ())
        names = [one.get("name") for one in indexes if isinstance(one, dict)]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return  # another program's
    for name in names:
        if isinstance(name, str) and name not in schema.names:
            if name in wanted:
                raise BadInputError(
                    f"the index {name!r} is a range, which only pandas reads: write the frame with "
                    "reset_index()"
                )
            yield name


def _check_types(schema: pq.ParquetSchema, used: Collection[str]) -> None:
    """Refuse intervals, which Arrow reads as bytes."""
    for number in range(len(schema)):
        leaf = schema.column(number)
        if leaf.converted_type == "INTERVAL":
            for column in _columns_of(leaf.path, used):
                raise BadInputError(f"column {column!r} has intervals: cast it to text or numbers")


def _check_types_of_spark(metadata: pq.FileMetaData, used: Collection[str]) -> None:
    """Refuse Spark's intervals, which are plain numbers but for the schema in the footer."""
    try:
        fields = json.loads((metadata.metadata or {}).get(_SPARK_SCHEMA, b"{}")).get("fields", ())
        found = [one["name"] for one in fields if any(map(_is_interval, _kinds_in(one["type"])))]
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        return  # another program's
    for name in found:
        if name in used:
            raise BadInputError(f"column {name!r} has intervals: cast it to text or numbers")


def _kinds_in(kind: Any) -> Iterator[str]:
    """The names of types in a type as Spark writes it."""
    if isinstance(kind, str):
        yield kind
        return
    for name in ("elementType", "keyType", "valueType"):
        if name in kind:
            yield from _kinds_in(kind[name])
    for field in kind.get("fields", ()):
        yield from _kinds_in(field["type"])


def _is_interval(kind: str) -> bool:
    return kind.startswith("interval")


def _columns_of(path: str, used: Collection[str]) -> list[str]:
    """The columns that may have a leaf with this path: a name may have dots, too."""
    return [name for name in used if path == name or path.startswith(f"{name}.")]


def _batch_rows(groups: Collection[RowGroup]) -> int:
    most = max((group.size // max(group.rows, 1) for group in groups), default=1)
    if most > MOST_RECORD:
        raise BadInputError(f"a row has {most:,} bytes, more than {MOST_RECORD:,}")
    return int(max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(most, 1))))


def _repeated(
    opened: pa.NativeFile,
    metadata: pq.FileMetaData,
    groups: Collection[RowGroup],
    rows: int,
    used: Collection[str],
) -> list[str]:
    """The paths of columns whose dictionaries have words that may fill memory as they repeat."""
    found = []
    for number, group in enumerate(groups):
        for chunk in group.chunks:
            is_nested = "." in chunk.path
            count = chunk.values if is_nested else min(rows, group.rows)
            if (
                count > 1
                and chunk.physical_type == BYTE_ARRAY
                and _columns_of(chunk.path, used)
                and chunk.path not in found
                and chunk.has_dictionary
                and count * chunk.size > _BATCH_BYTES
                and count * _longest_word(opened, metadata, number, chunk.path) > _BATCH_BYTES
            ):
                found.append(chunk.path)
    return found


def _longest_word(opened: pa.NativeFile, metadata: pq.FileMetaData, group: int, path: str) -> int:
    """The bytes of the longest value in the dictionary of a column in a row group."""
    file = pq.ParquetFile(opened, metadata=metadata, read_dictionary=[path], **_CAREFUL)
    for batch in file.iter_batches(1, row_groups=[group], columns=[path]):
        array: Any = batch.column(0)
        while not pa.types.is_dictionary(array.type):
            if array.type.num_fields != 1:
                return 0
            array = array.field(0) if pa.types.is_struct(array.type) else array.values
        return int(sizes_of(array.dictionary).max(initial=0))
    return 0


def arrow_rows(filesystem: Storage, path: str, wanted: Collection[str]) -> Iterator[Rows]:
    """The rows of Arrow's file or stream; `wanted` are the names of the columns that are read."""
    with opened_file(filesystem, path) as opened:
        is_file = opened.read(6) == b"ARROW1"
        opened.seek(0)
        open_ = pa.ipc.open_file if is_file else pa.ipc.open_stream
        schema = open_(opened).schema
        names = [*schema.names, *_ranges(schema, wanted)]
        check_names(names)
        opened.seek(0)
        check_extensions(schema, wanted)
        used = [at for at, name in enumerate(names) if name in wanted]
        # No field at all would mean all of them.
        options = pa.ipc.IpcReadOptions(included_fields=used or [0])
        reader = open_(opened, options=options)
        batches = (
            map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader)
        )
        first = 0
        for batch in batches:
            # A file's offsets may point anywhere.
            _check_claim(batch)
            batch.validate(full=True)
            yield from _rows(batch, names, first)
            first += batch.num_rows
        if not is_file:
            _check_end(opened)


def _check_claim(batch: pa.RecordBatch) -> None:
    """Refuse a batch that claims many more rows than it has bits: nulls or one run."""
    if batch.num_rows > max(_MOST_EMPTY_ROWS, 8 * batch.get_total_buffer_size()):
        raise BadInputError(
            f"a batch claims {batch.num_rows:,} rows in {batch.get_total_buffer_size():,} bytes; "
            f"rows without bytes are read up to {_MOST_EMPTY_ROWS:,}"
        )


def _check_end(opened: pa.NativeFile) -> None:
    """Raise unless a stream ends here, and has the marker that says so."""
    at = opened.tell()
    if at < opened.size():
        raise BadInputError(f"{opened.size() - at:,} bytes follow the end of the stream")
    opened.seek(0)
    is_new = opened.read(4) == _CONTINUES
    opened.seek(max(0, at - 8))
    if not opened.read(8).endswith(_CONTINUES * is_new + _END_OF_STREAM):
        raise BadInputError("the stream has no end marker: it was cut off")


def _rows(batch: pa.RecordBatch, names: list[str], first: int) -> Iterator[Rows]:
    for start in range(0, batch.num_rows, MOST_ROWS):
        for offset, piece in pieces(batch.slice(start, MOST_ROWS), first + start):
            columns = dict(zip(piece.schema.names, piece.columns, strict=True))
            place = partial(row_from, first + start + offset + 1, "")
            yield Rows(columns, piece.num_rows, names, place)
