"""Ways to break a batch, each with the error that Kafka, and so every reader here, reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from kafkajit.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaJitError,
    UnsupportedCompressionTypeError,
)
from kafkajit.testing.batches import Record, batch, varint


class Break(NamedTuple):
    """A way to break a batch, and the error that a reader then reports, in Kafka's words."""

    build: Callable[[int, str], bytes]
    error: type[KafkaJitError]
    message: str
    when_compressed: str | None = None  # Kafka's words for a compressed batch, if they differ


_GOOD = Record(key=b"key", value=b"value", headers=[("h", b"1"), ("h", None)])
_GOOD_SIZE = len(_GOOD.encode(1, 0)) - 1  # without its length, which takes one byte
_PREMATURE_EOF = "Incorrect declared batch size, premature EOF reached"
_INVALID_STRUCTURE = "Found invalid record structure"


def _second(bad: Record | bytes, **fields: object) -> Callable[[int, str], bytes]:
    """Build three records, the second of them bad, or a header that lies."""

    def build(base_offset: int, codec: str) -> bytes:
        return batch([_GOOD, bad, _GOOD], base_offset=base_offset, codec=codec, **fields)  # type: ignore[arg-type]

    return build


def _lying(**fields: object) -> Callable[[int, str], bytes]:
    return _second(_GOOD, **fields)


def _cut_stream(base_offset: int, codec: str) -> bytes:
    """Build three records, the last of them cut off."""
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
    """Build a batch of three records with a break of BREAKS; other checksums stay right.

    >>> sorted(BREAKS)[:3]
    ['batch shorter than an entry', 'batch shorter than its header', 'cut inside a record']
    """
    return BREAKS[name].build(base_offset, codec)
