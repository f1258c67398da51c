"""Get past damage: find the next place where a log goes on behind a bad batch.

If the damaged batch's own length leads to another header or to the end, that is the place.
Otherwise every byte behind it is tried: a batch needs a plausible header and a right checksum.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.format.batch_checksum import POLYNOMIAL, crc32c
from kafkajit.format.crc import move, over_zeros, slicing_tables
from kafkajit.format.layout import (
    ATTRIBUTES_OFFSET,
    BASE_SEQUENCE_OFFSET,
    BATCH_LENGTH_OFFSET,
    COMPRESSION_CODEC_MASK,
    CRC_OFFSET,
    HEADER_SIZE_UP_TO_MAGIC,
    KNOWN_ATTRIBUTES,
    LAST_OFFSET_DELTA_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_V0,
    MAGIC_V2,
    MAX_TIMESTAMP_OFFSET,
    MESSAGE_ATTRIBUTES_OFFSET,
    MESSAGE_CRC_OFFSET,
    MESSAGE_OVERHEAD_V0,
    MESSAGE_OVERHEAD_V1,
    MIN_ENTRY_SIZE,
    PARTITION_LEADER_EPOCH_OFFSET,
    PRODUCER_ID_OFFSET,
    RECORD_BATCH_OVERHEAD,
    RECORDS_COUNT_OFFSET,
    TIMESTAMP_TYPE_MASK,
)
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.message_checksum import POLYNOMIAL as MESSAGE_POLYNOMIAL
from kafkajit.format.message_checksum import crc32
from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import read_int32, read_int64
from kafkajit.storage.source import Bytes

# Checksums are computed one by one until they have covered a few times the bytes of the log.
# Planted headers without batches would make this quadratic; prefix checksums avoid that.
_FREE_BYTES = 16 << 20
_FREE_SHARE = 4
# A batch that ends in up to this many zeros may have a preallocated file's zeros behind it.
_LAST_ZEROS = 64
# The largest batch that brokers accept by default. Larger ones must also have plausible fields.
_USUAL_BATCH = 1 << 20
# Bytes between two kept prefix checksums.
_STRIDE = 512

# How a byte changes a batch's checksum, and a message's.
_STEPS = np.stack([slicing_tables(POLYNOMIAL)[0], slicing_tables(MESSAGE_POLYNOMIAL)[0]])
_OVER_ZEROS = np.stack([over_zeros(POLYNOMIAL), over_zeros(MESSAGE_POLYNOMIAL)])


def resync(
    content: Bytes,
    position: int,
    *,
    is_cut: bool = False,
    zeros: int | None = None,
    prover: PrefixChecksums | None = None,
) -> int:
    """The position where the log goes on behind the bad batch at `position`, or the end.

    Args:
        content: the bytes of the log.
        position: where the bad batch begins.
        is_cut: whether the bytes end where the next batch begins, instead of where a log may end.
        zeros: the position of a preallocated file's zeros.
        prover: the prover of a log with several gaps.
    """
    prover = prover or PrefixChecksums(content)
    if content.size - position > HEADER_SIZE_UP_TO_MAGIC:
        after = _end_of(content, position)
        if position + LOG_OVERHEAD + MIN_ENTRY_SIZE <= after <= content.size and goes_on(
            content, after, is_cut=is_cut, zeros=zeros
        ):
            if content.size - after > HEADER_SIZE_UP_TO_MAGIC:
                return after
            # An unfinished batch may claim bytes behind it. No batch in a value of v2 ends here.
            most = after - int(content[position + MAGIC_OFFSET] == MAGIC_V2)
            found = prover.next_sound_batch(position + 1)
            while found < after and _end_of(content, found) <= most:
                found = prover.next_sound_batch(found + 1)
            return min(found, after)
    return prover.next_sound_batch(position + 1)


def _end_of(content: Bytes, position: int) -> int:
    return position + LOG_OVERHEAD + int(read_int32(content, position + BATCH_LENGTH_OFFSET))


class PrefixChecksums:
    """Checks the checksums of a log's batches in a time proportional to the log's size.

    If many headers claim all bytes behind them, those bytes would be checked again and again. Once
    that becomes expensive, the prover computes the checksums of all prefixes, and uses them.
    """

    def __init__(self, content: Bytes, data_end: int | None = None) -> None:
        """All bytes from `data_end` on, if it is given, are zeros."""
        self._end = content.size
        self._data_end = self._end if data_end is None else min(data_end, self._end)
        # A batch does not begin behind it, and has no byte beyond this.
        self._content = content[: self._data_end + LOG_OVERHEAD + MAX_INT32]
        self._prefixes = _NO_PREFIXES
        self._free = _FREE_BYTES + _FREE_SHARE * self._content.size  # to be checked one by one

    def next_sound_batch(self, position: int) -> int:
        """The first position from here on of a whole batch with a right checksum, or the end."""
        content, last = self._content, self._data_end
        found, self._free = _search(content, position, last, 0, self._prefixes, self._free)
        if self._free < 0 and not self.is_needed:
            self._prefixes = _prefix_checksums(content, 0)
            found, _ = _search(content, found, last, 0, self._prefixes, self._free)
        return self._end if found == content.size else int(found)

    def waste(self, size: int) -> None:
        """Note the number of bytes that were checked in vain."""
        self._free -= size
        if self._free < 0 and not self.is_needed:
            self._prefixes = _prefix_checksums(self._content, 0)

    @property
    def is_needed(self) -> bool:
        """Whether enough bytes were wasted to check large batches with `checksum` from now on."""
        return self._prefixes.size > 0

    def checksum(self, position: int, end: int) -> int:
        """The computed checksum of the batch between two positions."""
        return int(_checksum_of(self._content, position, end, 0, self._prefixes))


_NO_PREFIXES = np.empty((2, 0), dtype=np.uint64)


def _prefix_checksums(content: Bytes, start: int) -> npt.NDArray[np.uint64]:
    """CRC-32C and CRC-32 of the first 0, 512, 1024, … bytes from `start` on.

    Any stretch's checksum follows from two of them, at the cost of reading a few hundred bytes.
    """
    prefixes = np.zeros((2, (content.size - start) // _STRIDE + 1), dtype=np.uint64)
    _fill_prefixes(content, start, prefixes)
    return prefixes


def goes_on(
    content: Bytes, position: int, *, is_cut: bool = False, zeros: int | None = None
) -> bool:
    """Whether a batch seems to begin here, or the log ends here.

    A log ends with its bytes, with an incomplete batch, or at the first of the zeros. A place
    further inside the zeros does not count: only a damaged length leads there.
    """
    left = content.size - position
    if left == 0 or (left > HEADER_SIZE_UP_TO_MAGIC and _is_plausible(content, position)):
        return True
    if is_cut:
        return False
    if zeros is not None and position >= zeros:
        return position <= zeros + _LAST_ZEROS
    return left <= HEADER_SIZE_UP_TO_MAGIC or bool(_is_torn(content, position))


def zeros_at_the_end(content: Bytes) -> int:
    """The position of the zeros at the end, or the end itself if there are no zeros."""
    return int(_behind_last_byte(content))


def plausible(content: Bytes, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """The positions at which a whole batch could begin."""
    found = np.empty(positions.size, dtype=np.bool_)
    _are_plausible(content, positions, found)
    return found


def end_by_checksum(content: Bytes, position: int) -> int | None:
    """The end of the batch that begins here, whatever its size field claims.

    The batch ends at the first place where its checksum holds and the log ends or another batch
    seems to begin. The checksum does not cover the size field, so a whole batch may have a damaged
    size.
    """
    room = content.size - position
    if room < MESSAGE_OVERHEAD_V0 or content[position + MAGIC_OFFSET] > MAGIC_V2:
        return None
    is_message = bool(content[position + MAGIC_OFFSET] < MAGIC_V2)
    least = MESSAGE_OVERHEAD_V0 if is_message else RECORD_BATCH_OVERHEAD
    end = _end_by_checksum(content, position, least, _STEPS[int(is_message)])
    return int(end) if end > position else None


@kernel
def _end_by_checksum(content, position, least, step):
    is_message = content[position + MAGIC_OFFSET] < MAGIC_V2
    at = position + (MESSAGE_CRC_OFFSET if is_message else CRC_OFFSET)
    stored = np.uint64(read_int32(content, at) & 0xFFFFFFFF)
    crc, ones = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFF)
    for p in range(position + (MAGIC_OFFSET if is_message else ATTRIBUTES_OFFSET), content.size):
        crc = step[(crc ^ np.uint64(content[p])) & np.uint64(0xFF)] ^ crc >> np.uint64(8)
        if crc ^ ones == stored and p + 1 - position >= least and _may_follow(content, p + 1):
            return p + 1
    return np.int64(-1)


@kernel
def _may_follow(content, position):
    """Whether a log may end here, or another batch begin, whole or not."""
    room = content.size - position
    if room == 0:
        return True
    if content[position] != 0 or (room > MAGIC_OFFSET and content[position + MAGIC_OFFSET] > 2):
        return False
    return room < LOG_OVERHEAD or read_int32(content, position + BATCH_LENGTH_OFFSET) >= 0


@kernel
def _are_plausible(content, positions, found):
    for row in range(positions.size):
        found[row] = _is_plausible(content, positions[row])


@kernel
def _search(content, position, last, start, prefixes, free):
    """Return the first sound batch from here on, or the end, and how many bytes may yet be checked.

    No batch begins at `last` or behind it.

    If that number is negative, the search gave up at this position. With prefix checksums from
    `start` on it never gives up.
    """
    while True:
        position = _next_magic(content, position + MAGIC_OFFSET) - MAGIC_OFFSET
        room = content.size - position
        if room < MESSAGE_OVERHEAD_V0 or position >= last:
            return np.int64(content.size), free
        size = read_int32(content, position + BATCH_LENGTH_OFFSET) + LOG_OVERHEAD
        if (
            MESSAGE_OVERHEAD_V0 <= size <= room
            and _may_begin(content, position)
            and (size <= _USUAL_BATCH or _has_plausible_fields(content, position))
        ):
            if prefixes.size == 0:
                free -= size
                if free < 0:
                    return position, free
            if _is_sound(content, position, position + size, start, prefixes):
                return position, free
        position += 1


@inlined
def _next_magic(content, position):
    """The next byte that is 2 or less, or the end."""
    while position + 8 <= content.size:
        word = np.uint64(read_int64(content, position))
        if (word - np.uint64(0x0303030303030303)) & ~word & np.uint64(0x8080808080808080):
            break
        position += 8
    while position < content.size and content[position] > MAGIC_V2:
        position += 1
    return position


@kernel
def _is_sound(content, position, end, start, prefixes):
    """Whether the stored checksum is right."""
    is_message = content[position + MAGIC_OFFSET] < MAGIC_V2
    at = position + (MESSAGE_CRC_OFFSET if is_message else CRC_OFFSET)
    computed = np.int64(_checksum_of(content, position, end, start, prefixes))
    return computed == read_int32(content, at) & 0xFFFFFFFF


@kernel
def _checksum_of(content, position, end, start, prefixes):
    """The computed checksum of a batch or message."""
    is_message = content[position + MAGIC_OFFSET] < MAGIC_V2
    first = position + (MAGIC_OFFSET if is_message else ATTRIBUTES_OFFSET)
    if prefixes.size == 0 or end - first <= 4 * _STRIDE:
        return np.uint64(_checksum(content, first, end, is_message))
    before = _checksum_up_to(content, first, start, prefixes, is_message)
    after = _checksum_up_to(content, end, start, prefixes, is_message)
    return move(before, end - first, _OVER_ZEROS[np.int64(is_message)]) ^ after


@kernel
def _checksum_up_to(content, end, start, prefixes, is_message):
    """The checksum of everything from `start` to `end`."""
    row = np.int64(is_message)
    known = (end - start) // _STRIDE
    position = start + known * _STRIDE
    rest = _checksum(content, position, end, is_message)
    return move(prefixes[row, known], end - position, _OVER_ZEROS[row]) ^ rest


@kernel
def _checksum(content, position, end, is_message):
    if is_message:
        return np.uint64(crc32(content, position, end))
    return np.uint64(crc32c(content, position, end))


@kernel
def _fill_prefixes(content, start, prefixes):
    for row in range(2):
        for i in range(1, prefixes.shape[1]):
            p = start + i * _STRIDE
            stretch = _checksum(content, p - _STRIDE, p, row == 1)
            prefixes[row, i] = move(prefixes[row, i - 1], _STRIDE, _OVER_ZEROS[row]) ^ stretch


@kernel
def _is_plausible(content, position):
    """Whether a whole batch seems to begin here, with fields that brokers accept."""
    return _may_begin(content, position) and _has_plausible_fields(content, position)


@kernel
def _is_torn(content, position):
    """Whether a batch seems to begin here that is longer than the bytes left."""
    room = content.size - position
    size = read_int32(content, position + BATCH_LENGTH_OFFSET) + LOG_OVERHEAD
    if content[position + MAGIC_OFFSET] > MAGIC_V2 or size <= room:
        return False
    if content[position + MAGIC_OFFSET] == MAGIC_V2:
        return room >= RECORD_BATCH_OVERHEAD and _has_plausible_fields(content, position)
    return _sizes_add_up(content, position, size) and _has_plausible_fields(content, position)


@kernel
def _has_plausible_fields(content, position):
    """Whether the header of a batch or a message has fields that brokers accept."""
    if read_int64(content, position) < 0:
        return False
    if content[position + MAGIC_OFFSET] != MAGIC_V2:
        known = COMPRESSION_CODEC_MASK | TIMESTAMP_TYPE_MASK
        return content[position + MESSAGE_ATTRIBUTES_OFFSET] <= known
    last_delta = read_int32(content, position + LAST_OFFSET_DELTA_OFFSET)
    count = read_int32(content, position + RECORDS_COUNT_OFFSET)
    return (
        content[position + ATTRIBUTES_OFFSET] == 0
        and content[position + ATTRIBUTES_OFFSET + 1] <= KNOWN_ATTRIBUTES
        and 0 <= count <= last_delta + 1
        and read_int32(content, position + PARTITION_LEADER_EPOCH_OFFSET) >= -1
        and read_int64(content, position + MAX_TIMESTAMP_OFFSET) >= -1
        and read_int64(content, position + PRODUCER_ID_OFFSET) >= -1
        and read_int32(content, position + BASE_SEQUENCE_OFFSET) >= -1
    )


@kernel
def _behind_last_byte(content):
    end = content.size
    while end >= 8 and read_int64(content, end - 8) == 0:
        end -= 8
    while end > 0 and content[end - 1] == 0:
        end -= 1
    return end


@kernel
def _may_begin(content, position):
    """Whether a whole batch could begin here. Only its checksum would prove it.

    Messages can be checked further than batches: their sizes must add up, as with all writers.
    """
    room = content.size - position
    if room < MESSAGE_OVERHEAD_V0 or content[position + MAGIC_OFFSET] > MAGIC_V2:
        return False
    size = read_int32(content, position + BATCH_LENGTH_OFFSET) + LOG_OVERHEAD
    if size > room:
        return False
    if content[position + MAGIC_OFFSET] == MAGIC_V2:
        return size >= RECORD_BATCH_OVERHEAD
    return _sizes_add_up(content, position, size)


@kernel
def _sizes_add_up(content, position, size):
    """Whether a message's key and value sizes add up to its own; bytes may be missing."""
    is_v0 = content[position + MAGIC_OFFSET] == MAGIC_V0
    least = MESSAGE_OVERHEAD_V0 if is_v0 else MESSAGE_OVERHEAD_V1
    if size < least:
        return False
    at, end = position + least - 8, position + size
    for _ in range(2):  # key and value
        if at + 4 > min(end, content.size):
            return False
        field_size = read_int32(content, at)
        if field_size < -1:
            return False
        at += 4 + max(np.int64(field_size), np.int64(0))
    return at == end
