"""Deliberate bytes: build any batch or message, every field of it, and break it in a named way.

Written with struct and loops, for reading rather than speed, and apart from the reader's kernels,
so that the two can be held against each other.

>>> log = batch([Record(key=b"k", value=b"v")], base_offset=42, codec="zstd")
>>> import kafkajit
>>> kafkajit.read_records(log, columns=["offset", "value"]).to_pylist()
[{'offset': 42, 'value': b'v'}]
>>> kafkajit.read_records(broken("unknown magic", base_offset=42))
Traceback (most recent call last):
...
kafkajit.errors.CorruptRecordError: Invalid magic found in record: 3 at position 0, base offset 42
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import cramjam
import lz4.frame
import zstandard
from crc32c import crc32c

from kafkajit.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaJitError,
    UnsupportedCompressionTypeError,
)
from kafkajit.format.layout import (
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)

# The log that comes with the package: orders in every codec, and payments with what can go wrong
# (tests/support/make_sample.py).
SAMPLE = str(Path(__file__).parent / "sample")

CREATE_TIME = 0
LOG_APPEND_TIME = 1

# baseOffset, batchLength, partitionLeaderEpoch, magic, crc
_HEAD = struct.Struct(">qiibI")
# attributes, lastOffsetDelta, baseTimestamp, maxTimestamp, producerId, producerEpoch,
# baseSequence, recordsCount
_CHECKED = struct.Struct(">hiqqqhii")
# What batchLength counts of the head: all behind itself.
_LENGTH_OF_HEAD = _HEAD.size - 12


def varint(value: int) -> bytes:
    """Zigzag and 7 bits a byte, for int32 and int64 alike.

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
    """A record to be written. The last four fields are for lies: None tells the truth."""

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
    """A v2 record batch. What is not given is what Kafka's producer would write.

    Args:
        records: records, or bytes to stand in a record's place as they are.
        codec: one of COMPRESSORS: none, gzip, snappy, lz4, zstd, and their variants.
        delete_horizon_ms: sets the bit, and stands in for baseTimestamp.
        attributes, last_offset_delta, records_count, batch_length, crc: instead of the true ones.

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
    """A transaction marker as a broker writes it: type 0 is ABORT, 1 is COMMIT.

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


def message(
    record: Record,
    *,
    offset: int = 0,
    magic: int = 1,
    timestamp: int = 1_700_000_000_000,
    timestamp_type: int = CREATE_TIME,
    attributes: int | None = None,
    crc: int | None = None,
    size: int | None = None,
) -> bytes:
    """A message of format v0 or v1, as it stands in a log. Defaults are what a producer writes.

    Args:
        record: its key, value, timestamp and lies about sizes
        offset: of the log, or within its set
        magic: 0 or 1
        timestamp: where the record has none; v0 has none at all
        timestamp_type: CREATE_TIME or LOG_APPEND_TIME
        attributes: instead of those that the arguments make
        crc: instead of the right one
        size: instead of the right one

    >>> len(message(Record(key=b"k", value=b"v"), magic=0))
    28
    """
    if attributes is None:
        attributes = TIMESTAMP_TYPE_MASK * timestamp_type
    checked = struct.pack(">bb", magic, attributes)
    if magic > 0:
        checked += struct.pack(">q", timestamp if record.timestamp is None else record.timestamp)
    for field, stated in ((record.key, record.key_size), (record.value, record.value_size)):
        if stated is None:
            stated = -1 if field is None else len(field)
        checked += struct.pack(">i", stated) + (field or b"")
    crc = zlib.crc32(checked) if crc is None else crc
    return struct.pack(">qiI", offset, len(checked) + 4 if size is None else size, crc) + checked


