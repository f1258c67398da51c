"""Files beside a log → the lines that kafka-dump-log.sh prints of them, byte for byte.

Answers to Kafka 4.1.1's DumpLogSegments.dumpProducerIdSnapshot. Whole columns become strings and
are joined row by row, some tens of thousands at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.errors import CorruptSnapshotError
from kafkajit.source import Bytes
from kafkajit.state.producer_snapshot import SnapshotCutShortError, parse_producer_snapshot

_ROWS = 1 << 16

_OF_PRODUCER = ("producerId", "producerEpoch", "coordinatorEpoch")
_OF_BATCH = ("firstSequence", "lastSequence", "lastOffset", "offsetDelta", "timestamp")


def snapshot_text(content: Bytes, path: str | None = None) -> Iterator[bytes]:
    """The lines of a .snapshot file, many at a time; CorruptSnapshotError before the first."""
    table = parse_producer_snapshot(content, path)
    return (_lines(table.slice(start, _ROWS)) for start in range(0, table.num_rows, _ROWS))


def snapshot_complaint(error: CorruptSnapshotError) -> str:
    """The line that Kafka prints on stderr instead of the entries of a snapshot like that.

    It then goes on with the next file, and this one counts for nothing in the exit code.
    """
    if isinstance(error, SnapshotCutShortError):
        return "Snapshot failed schema validation: null"  # Java's BufferUnderflowException
    return error.message


def _lines(rows: pa.Table) -> bytes:
    text = {name: _strings(rows[name]) for name in rows.column_names}
    parts: list[pa.ChunkedArray | str] = []
    for name in _OF_PRODUCER:
        parts += [f"{name}: ", text[name], " "]
    transaction = pc.binary_join_element_wise(
        "OptionalLong[", text["currentTxnFirstOffset"], "]", ""
    )
    parts += ["currentTxnFirstOffset: ", transaction.fill_null("OptionalLong.empty")]
    parts += [" lastTimestamp: ", text["lastTimestamp"], " "]
    batch: list[pa.ChunkedArray | str] = []
    for name in _OF_BATCH:
        batch += [" " if batch else "", f"{name}: ", text[name]]
    parts += [pc.binary_join_element_wise(*batch, "").fill_null(""), "\n"]
    joined = pc.binary_join_element_wise(*parts, "")
    return "".join(joined.to_pylist()).encode()


def _strings(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.cast(pa.string())
