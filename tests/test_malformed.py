"""Malformed logs by name: bytes that the reader refuses, with the message, and bytes that it reads.

REFUSED and READ are the promises, a line or a few each; the tests below hold every one of them in
each message format and codec that it applies to. In between stand two sound batches, so that it
shows what a bad one costs.
"""

from __future__ import annotations

import json
import operator
import os
import re
import struct
import sys
import zlib
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import cramjam
import lz4.block
import lz4.frame
import pytest
import reference
from corpus import NO_JIT, expected_rows, rows_of, run_python, without_gaps
from crc32c import crc32c

import kafkajit
from kafkajit import testing as kt
from kafkajit.errors import (
    CorruptRecordError,
    DecompressionLimitError,
    InvalidRecordError,
    KafkaJitError,
    NotALogError,
    UnsupportedCompressionTypeError,
)
from kafkajit.storage.source import Source
from kafkajit.text.log_dump import LogDump, Style

# Offsets: of the batch before, of the case, and of the batch behind.
FIRST, BASE, NEXT = 10, 20, 40
TIME = 1_700_000_000_000
GOOD = kt.Record(b"key", b"value", timestamp=TIME + 5)
_LARGE = b"a record that compresses " * 40


class Form(NamedTuple):
    """A message format and a codec."""

    magic: int
    codec: str

    @property
    def is_plain_message(self) -> bool:
        return self.magic < 2 and self.codec == "none"

    def write(self, records: Iterable[kt.Record | bytes], **fields: Any) -> bytes:
        """Records from BASE on: a batch, a set of messages, or one by one."""
        fields = {"base_offset": BASE} | fields
        if self.magic == 2:
            return kt.batch(records, codec=self.codec, **fields)
        return kt.message_set(records, magic=self.magic, codec=self.codec, **fields)

    def second(self, bad: kt.Record | bytes, **fields: Any) -> bytes:
        """Three records of which the second is bad; the bad one alone if records are messages."""
        return self.write([bad] if self.is_plain_message else [GOOD, bad, GOOD], **fields)

    def message(self, place: int, record: kt.Record = GOOD, **fields: Any) -> bytes:
        """A message for that place among those written."""
        first = BASE if self.magic == 0 or self.codec == "none" else 0
        return kt.message(record, **({"offset": first + place, "magic": self.magic} | fields))

    def stream(self, compressed: bytes, records: int = 3) -> bytes:
        """A batch or message that contains `count` records, compressed."""
        codec, _ = kt.COMPRESSORS[self.codec]
        if self.magic == 2:
            return kt.batch(
                [compressed],
                attributes=codec,
                base_offset=BASE,
                records_count=records,
                last_offset_delta=records - 1,
            )
        return kt.message(
            kt.Record(value=compressed),
            offset=BASE + records - 1,
            magic=self.magic,
            attributes=codec,
        )

    def compressed(self, records: Iterable[kt.Record] = (GOOD, GOOD, GOOD)) -> bytes:
        """The stream of these records, as a producer would have sent it."""
        batch, _ = reference.read_batches(self.write(records))
        if self.magic == 2:
            return batch[0].payload
        _, value = reference._message_fields(batch[0].payload)
        assert value is not None
        return value


V0, V1, V2, OLD, ALL = (0,), (1,), (2,), (0, 1), (0, 1, 2)
COMPRESSED = kt.CODECS[1:]
Build = Callable[[Form], bytes]


def forms(magics: Iterable[int], codecs: Collection[str]) -> list[Form]:
    """The forms of these formats and codecs, as far as they exist."""
    return [
        Form(magic, codec)
        for magic in magics
        for codec in codecs
        if not (magic < 2 and codec == "zstd")
        and not (
            NO_JIT and len(codecs) > 1 and codec not in ("none", "zstd" if magic == 2 else "lz4")
        )
    ]


class Refused(NamedTuple):
    """Bytes that are an error; `message` is all of its text, `*` anything."""

    build: Build
    error: type[KafkaJitError]
    message: str | Callable[[bytes], str]
    when_compressed: str | None = None
    magics: tuple[int, ...] = V2
    codecs: tuple[str, ...] = kt.CODECS

    def text(self, form: Form, bad: bytes) -> str:
        if self.when_compressed is not None and form.codec != "none":
            return self.when_compressed
        return self.message(bad) if callable(self.message) else self.message


class Read(NamedTuple):
    """Bytes that are read, and some columns of the rows that they are."""

    build: Build
    rows: list[dict[str, Any]] | Callable[[Form], list[dict[str, Any]]]
    magics: tuple[int, ...] = V2
    codecs: tuple[str, ...] = kt.CODECS


REFUSED: dict[str, Refused] = {}
READ: dict[str, Read] = {}


def column(name: str, values: Iterable[Any]) -> list[dict[str, Any]]:
    return [{name: value} for value in values]


VALUES = column("value", [b"value"] * 3)
OFFSETS = column("offset", range(BASE, BASE + 3))
NO_ROWS: list[dict[str, Any]] = []

INVALID_STRUCTURE = "Found invalid record structure"
PREMATURE_EOF = "Incorrect declared batch size, premature EOF reached"
REMAINING = "Incorrect declared batch size, records still remaining in file"

# --- varints ---

# A record's fields in their order; those whose names end so are varints.
PARTS = {
    "attributes": b"\x00",
    "timestamp delta": kt.varint(0),
    "offset delta": kt.varint(1),
    "key length": kt.varint(3),
    "key": b"key",
    "value length": kt.varint(5),
    "value": b"value",
    "headers count": kt.varint(1),
    "header key length": kt.varint(1),
    "header key": b"h",
    "header value length": kt.varint(1),
    "header value": b"1",
}
VARINTS = [name for name in PARTS if name.endswith(("delta", "length", "count"))]
DATA = [name.removesuffix(" length") for name in VARINTS if name.endswith("length")]


def sized(body: bytes) -> bytes:
    return kt.varint(len(body)) + body


def record_of(changed: dict[str, bytes]) -> bytes:
    return sized(b"".join((PARTS | changed).values()))


def cut_in(name: str) -> bytes:
    """A record that ends inside this varint."""
    before = list(PARTS)[: list(PARTS).index(name)]
    return sized(b"".join(PARTS[part] for part in before) + b"\x80")


def overlong(value: int, size: int) -> bytes:
    """A varint in more bytes than it needs."""
    encoded = bytearray(kt.varint(value))
    while len(encoded) < size:
        encoded[-1] |= 0x80
        encoded.append(0)
    return bytes(encoded)


def edges(bits: int) -> list[int]:
    """Both sides of every place where an encoding grows by a byte, and both ends."""
    steps = [2 ** (7 * size - 1) for size in range(1, (bits - 1) // 7 + 1)]
    found = {v for step in steps for v in (step - 1, -step, step, -step - 1)}
    return sorted(found | {0, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))})