def message_set(
    records: Iterable[Record | bytes],
    *,
    base_offset: int = 0,
    magic: int = 1,
    codec: str = "none",
    timestamp: int = 1_700_000_000_000,
    timestamp_type: int = CREATE_TIME,
    wrapper_offset: int | None = None,
    key: bytes | None = None,
) -> bytes:
    """Messages one behind the other or, with a codec, compressed into the value of one.

    Args:
        records: the records, or finished bytes in their place
        base_offset: of the first record
        magic: 0 or 1
        codec: a name of `COMPRESSORS`
        timestamp: where a record has none, and of the message around them under LOG_APPEND_TIME
        timestamp_type: CREATE_TIME or LOG_APPEND_TIME
        wrapper_offset: instead of the last record's
        key: of the message around them

    >>> import kafkajit
    >>> log = message_set([Record(value=b"a"), Record(value=b"b")], base_offset=7, codec="gzip")
    >>> kafkajit.read_records(log, columns=["offset", "value", "magic"]).to_pylist()
    [{'offset': 7, 'value': b'a', 'magic': 1}, {'offset': 8, 'value': b'b', 'magic': 1}]
    """
    records = list(records)
    codec_id, compress = COMPRESSORS[codec]
    first = base_offset if codec_id == 0 or magic == 0 else 0
    type_inside = timestamp_type if codec_id == 0 else CREATE_TIME
    entries = b"".join(
        message(
            record,
            offset=first + place,
            magic=magic,
            timestamp=timestamp,
            timestamp_type=type_inside,
        )
        if isinstance(record, Record)
        else record
        for place, record in enumerate(records)
    )
    if codec_id == 0:
        return entries
    stamps = [
        timestamp if record.timestamp is None else record.timestamp
        for record in records
        if isinstance(record, Record)
    ]
    if timestamp_type == LOG_APPEND_TIME or not stamps:
        stamps = [timestamp]
    value = compress(entries)
    if magic == 0 and codec_id == 3:
        value = _with_wrong_lz4_checksum(value)
    return message(
        Record(key=key, value=value, timestamp=max(stamps)),
        offset=base_offset + len(records) - 1 if wrapper_offset is None else wrapper_offset,
        magic=magic,
        attributes=codec_id | TIMESTAMP_TYPE_MASK * timestamp_type,
    )


def _with_wrong_lz4_checksum(frame: bytes) -> bytes:
    """As Kafka's first LZ4 writer, which v0 is bound to: its checksum took in the frame's magic."""
    end = 6 + (8 if frame[4] & 0x08 else 0)
    return frame[:end] + bytes([frame[end] ^ 0x5A]) + frame[end + 1 :]


@dataclass(frozen=True)
class Producer:
    """An entry of a snapshot; -1 as its last offset stands for a producer without a batch."""

    producer_id: int
    producer_epoch: int = 0
    last_sequence: int = 0
    last_offset: int = 0
    offset_delta: int = 0
    timestamp: int = 1_700_000_000_000
    coordinator_epoch: int = -1
    current_txn_first_offset: int = -1


def producer_snapshot(
    producers: Iterable[Producer],
    *,
    version: int = 1,
    count: int | None = None,
    tail: bytes = b"",
    crc: int | None = None,
) -> bytes:
    """A .snapshot file.

    Args:
        producers: its entries
        version: instead of Kafka's
        count: instead of the number of entries
        tail: bytes behind the entries
        crc: instead of the right one

    >>> len(producer_snapshot([Producer(1), Producer(2)]))
    102
    """
    entries = [struct.pack(">qhiqiqiq", *astuple(producer)) for producer in producers]
    checked = struct.pack(">i", len(entries) if count is None else count) + b"".join(entries) + tail
    return struct.pack(">hI", version, crc32c(checked) if crc is None else crc) + checked


def offset_index(entries: Iterable[tuple[int, int]]) -> bytes:
    """An .index file of relative offsets and positions.

    >>> offset_index([(9, 4096)]).hex(" ", 4)
    '00000009 00001000'
    """
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def time_index(entries: Iterable[tuple[int, int]]) -> bytes:
    """A .timeindex file of timestamps in milliseconds and relative offsets.

    >>> time_index([(100, 9)]).hex(" ", 4)
    '00000000 00000064 00000009'
    """
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def transaction_index(entries: Iterable[tuple[int, int, int, int]]) -> bytes:
    """A .txnindex file of producer ids, first, last and last stable offsets.

    >>> len(transaction_index([(4711, 23, 25, 26)]))
    34
    """
    return b"".join(struct.pack(">hqqqq", 0, *entry) for entry in entries)


def repair_crc(log: bytes, position: int = 0) -> bytes:
    """The same bytes with the right checksum in the batch or message at `position`."""
    length = struct.unpack_from(">i", log, position + 8)[0]
    end = position + 12 + length
    if log[position + 16] < 2:
        at, crc = position + 12, zlib.crc32(log[position + 16 : end])
    else:
        at = position + _HEAD.size - 4
        crc = crc32c(log[position + _HEAD.size : end])
    return log[:at] + struct.pack(">I", crc) + log[at + 4 :]


