"""Other ids for the producers of a log that another cluster gets.

Each cluster numbers its producers from 0. If a log has batches with the id, the epoch and the
sequence numbers of a new producer, a broker takes that one's batches for repeated ones: it
acknowledges them, and does not append them. So each restoration adds 2^56 to the ids of the old
cluster, which no cluster reaches: two producers of a log never get the same id, also if one of them
came from a third cluster.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.format.batch_checksum import batch_checksums
from kafkajit.format.layout import CRC_OFFSET, PRODUCER_ID_OFFSET
from kafkajit.format.limits import MAX_INT64
from kafkajit.records.batches import Batches
from kafkajit.state.producer_snapshot import producer_snapshot_bytes, snapshot_entries
from kafkajit.storage.source import Bytes, Int64s, as_bytes

STEP = 1 << 56


def other_ids(ids: npt.NDArray[np.integer]) -> Int64s:
    """The ids of the same producers in another cluster; -1 stands for no producer.

    >>> (other_ids(np.array([7, STEP + 7])) - STEP).tolist(), other_ids(np.array([-1])).tolist()
    ([7, 72057594037927943], [-1])
    """
    known = ids.astype(np.int64)
    has_room = (known >= 0) & (known <= MAX_INT64 - STEP)  # for 127 restorations
    return np.where(has_room, known + STEP * has_room, known)


def with_other_ids(entries: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """A copy of entries with a field `producerId`, in which that is changed."""
    changed = entries.copy()
    changed["producerId"] = other_ids(entries["producerId"])
    return changed


def snapshot_with_other_ids(snapshot: bytes) -> bytes:
    """A snapshot of producers in which their ids are changed."""
    return producer_snapshot_bytes(with_other_ids(snapshot_entries(as_bytes(snapshot))))


def change_ids(content: Bytes, batches: Batches, start: int) -> None:
    """Change the ids in the batches of a stretch that begins at `start`, and their checksums."""
    changed = batches[batches.header["producerId"] >= 0]
    positions = changed.position - start
    _write(content, positions + PRODUCER_ID_OFFSET, other_ids(changed.header["producerId"]), ">i8")
    sums = batch_checksums(content, positions, changed.end - start)
    _write(content, positions + CRC_OFFSET, sums, ">u4")


def _write(content: Bytes, positions: Int64s, values: npt.NDArray[np.integer], dtype: str) -> None:
    raw = values.astype(dtype).view(np.uint8).reshape(values.size, -1)
    for place in range(raw.shape[1]):
        content[positions + place] = raw[:, place]