REFUSED["record length of six bytes"] = Refused(
    lambda form: form.second(b"\xff" * 5 + b"\x01"),
    InvalidRecordError,
    "Varint is too long, the most significant bit in the 5th byte is set",
    PREMATURE_EOF,
)
REFUSED["record length cut by the end"] = Refused(
    lambda form: form.write([GOOD, b"\x80"]), InvalidRecordError, PREMATURE_EOF
)
for name in VARINTS:
    size = 10 if name == "timestamp delta" else 5
    for last in (0x00, 0x7F):
        REFUSED[f"{name} of {size + 1} bytes ending in {last:#04x}"] = Refused(
            lambda form, name=name, size=size, last=last: form.second(
                record_of({name: b"\xff" * size + bytes([last])})
            ),
            InvalidRecordError,
            INVALID_STRUCTURE,
        )
    REFUSED[f"{name} cut by the end"] = Refused(
        lambda form, name=name: form.write([GOOD, cut_in(name)]),
        InvalidRecordError,
        INVALID_STRUCTURE,
    )
REFUSED["offset delta that only a varlong holds"] = Refused(
    lambda form: form.second(record_of({"offset delta": kt.varint(2**40)})),
    InvalidRecordError,
    INVALID_STRUCTURE,
)

SIZES = [0, 1, 63, 64, 8191, 8192]
READ |= {
    "lengths where a varint grows": Read(
        lambda form: form.write(
            [kt.Record(b"k" * n, b"v" * n, [("h" * n, b"x" * n)]) for n in SIZES]
        ),
        [
            {
                "key": b"k" * n,
                "value": b"v" * n,
                "headers": [{"key": "h" * n, "value": b"x" * n}],
            }
            for n in SIZES
        ],
    ),
    "header counts where a varint grows": Read(
        lambda form: form.write([kt.Record(headers=[("h", None)] * n) for n in SIZES[:4]]),
        column("headers", [[{"key": "h", "value": None}] * n or None for n in SIZES[:4]]),
    ),
    "offset deltas where a varint grows": Read(
        lambda form: form.write(
            [kt.Record(offset_delta=delta) for delta in edges(32)],
            base_offset=2**40,
            last_offset_delta=0,
        ),
        column("offset", [2**40 + delta for delta in edges(32)]),
    ),
    "timestamp deltas where a varlong grows": Read(
        lambda form: form.write([kt.Record(timestamp=t) for t in edges(64)], base_timestamp=0),
        column("timestamp", edges(64)),
    ),
    "timestamps that wrap around": Read(
        lambda form: form.write([kt.Record(timestamp=-(2**63))], base_timestamp=2**63 - 1),
        column("timestamp", [-(2**63)]),
    ),
    "varints longer than needed": Read(
        lambda form: form.second(
            overlong(44, 5)
            + b"\x00"
            + overlong(7, 10)
            + overlong(1, 5)
            + overlong(1, 5)
            + b"k"
            + overlong(-1, 5)
            + overlong(1, 5)
            + overlong(1, 5)
            + b"h"
            + overlong(1, 5)
            + b"x",
            base_timestamp=0,
        ),
        [
            {"offset": BASE, "timestamp": TIME + 5, "key": b"key", "value": b"value"},
            {"offset": BASE + 1, "timestamp": 7, "key": b"k", "value": None},
            {"offset": BASE + 2, "timestamp": TIME + 5, "key": b"key", "value": b"value"},
        ],
    ),
    "bits of a fifth byte above an int32": Read(
        lambda form: form.second(
            record_of({"offset delta": b"\xff\xff\xff\xff\x7f"}), base_offset=2**40
        ),
        column("offset", [2**40, 2**40 - 2**31, 2**40 + 2]),
    ),
}

# --- records ---

REFUSED |= {
    f"{name} past the record": Refused(
        lambda form, name=name: form.second(record_of({f"{name} length": kt.varint(100_000)})),
        InvalidRecordError,
        INVALID_STRUCTURE,
    )
    for name in DATA
}
REFUSED |= {
    f"{name} of 2,147,483,647 bytes": Refused(
        lambda form, name=name: form.second(record_of({f"{name} length": kt.varint(2**31 - 1)})),
        InvalidRecordError,
        INVALID_STRUCTURE,
    )
    for name in DATA
}
REFUSED |= {
    f"header key of {size} bytes": Refused(
        lambda form, size=size: form.second(record_of({"header key length": kt.varint(size)})),
        InvalidRecordError,
        f"Invalid negative header key size {size}",
    )
    for size in (-1, -2, -(2**31))
}
REFUSED |= {
    f"{count} headers": Refused(
        lambda form, count=count: form.second(record_of({"headers count": kt.varint(count)})),
        InvalidRecordError,
        f"Found invalid number of record headers {count}",
    )
    for count in (-1, -3, -(2**31))
}
REFUSED |= {
    f"{count} headers where fewer bytes are left": Refused(
        lambda form, count=count: form.second(record_of({"headers count": kt.varint(count)})),
        InvalidRecordError,
        "Found invalid number of record headers. "
        f"{count} is larger than the remaining size of the buffer",
    )
    for count in (1000, 2**31 - 1)
}
# The four bytes of one header; an uncompressed record is not bounded by its own length.
REFUSED["as many headers as bytes are left"] = Refused(
    lambda form: form.write([GOOD, record_of({"headers count": kt.varint(4)})]),
    InvalidRecordError,
    INVALID_STRUCTURE,
)
REFUSED["one header more than bytes are left"] = Refused(
    lambda form: form.write([GOOD, record_of({"headers count": kt.varint(5)})]),
    InvalidRecordError,
    "Found invalid number of record headers. 5 is larger than the remaining size of the buffer",
)
_SIZE = sum(map(len, PARTS.values()))
REFUSED |= {
    f"record {by:+} byte from its length": Refused(
        lambda form, by=by: form.second(
            kt.varint(_SIZE + by) + record_of({})[1:] + bytes(max(by, 0))
        ),
        InvalidRecordError,
        f"Invalid record size: expected to read {_SIZE + by} bytes in record payload, "
        f"but instead read {_SIZE}",
        INVALID_STRUCTURE if by < 0 else None,
    )
    for by in (-1, 1)
}
REFUSED["record of no bytes"] = Refused(
    # Not bounded by its length, it is read on into the next: of no key and no value.
    lambda form: form.write([GOOD, b"\x00"]),
    InvalidRecordError,
    INVALID_STRUCTURE,
)
REFUSED["record that ends the bytes early"] = Refused(
    lambda form: form.write([GOOD, record_of({})[:-3]]),
    InvalidRecordError,
    f"Invalid record size: expected {_SIZE} bytes in record payload, "
    f"but instead the buffer has only {_SIZE - 3} remaining bytes.",
    f"Invalid record size: expected {_SIZE} bytes in record payload, "
    "but the record payload reached EOF.",
)
REFUSED["record of 2,147,483,647 bytes"] = Refused(
    lambda form: form.write([GOOD, kt.varint(2**31 - 1)]),
    InvalidRecordError,
    "Invalid record size: expected 2147483647 bytes in record payload, "
    "but instead the buffer has only 0 remaining bytes.",
    "Invalid record size: expected 2147483647 bytes in record payload, "
    "but the record payload reached EOF.",
)

