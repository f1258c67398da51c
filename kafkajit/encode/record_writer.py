"""Columns → record batches, as Kafka's producers write them (MemoryRecordsBuilder).

rows ─▶ where batches begin ─▶ headers ─▶ records ─▶ compress ─▶ checksum

Rows are spans: of Arrow's buffers, or of a segment that was decoded, so that whoever rewrites a
batch copies its keys and values once. The records of an uncompressed batch are written where they
stay; others go through a buffer that is used again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.encode.message_sets import (
    finish_message_set,
    message_set_overhead,
    write_messages,
)
from kafkajit.errors import InvalidOffsetError, InvalidRecordError
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
    MESSAGE_OVERHEAD_V1,
    NATIVE_BATCH_HEADER,
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

# Records of so many bytes are written one behind the other before any of them is compressed: they
# are still in the processor's cache then.
_SCRATCH_BYTES = 1 << 20
# A record of this fixed size, or of more up to there, has a length of two bytes.
_TWO_BYTES, _MOST_TWO_BYTES = 1 << 6, (1 << 13) - MAX_RECORD_OVERHEAD
# What a record or a message may take besides its fixed size.
_MOST_OVERHEAD = max(MAX_RECORD_OVERHEAD, MESSAGE_OVERHEAD_V1)


class Field(NamedTuple):
    """Byte strings, wherever they stand in `data`; a size of -1 is null."""

    data: npt.NDArray[np.uint8]
    starts: Int64s
    sizes: Int64s


@dataclass(frozen=True)
class Rows:
    """What is written of each record.

    `headers` are a record's headers as they stand in it, their count in front; none where the size
    is 0.
    """

    offset: Int64s
    timestamp: Int64s
    key: Field
    value: Field
    headers: Field

    @cached_property
    def fixed_sizes(self) -> Int64s:
        """Bytes of each record that do not depend on its batch: all but length and deltas."""
        sizes = np.empty(self.offset.size, dtype=np.int64)
        _fixed_sizes(self.key.sizes, self.value.sizes, self.headers.sizes, sizes)
        return sizes

    @cached_property
    def bound(self) -> int:
        """No fewer bytes than their records take."""
        return int(self.fixed_sizes.sum()) + self.offset.size * _MOST_OVERHEAD


class Plan(NamedTuple):
    """Batches to be written: their headers, and the rows of each.

    Of a header batchLength and crc are found when the batch is written.
    """

    header: npt.NDArray[np.void]  # NATIVE_BATCH_HEADER
    first_row: Int64s  # and behind the last batch the number of rows


def first_rows(
    rows: Rows,
    begins: npt.NDArray[np.bool_],
    *,
    batch_size: int,
    batch_records: int,
    base_timestamp: int | None = None,
    sizes: Int64s | None = None,
) -> Int64s:
    """Where batches begin: where `begins` says so, and where the one before is full.

    A batch of more than one record is no larger than `batch_size`, uncompressed and with its
    header, and its offsets are within an int32 of each other. Behind the last stands the number of
    rows. Timestamps count from the batch's first unless there is another `base_timestamp`; `sizes`
    are the rows' fixed sizes unless they become something else than records of v2.
    """
    firsts = np.empty(rows.offset.size + 1, dtype=np.int64)
    count, row = _split(
        rows.offset,
        rows.timestamp,
        rows.fixed_sizes if sizes is None else sizes,
        begins,
        batch_size,
        batch_records,
        base_timestamp is not None,
        base_timestamp or 0,
        firsts,
    )
    if row < rows.offset.size:
        raise not_behind(rows.offset[row], rows.offset[row - 1], row)
    firsts[count] = row
    return firsts[: count + 1]


def not_behind(offset: int, before: int, row: int) -> InvalidOffsetError:
    """What is wrong with an offset that is not larger than the one before it."""
    return InvalidOffsetError(
        f"offset {offset} is not behind {before} of the record before it: records are written in "
        "the order of their offsets, each of its own",
        row=int(row),
    )


def plain_headers(rows: Rows, first_row: Int64s) -> npt.NDArray[np.void]:
    """Headers of batches whose records say all that there is to say, as a producer writes them."""
    headers = np.zeros(first_row.size - 1, dtype=NATIVE_BATCH_HEADER)
    first, last = first_row[:-1], first_row[1:] - 1
    headers["magic"] = 2
    headers["baseOffset"] = rows.offset[first]
    headers["lastOffsetDelta"] = rows.offset[last] - rows.offset[first]
    headers["baseTimestamp"] = rows.timestamp[first]
    headers["recordsCount"] = last + 1 - first
    for name in ("producerId", "producerEpoch", "baseSequence"):
        headers[name] = -1
    if first.size:
        # Rows behind the last batch are of none of these.
        headers["maxTimestamp"] = np.maximum.reduceat(rows.timestamp[: last[-1] + 1], first)
    return headers


class BatchWriter:
    """Writes batches one behind the other; the buffers it needs for that are used again."""

    def __init__(self, level: int | None = None) -> None:
        self._level = level
        self._compressors: dict[tuple[int, bool], Compressor] = {}
        self._scratch = np.empty(0, dtype=np.uint8)

    @staticmethod
    def bound(rows: Rows, plan: Plan) -> int:
        """How much room `write` asks for; an error where a batch would not fit its own length."""
        if rows.bound > MAX_INT32:
            _check_sizes(rows, plan)
        return (
            compressed_bound(rows.bound, plan.header.size)
            + plan.header.size * RECORD_BATCH_OVERHEAD
            + WIDE
        )

    def write(self, rows: Rows, plan: Plan, out: npt.NDArray[np.uint8], position: int = 0) -> int:
        """Write the batches; where they end. Records' deltas count from what the headers say."""
        codecs = plan.header["attributes"] & COMPRESSION_CODEC_MASK
        kinds = codecs * np.int16(8) + plan.header["magic"]
        changes = np.flatnonzero(np.diff(kinds)) + 1
        for start, end in zip([0, *changes], [*changes, kinds.size], strict=True):
            if start < end:
                part = Plan(plan.header[start:end], plan.first_row[start : end + 1])
                write = self._write_compressed if _codec(part) else self._write_plain
                position = write(rows, part, out, position)
        return position

    def _write_plain(
        self, rows: Rows, plan: Plan, out: npt.NDArray[np.uint8], position: int
    ) -> int:
        end, batch = _write_batches(
            *_taken_apart(rows), plan.header, bytes_of(plan.header), plan.first_row, out, position
        )
        if batch < plan.header.size:
            raise _too_large(plan, batch)
        return int(end)

    def _write_compressed(
        self, rows: Rows, plan: Plan, out: npt.NDArray[np.uint8], position: int
    ) -> int:
        codec, magic = _codec(plan), int(plan.header["magic"][0])
        compress = self._compressor(codec, magic).write
        overhead = RECORD_BATCH_OVERHEAD if magic == MAGIC_V2 else message_set_overhead(magic)
        positions = np.empty(plan.header.size + 1, dtype=np.int64)
        batch = 0
        while batch < plan.header.size:
            part = Plan(plan.header[batch:], plan.first_row[batch:])
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

    def _write_records(self, rows: Rows, plan: Plan) -> tuple[Int64s, int]:
        """As many batches' records as the scratch is for; where each ends, and how many."""
        ends = np.empty(plan.header.size, dtype=np.int64)
        if self._scratch.size == 0:
            self._scratch = np.empty(_SCRATCH_BYTES, dtype=np.uint8)
        while True:
            count, needed = _write_records_of_batches(
                *_taken_apart(rows), plan.header, plan.first_row, self._scratch, ends
            )
            if count:
                return ends, int(count)
            if needed > MAX_INT32:
                raise _too_large(plan, 0)
            self._scratch = np.empty(int(needed), dtype=np.uint8)


