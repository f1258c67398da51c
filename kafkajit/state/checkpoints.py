"""The four checkpoints of a log.dirs folder, which have an offset for each partition.

cleaner-offset-checkpoint            up to where the log is compacted
log-start-offset-checkpoint          where the log begins, if records before it were deleted
recovery-point-offset-checkpoint     up to where the log is flushed
replication-offset-checkpoint        the high watermark

Answers to OffsetCheckpointFile: reads the bytes into a row for each partition, and writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from kafkajit.schema import CHECKPOINT_COLUMNS, table_schema
from kafkajit.state.checkpoint_file import checkpoint_text, parse_checkpoint
from kafkajit.storage.source import Bytes, whole

CLEANER_OFFSETS = "cleaner-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
NAMES = (CLEANER_OFFSETS, START_OFFSETS, RECOVERY_POINTS, HIGH_WATERMARKS)


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


def offsets_text(offsets: Iterable[tuple[str, int, int]]) -> bytes:
    r"""Write topics, partitions and offsets, in the given order, as Kafka does.

    >>> offsets_text([("orders", 3, 42)])
    b'0\n1\norders 3 42\n'
    """
    return checkpoint_text(offsets)