def _xerial(payload: bytes, order: str = ">", block: int = 32 * 1024) -> bytes:
    """snappy-java's frame: magic, version, oldest compatible version, sized raw blocks."""
    framed = bytearray(b"\x82SNAPPY\x00" + struct.pack(order + "ii", 1, 1))
    for start in range(0, len(payload), block):
        raw = bytes(cramjam.snappy.compress_raw(payload[start : start + block]))
        framed += struct.pack(order + "i", len(raw)) + raw
    return bytes(framed)


def _lz4(payload: bytes) -> bytes:
    """As Kafka writes it: independent blocks of 64 KiB, no sizes, no content checksum."""
    framed: bytes = lz4.frame.compress(
        payload,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        store_size=False,
    )
    return framed


def _zstd(payload: bytes) -> bytes:
    """As a streaming producer writes it: the size is not in the frame."""
    stream = zstandard.ZstdCompressor(level=3).compressobj()
    return stream.compress(payload) + stream.flush()


def _halves(compress: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def both(payload: bytes) -> bytes:
        middle = len(payload) // 2
        return compress(payload[:middle]) + compress(payload[middle:])

    return both


def _gzip(payload: bytes) -> bytes:
    return gzip.compress(payload, compresslevel=6, mtime=0)


# name: (codec id, compressor); the variants are what clients other than Java's write.
COMPRESSORS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "none": (0, bytes),
    "gzip": (1, _gzip),
    "gzip-members": (1, _halves(_gzip)),
    "snappy": (2, _xerial),
    "snappy-little-endian": (2, lambda payload: _xerial(payload, "<")),
    "snappy-small-blocks": (2, lambda payload: _xerial(payload, block=100)),
    "snappy-raw": (2, lambda payload: bytes(cramjam.snappy.compress_raw(payload))),
    "lz4": (3, _lz4),
    "lz4-linked": (3, lz4.frame.compress),
    "lz4-frames": (3, _halves(_lz4)),
    "zstd": (4, _zstd),
    "zstd-sized": (4, zstandard.compress),
    "zstd-frames": (4, _halves(_zstd)),
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Break(NamedTuple):
    """A way to break a batch, and what a reader has to say of it, as Kafka does."""

    build: Callable[[int, str], bytes]
    error: type[KafkaJitError]
    message: str
    when_compressed: str | None = None  # where Kafka says something else then


_GOOD = Record(key=b"key", value=b"value", headers=[("h", b"1"), ("h", None)])
_GOOD_SIZE = len(_GOOD.encode(1, 0)) - 1  # without its length, which takes one byte
_PREMATURE_EOF = "Incorrect declared batch size, premature EOF reached"
_INVALID_STRUCTURE = "Found invalid record structure"


def _second(bad: Record | bytes, **fields: object) -> Callable[[int, str], bytes]:
    """Three records of which the second is bad, or whose header lies."""

    def build(base_offset: int, codec: str) -> bytes:
        return batch([_GOOD, bad, _GOOD], base_offset=base_offset, codec=codec, **fields)  # type: ignore[arg-type]

    return build


def _lying(**fields: object) -> Callable[[int, str], bytes]:
    return _second(_GOOD, **fields)


def _cut_stream(base_offset: int, codec: str) -> bytes:
    """Three records of which the last is not all there."""
    whole = b"".join(_GOOD.encode(place, 0) for place in range(3))
    return batch(
        [whole[:-2]], base_offset=base_offset, codec=codec, records_count=3, last_offset_delta=2
    )


def _sized(body: bytes) -> bytes:
    return varint(len(body)) + body


# attributes, timestampDelta, offsetDelta, null key, null value
_FIELDS = b"\x00" + varint(0) + varint(1) + varint(-1) + varint(-1)

BREAKS: dict[str, Break] = {
    "wrong crc": Break(_lying(crc=1), CorruptRecordError, "Record is corrupt (stored crc = 1, "),
    "unknown magic": Break(_lying(magic=3), CorruptRecordError, "Invalid magic found in record: 3"),
    "batch shorter than its header": Break(
        _lying(batch_length=48),
        CorruptRecordError,
        "Record batch is corrupt (the size 60 is smaller than the minimum allowed overhead 61)",
    ),
    "batch shorter than an entry": Break(
        _lying(batch_length=13),
        CorruptRecordError,
        "Found record size 13 smaller than minimum record overhead (14)",
    ),
    "unknown codec": Break(
        _lying(attributes=5), UnsupportedCompressionTypeError, "Unknown compression type id: 5"
    ),
    "negative records count": Break(
        _lying(records_count=-1),
        InvalidRecordError,
        "Found invalid record count -1 in magic v2 batch",
    ),
    "too many records": Break(
        _lying(records_count=2),
        InvalidRecordError,
        "Incorrect declared batch size, records still remaining in file",
    ),
    "too few records": Break(_lying(records_count=4), InvalidRecordError, _PREMATURE_EOF),
    "cut inside a record": Break(
        _cut_stream,
        InvalidRecordError,
        f"Invalid record size: expected {_GOOD_SIZE} bytes in record payload, "
        f"but instead the buffer has only {_GOOD_SIZE - 2} remaining bytes.",
        f"Invalid record size: expected {_GOOD_SIZE} bytes in record payload, "
        "but the record payload reached EOF.",
    ),
    "negative headers count": Break(
        _second(replace(_GOOD, headers_count=-3)),
        InvalidRecordError,
        "Found invalid number of record headers -3",
    ),
    "headers count past the end": Break(
        _second(replace(_GOOD, headers_count=1000)),
        InvalidRecordError,
        "Found invalid number of record headers. "
        "1000 is larger than the remaining size of the buffer",
    ),
    "negative header key size": Break(
        _second(_sized(_FIELDS + varint(1) + varint(-2) + varint(-1))),
        InvalidRecordError,
        "Invalid negative header key size -2",
    ),
    "record longer than what is read": Break(
        _second(_sized(_FIELDS + varint(0) + b"\x00")),
        InvalidRecordError,
        "Invalid record size: expected to read 7 bytes in record payload, but instead read 6",
    ),
    "record shorter than what is read": Break(
        _second(replace(_GOOD, length=_GOOD_SIZE - 1)),
        InvalidRecordError,
        f"Invalid record size: expected to read {_GOOD_SIZE - 1} bytes in record payload, "
        f"but instead read {_GOOD_SIZE}",
        _INVALID_STRUCTURE,
    ),
    "negative record length": Break(
        _second(replace(_GOOD, length=-5)),
        InvalidRecordError,
        "Invalid record size: expected to read -5 bytes in record payload, "
        f"but instead read {_GOOD_SIZE}",
        _PREMATURE_EOF,
    ),
    "record past the batch": Break(
        _second(replace(_GOOD, length=100_000)),
        InvalidRecordError,
        "Invalid record size: expected 100000 bytes in record payload, "
        f"but instead the buffer has only {2 * _GOOD_SIZE + 1} remaining bytes.",
        "Invalid record size: expected 100000 bytes in record payload, "
        "but the record payload reached EOF.",
    ),
    "key past the record": Break(
        _second(replace(_GOOD, key_size=100_000)), InvalidRecordError, _INVALID_STRUCTURE
    ),
    "value past the record": Break(
        _second(replace(_GOOD, value_size=100_000)), InvalidRecordError, _INVALID_STRUCTURE
    ),
    "header value past the record": Break(
        _second(_sized(_FIELDS + varint(1) + varint(0) + varint(100_000))),
        InvalidRecordError,
        _INVALID_STRUCTURE,
    ),
    "length varint too long": Break(
        _second(b"\xff" * 5 + b"\x01"),
        InvalidRecordError,
        "Varint is too long, the most significant bit in the 5th byte is set",
        _PREMATURE_EOF,
    ),
    "key varint too long": Break(
        _second(_sized(b"\x00" + varint(0) + varint(1) + b"\xff" * 5 + b"\x01" * 5)),
        InvalidRecordError,
        _INVALID_STRUCTURE,
    ),
    "timestamp varlong too long": Break(
        _second(_sized(b"\x00" + b"\xff" * 10 + b"\x01" * 5)),
        InvalidRecordError,
        _INVALID_STRUCTURE,
    ),
}


def broken(name: str, *, base_offset: int = 0, codec: str = "none") -> bytes:
    """A batch of three records, broken in one of the ways of BREAKS, its checksum right (or wrong).

    >>> sorted(BREAKS)[:3]
    ['batch shorter than an entry', 'batch shorter than its header', 'cut inside a record']
    """
    return BREAKS[name].build(base_offset, codec)
