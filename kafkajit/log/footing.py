"""The ground that a position in a log stands on.

An offset alone does not tell one log from another. So whoever reads on later keeps with it the
topic's id, the last batch that was read and the leader epochs up to there.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkajit.records.batches import Batches

# Leader epochs, and the offsets at which they begin.
Epochs = tuple[tuple[int, int], ...]

# A position keeps the newest leader epochs. Two histories seldom part before them.
_MOST_EPOCHS = 16


class ReadBatch(NamedTuple):
    """The batch that has the last offset that was read."""

    base_offset: int
    last_offset: int
    crc: int
    size: int
    position: int  # in its segment, unless a cleaner has moved it
    leader_epoch: int = -1  # unknown in messages of v0 and v1, and in older journals

    @classmethod
    def of(cls, batches: Batches, row: int = 0) -> ReadBatch:
        """One of these batches."""
        header = batches.header[row]
        return cls(
            int(header["baseOffset"]),
            int(batches.last_offset[row]),
            int(header["crc"]),
            int(batches.size_in_bytes[row]),
            int(batches.position[row]),
            int(header["partitionLeaderEpoch"]),
        )

    def is_same(self, other: ReadBatch) -> bool:
        """Whether two batches are one, wherever it lies, as far as their headers tell.

        The checksum does not cover the epoch: a copy may have the same records under another one.

        >>> ReadBatch(0, 3, 77, 100, 0, 5).is_same(ReadBatch(0, 3, 77, 100, 900, -1))
        True
        >>> ReadBatch(0, 3, 77, 100, 0, 5).is_same(ReadBatch(0, 3, 77, 100, 0, 6))
        False
        """
        epochs = {self.leader_epoch, other.leader_epoch}
        return self[:4] == other[:4] and (len(epochs) == 1 or -1 in epochs)


class Footing(NamedTuple):
    """The ground of a position in a log: it tells the log from another one with such offsets."""

    topic_id: str | None = None  # if it is known
    last: ReadBatch | None = None  # the batch before the position, if there is one
    # The newest leader epochs before the position, and the offsets at which they begin.
    epochs: Epochs = ()
    log_start: int | None = None  # the first offset of the log


def epochs_before(epochs: Epochs, offset: int, last: ReadBatch | None) -> Epochs:
    """The epochs to keep with a position.

    A copy's file may be older than the last batch, whose epoch is kept, too, or newer: an epoch
    that begins in that batch or before is not its log's then. The batches of one that begins
    behind may have been compacted away.

    >>> epochs_before(((0, 0), (2, 90)), 80, ReadBatch(70, 79, 77, 100, 0, 1))
    ((0, 0), (1, 70))
    >>> epochs_before(((0, 0), (1, 5)), 10, ReadBatch(5, 9, 77, 100, 0, 0))
    ((0, 0),)
    >>> epochs_before(((0, 0), (1, 5)), 10, ReadBatch(0, 4, 77, 100, 0, 0))
    ((0, 0), (1, 5))
    """
    found = tuple(
        one
        for one in epochs
        if one[1] < offset
        and (last is None or not 0 <= last.leader_epoch < one[0] or one[1] > last.last_offset)
    )
    if found and last is not None and last.leader_epoch > found[-1][0]:
        found += ((last.leader_epoch, last.base_offset),)
    return found[-_MOST_EPOCHS:]


def made_again_text(read: str | None, now: str | None) -> str | None:
    """The reason why a log is another one, by the ids of the topic; None if it may be the same.

    >>> made_again_text("A", None)
    >>> made_again_text("A", "B")
    'the topic was made again: its id is B, and that of the log that was read is A'
    """
    if None in (read, now) or read == now:
        return None
    return f"the topic was made again: its id is {now}, and that of the log that was read is {read}"


def truncated_text(agreed: int, read: Epochs, now: Epochs) -> str:
    """The reason why two histories of one log are the same only up to an offset.

    >>> truncated_text(90, ((0, 0), (1, 80)), ((0, 0), (2, 90)))
    'the log was truncated to offset 90 and written again: leader epoch 2 follows there, and epoch \
1 was read'
    """
    epoch = max((one for one, first in now if first <= agreed), default=None)
    was = max((one for one, first in read if first <= agreed), default=None)
    return (
        f"the log was truncated to offset {agreed} and written again: leader epoch {epoch} follows "
        f"there, and epoch {was} was read"
    )


def agreed_up_to(read: Epochs, offset: int, now: Epochs, end: int) -> int | None:
    """The offset up to which two histories of one log are the same; None if epochs do not tell.

    Each epoch has one leader, so two logs that have an offset from the same epoch have the same
    records up to there. Followers find in the same way where to truncate.

    Args:
        read: the leader epochs of the log that was read, and their first offsets.
        offset: up to which it was read.
        now: the leader epochs of the log as it is.
        end: its end.

    >>> agreed_up_to(((0, 0), (1, 100)), 120, ((0, 0), (1, 100), (2, 110)), 300)
    110
    >>> agreed_up_to(((0, 0), (1, 100)), 120, ((0, 0), (2, 90)), 300)
    90
    >>> agreed_up_to(((3, 50),), 60, ((5, 55),), 300)
    55
    >>> agreed_up_to((), 60, ((5, 55),), 300)
    """
    mine, theirs = _ranges(read, offset), _ranges(now, end)
    for epoch in sorted(mine.keys() & theirs.keys(), reverse=True):
        first = max(mine[epoch][0], theirs[epoch][0])
        behind = min(mine[epoch][1], theirs[epoch][1])
        if first <= behind:  # equal in a log that has lost all of it
            return behind
    if read and now and read[-1][0] < now[0][0]:  # all that was read is gone
        return min(offset, now[0][1])
    return None


def _ranges(epochs: Epochs, end: int) -> dict[int, tuple[int, int]]:
    """The first offset of each epoch, and the one behind its last."""
    behind = (*(first for _, first in epochs[1:]), end)
    return {epoch: (first, until) for (epoch, first), until in zip(epochs, behind, strict=False)}
