"""leader-epoch-checkpoint: the offset at which each leader's epoch began.

Answers to LeaderEpochCheckpointFile: reads the bytes into a row for each epoch, and writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from kafkajit.schema import LEADER_EPOCH_COLUMNS, table_schema
from kafkajit.state.checkpoint_file import (
    checkpoint_entries,
    checkpoint_text,
    parse_checkpoint,
)
from kafkajit.storage.source import Bytes, as_bytes, whole

LEADER_EPOCHS = "leader-epoch-checkpoint"
_BITS = (32, 64)


def read_leader_epochs(source: Any) -> pa.Table:
    r"""Read a leader-epoch-checkpoint file, in `kafkajit.schema.LEADER_EPOCH_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.

    >>> read_leader_epochs(b"0\n2\n0 0\n2 5\n").to_pylist()
    [{'epoch': 0, 'startOffset': 0}, {'epoch': 2, 'startOffset': 5}]
    """
    return parse_leader_epochs(*whole(source))


def parse_leader_epochs(content: Bytes, path: str | None = None) -> pa.Table:
    """As `read_leader_epochs`, from bytes and the path that they came from."""
    return parse_checkpoint(content, path, table_schema(LEADER_EPOCH_COLUMNS))


def epochs_in(content: bytes | Bytes, path: str | None = None) -> list[tuple[int, int]]:
    r"""The epochs and their start offsets, in the order of the file.

    >>> epochs_in(b"0\n2\n0 0\n2 5\n")
    [(0, 0), (2, 5)]
    """
    # Without Arrow, which takes ten times as long for a few rows.
    return [(epoch, start) for epoch, start in checkpoint_entries(as_bytes(content), path, _BITS)]


def leader_epochs_text(epochs: Iterable[tuple[int, int]]) -> bytes:
    r"""Write epochs and their start offsets, in order, as Kafka does.

    >>> leader_epochs_text([(0, 0), (2, 5)])
    b'0\n2\n0 0\n2 5\n'
    """
    return checkpoint_text(epochs)
