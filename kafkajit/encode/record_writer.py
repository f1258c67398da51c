"""Rows and headers → record batches, as Kafka's producers write them (MemoryRecordsBuilder).

    records ─▶ compress ─▶ header ─▶ checksum

The records of an uncompressed batch are written where they stay; other records go through a buffer
that is used again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.encode.batch_plan import MAX_OVERHEAD, BatchPlan, RecordRows
from kafkajit.encode.message_sets import (
    finish_message_set,
    message_set_overhead,
    write_messages,
)
from kafkajit.errors import InvalidRecordError
from kafkajit.format.batch_checksum import crc32c
from kafkajit.format.compressor import Compressor, compressed_bound
from kafkajit.format.layout import (
    ATTRIBUTES_OFFSET,
    COMPRESSION_CODEC_MASK,
    CRC_OFFSET,
    LOG_OVERHEAD,
    MAGIC_V0,
    MAGIC_V2,
    MAX_RECORD_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    WIRE_BYTES,
    bytes_of,
)
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.varint import put_varint, varlong_size, zigzag
from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import WIDE, copy_bytes, write_int32, write_word
from kafkajit.storage.source import Int64s

# The records of several batches, up to this many bytes, are written before the first batch is
# compressed: they are then still in the processor's cache.
_SCRATCH_BYTES = 1 << 20
# The length of a record whose fixed size is smaller takes one or two bytes.
_MOST_TWO_BYTES = (1 << 13) - MAX_RECORD_OVERHEAD


class BatchWriter:
    """Writes batches one after another, and uses its buffers again.

    Args:
        level: of compression; the codec's default if None
    """

    def __init__(self, level: int | None = None) -> None:
        self._level = level
        self._compressors: dict[tuple[int, bool], Compressor] = {}
        self._scratch = np.empty(0, dtype=np.uint8)

    @staticmethod
    def bound(rows: RecordRows, plan: BatchPlan) -> int:
        """The room that `write` needs; an error if a batch is too large for its length field."""
        if rows.bound > MAX_INT32:
            _check_sizes(rows, plan)
        return (
            compressed_bound(rows.bound, plan.header.size)
            + plan.header.size * RECORD_BATCH_OVERHEAD
            + WIDE
        )

    def write(
        self, rows: RecordRows, plan: BatchPlan, out: npt.NDArray[np.uint8], position: int = 0
    ) -> int:
        """Write the batches and return the position after them.

        The records' deltas count from the base offset and base timestamp of their header.
        """
        codecs = plan.header["attributes"] & COMPRESSION_CODEC_MASK
        kinds = codecs * np.int16(8) + plan.header["magic"]
        changes = np.flatnonzero(np.diff(kinds)) + 1
        for start, end in zip([0, *changes], [*changes, kinds.size], strict=True):
            if start < end:
                part = BatchPlan(plan.header[start:end], plan.first_row[start : end + 1])
                write = self._write_compressed if _codec(part) else self._write_plain
                position = write(rows, part, out, position)
        return position

    def _write_plain(
        self, rows: RecordRows, plan: BatchPlan, out: npt.NDArray[np.uint8], position: int
    ) -> int:
        end, batch = _write_batches(
            rows.spans, plan.header, bytes_of(plan.header), plan.first_row, out, position
        )
        if batch < plan.header.size:
            raise _too_large(plan, batch)
        return int(end)

    def _write_compressed(
        self, rows: RecordRows, plan: BatchPlan, out: npt.NDArray[np.uint8], position: int
    ) -> int:
        codec, magic = _codec(plan), int(plan.header["magic"][0])
        compress = self._compressor(codec, magic).write
        overhead = RECORD_BATCH_OVERHEAD if magic == MAGIC_V2 else message_set_overhead(magic)
        positions = np.empty(plan.header.size + 1, dtype=np.int64)
        batch = 0
        while batch < plan.header.size:
            part = BatchPlan(plan.header[batch:], plan.first_row[batch:])
            ends, count = self._write_records(rows, part)
            start = 0
            positions[0] = position
            for at, end in enumerate(ends[:count].tolist()):
                position = compress(self._scratch[start:end], out, position + overhead)
                positions[at + 1] = position
                start = end
            done = part.header[:count]
            bad = _write_headers(
                rows.offset,
                rows.timestamp,
                done,
                bytes_of(done),
                part.first_row,
                positions[: count + 1],
                out,
            )
            if bad < count:
                raise _too_large(part, bad)
            batch += count
        return position

    def _compressor(self, codec: int, magic: int) -> Compressor:
        key = codec, magic == MAGIC_V0
        if key not in self._compressors:
            self._compressors[key] = Compressor(codec, self._level, first_lz4=magic == MAGIC_V0)
        return self._compressors[key]

    def _write_records(self, rows: RecordRows, plan: BatchPlan) -> tuple[Int64s, int]:
        """Write the records of as many batches as the scratch holds: (their ends, how many)."""
        ends = np.empty(plan.header.size, dtype=np.int64)
        if self._scratch.size == 0:
            self._scratch = np.empty(_SCRATCH_BYTES, dtype=np.uint8)
        while True:
            count, needed = _write_records_of_batches(
                rows.spans, plan.header, plan.first_row, self._scratch, ends
            )
            if count:
                return ends, int(count)
            if needed > MAX_INT32:
                raise _too_large(plan, 0)
            self._scratch = np.empty(int(needed), dtype=np.uint8)


def _codec(plan: BatchPlan) -> int:
    """The codec of the first batch."""
    return int(plan.header["attributes"][0] & COMPRESSION_CODEC_MASK)


def _check_sizes(rows: RecordRows, plan: BatchPlan) -> None:
    """Raise if a batch is certain to be too large, before memory is allocated for it."""
    ends = np.append(0, np.cumsum(rows.fixed_sizes))
    is_too_large = np.diff(ends[plan.first_row]) > MAX_INT32 - RECORD_BATCH_OVERHEAD
    if is_too_large.any():
        raise _too_large(plan, int(np.argmax(is_too_large)))


def _too_large(plan: BatchPlan, batch: int) -> InvalidRecordError:
    first, behind = plan.first_row[batch : batch + 2].tolist()
    return InvalidRecordError(
        f"its batch of {behind - first} records would be larger than 2 GiB", row=first
    )


@kernel
def _write_batches(spans, header, header_bytes, first_row, out, position):
    """(position after the batches, the first batch that would be too large)."""
    for batch in range(header.size):
        if header[batch]["magic"] != MAGIC_V2:
            position = write_messages(
                spans, header[batch], first_row[batch], first_row[batch + 1], out, position
            )
            continue
        first, behind = first_row[batch], first_row[batch + 1]
        end = _write_records(
            spans, header[batch], first, behind, out, position + RECORD_BATCH_OVERHEAD
        )
        if end - position > MAX_INT32:
            return position, batch
        finish_batch(header, header_bytes, batch, out, position, end)
        position = end
    return position, header.size


@kernel
def _write_records_of_batches(spans, header, first_row, out, ends):
    """(batches that there is room for, the room that the first batch needs if that is 0)."""
    fixed_sizes = spans.fixed_sizes
    w = np.int64(0)
    for batch in range(header.size):
        needed = np.int64(WIDE)
        for row in range(first_row[batch], first_row[batch + 1]):
            needed += fixed_sizes[row] + MAX_OVERHEAD
        if w + needed > out.size:
            return batch, needed
        if header[batch]["magic"] != MAGIC_V2:
            w = write_messages(spans, header[batch], first_row[batch], first_row[batch + 1], out, w)
        else:
            w = _write_records(spans, header[batch], first_row[batch], first_row[batch + 1], out, w)
        ends[batch] = w
    return header.size, np.int64(0)


@kernel
def _write_headers(offset, timestamp, header, header_bytes, first_row, positions, out):
    """Write headers in front of records; return the first batch that is too large."""
    for batch in range(header.size):
        if positions[batch + 1] - positions[batch] > MAX_INT32:
            return batch
        if header[batch]["magic"] != MAGIC_V2:
            finish_message_set(
                offset, timestamp, header[batch], first_row[batch], first_row[batch + 1],
                out, positions[batch], positions[batch + 1],
            )  # fmt: skip
            continue
        finish_batch(header, header_bytes, batch, out, positions[batch], positions[batch + 1])
    return header.size


@inlined
def finish_batch(header, header_bytes, batch, out, position, end):
    """Write a batch's header, with its length and its checksum."""
    header[batch]["batchLength"] = end - position - LOG_OVERHEAD
    for i in range(WIRE_BYTES.size):
        out[position + np.int64(WIRE_BYTES[i])] = header_bytes[batch, i]
    crc = crc32c(out, position + ATTRIBUTES_OFFSET, end)
    header[batch]["crc"] = crc
    write_int32(out, position + CRC_OFFSET, np.int64(crc))


