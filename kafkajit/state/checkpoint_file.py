"""The format that all checkpoints have in common (CheckpointFile).

A checkpoint is text: a version, the number of entries, and one entry a line, its parts separated by
white space. As in Kafka, a file that ends before the number of entries has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from kafkajit.errors import CorruptCheckpointError
from kafkajit.state.text_lines import lines, malformed_line, parse_number
from kafkajit.storage.source import Bytes

VERSION = 0

# Java's \s, which is ASCII alone.
_WHITE_SPACE = re.compile(r"[ \t\n\x0b\f\r]+")
# How many rows are Python objects at a time: Arrow's take a tenth of the memory.
_ROWS = 1 << 14


def parse_checkpoint(content: Bytes, path: str | None, schema: pa.Schema) -> pa.Table:
    """Parse a checkpoint whose parts are this schema's strings and integers."""
    batches: list[pa.RecordBatch] = []
    rows: list[list[Any]] = []
    bits = [0 if field.type == pa.string() else field.type.bit_width for field in schema]
    for row in checkpoint_entries(content, path, bits):
        rows.append(row)
        if len(rows) == _ROWS:
            batches.append(_record_batch(rows, schema))
            rows = []
    return pa.Table.from_batches([*batches, _record_batch(rows, schema)], schema=schema)


def checkpoint_entries(
    content: Bytes, path: str | None, bits: Sequence[int]
) -> Iterator[list[Any]]:
    """Parse the entries of a checkpoint; `bits` are those of each part, 0 for a string.

    That there are fewer entries than the file says is known, and raised, behind the last one.
    """
    expected: int | None = None
    found = 0
    for number, line in enumerate(lines(content, path), start=1):
        if number == 1:
            _check_version(line, path)
        elif number == 2:
            expected = parse_number(line, 32)
            if expected is None or expected < 0:
                raise malformed_line(line, number, path)
        else:
            entry = _entry(line, bits)
            if entry is None:
                raise malformed_line(line, number, path)
            yield entry
            found += 1
    if expected is not None and expected != found:
        raise CorruptCheckpointError(
            f"Expected [{expected}] entries in checkpoint file, but found only [{found}]", path=path
        )


def checkpoint_text(entries: Iterable[Sequence[object]]) -> bytes:
    r"""Write these entries as a checkpoint, as Kafka does.

    >>> checkpoint_text([(0, 0), (2, 5)])
    b'0\n2\n0 0\n2 5\n'
    """
    rows = [" ".join(map(str, entry)) for entry in entries]
    return "".join(f"{line}\n" for line in (VERSION, len(rows), *rows)).encode()


def _check_version(line: str, path: str | None) -> None:
    version = parse_number(line, 32)
    if version is None:
        raise malformed_line(line, 1, path)
    if version != VERSION:
        raise CorruptCheckpointError(
            f"Unrecognised version:{version}, expected version: {VERSION} in checkpoint file",
            path=path,
            line=1,
        )


def _entry(line: str, bits: Sequence[int]) -> list[Any] | None:
    parts = _WHITE_SPACE.split(line)
    while parts and not parts[-1]:  # Java's split drops empty parts at the end
        parts.pop()
    if len(parts) != len(bits):
        return None
    entry = [
        parse_number(part, size) if size else part for part, size in zip(parts, bits, strict=True)
    ]
    return None if None in entry else entry


def _record_batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
