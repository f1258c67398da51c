"""Segments that no broker writes: real batches, each damaged or made odd in one way.

In: the first segments of SOURCES, by topic. Out: the bytes of one small segment for each damage.
Where a damage is inside a batch its checksum is made right again, so that a reader gets as far
as the damage; `crc` and `crc-lz4` are the exceptions. Offsets are those of Kafka's
DefaultRecordBatch.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import crc32c

BASE_OFFSET = 0
BATCH_LENGTH = 8
MAGIC = 16
CRC = 17
ATTRIBUTES = 21
LAST_OFFSET_DELTA = 23
BASE_TIMESTAMP = 27
BASE_SEQUENCE = 53
COUNT = 57
RECORDS = 61
LOG_OVERHEAD = 12

# A first record with lengths of one byte: length, attributes, timestamp and offset delta, key.
RECORD_ATTRIBUTES = RECORDS + 1
KEY_LENGTH = RECORDS + 4
CONTROL_VERSION = RECORDS + 5
CONTROL_TYPE = RECORDS + 7
MARKER_VERSION = RECORDS + 10
COORDINATOR_EPOCH = RECORDS + 12
LZ4_CHECKSUM = RECORDS + 6

INT32_MAX = 2**31 - 1
CODECS = ("gzip", "snappy", "lz4", "zstd")
SOURCES = ("idempotent", "transactions", "headers", "append-time", *CODECS)


def damaged_logs(logs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the damaged segments by name; each but the odd ones starts with a good batch."""
    good, lz4, after, *_ = batches(logs["idempotent"])
    after = patched(after, BASE_OFFSET, ">q", 5)
    lz4 = patched(lz4, BASE_OFFSET, ">q", 8)
    _, commit, *_ = batches(logs["transactions"])
    headed, *_ = batches(logs["headers"])
    stamped, *_ = batches(logs["append-time"])
    one_header = headed.index(b"\x02\x06one\x021")
    key_end = KEY_LENGTH + 1 + after[KEY_LENGTH] // 2
    null_key = patched(after[: KEY_LENGTH + 1] + after[key_end:], KEY_LENGTH, ">B", 3)
    null_key = patched(null_key, RECORDS, ">B", after[RECORDS] - after[KEY_LENGTH])

    tails = {
        "tail-1": after[:1],
        "tail-11": after[:11],
        "tail-12": after[:12],
        "tail-16": after[:16],
        "tail-17": after[:17],
        "tail-60": after[:60],
        "tail-header": after[:RECORDS],
        "tail-all-but-1": after[:-1],
        "tail-ff": b"\xff" * 100,
        "tail-text": b"not a batch, and longer than any header of a batch would have to be",
        "zeros-11": bytes(11),
        "zeros-12": bytes(12),
        "zeros-17": bytes(17),
        "zeros-100": bytes(100),
        "zeros-between": bytes(61) + after,
        "length-negative": patched(after, BATCH_LENGTH, ">i", -1),
        "length-13": patched(after, BATCH_LENGTH, ">i", 13),
        "length-14": patched(after, BATCH_LENGTH, ">i", 14),
        "length-48": patched(after, BATCH_LENGTH, ">i", 48),
        "length-too-long": patched(after, BATCH_LENGTH, ">i", len(after)),
        "length-too-short": patched(after, BATCH_LENGTH, ">i", len(after) - LOG_OVERHEAD - 10),
        "magic-3": patched(after, MAGIC, ">b", 3),
        "magic-negative": patched(after, MAGIC, ">b", -1),
        "crc": patched(after, len(after) - 2, ">B", after[-2] ^ 1) + lz4,
        "crc-lz4": patched(lz4, BASE_TIMESTAMP + 7, ">B", lz4[BASE_TIMESTAMP + 7] ^ 1) + after,
    }
    records = {
        "count-more": patched(after, COUNT, ">i", 4),
        "count-fewer": patched(after, COUNT, ">i", 2),
        "count-zero": patched(after, COUNT, ">i", 0),
        "count-negative": patched(after, COUNT, ">i", -1),
        "count-huge": patched(after, COUNT, ">i", INT32_MAX),
        "count-more-lz4": patched(lz4, COUNT, ">i", 5),
        "count-fewer-lz4": patched(lz4, COUNT, ">i", 3),
        "count-zero-lz4": patched(lz4, COUNT, ">i", 0),
        "count-negative-lz4": patched(lz4, COUNT, ">i", -1),
        "left-over": after + b"\0\0\0",
        "no-records": after[:RECORDS],
        "codec-5": patched(after, ATTRIBUTES, ">h", 5),
        "codec-7": patched(after, ATTRIBUTES, ">h", 7),
        "codec-wrong": patched(after, ATTRIBUTES, ">h", 1),
        "attributes-high": patched(after, ATTRIBUTES, ">h", 0x7F80),
        "lz4-header-checksum": patched(lz4, LZ4_CHECKSUM, ">B", lz4[LZ4_CHECKSUM] ^ 1),
        "record-length-longer": patched(after, RECORDS, ">B", after[RECORDS] + 2),
        "record-length-shorter": patched(after, RECORDS, ">B", after[RECORDS] - 2),
        "record-length-negative": patched(after, RECORDS, ">B", 1),
        "record-length-zero": patched(after, RECORDS, ">B", 0),
        "record-length-varint-6": after[:RECORDS] + b"\xff" * 5 + b"\1" + after[RECORDS + 1 :],
        "record-length-overlong": widened(after, RECORDS),
        "record-attributes": patched(after, RECORD_ATTRIBUTES, ">B", 0xFF),
        "key-length-negative-2": null_key,
        "key-length-too-long": patched(after, KEY_LENGTH, ">B", 0x7E),
        "value-length-too-long": patched(after, key_end, ">B", 0x7E),
        "header-count-negative": patched(headed, one_header, ">B", 1),
        "header-count-too-many": patched(headed, one_header, ">B", 0x7E),
        "header-key-negative": patched(headed, one_header + 1, ">B", 1),
        "header-key-not-utf8": patched(headed, one_header + 2, ">3s", b"\xff\xc3\x28"),
        "sequence-wraps": patched(after, BASE_SEQUENCE, ">i", INT32_MAX - 1),
        "timestamp-negative": patched(after, BASE_TIMESTAMP, ">q", -5),
        "last-offset-delta-larger": patched(after, LAST_OFFSET_DELTA, ">i", 9),
        "append-time-negative": patched(stamped, BASE_TIMESTAMP, ">qq", -1, -1),
        "control-version-1": patched(commit, CONTROL_VERSION, ">h", 1),
        "control-version-negative": patched(commit, CONTROL_VERSION, ">h", -1),
        "control-type-unknown": patched(commit, CONTROL_TYPE, ">h", 77),
        "control-type-negative": patched(commit, CONTROL_TYPE, ">h", -1),
        "marker-version-5": patched(commit, MARKER_VERSION, ">h", 5),
        "marker-epoch": patched(commit, COORDINATOR_EPOCH, ">i", 123456),
        "control-on-data": patched(after, ATTRIBUTES, ">h", 0x20),
    }
    for codec in CODECS:
        batch, *_ = batches(logs[codec])
        records[f"{codec}-cut"] = batch[:-20]
        records[f"{codec}-noise"] = batch[:200] + bytes(40) + batch[240:]
    sealed = {name: good + seal(follow(good, batch)) + lz4 for name, batch in records.items()}
    # Two whole batches in the wrong order, and one that is there twice.
    orders = {"offsets-backwards": after + good, "offsets-twice": good + good}
    return {name: good + tail for name, tail in tails.items()} | sealed | orders


