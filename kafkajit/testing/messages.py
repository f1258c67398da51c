"""Messages of formats v0 and v1, alone or in sets, with every field under the caller's control.

Answers to LegacyRecord.write and MemoryRecordsBuilder.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from kafkajit.format.layout import TIMESTAMP_TYPE_MASK
from kafkajit.testing.batches import CREATE_TIME, LOG_APPEND_TIME, Record
from kafkajit.testing.compressors import COMPRESSORS


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
    """Build a message of format v0 or v1; defaults are what a producer writes.

    Args:
        record: has the key, the value, the timestamp, and false sizes, if it has any.
        offset: the offset in the log, or within its set.
        magic: 0 or 1.
        timestamp: the timestamp if the record has none; v0 does not store one.
        timestamp_type: CREATE_TIME or LOG_APPEND_TIME.
        attributes: overrides those that the other arguments imply.
        crc: overrides the right checksum.
        size: overrides the right size.

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
    """Build messages one after the other or, with a codec, compressed into the value of one.

    Args:
        records: records, or bytes to write in a record's place.
        base_offset: the offset of the first record.
        magic: 0 or 1.
        codec: one of COMPRESSORS.
        timestamp: for records without one, and for the wrapper under LOG_APPEND_TIME.
        timestamp_type: CREATE_TIME or LOG_APPEND_TIME.
        wrapper_offset: the wrapper's offset; by default that of the last record.
        key: the wrapper's key.

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
    """Spoil the descriptor's checksum as Kafka's first LZ4 writer did, which v0 is bound to."""
    end = 6 + (8 if frame[4] & 0x08 else 0)
    return frame[:end] + bytes([frame[end] ^ 0x5A]) + frame[end + 1 :]