def _codec(plan: Plan) -> int:
    """Of the first batch."""
    return int(plan.header["attributes"][0] & COMPRESSION_CODEC_MASK)


def _taken_apart(rows: Rows) -> tuple[npt.NDArray[np.generic], ...]:
    fields = (*rows.key, *rows.value, *rows.headers)
    return (rows.offset, rows.timestamp, rows.fixed_sizes, *fields)


def _check_sizes(rows: Rows, plan: Plan) -> None:
    """Raise where a batch is certain to be too large, before there is memory for it."""
    ends = np.append(0, np.cumsum(rows.fixed_sizes))
    is_too_large = np.diff(ends[plan.first_row]) > MAX_INT32 - RECORD_BATCH_OVERHEAD
    if is_too_large.any():
        raise _too_large(plan, int(np.argmax(is_too_large)))


def _too_large(plan: Plan, batch: int) -> InvalidRecordError:
    first, behind = plan.first_row[batch : batch + 2].tolist()
    return InvalidRecordError(
        f"its batch of {behind - first} records would be larger than 2 GiB", row=first
    )


@kernel
def _fixed_sizes(key_sizes, value_sizes, headers_sizes, sizes):
    for row in range(sizes.size):
        sizes[row] = (
            np.int64(1)
            + _int32_size(key_sizes[row])
            + max(key_sizes[row], np.int64(0))
            + _int32_size(value_sizes[row])
            + max(value_sizes[row], np.int64(0))
            + max(headers_sizes[row], np.int64(1))
        )