@kernel
def _write_records(spans, header, first, behind, out, w):
    """Write the records of one batch; the position after them.

    `out` must have WIDE bytes of room after that position.
    """
    offset, timestamp, fixed_sizes, key, value, headers = spans
    key_data, key_starts, key_sizes = key
    value_data, value_starts, value_sizes = value
    headers_data, headers_starts, headers_sizes = headers
    base_offset, base_timestamp = header["baseOffset"], header["baseTimestamp"]
    has_timestamps = header["attributes"] & TIMESTAMP_TYPE_MASK == 0
    for number in range(first, behind):
        row = np.uint64(number)  # of an int64, numba tests whether it counts from the end
        # Under LogAppendTime a batch's records have no timestamps of their own.
        timestamp_delta = timestamp[row] - base_timestamp if has_timestamps else np.int64(0)
        offset_delta = offset[row] - base_offset
        key_size, value_size = key_sizes[row], value_sizes[row]
        headers_size = headers_sizes[row]
        w = _put_head(out, w, fixed_sizes[row], timestamp_delta, offset_delta)
        w = _put_size(out, w, key_size)
        if key_size > 0:
            copy_bytes(out, w, key_data, key_starts[row], key_size)
            w += key_size
        w = _put_size(out, w, value_size)
        if value_size > 0:
            copy_bytes(out, w, value_data, value_starts[row], value_size)
            w += value_size
        if headers_size > 0:
            copy_bytes(out, w, headers_data, headers_starts[row], headers_size)
            w += headers_size
        else:
            out[np.uint64(w)] = 0
            w += 1
    return w


