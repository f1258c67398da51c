"""Chunks: decoded batches with their records, as the decoder hands them out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kafkajit.errors import InvalidRecordError, KafkaJitError
from kafkajit.format.log_path import LogPath
from kafkajit.records.batches import Batches
from kafkajit.records.columns import Columns
from kafkajit.records.control_records import check_marker, read_control_records
from kafkajit.storage.source import Bytes, Int64s


@dataclass
class Chunk:
    """Decoded batches: their headers, the bytes that hold their records, and the columns."""

    path: str | None
    log_path: LogPath
    batches: Batches
    counts: Int64s  # how many records each batch has
    content: Bytes  # what `fields` points into
    columns: Columns
    rows: int  # how many rows of the columns are filled
    error: KafkaJitError | None = None  # in the batch behind the last
    is_part: bool = False  # whether more records of the only batch follow in the next chunk

    def __len__(self) -> int:
        return self.rows

    @property
    def fields(self) -> npt.NDArray[np.void]:
        """The positions of each record's parts: rows of columns.RECORD."""
        return self.columns.fields[: self.rows]

    def field(self, row: int, name: str) -> bytes | None:
        """The key or the value of one record."""
        size = int(self.columns.fields[name + "Size"][row])
        start = int(self.columns.fields[name][row])
        return None if size < 0 else self.content[start : start + size].tobytes()


def without_bad_markers(chunk: Chunk) -> Chunk:
    """The chunk up to the first control batch with a marker that cannot be read."""
    if not chunk.batches.is_control.any():
        return chunk
    rows = np.flatnonzero(np.repeat(chunk.batches.is_control, chunk.counts))
    is_bad = read_control_records(chunk.content, chunk.fields[rows]).is_bad
    if not is_bad.any():
        return chunk
    row = int(rows[np.argmax(is_bad)])
    behind = np.cumsum(chunk.counts)
    batch = int(np.searchsorted(behind, row, side="right"))
    try:
        check_marker(chunk.field(row, "key"), chunk.field(row, "value"))
    except InvalidRecordError as reason:
        error = located(reason, chunk.path, chunk.batches, batch)
    return replace(
        chunk,
        batches=chunk.batches[:batch],
        counts=chunk.counts[:batch],
        rows=int(behind[batch] - chunk.counts[batch]),
        error=error,
    )


def located(error: KafkaJitError, path: str | None, batches: Batches, row: int) -> KafkaJitError:
    """Add to the error the place of the batch that it is about."""
    error.path = path
    error.position = int(batches.position[row])
    error.base_offset = int(batches.field("baseOffset")[row])
    return error