NULLS = [(None, None), (None, b""), (b"", None), (b"", b""), (b"k", None), (None, b"v")]
READ |= {
    "null and empty": Read(
        lambda form: form.write([kt.Record(key, value) for key, value in NULLS]),
        [{"key": key, "value": value} for key, value in NULLS],
        ALL,
    ),
    "null and empty headers": Read(
        lambda form: form.second(kt.Record(headers=[("", None), ("", b""), ("h", None)])),
        column(
            "headers",
            [
                None,
                [
                    {"key": "", "value": None},
                    {"key": "", "value": b""},
                    {"key": "h", "value": None},
                ],
                None,
            ],
        ),
    ),
    "negative lengths other than -1": Read(
        lambda form: form.write(
            [kt.Record(key_size=size, value_size=size) for size in (-2, -65, -(2**31))]
        ),
        [{"key": None, "value": None}] * 3,
        ALL,
    ),
    "negative header value length other than -1": Read(
        lambda form: form.write(
            [record_of({"header value length": kt.varint(-(2**31)), "header value": b""})]
        ),
        column("headers", [[{"key": "h", "value": None}]]),
    ),
    "record attributes": Read(
        lambda form: form.write([kt.Record(b"k", b"v", attributes=a) for a in (1, 0x7F, 0xFF)]),
        [{"key": b"k", "value": b"v"}] * 3,
    ),
    "header keys twice": Read(
        lambda form: form.write([kt.Record(headers=[("b", b"1"), ("a", b"2"), ("b", b"3")])]),
        column(
            "headers",
            [
                [
                    {"key": "b", "value": b"1"},
                    {"key": "a", "value": b"2"},
                    {"key": "b", "value": b"3"},
                ]
            ],
        ),
    ),
}

# --- batches ---


def crc_text(bad: bytes) -> str:
    """The entry with its right checksum."""
    if bad[16] < 2:
        stored, computed = struct.unpack_from(">I", bad, 12)[0], zlib.crc32(bad[16:])
    else:
        stored, computed = struct.unpack_from(">I", bad, 17)[0], crc32c(bad[21:])
    return f"Record is corrupt (stored crc = {stored}, computed crc = {computed})"


def patched(entry: bytes, at: int, layout: str, *values: int) -> bytes:
    field = struct.pack(layout, *values)
    return entry[:at] + field + entry[at + len(field) :]


def flipped(entry: bytes, at: int, bit: int = 0x80) -> bytes:
    changed = bytearray(entry)
    changed[at] ^= bit
    return bytes(changed)


# The breaks of kafkajit.testing that have no case of the same name here.
REFUSED |= {
    name: Refused(
        lambda form, case=case: case.build(BASE, form.codec),
        case.error,
        case.message + ("*" if name == "wrong crc" else ""),
        case.when_compressed,
    )
    for name, case in kt.BREAKS.items()
}
REFUSED |= {
    "wrong crc": Refused(
        lambda form: patched(form.second(GOOD), 17 if form.magic == 2 else 12, ">I", 0xFFFFFFFF),
        CorruptRecordError,
        crc_text,
        magics=ALL,
    ),
    "first bit behind the checksum": Refused(
        lambda form: flipped(form.second(GOOD), 17 if form.magic < 2 else 21),
        CorruptRecordError,
        crc_text,
        magics=ALL,
    ),
    "last bit": Refused(
        lambda form: flipped(form.second(GOOD), -1, 1),
        CorruptRecordError,
        crc_text,
        magics=ALL,
    ),
    "fewer records than counted": Refused(
        lambda form: form.write([GOOD] * 3, records_count=4), InvalidRecordError, PREMATURE_EOF
    ),
    "more records than counted": Refused(
        lambda form: form.write([GOOD] * 3, records_count=2), InvalidRecordError, REMAINING
    ),
    "2,147,483,647 records counted": Refused(
        lambda form: form.write([GOOD] * 3, records_count=2**31 - 1),
        InvalidRecordError,
        PREMATURE_EOF,
    ),
    "records counted in an empty batch": Refused(
        lambda form: form.write([], records_count=1, last_offset_delta=0),
        InvalidRecordError,
        PREMATURE_EOF,
    ),
    "bytes left over": Refused(
        lambda form: form.write([GOOD, GOOD.encode(1, TIME) + b"\x00"]),
        InvalidRecordError,
        REMAINING,
    ),
}
REFUSED |= {
    f"{count} records counted": Refused(
        lambda form, count=count: form.write([GOOD] * 3, records_count=count),
        InvalidRecordError,
        f"Found invalid record count {count} in magic v2 batch",
    )
    for count in (-1, -(2**31))
}
REFUSED |= {
    f"magic {magic}": Refused(
        lambda form, magic=magic: form.write([GOOD] * 3, magic=magic),
        CorruptRecordError,
        f"Invalid magic found in record: {magic}",
    )
    for magic in (3, 127, -1, -128)
}
REFUSED |= {
    f"batch length {length}": Refused(
        lambda form, length=length: patched(form.second(GOOD), 8, ">i", length),
        CorruptRecordError,
        f"Found record size {length} smaller than minimum record overhead (14)",
        magics=ALL,
    )
    for length in (13, 0, -1, -(2**31))
}
REFUSED |= {
    f"batch length {length} of v2": Refused(
        lambda form, length=length: patched(form.second(GOOD), 8, ">i", length),
        CorruptRecordError,
        f"Record batch is corrupt (the size {length + 12} is smaller than "
        "the minimum allowed overhead 61)",
    )
    for length in (14, 48)
}
REFUSED |= {
    f"codec {codec}": Refused(
        lambda form, codec=codec: (
            form.write([GOOD], attributes=codec)
            if form.magic == 2
            else form.message(0, attributes=codec)
        ),
        UnsupportedCompressionTypeError,
        f"Unknown compression type id: {codec}",
        magics=ALL,
        codecs=("none",),
    )
    for codec in (5, 6, 7)
}
REFUSED["codec 5 of no records"] = Refused(
    lambda form: form.write([], attributes=5),
    UnsupportedCompressionTypeError,
    "Unknown compression type id: 5",
    codecs=("none",),
)

