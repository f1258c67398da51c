"""Plain records of a run of batches, and the reasons why one cannot be decoded."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafkajit.errors import KafkaJitError
from kafkajit.format.codecs import COMPRESSION_TYPES, ZSTD
from kafkajit.format.layout import MAGIC_V0, MAGIC_V1, RECORD_BATCH_OVERHEAD
from kafkajit.records.batches import Batches
from kafkajit.records.columns import Reading
from kafkajit.storage.source import Bytes, Int64s


class Plain(NamedTuple):
    """The positions of batches' plain records, and the error in the batch behind them."""

    content: Bytes
    starts: Int64s
    ends: Int64s
    error: KafkaJitError | None

    def error_before(self, later: KafkaJitError | None, batches: int) -> KafkaJitError | None:
        """The first error; `later` is the one in the batch behind all of these."""
        return self.error or (later if self.ends.size == batches else None)


class Read(NamedTuple):
    """Batches with what is known once they have been read, and their records in `content`."""

    batches: Batches
    content: Bytes
    reading: Reading
    error: KafkaJitError | None


def too_small(batches: Batches, row: int) -> str:
    """The error's text for a batch that has no room for its header."""
    return (
        f"Record batch is corrupt (the size {batches.size_in_bytes[row]} is smaller than the "
        f"minimum allowed overhead {RECORD_BATCH_OVERHEAD})"
    )


def unreadable(codec: int, magic: int) -> str | None:
    """Why no batch of this format can have that codec; None if it can."""
    if codec not in COMPRESSION_TYPES:
        return f"Unknown compression type id: {codec}"
    if codec == ZSTD and magic in (MAGIC_V0, MAGIC_V1):
        return f"Message format v{magic} has no zstd"
    return None


def of_one_kind(batches: Batches) -> Batches:
    """The first of some batches, up to one of another kind: messages or not."""
    messages = batches.is_message
    if not messages.any() or messages.all():
        return batches
    return batches[: int(np.argmax(messages != messages[0]))]
