"""Cut a batch at a border of a log: the records inside the border stay, in a batch like it.

A broker cuts a log only between batches, and so has no such code. What it needs of a cut batch:

last offset     The log ends behind it, and followers and consumers fetch from there. It is the last
                offset before the border, even if compaction has removed that record. Only a set of
                messages has no other last offset than that of its last message.
base sequence   It grows with the base offset. With the last offset it gives the last sequence
                number of the producer: if the producer sends the whole batch again, a broker
                refuses it, and does not take it for one that it has.
max timestamp   That of the records that stay, unless the batch has the broker's time.

The rest is as it was: codec, format, leader epoch, producer, timestamp type, delete horizon, and
the bytes of the records. If a batch is cut at its beginning, its records get new offset deltas.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.batch_checksum import batch_checksums
from kafkajit.format.compressor import Compressor, compressed_bound
from kafkajit.format.layout import (
    BATCH_HEADER,
    BATCH_LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_V0,
    MESSAGE_HEADER,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
)
from kafkajit.format.message_checksum import message_checksums
from kafkajit.format.ranges import Range
from kafkajit.format.sequence import increment_sequence
from kafkajit.format.varint import put_varint, read_varint, read_varlong, varlong_size
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE, copy_bytes, read_int32
from kafkajit.log.open_segment import OpenSegment
from kafkajit.records.batches import frame
from kafkajit.records.chunk import Chunk
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.records.message_sets import value_extents
from kafkajit.storage.source import Bytes, Mask, Source, as_bytes

_NO_SEQUENCE = -1


class CutBatch(NamedTuple):
    """A batch that is written with the records of a range of offsets."""

    position: int  # of the batch in its log
    was: Range  # its offsets there
    offsets: Range  # from the new base offset to the new last offset
    max_timestamp: int
    records: int  # that stay
    records_before: int
    size: int


def cut_batch(opened: OpenSegment, position: int, wanted: Range) -> tuple[CutBatch, Bytes] | None:
    """Cut the batch at a position of a segment; None if it has no record with a wanted offset.

    Returns:
        What becomes of the batch, and its bytes.
    """
    found = opened.batches_at(position)[:1]
    whole = opened.bytes_at(position, int(found.size_in_bytes[0]))
    chunk = _read(whole, position, opened.segment.log.path)
    fields, batches = chunk.fields, chunk.batches
    stays = wanted.holds(fields["offset"])
    if not stays.any():
        return None
    was = Range(int(batches.field("baseOffset")[0]), int(batches.last_offset[0]))
    if batches.is_message[0]:
        content = _cut_set(whole, chunk, stays)
        first = int(fields["offset"][stays][0])
    else:
        content = _cut_records(whole, chunk, stays, was & wanted)
        first = max(was.first, wanted.first)
    cut = frame(content).batches
    offsets, latest = Range(first, int(cut.last_offset[0])), int(cut.header["maxTimestamp"][0])
    kept = int(stays.sum())
    return CutBatch(position, was, offsets, latest, kept, fields.size, content.size), content


def _read(whole: Bytes, position: int, path: str) -> Chunk:
    """Check and read a batch."""
    batches = frame(whole).batches
    decoder = Decoder(Source(whole, path=path), ColumnMemory(Wanted(fields=True)))
    if decoder.sound(batches, check_crcs=True).all():
        chunk = decoder.decode(batches)
        error = chunk.error
    else:
        error = decoder.unsound(batches, 0)
    if error is not None:
        error.position = position
        raise error
    return chunk


def _cut_records(whole: Bytes, chunk: Chunk, stays: Mask, offsets: Range) -> Bytes:
    """A batch of v2 with some of its records, from one offset to another."""
    header = np.frombuffer(whole[:RECORD_BATCH_OVERHEAD], BATCH_HEADER).copy()
    fields, codec = chunk.fields, int(chunk.batches.codec[0])
    moved = offsets.first - int(header["baseOffset"][0])
    records = np.empty(chunk.content.size + WIDE, dtype=np.uint8)
    end = _copy_records(
        chunk.content,
        0 if codec else RECORD_BATCH_OVERHEAD,  # records that were compressed begin at 0
        stays,
        np.ascontiguousarray(fields["offset"]) - offsets.first,
        moved != 0,
        records,
    )
    header["baseOffset"] = offsets.first
    header["lastOffsetDelta"] = offsets.last - offsets.first
    header["recordsCount"] = stays.sum()
    if header["baseSequence"][0] != _NO_SEQUENCE:
        header["baseSequence"] = increment_sequence(header["baseSequence"], np.array([moved]))
    if not header["attributes"][0] & TIMESTAMP_TYPE_MASK:
        header["maxTimestamp"] = fields["timestamp"][stays].max()
    payload = _compressed(records[:end], codec)
    header["batchLength"] = RECORD_BATCH_OVERHEAD + len(payload) - LOG_OVERHEAD
    batch = as_bytes(header.tobytes() + payload)
    header["crc"] = batch_checksums(batch, np.array([0]), np.array([batch.size]))
    return as_bytes(header.tobytes() + payload)


def _cut_set(whole: Bytes, chunk: Chunk, stays: Mask) -> Bytes:
    """A compressed set of v0 or v1 with some of its messages, whose bytes stay.

    The set has the offset of its last message; in v1 the others count from that.
    """
    fields, codec = chunk.fields, int(chunk.batches.codec[0])
    magic = chunk.batches.header["magic"]
    messages = [
        chunk.content[start : start + LOG_OVERHEAD + _size_of(chunk.content, start)].tobytes()
        for start in fields["headers"][stays].tolist()  # of messages, these are their positions
    ]
    payload = _compressed(
        np.frombuffer(b"".join(messages), np.uint8), codec, first_lz4=bool(magic[0] == MAGIC_V0)
    )
    value, _ = value_extents(whole, np.array([0]), np.array([whole.size]), magic)
    head = bytearray(whole[: int(value[0])])  # with the size of the value
    head[-4:] = len(payload).to_bytes(4, "big")
    header = np.frombuffer(head, MESSAGE_HEADER, 1)  # it writes into the head
    header["offset"] = fields["offset"][stays][-1]
    header["size"] = len(head) + len(payload) - LOG_OVERHEAD
    if magic[0] != MAGIC_V0 and not header["attributes"][0] & TIMESTAMP_TYPE_MASK:
        header["timestamp"] = fields["timestamp"][stays].max()
    message = as_bytes(bytes(head) + payload)
    header["crc"] = message_checksums(message, np.array([0]), np.array([message.size]))
    return as_bytes(bytes(head) + payload)


def _size_of(content: Bytes, position: int) -> int:
    """The size field of a message."""
    return int(read_int32(content, position + BATCH_LENGTH_OFFSET))


def _compressed(plain: npt.NDArray[np.uint8], codec: int, *, first_lz4: bool = False) -> bytes:
    if not codec:
        return plain.tobytes()
    out = np.empty(compressed_bound(plain.size, 1), dtype=np.uint8)
    end = Compressor(codec, first_lz4=first_lz4).write(plain, out, 0)
    return out[:end].tobytes()


@kernel
def _copy_records(content, position, stays, deltas, is_moved, out):
    """Copy the records that stay, with these offset deltas if they have moved; return their end.

    `out` has WIDE bytes more than the content.
    """
    w = np.int64(0)
    for row in range(stays.size):
        length, body = read_varint(content, position, content.size)
        end = body + length
        if stays[row] and not is_moved:
            copy_bytes(out, w, content, position, end - position)
            w += end - position
        elif stays[row]:
            _, delta = read_varlong(content, body + 1, end)  # behind attributes and timestamp
            _, rest = read_varint(content, delta, end)
            w = put_varint(out, w, delta - body + varlong_size(deltas[row]) + end - rest)
            copy_bytes(out, w, content, body, delta - body)
            w = put_varint(out, w + delta - body, deltas[row])
            copy_bytes(out, w, content, rest, end - rest)
            w += end - rest
        position = end
    return w
