"""Framing: a log's bytes → where each record batch begins and ends, and its header.

Answers to Kafka's FileLogInputStream (which bytes are a batch), DefaultRecordBatch (what its header
says) and ensureValid (whether to believe it). Nothing is decompressed, and no record is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kafkajit.errors import BATCH_TOO_SMALL, OK, KafkaJitError, error_for
from kafkajit.format.checksum import batch_checksums
from kafkajit.format.layout import (
    BATCH_HEADER,
    BATCH_LENGTH_OFFSET,
    COMPRESSION_CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_V2,
    MIN_ENTRY_SIZE,
    NATIVE_BATCH_HEADER,
    RECORD_BATCH_OVERHEAD,
    RECORDS_COUNT_OFFSET,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from kafkajit.kernel import kernel
from kafkajit.source import Bytes, Source

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

# How many batches one call of the kernel may find.
_FRAMES = 16384


@dataclass(frozen=True)
class Batches:
    """Headers of consecutive batches: a row each, fields as arrays, in Kafka's words."""

    position: Int64s
    header: npt.NDArray[np.void]  # NATIVE_BATCH_HEADER

    def __len__(self) -> int:
        return self.position.size

    def __getitem__(self, rows: slice | npt.NDArray[np.bool_]) -> Batches:
        return Batches(self.position[rows], self.header[rows])

    def field(self, name: str) -> npt.NDArray[np.integer]:
        """A header field as it stands in the batch."""
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
        return self._flag(TIMESTAMP_TYPE_MASK).astype(np.int32)

    @cached_property
    def is_transactional(self) -> npt.NDArray[np.bool_]:
        return self._flag(TRANSACTIONAL_MASK)

    @cached_property
    def is_control(self) -> npt.NDArray[np.bool_]:
        return self._flag(CONTROL_MASK)

    @cached_property
    def has_delete_horizon(self) -> npt.NDArray[np.bool_]:
        return self._flag(DELETE_HORIZON_MASK)

    def _flag(self, mask: int) -> npt.NDArray[np.bool_]:
        flags: npt.NDArray[np.bool_] = (self.header["attributes"] & mask) != 0
        return flags

    def is_valid(self, content: Bytes) -> npt.NDArray[np.bool_]:
        """Kafka's isValid: large enough for a header, and the stored CRC is the computed one."""
        whole = self.size_in_bytes >= RECORD_BATCH_OVERHEAD
        valid = whole.copy()
        computed = batch_checksums(content, self.position[whole], self.end[whole])
        valid[whole] = computed == self.header["crc"][whole]
        return valid


@dataclass(frozen=True)
class Framing:
    """Batches found, the position behind the last, and why the search stopped there."""

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
    """The next batches from `position` on: at least one if there is one, at most 16,384.

    Stops before a batch that would pass `max_bytes` or `max_records`. What is left when nothing is
    found and the status is OK is an incomplete batch (or nothing), which is no error.
    """
    positions = np.empty(_FRAMES, dtype=np.int64)
    end = content.size if end is None else end
    count, after, status = _frame(content, position, end, max_bytes, max_records, positions)
    positions = positions[:count].copy()
    raw = np.zeros((count, BATCH_HEADER.itemsize), dtype=np.uint8)
    _copy_headers(content, positions, raw)
    header = raw.view(BATCH_HEADER).reshape(-1).astype(NATIVE_BATCH_HEADER)
    return Framing(Batches(positions, header), int(after), int(status))


def framing_error(source: Source, framing: Framing) -> KafkaJitError | None:
    """What ended the framing, if it was more than the end of the bytes."""
    if framing.status == OK:
        return None
    length = read_int32(source.content, framing.position + BATCH_LENGTH_OFFSET)
    return error_for(framing.status, length, path=source.path, position=framing.position)


def increment_sequence(
    sequence: npt.NDArray[np.integer], increment: npt.NDArray[np.integer]
) -> Int32s:
    """DefaultRecordBatch.incrementSequence, in Java's int: wraps from 2**31 - 1 to 0."""
    total = sequence.astype(np.int64) + increment.astype(np.int64)
    last_before_wrap = (2**31 - 1 - increment.astype(np.int64)).astype(np.int32)
    return np.where(sequence > last_before_wrap, total - 2**31, total).astype(np.int32)


@kernel
def _frame(content, position, end, max_bytes, max_records, positions):
    """(batches found, position behind them, status); FileLogInputStream.nextBatch, many times."""
    found = 0
    total_bytes = np.int64(0)
    total_records = np.int64(0)
    # Kafka asks for one byte more than the header up to magic before it looks.
    while found < positions.size and position < end - HEADER_SIZE_UP_TO_MAGIC:
        length = read_int32(content, position + BATCH_LENGTH_OFFSET)
        if length < MIN_ENTRY_SIZE:
            return found, position, BATCH_TOO_SMALL
        size = length + LOG_OVERHEAD
        if size > end - position:
            break
        records = np.int64(0)
        if content[position + MAGIC_OFFSET] == MAGIC_V2 and size >= RECORD_BATCH_OVERHEAD:
            count = read_int32(content, position + RECORDS_COUNT_OFFSET)
            records = max(np.int64(0), min(count, size))
        total_bytes += size
        total_records += records
        if found > 0 and (total_bytes > max_bytes or total_records > max_records):
            break
        positions[found] = position
        found += 1
        position += size
    return found, position, OK


@kernel
def _copy_headers(content, positions, headers):
    for i in range(positions.size):
        start = positions[i]
        for j in range(min(np.int64(headers.shape[1]), content.size - start)):
            headers[i, j] = content[start + j]


@kernel
def read_int32(content, position):
    """A big-endian int32, as an int64."""
    raw = (
        np.int64(content[position]) << 24
        | np.int64(content[position + 1]) << 16
        | np.int64(content[position + 2]) << 8
        | np.int64(content[position + 3])
    )
    return (raw ^ 0x80000000) - 0x80000000
