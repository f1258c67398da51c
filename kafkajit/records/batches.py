"""Framing: finds where each record batch of a log begins and ends, and reads its header.

Answers to Kafka's FileLogInputStream (which bytes are a batch), DefaultRecordBatch (what its header
says) and ensureValid (whether to believe it). Framing decompresses nothing and reads no record.

A message of v0 or v1 is a batch too: of one record or, if compressed, of a set of them. It gets a
header in the layout of v2, with -1 for what messages lack (AbstractLegacyRecordBatch). The records
of a set are known only once the set has been read. Until then its own offset, which is that of its
last record, stands for the first as well. Messages that are not compressed are small and many, so
their headers are made only if someone asks for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from kafkajit.errors import BATCH_TOO_SMALL, OK, KafkaJitError, error_for
from kafkajit.format.batch_checksum import batch_checksums
from kafkajit.format.layout import (
    BATCH_HEADER,
    BATCH_LENGTH_OFFSET,
    COMPRESSION_CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_V0,
    MAGIC_V1,
    MAGIC_V2,
    MESSAGE_ATTRIBUTES_OFFSET,
    MESSAGE_CRC_OFFSET,
    MESSAGE_TIMESTAMP_OFFSET,
    MIN_ENTRY_SIZE,
    NATIVE_BATCH_HEADER,
    RECORD_BATCH_OVERHEAD,
    RECORDS_COUNT_OFFSET,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    WIRE_BYTES,
    bytes_of,
)
from kafkajit.format.message_checksum import message_checksums
from kafkajit.format.sequence import increment_sequence
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import LINE, prefetch, read_int32, read_int64
from kafkajit.storage.source import Bytes, Int32s, Int64s, Mask, Source

# The most batches that one call of the kernel finds.
_FRAMES = 65536
# Where each message begins is known only once the one before has come from memory, so what follows
# is loaded this long before: 14 ms instead of 29 for a million messages of 143 bytes.
_AHEAD = 4096


class Batches:
    """The headers of consecutive batches: a row each, fields as arrays, with Kafka's names.

    `header` holds rows of NATIVE_BATCH_HEADER, or makes them when it is called. `first_offset` is
    for messages that have been read.
    """

    def __init__(
        self,
        position: Int64s,
        header: npt.NDArray[np.void] | Callable[[], npt.NDArray[np.void]],
        first_offset: Int64s | None = None,
    ) -> None:
        self.position = position
        self.first_offset = first_offset
        self._header = header

    @cached_property
    def header(self) -> npt.NDArray[np.void]:
        return self._header() if callable(self._header) else self._header

    def __len__(self) -> int:
        return self.position.size

    def __getitem__(self, rows: slice | Mask) -> Batches:
        every = range(len(self))
        if rows.all() if isinstance(rows, np.ndarray) else every[rows] == every:
            return self  # with what is known of them
        first = None if self.first_offset is None else self.first_offset[rows]
        return Batches(self.position[rows], self.header[rows], first)

    def field(self, name: str) -> npt.NDArray[np.integer]:
        """A header field; for messages that have been read, baseOffset is their first record's."""
        if name == "baseOffset" and self.first_offset is not None:
            return self.first_offset
        return self.header[name]

    @cached_property
    def size_in_bytes(self) -> Int64s:
        return self.header["batchLength"].astype(np.int64) + LOG_OVERHEAD

    @cached_property
    def end(self) -> Int64s:
        return self.position + self.size_in_bytes

    @cached_property
    def last_offset(self) -> Int64s:
        return self.header["baseOffset"] + self.header["lastOffsetDelta"].astype(np.int64)

    @cached_property
    def last_sequence(self) -> Int32s:
        base = self.header["baseSequence"]
        last = increment_sequence(base, self.header["lastOffsetDelta"])
        return np.where(base == -1, np.int32(-1), last)

    @cached_property
    def codec(self) -> npt.NDArray[np.int16]:
        return self.header["attributes"] & COMPRESSION_CODEC_MASK

    @cached_property
    def timestamp_type(self) -> Int32s:
        types = self._flag(TIMESTAMP_TYPE_MASK).astype(np.int32)
        types[self.header["magic"] == MAGIC_V0] = -1
        return types

    @cached_property
    def is_message(self) -> Mask:
        """Whether each batch is a message of v0 or v1."""
        magic = self.header["magic"]
        messages: Mask = (magic == MAGIC_V0) | (magic == MAGIC_V1)
        return messages

    @cached_property
    def is_message_set(self) -> Mask:
        """Whether each is a compressed set of messages, whose header is not that of its records."""
        sets: Mask = self.is_message & (self.codec != 0)
        return sets

    @cached_property
    def is_transactional(self) -> Mask:
        return self._flag(TRANSACTIONAL_MASK)

    @cached_property
    def is_control(self) -> Mask:
        return self._flag(CONTROL_MASK)

    @cached_property
    def has_delete_horizon(self) -> Mask:
        return self._flag(DELETE_HORIZON_MASK)

    def _flag(self, mask: int) -> Mask:
        flags: Mask = (self.header["attributes"] & mask) != 0
        return flags

    @cached_property
    def is_whole(self) -> Mask:
        """Whether each is large enough for its header; framing ensures that for messages."""
        whole: Mask = self.is_message | (self.size_in_bytes >= RECORD_BATCH_OVERHEAD)
        return whole

    def is_valid(self, content: Bytes) -> Mask:
        """Kafka's isValid: large enough for a header, and stored and computed checksum agree."""
        valid = self.is_whole.copy()
        valid[valid] = self[valid].checksums(content) == self.header["crc"][valid]
        return valid

    def checksums(self, content: Bytes) -> npt.NDArray[np.uint32]:
        """Compute each batch's checksum from its bytes."""
        messages = self.is_message
        if not messages.any():
            return batch_checksums(content, self.position, self.end)
        if messages.all():
            return message_checksums(content, self.position, self.end)
        computed = np.empty(len(self), dtype=np.uint32)
        for rows, checksums in ((messages, message_checksums), (~messages, batch_checksums)):
            computed[rows] = checksums(content, self.position[rows], self.end[rows])
        return computed


