"""Select records by ranges of offsets and timestamps, and by their transactions.

A batch is judged by its header first, so a batch without a match is neither checked nor
decompressed. The rows of batches at the ends of a range are judged one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkajit.format.ranges import ALL, Range
from kafkajit.records.batches import Batches
from kafkajit.records.chunk import Chunk
from kafkajit.records.transactions import NONE_ABORTED, AbortedTransactions
from kafkajit.storage.source import Mask


@dataclass(frozen=True)
class Selection:
    """The records that a reader returns; all records by default."""

    offsets: Range = ALL
    timestamps: Range = ALL  # milliseconds
    committed: bool = False  # without aborted transactions
    with_control: bool = False  # if only committed records are returned: with control records, too
    aborted: AbortedTransactions = NONE_ABORTED

    @property
    def is_everything(self) -> bool:
        return self.offsets.is_everything and self.timestamps.is_everything and not self.committed

    @property
    def judges_rows(self) -> bool:
        return not (self.offsets.is_everything and self.timestamps.is_everything)

    def batches(self, batches: Batches) -> Mask:
        """Find the batches that may hold a selected record."""
        # The header of a compressed message set does not have the first offset. If a careless
        # client wrote it, its last offset and its timestamps may be wrong too.
        unknown = batches.is_message_set
        wanted: Mask = (batches.last_offset >= self.offsets.first) | unknown
        wanted &= (batches.field("baseOffset") <= self.offsets.last) | unknown
        # The header has the records' largest timestamp only: the base timestamp is the first
        # record's, or a delete horizon. With LogAppendTime every record has the largest.
        largest = batches.field("maxTimestamp")
        wanted &= (largest >= self.timestamps.first) | (unknown & (batches.timestamp_type != 1))
        wanted &= (largest <= self.timestamps.last) | (batches.timestamp_type == 0)
        if self.committed:
            if not self.with_control:
                wanted &= ~batches.is_control
            wanted &= ~self.aborted.holds(batches)
        return wanted

    def rows(self, chunk: Chunk) -> Mask | None:
        """Find the selected records of a chunk; None if all are."""
        if not self.judges_rows:
            return None
        offset, timestamp = chunk.columns.offset[: len(chunk)], chunk.columns.timestamp
        wanted = self.offsets.holds(offset) & self.timestamps.holds(timestamp[: len(chunk)])
        return None if wanted.all() else wanted


EVERYTHING = Selection()