READ |= {
    "base offset and leader epoch outside the checksum": Read(
        lambda form: patched(patched(form.second(GOOD), 0, ">q", 1234), 12, ">i", 77),
        [
            {"offset": 1234 + place, "baseOffset": 1234, "partitionLeaderEpoch": 77}
            for place in range(3)
        ],
    ),
    "no records counted, whatever the bytes": Read(
        lambda form: form.stream(b"neither compressed nor a record", records=0), NO_ROWS
    ),
    "no records": Read(lambda form: form.write([], last_offset_delta=9), NO_ROWS),
    "sequences that wrap": Read(
        lambda form: form.write([GOOD] * 4, base_sequence=2**31 - 2, producer_id=7),
        column("sequence", [2**31 - 2, 2**31 - 1, 0, 1]),
    ),
    "log append time": Read(
        lambda form: form.write(
            [kt.Record(timestamp=5), kt.Record(timestamp=9)],
            timestamp_type=kt.LOG_APPEND_TIME,
            max_timestamp=77,
        ),
        [{"timestamp": 77, "timestampType": 1}] * 2,
    ),
    "delete horizon": Read(
        lambda form: form.write(
            [kt.Record(timestamp=1000), kt.Record(timestamp=9000)], delete_horizon_ms=5000
        ),
        column("timestamp", [1000, 9000]),
    ),
    "records gone by compaction": Read(
        lambda form: form.write(
            [kt.Record(offset_delta=1), kt.Record(offset_delta=7)],
            last_offset_delta=12,
            base_sequence=100,
        ),
        [{"offset": BASE + 1, "sequence": 101}, {"offset": BASE + 7, "sequence": 107}],
    ),
    "unknown attributes": Read(
        lambda form: form.write([GOOD], attributes=kt.COMPRESSORS[form.codec][0] | 0x7F80),
        column("value", [b"value"]),
    ),
}

# --- control records ---


def control(key: bytes | None, value: bytes | None) -> Build:
    return lambda form: form.write([kt.Record(key, value)], is_control=True, producer_id=1)


def marker(type_id: int = 1, version: int = 0, more: bytes = b"") -> bytes:
    return struct.pack(">hh", version, type_id) + more


EPOCH = struct.pack(">hi", 0, 9)

REFUSED |= {
    f"control key of {len(key or b'')} bytes ({key!r})": Refused(
        control(key, EPOCH),
        InvalidRecordError,
        "Invalid value size found for end control record key. "
        f"Must have at least 4 bytes, but found only {len(key or b'')}",
    )
    for key in (None, b"", bytes(3))
}
REFUSED["control key of a negative version"] = Refused(
    control(marker(version=-1), EPOCH),
    InvalidRecordError,
    "Invalid version found for control record: -1. May indicate data corruption",
)
REFUSED |= {
    f"marker of {len(value or b'')} bytes ({value!r})": Refused(
        control(marker(), value),
        InvalidRecordError,
        f"Transaction marker value has only {len(value or b'')} bytes, needs 6",
    )
    for value in (None, b"", bytes(5))
}
REFUSED["marker of a negative version"] = Refused(
    control(marker(), struct.pack(">hi", -2, 9)),
    InvalidRecordError,
    "Invalid version found for end transaction marker: -2. May indicate data corruption",
)

READ |= {
    f"control type {type_id}": Read(
        control(marker(type_id), EPOCH),
        [{"controlType": name, "coordinatorEpoch": 9 if type_id in (0, 1) else None}],
    )
    for type_id, name in {0: "ABORT", 1: "COMMIT", 7: "UNKNOWN", -1: "UNKNOWN"}.items()
}
READ["control record of later versions"] = Read(
    control(marker(1, 5, b"later"), struct.pack(">hi", 7, 9) + b"fields"),
    [{"controlType": "COMMIT", "coordinatorEpoch": 9}],
)

# --- messages of v0 and v1 ---


def misfit(size: int) -> str:
    return f"Found invalid message: its key and value do not fit its {size} bytes"


def message_of(*fields: bytes) -> bytes:
    """A message of which everything from magic on is given."""
    checked = b"".join(fields)
    return struct.pack(">qiI", BASE, len(checked) + 4, zlib.crc32(checked)) + checked


NO_TIME = struct.pack(">ii", -1, -1)

REFUSED |= {
    "set of null": Refused(
        lambda form: form.message(
            0, kt.Record(b"k"), attributes=kt.COMPRESSORS[form.codec][0], offset=BASE
        ),
        InvalidRecordError,
        lambda bad: f"Found invalid compressed record set with null value (magic = {bad[16]})",
        magics=OLD,
        codecs=COMPRESSED,
    ),
    "set of no messages": Refused(
        lambda form: form.write([], wrapper_offset=BASE),
        InvalidRecordError,
        "Found invalid compressed record set with no inner records",
        magics=OLD,
        codecs=COMPRESSED,
    ),
    "set of a part of a message": Refused(
        lambda form: form.write([form.message(0)[:-1]], wrapper_offset=BASE),
        InvalidRecordError,
        "Found invalid compressed record set with no inner records",
        magics=OLD,
        codecs=COMPRESSED,
    ),
    "set in a set": Refused(
        lambda form: form.second(form._replace(codec="gzip").write([GOOD])),
        InvalidRecordError,
        "Inner messages must not be compressed",
        magics=OLD,
        codecs=COMPRESSED,
    ),
    "message of v2 in a set": Refused(
        lambda form: form.second(kt.batch([GOOD])),
        InvalidRecordError,
        "Invalid magic found in a compressed message set: 2",
        magics=OLD,
        codecs=COMPRESSED,
    ),
    "wrapper offset before the last message": Refused(
        lambda form: form.write([GOOD] * 3, wrapper_offset=1),
        InvalidRecordError,
        "Found invalid wrapper offset in compressed v1 message set, wrapper offset '1' is less "
        "than the last inner message offset '2' and it is not zero.",
        magics=V1,
        codecs=COMPRESSED,
    ),
    "zstd in v0 and v1": Refused(
        lambda form: kt.message_set([GOOD], codec="zstd", magic=form.magic, base_offset=BASE),
        UnsupportedCompressionTypeError,
        lambda bad: f"Message format v{bad[16]} has no zstd",
        magics=OLD,
        codecs=("none",),
    ),
    "message without room for a timestamp": Refused(
        lambda form: message_of(bytes([form.magic, 0]), NO_TIME),
        InvalidRecordError,
        misfit(26),
        magics=V1,
        codecs=("none",),
    ),
    "set without room for a timestamp": Refused(
        lambda form: message_of(b"\x01", bytes([kt.COMPRESSORS[form.codec][0]]), NO_TIME),
        InvalidRecordError,
        misfit(26),
        magics=V1,
        codecs=COMPRESSED,
    ),
}
REFUSED |= {
    f"message of {size} bytes in a set": Refused(
        lambda form, size=size: form.second(form.message(1, size=size)),
        CorruptRecordError,
        "Record size is less than the minimum record overhead (14)",
        magics=OLD,
        codecs=COMPRESSED,
    )
    for size in (13, 0, -1, -(2**31))
}
for field in ("key", "value"):
    for size in (6, 2**31 - 1):
        REFUSED[f"message's {field} of {size} bytes, past its end"] = Refused(
            lambda form, field=field, size=size: (
                form.second(form.message(1, kt.Record(b"k", b"v", **{f"{field}_size": size})))
                if form.codec != "none"
                else form.message(0, kt.Record(b"k", b"v", **{f"{field}_size": size}))
            ),
            InvalidRecordError,
            "Found invalid message: its key and value do not fit its *",
            magics=OLD,
        )

