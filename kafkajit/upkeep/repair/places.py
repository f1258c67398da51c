"""The places of batches that stay in a log, and the offsets that they take."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np
import numpy.typing as npt

from kafkajit.format.ranges import Range

# A batch that stays, or the part of it with these offsets.
PLACE = np.dtype(
    [
        ("log", np.int64),
        ("row", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("isPart", np.bool_),
        ("begins", np.bool_),  # whether it is the first of its log that stays
    ]
)
Places = npt.NDArray[np.void]


class Taken:
    """The offsets that batches already have."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._more: list[Range] = []
        self._whole: dict[int, tuple[int, int]] = {}  # of those, by first offset

    def take(self, offsets: Range, whole: tuple[int, int] | None) -> None:
        """Add offsets that are free, and the log and row of the batch if they are all of its."""
        insort(self._more, offsets)
        if whole is not None:
            self._whole[offsets.first] = whole

    def batch_at(self, first: int) -> tuple[int, int] | None:
        """The log and row of the whole batch that begins at this offset."""
        if first in self._whole:
            return self._whole[first]
        at = int(np.searchsorted(self._places["first"], first))
        if at == self._places.size or self._places["first"][at] != first:
            return None
        place = self._places[at]
        return None if place["isPart"] else (int(place["log"]), int(place["row"]))

    def free(self, offsets: Range) -> list[Range]:
        """The ranges of these offsets that no batch has."""
        first, last = self._places["first"], self._places["last"]
        begin = int(np.searchsorted(last, offsets.first))
        behind = int(np.searchsorted(first, offsets.last, side="right"))
        taken = list(
            map(
                Range._make,
                zip(first[begin:behind].tolist(), last[begin:behind].tolist(), strict=True),
            )
        )
        at = max(bisect_left(self._more, offsets) - 1, 0)
        while at < len(self._more) and self._more[at].first <= offsets.last:
            taken.append(self._more[at])
            at += 1
        free = []
        start = offsets.first
        for one in sorted(taken):
            if start < one.first:
                free.append(Range(start, min(one.first - 1, offsets.last)))
            start = max(start, one.last + 1)
        if start <= offsets.last:
            free.append(Range(start, offsets.last))
        return free
