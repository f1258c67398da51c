"""Logs of formats v0 and v1, by our own builder: every codec, and what Kafka refuses of them.

Out: the bytes of one small segment for each, which Kafka 4.1.1's DumpLogSegments reads as well.
"""

from __future__ import annotations

import kafkajit.testing as kt

RECORDS = [
    kt.Record(key=b"k", value=b"v", timestamp=1000),
    kt.Record(value=b"no key" * 5, timestamp=500),
    kt.Record(key=b"deleted", timestamp=2000),
    kt.Record(key=b"", value=b""),
]
CODECS = ("none", "gzip", "snappy", "lz4")


def message_logs() -> dict[str, bytes]:
    """Return the segments by name."""
    first, second, *_ = RECORDS
    good = kt.message(first)
    refused = {
        "null-set": kt.message(kt.Record(key=b"k"), attributes=1, offset=1),
        "empty-set": kt.message_set([], codec="gzip", wrapper_offset=3),
        "zstd": kt.message_set(RECORDS, codec="zstd", base_offset=1),
        "unknown-codec": kt.message(first, attributes=6, offset=1),
        "nested": kt.message_set(
            [kt.message(first), kt.message_set(RECORDS, codec="gzip")],
            codec="gzip",
            wrapper_offset=9,
        ),
        "wrapper-offset": kt.message_set(RECORDS, codec="lz4", wrapper_offset=2),
        "inner-size": kt.message_set(
            [first, kt.message(first, size=13)], codec="gzip", wrapper_offset=9
        ),
        "inner-magic": kt.message_set([kt.batch(RECORDS)], codec="gzip", wrapper_offset=9),
        "no-key-size": kt.repair_crc(good[:8] + (14).to_bytes(4) + good[12:26]),
        "key-past-end": kt.message(kt.Record(key=b"k", key_size=100), offset=1),
    }
    return {
        **{
            f"v{magic}-{codec}": b"".join(
                kt.message_set(RECORDS, magic=magic, codec=codec, base_offset=base)
                for base in (70, 74)
            )
            for magic in (0, 1)
            for codec in CODECS
        },
        "append-time": (
            kt.message_set(RECORDS, codec="gzip", timestamp=9, timestamp_type=kt.LOG_APPEND_TIME)
            + kt.message_set(RECORDS, base_offset=4, timestamp_type=kt.LOG_APPEND_TIME)
        ),
        "mixed": (
            kt.message_set(RECORDS, magic=0)
            + kt.message_set(RECORDS, base_offset=4, codec="lz4")
            + kt.batch(RECORDS, base_offset=8, codec="zstd")
            + kt.message_set(RECORDS, base_offset=12)
        ),
        "wrapper-offset-0": kt.message_set(RECORDS, codec="gzip", wrapper_offset=0),
        "crc": good + kt.message(first, offset=1, crc=5) + kt.message_set(RECORDS, base_offset=2),
        "inner-crc": kt.message_set(
            [kt.message(first, crc=77), kt.message(second, offset=1)],
            codec="gzip",
            wrapper_offset=11,
        ),
        "inner-magics": kt.message_set(
            [kt.message(first, magic=0), kt.message(second, offset=1)],
            codec="gzip",
            wrapper_offset=5,
        ),
        "inner-part": kt.message_set(
            [first, kt.message(first, offset=1)[:20]], codec="gzip", wrapper_offset=5
        ),
        "torn": kt.message_set(RECORDS) + kt.message(first, offset=4)[:25],
        **{name: good + bad for name, bad in refused.items()},
    }
