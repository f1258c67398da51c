"""The start offsets of leader epochs, kept up to date as a log grows and is cut.

Answers to LeaderEpochFileCache of Kafka 4.1.1.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from kafkajit.format.layout import PARTITION_LEADER_EPOCH_OFFSET
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import write_int32
from kafkajit.records.batches import Batches
from kafkajit.state.leader_epochs import leader_epochs_text


class LeaderEpochs:
    """Leader epochs with their start offsets, both in ascending order.

    >>> epochs = LeaderEpochs([(0, 0), (1, 20), (3, 50)])
    >>> epochs.assign(2, 40)
    >>> epochs.entries
    [(0, 0), (1, 20), (2, 40)]
    """

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self.entries: list[tuple[int, int]] = []
        for entry in entries:
            self.assign(*entry)
        self.is_changed = False  # since these entries

    @property
    def latest(self) -> int | None:
        """The latest epoch, if there is one."""
        return self.entries[-1][0] if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add an entry for an epoch that begins at this offset, unless the epoch has one.

        Entries of later epochs or later offsets are removed.
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
        """Add the epochs of appended batches.

        Messages of v0 and v1 have no epoch: they remove all entries.
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
        """Remove the entries of this offset and of later ones."""
        while self.entries and self.entries[-1][1] >= end_offset:
            self.entries.pop()
            self.is_changed = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove the entries before this offset; the epoch of this offset now begins here."""
        before = [entry for entry in self.entries if entry[1] <= start_offset]
        after = [(before[-1][0], start_offset)] if before else []
        if before != after:
            self.entries[: len(before)] = after
            self.is_changed = True

    def text(self) -> bytes:
        """The content of the leader-epoch-checkpoint file, as a broker writes it."""
        return leader_epochs_text(self.entries)


@kernel
def stamp_epochs(content, positions, epochs):
    """Set the leader epochs of batches; a batch's checksum does not cover its epoch."""
    for row in range(positions.size):
        write_int32(content, positions[row] + PARTITION_LEADER_EPOCH_OFFSET, epochs[row])
