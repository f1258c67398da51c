"""The offsets that are left for the bytes between the sound batches of a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.storage.source import Mask
from kafkajit.upkeep.repair.census import BatchRows, Census


@dataclass
class LeftOffsets:
    """The batches of a log that tell the offsets of the bytes around them.

    Args:
        census: of the log.
        is_ordered: which of them follow each other.
        stays: which of them stay. One that is out of order and stays has the right offset.
    """

    census: Census
    is_ordered: Mask
    stays: Mask

    def __post_init__(self) -> None:
        rows = self.census.rows
        # In a log that has another one's name, only those tell it that stay.
        is_others = self.stays.any() and not (self.is_ordered & self.stays).any()
        self.rows: BatchRows = rows[self.stays if is_others else self.is_ordered]
        self._near: BatchRows = rows[self.stays | self.is_ordered]

    def around(self, position: int) -> tuple[int | None, int]:
        """The offset behind the batch before a position, and the first one of the next batch.

        The first is None without a batch before the position, and the second 2^63 without a next.
        """
        near = self._near
        at = int(np.searchsorted(near["position"], position))
        if 0 < at < near.size and near["last"][at - 1] < near["first"][at]:
            return int(near["last"][at - 1]) + 1, int(near["first"][at])
        at = int(np.searchsorted(self.rows["position"], position))
        behind = int(self.rows["first"][at]) if at < self.rows.size else MAX_INT64 + 1
        return int(self.rows["last"][at - 1]) + 1 if at else None, behind

    def at(self, position: int) -> Range:
        """The offsets at a position. Only its name tells where a log begins without a batch."""
        first, behind = self.around(position)
        if first is None:
            first = max(0, min(self.census.base_offset, behind - 1))
        return Range(first, behind - 1)