@inlined
def _put_head(out, w, fixed_size, timestamp_delta, offset_delta):
    """Write a record's length, attributes (0) and deltas, in one store if they are small."""
    a, b = zigzag(timestamp_delta), zigzag(offset_delta)
    if a | b >= np.uint64(0x4000) or fixed_size >= _MOST_TWO_BYTES:
        deltas = varlong_size(timestamp_delta) + varlong_size(offset_delta)
        w = put_varint(out, w, fixed_size + deltas)
        out[w] = 0
        w = put_varint(out, w + 1, timestamp_delta)
        return put_varint(out, w, offset_delta)
    # Without branches: numbers change their sizes at every other record, the length among them.
    a, a_bits = _two_bytes(a)
    b, b_bits = _two_bytes(b)
    length = fixed_size + np.int64(a_bits + b_bits >> np.uint64(3))
    word, bits = _two_bytes(zigzag(length))
    bits += np.uint64(8)
    word |= a << bits
    bits += a_bits
    write_word(out, w, word | b << bits)
    return w + np.int64(bits + b_bits >> np.uint64(3))


@inlined
def _two_bytes(value):
    """A varint of a zigzag number below 1 << 14, and its size in bits, without branches."""
    has_two = np.uint64(value >= np.uint64(0x80))
    encoded = value & np.uint64(0x7F) | has_two << np.uint64(7)
    return encoded | value >> np.uint64(7) << np.uint64(8), np.uint64(8) + (has_two << np.uint64(3))


@inlined
def _put_size(out, w, size):
    value = zigzag(size)
    if value >= np.uint64(0x4000):
        return put_varint(out, w, size)
    encoded, bits = _two_bytes(value)
    write_word(out, w, encoded)
    return w + np.int64(bits >> np.uint64(3))
