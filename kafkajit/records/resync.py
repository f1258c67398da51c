"""Past damage: from a batch that is not one to the next place where a log goes on.

Where the damaged batch's own length leads to another header, or to the end, that is the place.
Otherwise every byte behind it is tried: a header has to look like one, and its checksum to hold.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.format.layout import (
    BATCH_LENGTH_OFFSET,
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_V0,
    MAGIC_V2,
    MESSAGE_OVERHEAD_V0,
    MESSAGE_OVERHEAD_V1,
    RECORD_BATCH_OVERHEAD,
)
from kafkajit.kernel import kernel, read_int32
from kafkajit.records.batches import frame
from kafkajit.source import Bytes

# Checksums are tried over this many times the bytes left, all together: planted headers could
# otherwise make a search quadratic.
_EFFORT = 64


def resync(content: Bytes, position: int, *, is_cut: bool = False) -> int:
    """Where the log goes on behind the bad batch at `position`; the end of the bytes if nowhere.

    `is_cut`: the bytes do not end as a log may, but where the next of its batches begins.
    """
    if content.size - position > HEADER_SIZE_UP_TO_MAGIC:
        after: int = position + LOG_OVERHEAD + read_int32(content, position + BATCH_LENGTH_OFFSET)
        if position + LOG_OVERHEAD <= after <= content.size and goes_on(
            content, after, is_cut=is_cut
        ):
            return after
    return next_sound_batch(content, position + 1)


def next_sound_batch(content: Bytes, position: int) -> int:
    """The first place from `position` on where a whole batch's checksum holds, or the end."""
    effort = _EFFORT * (content.size - position)
    while effort >= 0:
        position = int(_next_plausible(content, position))
        if position == content.size:
            break
        batches = frame(content, position, max_bytes=1).batches
        if batches.is_valid(content)[0]:
            return position
        effort -= int(batches.size_in_bytes[0])
        position += 1
    return content.size


def goes_on(content: Bytes, position: int, *, is_cut: bool = False) -> bool:
    """Whether what stands here looks like a batch, or the log ends here."""
    left = content.size - position
    if left <= HEADER_SIZE_UP_TO_MAGIC:
        return left == 0 or not is_cut  # the beginning of a batch that was never finished
    return bool(_is_plausible(content, position))


def plausible(content: Bytes, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """At which of these places a whole batch could begin."""
    found = np.empty(positions.size, dtype=np.bool_)
    _are_plausible(content, positions, found)
    return found


@kernel
def _are_plausible(content, positions, found):
    for row in range(positions.size):
        found[row] = _is_plausible(content, positions[row])


@kernel
def _next_plausible(content, position):
    """The first position from here on that could be a whole batch's, or the end."""
    last = content.size - MESSAGE_OVERHEAD_V0
    while position <= last:
        if content[position + MAGIC_OFFSET] <= MAGIC_V2 and _is_plausible(content, position):
            return position
        position += 1
    return np.int64(content.size)


@kernel
def _is_plausible(content, position):
    """Whether a whole batch could begin here. Nothing but its checksum says that it does.

    A message says more of itself than a batch: its sizes have to add up, as all writers' do.
    """
    room = content.size - position
    if room < MESSAGE_OVERHEAD_V0 or content[position + MAGIC_OFFSET] > MAGIC_V2:
        return False
    size = read_int32(content, position + BATCH_LENGTH_OFFSET) + LOG_OVERHEAD
    if size > room:
        return False
    magic = np.int64(content[position + MAGIC_OFFSET])
    if magic == MAGIC_V2:
        return size >= RECORD_BATCH_OVERHEAD
    least = MESSAGE_OVERHEAD_V0 if magic == MAGIC_V0 else MESSAGE_OVERHEAD_V1
    if size < least:
        return False
    at, end = position + least - 8, position + size
    for _ in range(2):  # key and value
        if at + 4 > end:
            return False
        field_size = read_int32(content, at)
        if field_size < -1:
            return False
        at += 4 + max(np.int64(field_size), np.int64(0))
    return at == end