def batches(log: bytes) -> list[bytes]:
    """Split a sound segment at its batches."""
    found = []
    while log:
        size = LOG_OVERHEAD + int.from_bytes(log[BATCH_LENGTH:LOG_OVERHEAD], "big")
        found.append(log[:size])
        log = log[size:]
    return found


def patched(batch: bytes, at: int, layout: str, *values: int | bytes) -> bytes:
    """Return the batch with a field replaced, its checksum left as it was."""
    field = struct.pack(layout, *values)
    return batch[:at] + field + batch[at + len(field) :]


def follow(before: bytes, batch: bytes) -> bytes:
    """Return the batch with the base offset that comes next."""
    (delta,) = struct.unpack_from(">i", before, LAST_OFFSET_DELTA)
    (base,) = struct.unpack_from(">q", before, BASE_OFFSET)
    return patched(batch, BASE_OFFSET, ">q", base + delta + 1)


def widened(batch: bytes, at: int) -> bytes:
    """Return the batch with a varint of one byte written in three."""
    return batch[:at] + bytes([batch[at] | 0x80, 0x80, 0]) + batch[at + 1 :]


def seal(batch: bytes) -> bytes:
    """Return the batch with the length and the checksum that fit its bytes."""
    batch = patched(batch, BATCH_LENGTH, ">i", len(batch) - LOG_OVERHEAD)
    return patched(batch, CRC, ">I", crc32c.crc32c(batch[ATTRIBUTES:]))
