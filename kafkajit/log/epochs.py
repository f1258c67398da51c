"""Which leader's epoch began at which offset, as a log grows and is cut.

Answers to LeaderEpochFileCache of Kafka 4.1.1.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from kafkajit.records.batches import Batches
from kafkajit.state.leader_epochs import leader_epochs_text


class LeaderEpochs:
    """Epochs and their start offsets, both growing.

    >>> epochs = LeaderEpochs([(0, 0), (1, 20), (3, 50)])
    >>> epochs.assign(2, 40)
    >>> epochs.entries
    [(0, 0), (1, 20), (2, 40)]
    """

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self.entries: list[tuple[int, int]] = []
        for entry in entries:
            self.assign(*entry)
        self.is_changed = False  # since then

    @property
    def latest(self) -> int | None:
        """The last leader's."""
        return self.entries[-1][0] if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Say that an epoch begins at this offset, if no other entry says where.

        Later entries, and entries of later offsets, are taken back.
        """
        if self.entries:
            latest, since = self.entries[-1]
            if epoch == latest and start_offset >= since:
                return
        while self.entries and (
            self.entries[-1][0] >= epoch or self.entries[-1][1] >= start_offset
        ):
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        self.is_changed = True

    def append(self, batches: Batches, epochs: npt.NDArray[np.integer]) -> None:
        """Take in batches that are appended, each of its leader's epoch.

        Messages of v0 and v1 have none: before them nothing is known any more.
        """
        begins = np.ones(len(batches), dtype=np.bool_)
        begins[1:] = epochs[1:] != epochs[:-1]
        begins[1:] |= batches.is_message[1:] != batches.is_message[:-1]
        for row in np.flatnonzero(begins).tolist():
            if batches.is_message[row]:
                self.is_changed |= bool(self.entries)
                self.entries.clear()
            else:
                self.assign(int(epochs[row]), int(batches.header["baseOffset"][row]))

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the entries of this offset and of those behind it."""
        while self.entries and self.entries[-1][1] >= end_offset:
            self.entries.pop()
            self.is_changed = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the entries before this offset; the one that it lies in begins there."""
        before = [entry for entry in self.entries if entry[1] <= start_offset]
        after = [(before[-1][0], start_offset)] if before else []
        if before != after:
            self.entries[: len(before)] = after
            self.is_changed = True

    def text(self) -> bytes:
        """The leader-epoch-checkpoint file that a broker writes."""
        return leader_epochs_text(self.entries)