@inlined
def _int32_size(value):
    """Of a varint, without branches: the processor does several at a time."""
    rest = zigzag(value)
    return (
        np.int64(1)
        + np.int64(rest >= np.uint64(1 << 7))
        + np.int64(rest >= np.uint64(1 << 14))
        + np.int64(rest >= np.uint64(1 << 21))
        + np.int64(rest >= np.uint64(1 << 28))
    )


@kernel
def _split(
    offset, timestamp, fixed_sizes, begins,
    most_bytes, most_records, has_base_timestamp, base_timestamp, firsts,
):  # fmt: skip
    """(batches, the row whose offset is not behind the one before it, else the number of rows)."""
    count, row = 0, 0
    while row < offset.size:
        first, first_offset = row, offset[row]
        first_timestamp = base_timestamp if has_base_timestamp else timestamp[row]
        firsts[count] = first
        count += 1
        size, before = np.int64(RECORD_BATCH_OVERHEAD), np.int64(0)
        if row > 0:
            before = offset[row - 1]
            if first_offset <= before:
                return count, row
        while row < offset.size:
            here = offset[row]
            # Offsets that are too far from each other for an int64 wrap.
            delta = here - first_offset
            if row > first and (here <= before or begins[row] or not 0 <= delta <= MAX_INT32):
                break
            body = fixed_sizes[row]
            body += varlong_size(timestamp[row] - first_timestamp) + varlong_size(delta)
            size += varlong_size(body) + body
            if row > first and (size > most_bytes or row - first >= most_records):
                break
            before = here
            row += 1
    return count, row


@kernel
def _write_batches(
    offset, timestamp, fixed_sizes,
    key_data, key_starts, key_sizes,
    value_data, value_starts, value_sizes,
    headers_data, headers_starts, headers_sizes,
    header, header_bytes, first_row, out, position,
):  # fmt: skip
    """(where they end, the first batch that would be too large)."""
    for batch in range(header.size):
        if header[batch]["magic"] != MAGIC_V2:
            position = write_messages(
                offset, timestamp,
                key_data, key_starts, key_sizes,
                value_data, value_starts, value_sizes,
                header[batch], first_row[batch], first_row[batch + 1], out, position,
            )  # fmt: skip
            continue
        end = _write_records(
            offset, timestamp, fixed_sizes,
            key_data, key_starts, key_sizes,
            value_data, value_starts, value_sizes,
            headers_data, headers_starts, headers_sizes,
            header[batch], first_row[batch], first_row[batch + 1],
            out, position + RECORD_BATCH_OVERHEAD,
        )  # fmt: skip
        if end - position > MAX_INT32:
            return position, batch
        finish_batch(header, header_bytes, batch, out, position, end)
        position = end
    return position, header.size