READ |= {
    "messages of both formats in a set": Read(
        lambda form: form.write(
            [form.message(place, magic=place % 2) for place in range(3)],
        ),
        lambda form: [
            {
                "offset": BASE + place,
                "value": b"value",
                "magic": form.magic if form.codec != "none" else place % 2,
                "timestamp": TIME + 5 if place % 2 else -1,
            }
            for place in range(3)
        ],
        OLD,
    ),
    "part of a message behind a set's last": Read(
        lambda form: form.write([GOOD, form.message(1)[:-1]], wrapper_offset=BASE),
        [{"offset": BASE, "value": b"value"}],
        OLD,
        COMPRESSED,
    ),
    "part of a size behind a set's last": Read(
        lambda form: form.write([GOOD, bytes(11)], wrapper_offset=BASE),
        [{"offset": BASE, "value": b"value"}],
        OLD,
        COMPRESSED,
    ),
    "wrapper offset of 0": Read(
        lambda form: form.write([GOOD] * 3, wrapper_offset=0),
        lambda form: column("offset", [0, 1, 2] if form.magic else [BASE, BASE + 1, BASE + 2]),
        OLD,
        COMPRESSED,
    ),
    "offsets in a set with gaps": Read(
        lambda form: form.write(
            [form.message(place) for place in (1, 4, 6)], wrapper_offset=BASE + 6
        ),
        column("offset", [BASE + 1, BASE + 4, BASE + 6]),
        OLD,
        COMPRESSED,
    ),
    "offsets in a v1 set that count from more than 0": Read(
        lambda form: form.write([form.message(place) for place in (5, 6)], wrapper_offset=BASE + 1),
        column("offset", [BASE, BASE + 1]),
        V1,
        COMPRESSED,
    ),
    "log append time of a set": Read(
        lambda form: form.write([GOOD] * 2, timestamp_type=kt.LOG_APPEND_TIME, timestamp=77),
        [{"timestamp": 77, "timestampType": 1}] * 2,
        V1,
        COMPRESSED,
    ),
    "wrong checksum in a set": Read(
        lambda form: form.second(form.message(1, crc=1)), VALUES, OLD, COMPRESSED
    ),
    "key of a set": Read(
        lambda form: form.write([GOOD] * 3, key=b"no record's"), VALUES, OLD, COMPRESSED
    ),
    "unknown message attributes": Read(
        lambda form: form.second(form.message(0 if form.codec == "none" else 1, attributes=-16)),
        lambda form: VALUES[:1] if form.codec == "none" else VALUES,
        OLD,
    ),
    "bytes behind a message's value": Read(
        lambda form: message_of(bytes([form.magic, 0]), bytes(8 * form.magic), NO_TIME, b"more"),
        [{"offset": BASE, "key": None, "value": None}],
        OLD,
        ("none",),
    ),
    "v0, v1 and v2 in one log": Read(
        lambda form: (
            kt.message_set([GOOD], magic=0, codec=form.codec, base_offset=20)
            + kt.batch([GOOD], codec=form.codec, base_offset=21)
            + kt.message_set([GOOD], magic=1, codec=form.codec, base_offset=22)
        ),
        [{"offset": 20 + i, "magic": m, "value": b"value"} for i, m in enumerate((0, 2, 1))],
        OLD,
    ),
}

# --- codecs ---


def spoilt(change: Callable[[bytes], bytes]) -> Build:
    """Three records whose stream is changed."""
    return lambda form: form.stream(change(form.compressed([kt.Record(b"k", _LARGE)] * 3)))


def with_lz4_checksum(change: int) -> Callable[[bytes], bytes]:
    """The byte behind an lz4 frame's flags and block size."""
    return lambda stream: stream[:6] + bytes([stream[6] ^ change]) + stream[7:]


def undecodable(form_codec: str) -> str:
    return f"Failed to decompress record stream ({form_codec}: *)"


