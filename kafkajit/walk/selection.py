"""Which records are asked for: ranges of offsets and timestamps, and what transactions allow.

A batch is judged by its header first, so that what cannot match is neither checked nor
decompressed; rows of the batches at a range's ends are judged one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.records.batches import Batches
from kafkajit.records.decode import Chunk
from kafkajit.records.transactions import NONE_ABORTED, AbortedTransactions
from kafkajit.storage.source import Mask


class Range(NamedTuple):
    """Numbers from `first` to `last`, both included.

    >>> Range(3, 5) & Range(5, 9)
    Range(first=5, last=5)
    """

    first: int = MIN_INT64
    last: int = MAX_INT64

    def __and__(self, other: Range) -> Range:
        return Range(max(self.first, other.first), min(self.last, other.last))

    def __bool__(self) -> bool:
        """Whether any number is in it."""
        return self.first <= self.last

    @property
    def is_everything(self) -> bool:
        return self.first <= MIN_INT64 and self.last >= MAX_INT64

    def holds(self, numbers: npt.NDArray[np.int64]) -> Mask:
        inside: Mask = (numbers >= self.first) & (numbers <= self.last)
        return inside


ALL = Range()
NOTHING = Range(0, -1)


@dataclass(frozen=True)
class Selection:
    """What a reader is asked for. Everything by default."""

    offsets: Range = ALL
    timestamps: Range = ALL  # milliseconds
    committed: bool = False  # neither markers nor aborted transactions
    aborted: AbortedTransactions = NONE_ABORTED

    @property
    def is_everything(self) -> bool:
        return self.offsets.is_everything and self.timestamps.is_everything and not self.committed

    @property
    def judges_rows(self) -> bool:
        return not (self.offsets.is_everything and self.timestamps.is_everything)

    def batches(self, batches: Batches) -> Mask:
        """Which batches may hold a record that is asked for."""
        # A compressed set of messages says nothing of its first offset, and a careless client's
        # nothing of its last or of its timestamps.
        unknown = batches.is_message_set
        wanted: Mask = (batches.last_offset >= self.offsets.first) | unknown
        wanted &= (batches.field("baseOffset") <= self.offsets.last) | unknown
        # The header knows the largest timestamp only; the base timestamp is the first record's,
        # or a delete horizon. Under LogAppendTime every record has the largest.
        largest = batches.field("maxTimestamp")
        wanted &= (largest >= self.timestamps.first) | (unknown & (batches.timestamp_type != 1))
        wanted &= (largest <= self.timestamps.last) | (batches.timestamp_type == 0)
        if self.committed:
            wanted &= ~batches.is_control
            wanted &= ~self.aborted.holds(batches)
        return wanted

    def rows(self, chunk: Chunk) -> Mask | None:
        """Which records of a chunk are asked for; None for all."""
        if not self.judges_rows:
            return None
        offset, timestamp = chunk.columns.offset[: len(chunk)], chunk.columns.timestamp
        wanted = self.offsets.holds(offset) & self.timestamps.holds(timestamp[: len(chunk)])
        return None if wanted.all() else wanted


EVERYTHING = Selection()
