"""Batches whose offsets, or leader's epoch, become others where they stand.

A batch's base offset and its leader's epoch are outside of what its checksum covers, and records
count from the base offset: a broker that appends a producer's batches writes these two and no more.
An index's entries count from the offset in the segment's name, so they stay as they are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kafkajit.format.layout import PARTITION_LEADER_EPOCH_OFFSET
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import write_int32, write_int64
from kafkajit.storage.source import Source
from kafkajit.walk.walk import frames


def rebase(log: Path, shift: int, leader_epoch: int) -> None:
    """Move the offsets of a segment's batches, and say of which leader's epoch they are.

    Messages of v0 and v1 have no epoch, and keep their offsets. To bring it to the disk is left to
    who makes the segment a log's: until then it is no loss.

    Args:
        log: the file, which nobody else looks at.
        shift: what to add to each offset.
        leader_epoch: of all batches.
    """
    source = Source(log)
    if source.content.size == 0:
        return
    content = np.memmap(log, dtype=np.uint8, mode="r+")
    for framing in frames(source):
        batches = framing.batches[~framing.batches.is_message]
        _rebase(
            content.view(np.ndarray),
            batches.position,
            batches.header["baseOffset"] + np.int64(shift),
            np.int64(leader_epoch),
        )
        source.forget(framing.position)


@kernel
def _rebase(content, positions, offsets, leader_epoch):
    for row in range(positions.size):
        write_int64(content, positions[row], offsets[row])
        write_int32(content, positions[row] + PARTITION_LEADER_EPOCH_OFFSET, leader_epoch)
