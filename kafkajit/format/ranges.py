"""Ranges of offsets and of timestamps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.limits import MAX_INT64, MIN_INT64
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
        """Whether the range contains a number."""
        return self.first <= self.last

    @property
    def is_everything(self) -> bool:
        return self.first <= MIN_INT64 and self.last >= MAX_INT64

    def holds(self, numbers: npt.NDArray[np.int64]) -> Mask:
        inside: Mask = (numbers >= self.first) & (numbers <= self.last)
        return inside


ALL = Range()
NOTHING = Range(0, -1)
