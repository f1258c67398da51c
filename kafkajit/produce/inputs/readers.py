"""A file → its rows, whatever its format; every error names the file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import pyarrow as pa

from kafkajit.format.printable import printable
from kafkajit.produce.inputs.arrow_rows import arrow_rows, parquet_rows
from kafkajit.produce.inputs.avro_rows import avro_rows
from kafkajit.produce.inputs.csv_rows import csv_rows
from kafkajit.produce.inputs.input_files import InputFile
from kafkajit.produce.inputs.json_rows import json_rows
from kafkajit.produce.inputs.rows import Rows, in_file
from kafkajit.produce.inputs.text_blocks import text_of


def rows_in(file: InputFile, wanted: Collection[str]) -> Iterator[Rows]:
    """The rows of a file, in its order; `wanted` are the names of the columns that are read."""
    with in_file(file.path):
        try:
            yield from _READERS[file.format](file, wanted)
        except (ValueError, IndexError, pa.ArrowException, RecursionError) as error:
            raise _unreadable(file, error) from None
        except MemoryError as error:
            raise ValueError(f"{file.path} needs more memory than there is: {error}") from None
        except OSError as error:
            if error.errno is not None:  # of the system, which names the file
                raise
            raise _unreadable(file, error) from None


def names_in(file: InputFile) -> Collection[str] | None:
    """The names of a file's columns; None if it has no rows.

    Each line of JSON may have others, so all of them are looked at.
    """
    names: Collection[str] | None = None
    for rows in rows_in(file, ()):
        names = rows.names
        if file.format != "jsonl":
            break
    return names


def _unreadable(file: InputFile, error: Exception) -> ValueError:
    reason = str(error).partition("\n")[0] or type(error).__name__
    return ValueError(f"{file.path} cannot be read as {file.format}: {printable(reason)}")


def _csv(file: InputFile, wanted: Collection[str]) -> Iterator[Rows]:
    with text_of(file.filesystem, file.path, file.codec) as text:
        yield from csv_rows(text, wanted)


def _jsonl(file: InputFile, wanted: Collection[str]) -> Iterator[Rows]:
    with text_of(file.filesystem, file.path, file.codec) as text:
        yield from json_rows(text, wanted)


_READERS: dict[str, Callable[[InputFile, Collection[str]], Iterator[Rows]]] = {
    "parquet": lambda file, wanted: parquet_rows(file.filesystem, file.path, wanted),
    "arrow": lambda file, wanted: arrow_rows(file.filesystem, file.path, wanted),
    "csv": _csv,
    "jsonl": _jsonl,
    "avro": lambda file, wanted: avro_rows(file.filesystem, file.path, wanted),
}