def lacking_records(batches: Batches) -> Mask:
    """The batches with fewer records than offsets: compaction has removed the others."""
    header = batches.header
    is_short: Mask = header["recordsCount"].astype(np.int64) <= header["lastOffsetDelta"]
    return is_short & ~batches.is_message


def miscounted(batches: Batches) -> Mask:
    """The batches with more or fewer records than offsets: compacted ones, or with a wrong bit."""
    header = batches.header
    is_other: Mask = header["recordsCount"].astype(np.int64) - header["lastOffsetDelta"] != 1
    return is_other & ~batches.is_message


def lacks_records(batches: Batches) -> bool:
    """Whether a batch has fewer records than offsets."""
    return bool(lacking_records(batches).any())


class SingleMessages(Batches):
    """Consecutive messages of v0 and v1 that are not compressed."""

    def __init__(self, content: Bytes, position: Int64s, end: Int64s) -> None:
        super().__init__(position, partial(_headers, content, position))
        self.end = end
        self._content = content

    def __getitem__(self, rows: slice | Mask) -> Batches:
        if isinstance(rows, np.ndarray):
            return super().__getitem__(rows)
        return SingleMessages(self._content, self.position[rows], self.end[rows])


@dataclass(frozen=True)
class Framing:
    """The batches found, the position behind the last one, and why the search stopped there."""

    batches: Batches
    position: int
    status: int


def frame(
    content: Bytes,
    position: int = 0,
    *,
    end: int | None = None,
    max_bytes: int = 2**62,
    max_records: int = 2**62,
) -> Framing:
    """Find the next batches from `position` on: at least one if there is one, at most 65,536.

    Stops before a batch that would exceed `max_bytes` or `max_records`. If no batch is found and
    the status is OK, the rest is an incomplete batch, or nothing; neither is an error.
    """
    positions = np.empty(_FRAMES, dtype=np.int64)
    end = content.size if end is None else end
    count, after, status, singles = _frame(
        content, position, end, max_bytes, max_records, positions
    )
    if 0 < count == singles:
        ends = np.append(positions[1:count], after)
        messages = SingleMessages(content, positions[:count].copy(), ends)
        return Framing(messages, int(after), int(status))
    positions = positions[:count].copy()
    batches = Batches(positions, _headers(content, positions))
    return Framing(batches, int(after), int(status))


