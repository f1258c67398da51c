"""The .index file: every few kilobytes of log, an offset and where its batch begins (OffsetIndex).

An entry is 8 bytes: the offset relative to the base offset, and the position, both int32. The
offset is the last of what was appended at that position.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

ENTRY = np.dtype([("relativeOffset", ">i4"), ("position", ">i4")])


def read_offset_index(content: bytes) -> npt.NDArray[np.void]:
    """The entries. A preallocated file's zeros are none: entries end where they stop growing.

    >>> read_offset_index(bytes.fromhex("0000000900001000") + bytes(8)).tolist()
    [(9, 4096)]
    """
    entries = np.frombuffer(content[: len(content) // ENTRY.itemsize * ENTRY.itemsize], ENTRY)
    offset, position = (entries[name].astype(np.int64) for name in ("relativeOffset", "position"))
    stops = (np.diff(offset) <= 0) | (np.diff(position) <= 0)
    end = int(np.argmax(stops)) + 1 if stops.any() else entries.size
    if entries.size and (offset[0] < 0 or position[0] < 0 or (offset[0] == position[0] == 0)):
        end = 0
    return entries[:end]