@kernel
def _write_records_of_batches(
    offset, timestamp, fixed_sizes,
    key_data, key_starts, key_sizes,
    value_data, value_starts, value_sizes,
    headers_data, headers_starts, headers_sizes,
    header, first_row, out, ends,
):  # fmt: skip
    """(batches that there is room for, the room that the first needs where that is none)."""
    w = np.int64(0)
    for batch in range(header.size):
        needed = np.int64(WIDE)
        for row in range(first_row[batch], first_row[batch + 1]):
            needed += fixed_sizes[row] + _MOST_OVERHEAD
        if w + needed > out.size:
            return batch, needed
        if header[batch]["magic"] != MAGIC_V2:
            w = write_messages(
                offset, timestamp,
                key_data, key_starts, key_sizes,
                value_data, value_starts, value_sizes,
                header[batch], first_row[batch], first_row[batch + 1], out, w,
            )  # fmt: skip
        else:
            w = _write_records(
                offset, timestamp, fixed_sizes,
                key_data, key_starts, key_sizes,
                value_data, value_starts, value_sizes,
                headers_data, headers_starts, headers_sizes,
                header[batch], first_row[batch], first_row[batch + 1], out, w,
            )  # fmt: skip
        ends[batch] = w
    return header.size, np.int64(0)


@kernel
def _write_headers(offset, timestamp, header, header_bytes, first_row, positions, out):
    """Headers in front of records that are there; the first batch that is too large."""
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
    """Write a batch's header with its length, and its checksum."""
    header[batch]["batchLength"] = end - position - LOG_OVERHEAD
    for i in range(WIRE_BYTES.size):
        out[position + np.int64(WIRE_BYTES[i])] = header_bytes[batch, i]
    crc = crc32c(out, position + ATTRIBUTES_OFFSET, end)
    header[batch]["crc"] = crc
    write_int32(out, position + CRC_OFFSET, np.int64(crc))


@kernel
def _write_records(
    offset, timestamp, fixed_sizes,
    key_data, key_starts, key_sizes,
    value_data, value_starts, value_sizes,
    headers_data, headers_starts, headers_sizes,
    header, first, behind, out, w,
):  # fmt: skip
    """The records of one batch; where they end. `out` has WIDE bytes of room behind that."""
    base_offset, base_timestamp = header["baseOffset"], header["baseTimestamp"]
    has_timestamps = header["attributes"] & TIMESTAMP_TYPE_MASK == 0
    for row in range(first, behind):
        # Records of a batch that was stamped when it was appended have no timestamps of their own.
        timestamp_delta = timestamp[row] - base_timestamp if has_timestamps else np.int64(0)
        offset_delta = offset[row] - base_offset
        key_size, value_size = key_sizes[row], value_sizes[row]
        headers_size = headers_sizes[row]
        # The length stands before what it counts. How long it is itself is mostly certain; to go on
        # without having counted takes a tenth less.
        start, fixed = w, fixed_sizes[row]
        if fixed >= _TWO_BYTES and fixed < _MOST_TWO_BYTES:
            w += 2
        else:
            w += varlong_size(fixed + varlong_size(timestamp_delta) + varlong_size(offset_delta))
        counted = w
        w = _put_head(out, w, timestamp_delta, offset_delta, key_size)
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
            out[w] = 0
            w += 1
        put_varint(out, start, w - counted)
    return w


@inlined
def _put_head(out, w, timestamp_delta, offset_delta, key_size):
    """A record's attributes, which are 0, deltas and key's size; small ones in one store."""
    a, b, c = zigzag(timestamp_delta), zigzag(offset_delta), zigzag(key_size)
    if a | b | c >= np.uint64(0x4000):
        out[w] = 0
        w = put_varint(out, w + 1, timestamp_delta)
        w = put_varint(out, w, offset_delta)
        return put_varint(out, w, key_size)
    word, bits = np.uint64(0), np.uint64(8)
    for value in (a, b, c):
        has_two = np.uint64(value >= np.uint64(0x80))
        encoded = value & np.uint64(0x7F) | has_two << np.uint64(7)
        encoded |= value >> np.uint64(7) << np.uint64(8)
        word |= encoded << bits
        bits += np.uint64(8) + (has_two << np.uint64(3))
    write_word(out, w, word)
    return w + np.int64(bits >> np.uint64(3))


@inlined
def _put_size(out, w, size):
    value = zigzag(size)
    if value >= np.uint64(0x4000):
        return put_varint(out, w, size)
    has_two = np.uint64(value >= np.uint64(0x80))
    encoded = value & np.uint64(0x7F) | has_two << np.uint64(7)
    encoded |= value >> np.uint64(7) << np.uint64(8)
    write_word(out, w, encoded)
    return w + np.int64(1) + np.int64(has_two)