for codec in COMPRESSED:
    changes: dict[str, Callable[[bytes], bytes]] = {
        "stream cut by a byte": operator.itemgetter(slice(-1)),
        "stream cut in half": lambda stream: stream[: len(stream) // 2],
        "noise instead of a stream": lambda stream: b"\xff" * len(stream),
        "no bytes where records are counted": operator.itemgetter(slice(0)),
    }
    for name, change in changes.items():
        REFUSED[f"{name} ({codec})"] = Refused(
            spoilt(change),
            CorruptRecordError,
            undecodable(codec),
            magics=ALL,
            codecs=(codec,),
        )
    for other in COMPRESSED:
        if other != codec:
            REFUSED[f"stream of {other} as {codec}"] = Refused(
                lambda form, other=other: form.stream(
                    form._replace(
                        codec=other, magic=max(form.magic, other == "zstd" and 2)
                    ).compressed([kt.Record(b"k", _LARGE)] * 3)
                ),
                CorruptRecordError,
                undecodable(codec),
                magics=ALL,
                codecs=(codec,),
            )
REFUSED["lz4 header checksum"] = Refused(
    spoilt(with_lz4_checksum(1)),
    CorruptRecordError,
    undecodable("lz4"),
    magics=(1, 2),
    codecs=("lz4",),
)
READ["any lz4 header checksum in v0"] = Read(
    spoilt(with_lz4_checksum(0x77)), column("value", [_LARGE] * 3), V0, ("lz4",)
)
READ["right lz4 header checksum in v0"] = Read(
    spoilt(with_lz4_checksum(0x5A)), column("value", [_LARGE] * 3), V0, ("lz4",)
)
READ["whatever a client compresses with"] = Read(
    lambda form: form.write([kt.Record(b"k", _LARGE)] * 3),
    column("value", [_LARGE] * 3),
    ALL,
    tuple(name for name in kt.COMPRESSORS if not name.startswith("zstd")),
)
READ["whatever a client compresses with zstd"] = Read(
    lambda form: form.write([kt.Record(b"k", _LARGE)] * 3),
    column("value", [_LARGE] * 3),
    V2,
    tuple(name for name in kt.COMPRESSORS if name.startswith("zstd")),
)

# --- the tests ---


def promises(table: dict[str, Any]) -> pytest.MarkDecorator:
    cases = [
        pytest.param(case, form, id=f"{name}-v{form.magic}-{form.codec}")
        for name, case in table.items()
        for form in forms(case.magics, case.codecs)
    ]
    return pytest.mark.parametrize(("case", "form"), cases)


def surrounded(bad: bytes, form: Form) -> tuple[bytes, bytes, bytes]:
    """Sound batches of the same form around it."""
    before = form.write([GOOD] * 2, base_offset=FIRST)
    return before, bad, form.write([GOOD] * 2, base_offset=NEXT)


KEPT = [FIRST, FIRST + 1, NEXT, NEXT + 1]


@promises(REFUSED)
def test_is_refused_in_these_words(case: Refused, form: Form) -> None:
    before, bad, behind = surrounded(case.build(form), form)
    for columns in (None, ["value", "controlType"]):
        with pytest.raises(case.error) as caught:
            kafkajit.read_records(before + bad + behind, columns=columns)
        error = caught.value
        text = re.sub(r" \(record \d+ of the batch\)$", "", error.message)
        pattern = re.escape(case.text(form, bad)).replace(r"\*", ".*")
        assert re.fullmatch(pattern, text)
        assert type(error) is case.error
        assert error.position == len(before)


@promises(REFUSED)
def test_the_reference_refuses_it_too(case: Refused, form: Form) -> None:
    before, bad, behind = surrounded(case.build(form), form)
    rows, invalid = expected_rows(before + bad + behind)
    assert isinstance(invalid, reference.Invalid)
    assert rows == reference.rows(before)


@promises(REFUSED)
def test_costs_itself_and_nothing_else(case: Refused, form: Form) -> None:
    before, bad, behind = surrounded(case.build(form), form)
    log = before + bad + behind
    kept = kafkajit.read_records(log, mode="DROPMALFORMED")
    assert rows_of(kept) == reference.rows(before) + [
        row | {"position": row["position"] + len(before + bad)} for row in reference.rows(behind)
    ]
    marked = kafkajit.read_records(log, mode="PERMISSIVE").to_pylist()
    ((place, gap),) = [
        (place, row["corruption"]) for place, row in enumerate(marked) if row["corruption"]
    ]
    assert (place, gap["position"], gap["length"]) == (2, len(before), len(bad))
    assert without_gaps(log, [gap]) == before + behind
    table = kafkajit.find_corruption(log).select(
        ["position", "length", "firstMissingOffset", "lastMissingOffset"]
    )
    assert [tuple(row.values()) for row in rows_of(table)] == [
        (len(before), len(bad), FIRST + 2, NEXT - 1)
    ]


def dumped(log: bytes, mode: str | None) -> tuple[str, KafkaJitError | None]:
    dump = LogDump(Source(log), Style(records=True, contents=True), mode=mode)
    text = b"".join(bytes(piece) for piece in dump.text())
    return text.decode(), dump.error


@promises(REFUSED)
def test_a_dump_names_it(case: Refused, form: Form) -> None:
    before, bad, behind = surrounded(case.build(form), form)
    text, error = dumped(before + bad + behind, None)
    assert text.count("payload: value") >= 2
    said = case.text(form, bad)
    if re.match(
        r"Record is corrupt \(stored crc = (1|4294967295),|Invalid magic found in record: \d", said
    ):
        assert error is None  # Kafka's tool prints what such a batch says of itself, and goes on
        assert text.count("payload: value") >= 4
    elif error is None:
        assert said.startswith("Record is corrupt")
    else:
        assert isinstance(error, KafkaJitError)
        assert error.position == len(before)
    _, error = dumped(before + bad + behind, "FAILFAST")
    assert error is not None
    assert error.position == len(before)
    text, error = dumped(before + bad + behind, "PERMISSIVE")
    assert error is None
    assert f"damaged position: {len(before)} size: {len(bad)} reason: " in text


@promises(READ)
def test_is_read_as_these_rows(case: Read, form: Form) -> None:
    before, odd, behind = surrounded(case.build(form), form)
    log = before + odd + behind
    rows = rows_of(kafkajit.read_records(log))
    expected = case.rows(form) if callable(case.rows) else case.rows
    between = rows[2:-2]
    assert [
        {name: row[name] for name in want} for row, want in zip(between, expected, strict=True)
    ] == expected
    assert rows == expected_rows(log)[0]
    for mode in ("DROPMALFORMED", "PERMISSIVE"):
        table = kafkajit.read_records(log, mode=mode)
        assert (
            rows_of(table.select([name for name in table.column_names if name in rows[0]])) == rows
        )
    assert kafkajit.find_corruption(log).num_rows == 0
    text, error = dumped(log, "FAILFAST")
    assert error is None
    assert len(re.findall(r"^\| offset: ", text, re.MULTILINE)) == len(rows)


@pytest.mark.parametrize("form", forms(ALL, ["none", "gzip"]), ids="v{0.magic}-{0.codec}".format)
@pytest.mark.parametrize("size", [-1, -2, -(2**31)])
def test_a_dump_prints_the_size_of_null_as_kafka_does(size: int, form: Form) -> None:
    text, error = dumped(form.write([kt.Record(key_size=size, value_size=size)] * 2), "FAILFAST")
    printed = -1 if form.magic == 2 else size  # a message's stands there as it was written
    assert text.count(f" keySize: {printed} valueSize: {printed} ") == 2
    assert error is None


# --- files ---

MODES = ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
by_mode = pytest.mark.parametrize("mode", MODES)
by_form = pytest.mark.parametrize(
    "form", forms(ALL, kt.CODECS), ids=lambda form: f"v{form.magic}-{form.codec}"
)


def two(form: Form, offset: int) -> bytes:
    return form.write([GOOD] * 2, base_offset=offset)


def offsets(source: Any, mode: str) -> list[int]:
    table = kafkajit.read_records(source, columns=["offset"], mode=mode)
    assert "corruption" not in table.column_names or table["corruption"].null_count == len(table)
    found: list[int] = table["offset"].to_pylist()
    return found


@by_mode
def test_an_empty_file_has_no_records(mode: str, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.touch()
    for source in (b"", path):
        assert offsets(source, mode) == []
        assert kafkajit.find_corruption(source).num_rows == 0
    assert dumped(b"", mode) == ("", None)


@by_form
@by_mode
@pytest.mark.parametrize("byte", [0x00, 0x02, 0xFF])
def test_up_to_17_bytes_behind_the_last_batch_are_not_damage(
    byte: int, mode: str, form: Form
) -> None:
    for count in range(1, 18):
        log = two(form, FIRST) + bytes([byte]) * count
        assert offsets(log, mode) == [FIRST, FIRST + 1]
        assert kafkajit.find_corruption(log).num_rows == 0


@pytest.mark.parametrize("byte", [0x02, 0xFF])
def test_a_file_of_a_few_other_bytes_than_zeros_is_no_log(byte: int) -> None:
    for count in range(1, 17):
        content = bytes([byte]) * count
        with pytest.raises(NotALogError, match="it seems to be"):
            kafkajit.read_records(content)
        assert offsets(content, "DROPMALFORMED") == []
        (gap,) = rows_of(kafkajit.find_corruption(content))
        assert (gap["position"], gap["length"]) == (0, count)


@by_form
@by_mode
@pytest.mark.parametrize("size", [18, 61, 4096 if NO_JIT else 3_000_000])
def test_zeros_up_to_the_preallocated_size_end_the_log(size: int, mode: str, form: Form) -> None:
    log = two(form, FIRST) + bytes(size)
    assert offsets(log, mode) == [FIRST, FIRST + 1]
    assert offsets(bytes(size), mode) == []
    assert kafkajit.find_corruption(log).num_rows == 0


@by_form
@pytest.mark.parametrize("size", [1, 12, 17, 18, 61, 500])
@pytest.mark.parametrize("byte", [b"\x00", b"\xff", b"k"])
def test_zeros_or_garbage_between_batches_cost_themselves(
    byte: bytes, size: int, form: Form
) -> None:
    before, garbage, behind = two(form, FIRST), byte * size, two(form, NEXT)
    log = before + garbage + behind
    (gap,) = rows_of(kafkajit.find_corruption(log))
    assert (gap["position"], gap["length"]) == (len(before), size)
    assert (gap["firstMissingOffset"], gap["lastMissingOffset"]) == (FIRST + 2, NEXT - 1)
    kept = kafkajit.read_records(log, columns=["offset"], mode="DROPMALFORMED")
    assert kept["offset"].to_pylist() == KEPT


@by_form
def test_zeros_between_batches_are_an_error(form: Form) -> None:
    before = two(form, FIRST)
    for size in (18, 500):
        with pytest.raises(CorruptRecordError, match="Found record size 0 smaller than") as caught:
            kafkajit.read_records(before + bytes(size) + two(form, NEXT))
        assert caught.value.position == len(before)


@by_form
@pytest.mark.parametrize("length", [1_000_000, 2**31 - 1])
def test_a_length_past_the_end_with_a_batch_behind_it_is_an_error_or_one_gap(
    length: int, form: Form
) -> None:
    before, behind = two(form, FIRST), two(form, NEXT)
    bad = patched(form.message(0) if form.is_plain_message else two(form, BASE), 8, ">i", length)
    log = before + bad + behind
    with pytest.raises(CorruptRecordError, match=f"record size {length} leads past the") as caught:
        kafkajit.read_records(log)
    assert caught.value.position == len(before)
    kept = kafkajit.read_records(log, columns=["offset"], mode="DROPMALFORMED")
    assert kept["offset"].to_pylist() == KEPT
    (gap,) = rows_of(kafkajit.find_corruption(log))
    assert (gap["position"], gap["length"]) == (len(before), len(bad))


@by_form
@by_mode
def test_a_batch_cut_anywhere_by_the_end_is_not_damage(mode: str, form: Form) -> None:
    whole = form.message(0) if form.is_plain_message else two(form, NEXT)
    for cut in range(1, len(whole)):
        assert offsets(two(form, FIRST) + whole[:-cut], mode) == [FIRST, FIRST + 1]


@pytest.mark.parametrize("magic", ALL)
@by_mode
def test_a_file_of_2_147_483_647_bytes_is_read_to_its_end(
    mode: str, magic: int, tmp_path: Path
) -> None:
    path, size = tmp_path / f"{FIRST:020}.log", 2**31 - 1
    form = Form(magic, "none")
    behind = two(form, NEXT)
    room = size - len(behind)
    if magic == 2:  # a batch that fills it and counts no records
        filling = form.write([], batch_length=room - 12, last_offset_delta=1)
    else:
        empty = form.message(0, kt.Record())
        value_size = room - len(empty)
        filling = form.message(0, kt.Record(value_size=value_size), size=room - 12)
    with path.open("wb") as file:  # nearly all of it a hole
        file.write(filling)
        file.seek(room)
        file.write(behind)
    options: dict[str, Any] = {"check_crcs": False}
    table = kafkajit.read_records(path, columns=["offset", "position"], mode=mode, **options)
    found = [(row["offset"], row["position"]) for row in table.to_pylist()]
    step = 0 if magic == 2 else len(behind) // 2
    expected = [(NEXT, room), (NEXT + 1, room + step)]
    assert found == ([(BASE, 0), *expected] if magic < 2 else expected)
    assert kafkajit.find_corruption(path, **options).num_rows == 0


@by_form
@pytest.mark.parametrize("suffix", [".log", ".log.deleted", ".log.cleaned", ".log.swap"])
def test_a_segment_is_read_whatever_its_suffix(suffix: str, form: Form, tmp_path: Path) -> None:
    path = tmp_path / "orders-3" / f"{FIRST:020}{suffix}"
    path.parent.mkdir()
    path.write_bytes(two(form, FIRST))
    assert kafkajit.parse_log_path(path) == ("orders", 3, FIRST, suffix)
    assert offsets(path, "FAILFAST") == [FIRST, FIRST + 1]


@by_form
@pytest.mark.parametrize("name", [0, FIRST + 5, 2**63 - 1])
def test_offsets_are_those_of_the_batches_whatever_the_name_says(
    name: int, form: Form, tmp_path: Path
) -> None:
    path = tmp_path / f"{name:020}.log"
    path.write_bytes(two(form, FIRST))
    for mode in MODES:
        assert offsets(path, mode) == [FIRST, FIRST + 1]
    assert kafkajit.find_corruption(path).num_rows == 0


# --- decompression bombs ---

MIB = 1 << 20
LIMIT = 48 * MIB
MOST_GROWTH = 144 * MIB  # the buffer, the smaller one before it, and what else a process does


def gzip_bomb(size: int, ends: bool = True) -> bytes:
    """A member of zeros."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = deflate.compress(bytes(MIB)) + deflate.flush(zlib.Z_FULL_FLUSH)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    body = head + piece * (size // MIB)
    return (
        body
        + deflate.flush()
        + zlib.crc32(bytes(size)).to_bytes(4, "little")
        + (size % 2**32).to_bytes(4, "little")
        if ends
        else body
    )


def raw_snappy(size: int) -> bytes:
    return bytes(cramjam.snappy.compress_raw(bytes(size)))


def uvarint(value: int) -> bytes:
    return b"".join(
        bytes([value >> shift & 0x7F | (0x80 if value >> shift + 7 else 0)])
        for shift in range(0, max(value.bit_length(), 1), 7)
    )


def xerial_bomb(order: str, chunk: bytes, count: int) -> bytes:
    framed = struct.pack(order + "i", len(chunk)) + chunk
    return b"\x82SNAPPY\x00" + struct.pack(order + "ii", 1, 1) + framed * count


def lz4_frame(block: int, count: int, claimed: int = 0, linked: bool = False) -> bytes:
    """A frame of zeros, which perhaps claims its size."""
    context = lz4.frame.create_compression_context()
    size = {64 << 10: lz4.frame.BLOCKSIZE_MAX64KB, 4 * MIB: lz4.frame.BLOCKSIZE_MAX4MB}[block]
    head = lz4.frame.compress_begin(
        context, source_size=claimed, block_size=size, block_linked=linked
    )
    data = lz4.block.compress(bytes(block), store_size=False)
    return bytes(head) + (len(data).to_bytes(4, "little") + data) * count + bytes(4)


def zstd_frame(size: int, claimed: int | None = None, window: int = 21) -> bytes:
    """A frame of zeros in blocks that repeat one byte; of a window, or claiming its size."""
    head = b"\x28\xb5\x2f\xfd"
    if claimed is None:
        head += bytes([0x00, window - 10 << 3])
    else:
        head += b"\xe0" + claimed.to_bytes(8, "little")
    blocks = [min(128 << 10, size - at) for at in range(0, size, 128 << 10)]
    for place, block in enumerate(blocks):
        head += (block << 3 | 1 << 1 | (place == len(blocks) - 1)).to_bytes(3, "little") + b"\0"
    return head


SCALE = 64 * MIB if NO_JIT else 1024 * MIB

# name: (codec, its stream); what they decompress to, or claim to, is past any limit
BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip": ("gzip", lambda: gzip_bomb(SCALE, ends=False)),
    "gzip in members": ("gzip", lambda: gzip_bomb(8 * MIB) * 16),
    "raw snappy": ("snappy", lambda: raw_snappy(64 * MIB)),
    "raw snappy that claims 4 GiB": ("snappy", lambda: uvarint(2**32 - 1) + b"\x00a" * 10),
    "raw snappy that claims 15 MiB": ("snappy", lambda: uvarint(15 * MIB) + b"\x00a" * 10),
    "xerial chunks": ("snappy", lambda: xerial_bomb(">", raw_snappy(MIB), 64)),
    "xerial chunks, little-endian": ("snappy", lambda: xerial_bomb("<", raw_snappy(MIB), 64)),
    "xerial chunks of 100 bytes": ("snappy", lambda: xerial_bomb(">", raw_snappy(100), 600_000)),
    "xerial chunk that claims 4 GiB": (
        "snappy",
        lambda: xerial_bomb(">", uvarint(2**32 - 1) + b"\x00a", 3),
    ),
    "xerial chunk longer than the stream": (
        "snappy",
        lambda: xerial_bomb(">", b"", 0) + b"\x7f\xff\xff\xff" + raw_snappy(100),
    ),
    "lz4": ("lz4", lambda: lz4_frame(4 * MIB, SCALE // MIB // 4)),
    "lz4 of Kafka's blocks": ("lz4", lambda: lz4_frame(64 << 10, SCALE // MIB * 16)),
    "lz4 of dependent blocks": ("lz4", lambda: lz4_frame(4 * MIB, SCALE // MIB // 4, linked=True)),
    "lz4 in frames": ("lz4", lambda: lz4_frame(4 * MIB, 2) * (SCALE // MIB // 8)),
    "lz4 that claims 8 GiB": ("lz4", lambda: lz4_frame(4 * MIB, 1, claimed=1 << 33)),
    "lz4 that claims 8 GiB, second frame": (
        "lz4",
        lambda: lz4_frame(64 << 10, 1) + lz4_frame(4 * MIB, 1, claimed=1 << 33),
    ),
    "zstd": ("zstd", lambda: zstd_frame(SCALE)),
    "zstd in frames": ("zstd", lambda: zstd_frame(8 * MIB) * (SCALE // MIB // 8)),
    "zstd that claims 8 GiB": ("zstd", lambda: zstd_frame(100, claimed=1 << 33)),
    "zstd that claims 8 GiB, second frame": (
        "zstd",
        lambda: zstd_frame(100) + zstd_frame(100, claimed=1 << 33),
    ),
    "zstd that claims 15 MiB": ("zstd", lambda: zstd_frame(100, claimed=15 * MIB)),
    "zstd with a window of 128 MiB": ("zstd", lambda: zstd_frame(SCALE, window=27)),
    "zstd with a window of 2 GiB": ("zstd", lambda: zstd_frame(100, window=31)),
}
BOMB_FORMS = [
    (name, form)
    for name, (codec, _) in BOMBS.items()
    for form in (Form(magic, codec) for magic in ALL)
    if not (form.magic < 2 and codec == "zstd")
]


def explode(name: str, form: Form) -> str:
    """Read the bomb, and return its error."""
    before = two(form, FIRST)
    log = before + form.stream(BOMBS[name][1](), records=1)
    with pytest.raises(KafkaJitError) as caught:
        kafkajit.read_records(log, max_decompressed_bytes=LIMIT, check_crcs=False)
    assert caught.value.position == len(before)
    return type(caught.value).__name__


def measured() -> dict[str, tuple[str, int]]:
    """Each bomb's error, and the growth of memory in a process of its own."""
    for _, form in BOMB_FORMS:  # all that is compiled and imported along the way
        kafkajit.read_records(two(form, 0))
    found = {}
    for name, form in [("", Form(2, "none")), *BOMB_FORMS]:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(write, explode(name, form).encode() if name else b"nothing to compare")
            finally:
                os._exit(0)
        os.close(write)
        _, _, usage = os.wait4(child, 0)
        with os.fdopen(read) as said:
            found[f"{name}-v{form.magic}"] = said.read(), usage.ru_maxrss * RSS_UNIT
    _, baseline = found.pop("-v2")
    return {name: (error, most - baseline) for name, (error, most) in found.items()}


RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@pytest.fixture(scope="module")
def explosions() -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = json.loads(
        run_python("import json, test_malformed; print(json.dumps(test_malformed.measured()))")
    )
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "form"),
    [pytest.param(name, form, id=f"{name}-v{form.magic}") for name, form in BOMB_FORMS],
)
def test_a_bomb_is_an_error_that_costs_no_memory(
    name: str, form: Form, explosions: dict[str, tuple[str, int]]
) -> None:
    error, growth = explosions[f"{name}-v{form.magic}"]
    assert error in (DecompressionLimitError.__name__, CorruptRecordError.__name__)
    assert growth < MOST_GROWTH