def _headers(content: Bytes, positions: Int64s) -> npt.NDArray[np.void]:
    headers = np.empty(positions.size, dtype=NATIVE_BATCH_HEADER)
    room = BATCH_HEADER.itemsize
    whole = int(np.searchsorted(positions, content.size - room, side="right"))
    _read_headers(content, positions[:whole], headers[:whole], bytes_of(headers[:whole]))
    if whole < positions.size:  # these are at the end, and smaller than a header of v2
        start = int(positions[whole])
        rest = np.zeros(content.size - start + room, dtype=np.uint8)
        rest[:-room] = content[start:]
        _read_headers(rest, positions[whole:] - start, headers[whole:], bytes_of(headers[whole:]))
    return headers


def framing_error(source: Source, framing: Framing) -> KafkaJitError | None:
    """The error that ended the framing; None if only the bytes ended."""
    if framing.status == OK:
        return None
    length = read_int32(source.content, framing.position + BATCH_LENGTH_OFFSET)
    return error_for(framing.status, length, path=source.path, position=framing.position)


@kernel
def _frame(content, position, end, max_bytes, max_records, positions):
    """FileLogInputStream.nextBatch in a loop.

    Returns (batches found, position behind them, status, messages among them that are not
    compressed).
    """
    found, singles = 0, 0
    total_bytes = np.int64(0)
    total_records = np.int64(0)
    # Kafka requires one byte more than the header up to magic before it looks.
    while found < positions.size and position < end - HEADER_SIZE_UP_TO_MAGIC:
        length = read_int32(content, position + BATCH_LENGTH_OFFSET)
        if length < MIN_ENTRY_SIZE:
            return found, position, BATCH_TOO_SMALL, singles
        size = length + LOG_OVERHEAD
        if size > end - position:
            break
        records = np.int64(1)
        magic = content[position + MAGIC_OFFSET]
        if magic == MAGIC_V2 and size >= RECORD_BATCH_OVERHEAD:
            count = read_int32(content, position + RECORDS_COUNT_OFFSET)
            records = max(np.int64(0), min(count, size))
        total_bytes += size
        total_records += records
        if found > 0 and (total_bytes > max_bytes or total_records > max_records):
            break
        attributes = content[position + MESSAGE_ATTRIBUTES_OFFSET]
        singles += magic <= MAGIC_V1 and attributes & COMPRESSION_CODEC_MASK == 0
        if magic <= MAGIC_V1:
            prefetch(content, position + _AHEAD)
            prefetch(content, position + _AHEAD + LINE)
        positions[found] = position
        found += 1
        position += size
    return found, position, OK, singles


@kernel
def _read_headers(content, positions, headers, headers_bytes):
    """Read each batch's header; a message's as AbstractLegacyRecordBatch answers for it."""
    for row in range(positions.size):
        p = positions[row]
        magic = content[p + MAGIC_OFFSET]
        if magic != MAGIC_V0 and magic != MAGIC_V1:
            for i in range(WIRE_BYTES.size):
                headers_bytes[row, i] = content[p + WIRE_BYTES[i]]
            continue
        attributes = np.int64(content[p + MESSAGE_ATTRIBUTES_OFFSET])
        known, timestamp = np.int64(COMPRESSION_CODEC_MASK), np.int64(-1)
        if magic == MAGIC_V1:
            known |= TIMESTAMP_TYPE_MASK
            timestamp = read_int64(content, p + MESSAGE_TIMESTAMP_OFFSET)
        header = headers[row]
        header["baseOffset"] = read_int64(content, p)
        header["batchLength"] = read_int32(content, p + BATCH_LENGTH_OFFSET)
        header["magic"] = magic
        header["crc"] = read_int32(content, p + MESSAGE_CRC_OFFSET) & 0xFFFFFFFF
        header["attributes"] = attributes & known
        header["lastOffsetDelta"] = 0
        header["baseTimestamp"] = timestamp
        header["maxTimestamp"] = timestamp
        header["partitionLeaderEpoch"] = -1
        header["producerId"] = -1
        header["producerEpoch"] = -1
        header["baseSequence"] = -1
        header["recordsCount"] = -1 if attributes & COMPRESSION_CODEC_MASK else 1
