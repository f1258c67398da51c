"""Batches of format v2, with every field under the caller's control.

Answers to DefaultRecordBatch.writeHeader and DefaultRecord.writeTo. Whatever is not given has the
value that Kafka's own producer would write.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crc32c import crc32c

from kafkajit.format.layout import (
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from kafkajit.testing.compressors import COMPRESSORS

CREATE_TIME = 0
LOG_APPEND_TIME = 1

# baseOffset, batchLength, partitionLeaderEpoch, magic, crc
_HEAD = struct.Struct(">qiibI")
# attributes, lastOffsetDelta, baseTimestamp, maxTimestamp, producerId, producerEpoch,
# baseSequence, recordsCount
_CHECKED = struct.Struct(">hiqqqhii")
# batchLength counts everything behind itself: this much of the head, and all that is checked.
_LENGTH_OF_HEAD = _HEAD.size - 12


def varint(value: int) -> bytes:
    """Encode a number in zigzag, 7 bits a byte; int32 and int64 take the same bytes.

    >>> varint(-65).hex()
    '8101'
    """
    return _unsigned_varint((value << 1) ^ (value >> 63))


def _unsigned_varint(rest: int) -> bytes:
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


@dataclass(frozen=True)
class Record:
    """A record to write. The last four fields are for lies: None stands for the true value."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str | bytes, bytes | None]] = ()
    timestamp: int | None = None  # default: the batch's baseTimestamp
    offset_delta: int | None = None  # default: its place in the batch
    attributes: int = 0
    length: int | None = None
    key_size: int | None = None
    value_size: int | None = None
    headers_count: int | None = None

    def encode(self, offset_delta: int, base_timestamp: int) -> bytes:
        """The record's bytes, its length in front."""
        timestamp = base_timestamp if self.timestamp is None else self.timestamp
        if self.offset_delta is not None:
            offset_delta = self.offset_delta
        body = bytearray([self.attributes])
        body += varint(_int64(timestamp - base_timestamp))
        body += varint(offset_delta)
        body += _field(self.key, self.key_size)
        body += _field(self.value, self.value_size)
        body += varint(len(self.headers) if self.headers_count is None else self.headers_count)
        for key, value in self.headers:
            body += _field(key.encode() if isinstance(key, str) else key)
            body += _field(value)
        return varint(len(body) if self.length is None else self.length) + bytes(body)


def _field(data: bytes | None, size: int | None = None) -> bytes:
    if size is None:
        size = -1 if data is None else len(data)
    return varint(size) + (data or b"")


def _int64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def batch(
    records: Iterable[Record | bytes],
    *,
    base_offset: int = 0,
    codec: str = "none",
    base_timestamp: int = 1_700_000_000_000,
    max_timestamp: int | None = None,
    timestamp_type: int = CREATE_TIME,
    is_transactional: bool = False,
    is_control: bool = False,
    delete_horizon_ms: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    partition_leader_epoch: int = 0,
    magic: int = 2,
    attributes: int | None = None,
    last_offset_delta: int | None = None,
    records_count: int | None = None,
    batch_length: int | None = None,
    crc: int | None = None,
) -> bytes:
    """Build a record batch of format v2; defaults are what Kafka's producer would write.

    Args:
        records: records, or bytes to write in a record's place.
        codec: one of COMPRESSORS: none, gzip, snappy, lz4, zstd, and their variants.
        delete_horizon_ms: sets the delete horizon's bit, and replaces `base_timestamp`.
        attributes, last_offset_delta, records_count, batch_length, crc: override the true values.

    >>> len(batch([]))
    61
    """
    records = list(records)
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    codec_id, compress = COMPRESSORS[codec]
    timestamps = [base_timestamp]
    deltas = [-1]
    payload = bytearray()
    for place, record in enumerate(records):
        if isinstance(record, Record):
            payload += record.encode(place, base_timestamp)
            deltas.append(place if record.offset_delta is None else record.offset_delta)
            timestamps.append(base_timestamp if record.timestamp is None else record.timestamp)
        else:
            payload += record
            deltas.append(place)
    if attributes is None:
        attributes = (
            codec_id
            | TIMESTAMP_TYPE_MASK * timestamp_type
            | TRANSACTIONAL_MASK * is_transactional
            | CONTROL_MASK * is_control
            | DELETE_HORIZON_MASK * (delete_horizon_ms is not None)
        )
    checked = _CHECKED.pack(
        attributes,
        max(max(deltas), 0) if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        max(timestamps) if max_timestamp is None else max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records) if records_count is None else records_count,
    ) + compress(bytes(payload))
    length = _LENGTH_OF_HEAD + len(checked) if batch_length is None else batch_length
    stored = crc32c(checked) if crc is None else crc
    return _HEAD.pack(base_offset, length, partition_leader_epoch, magic, stored) + checked


def control_batch(
    control_type: int, *, coordinator_epoch: int = 0, producer_id: int = 1, **fields: object
) -> bytes:
    """Build a transaction marker as a broker writes it: type 0 is ABORT, 1 is COMMIT.

    >>> import kafkajit
    >>> log = control_batch(1, coordinator_epoch=5)
    >>> kafkajit.read_records(log, columns=["controlType", "coordinatorEpoch"]).to_pylist()
    [{'controlType': 'COMMIT', 'coordinatorEpoch': 5}]
    """
    record = Record(
        key=struct.pack(">hh", 0, control_type), value=struct.pack(">hi", 0, coordinator_epoch)
    )
    settings: dict[str, object] = {"producer_epoch": 0, "is_transactional": True} | fields
    return batch([record], is_control=True, producer_id=producer_id, **settings)  # type: ignore[arg-type]


def repair_crc(log: bytes, position: int = 0) -> bytes:
    """Return the bytes with the right checksum in the batch or message at `position`."""
    length = struct.unpack_from(">i", log, position + 8)[0]
    end = position + 12 + length
    if log[position + 16] < 2:
        at, crc = position + 12, zlib.crc32(log[position + 16 : end])
    else:
        at = position + _HEAD.size - 4
        crc = crc32c(log[position + _HEAD.size : end])
    return log[:at] + struct.pack(">I", crc) + log[at + 4 :]
