"""The four checkpoints of a log.dirs folder, which have an offset for each partition.

cleaner-offset-checkpoint            up to where the log is compacted
log-start-offset-checkpoint          where the log begins, if records before it were deleted
recovery-point-offset-checkpoint     up to where the log is flushed
replication-offset-checkpoint        the high watermark

Answers to OffsetCheckpointFile: reads the bytes into a row for each partition, and writes them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from kafkajit.schema import CHECKPOINT_COLUMNS, table_schema
from kafkajit.state.checkpoint_file import checkpoint_text, parse_checkpoint
from kafkajit.storage.source import Bytes, as_bytes, whole
from kafkajit.storage.stored_file import StoredFile

CLEANER_OFFSETS = "cleaner-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
NAMES = (CLEANER_OFFSETS, START_OFFSETS, RECOVERY_POINTS, HIGH_WATERMARKS)

# The offsets of a checkpoint, each by its topic and partition.
Offsets = Mapping[tuple[str | None, int | None], int]

# All partitions of a folder ask for the same few files.
_parsed: dict[tuple[str, int, int | None], Offsets] = {}
_MOST_PARSED = 100
# A file can change twice within a step of its clock, and keep its size.
_STEP_NS = 2_000_000_000


def read_checkpoint(source: Any) -> pa.Table:
    r"""Read a checkpoint of partitions, in `kafkajit.schema.CHECKPOINT_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.

    >>> read_checkpoint(b"0\n1\norders 3 42\n").to_pylist()
    [{'topic': 'orders', 'partition': 3, 'offset': 42}]
    """
    return parse_offsets(*whole(source))


def parse_offsets(content: Bytes, path: str | None = None) -> pa.Table:
    """As `read_checkpoint`, from bytes and the path that they came from."""
    return parse_checkpoint(content, path, table_schema(CHECKPOINT_COLUMNS))


def read_offsets(file: StoredFile) -> Offsets:
    """Read the offsets of a checkpoint as it is now."""
    rows = parse_offsets(as_bytes(file.read_now()), file.path)
    topics, partitions, offsets = (rows[name].to_pylist() for name in CHECKPOINT_COLUMNS)
    return dict(zip(zip(topics, partitions, strict=True), offsets, strict=True))


def offsets_in(file: StoredFile) -> Offsets:
    """The offsets of a checkpoint; it is read again only if it has changed since the last time."""
    key = file.path, file.size, file.modified_ns
    found = _parsed.get(key)
    if found is None:
        begun = time.time_ns()
        found = read_offsets(file)
        if file.modified_ns is not None and file.modified_ns < begun - _STEP_NS:
            if len(_parsed) >= _MOST_PARSED:
                _parsed.clear()
            _parsed[key] = found
    return found


def offsets_text(offsets: Iterable[tuple[str, int, int]]) -> bytes:
    r"""Write topics, partitions and offsets, in the given order, as Kafka does.

    >>> offsets_text([("orders", 3, 42)])
    b'0\n1\norders 3 42\n'
    """
    return checkpoint_text(offsets)
