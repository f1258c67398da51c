"""The savings of other codecs, levels and batch sizes: a sample of records is encoded anew."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import pyarrow as pa

from kafkajit.encode.writer import encode_batches
from kafkajit.reader import read_records

DAY = 86_400_000  # milliseconds
# The retentions that a report shows.
DAYS = (1, 3, 7, 14, 30, 90, 365)


class Encoding(NamedTuple):
    """A way to write records."""

    codec: str
    level: int | None
    batch_size: int


# Kafka's own levels, the quickest of zstd and a thorough one; batch.size of Kafka's producers, as
# it is by default and as larger ones are chosen.
_LEVELS: tuple[tuple[str, int | None], ...] = (
    ("none", None),
    ("snappy", None),
    ("lz4", None),
    ("gzip", None),
    ("zstd", 1),
    ("zstd", 3),
    ("zstd", 9),
)
_BATCH_SIZES = (16 << 10, 128 << 10, 1 << 20)
ENCODINGS = tuple(Encoding(codec, level, size) for size in _BATCH_SIZES for codec, level in _LEVELS)


def measured_in_all(
    records: pa.Table, encodings: Sequence[Encoding] = ENCODINGS
) -> list[dict[str, Any]]:
    """The measurements of all encodings, without the seconds in which kernels compile."""
    for codec, level in _LEVELS:
        measured(records.slice(0, 1), Encoding(codec, level, _BATCH_SIZES[0]))
    return [measured(records, encoding) for encoding in encodings]


def measured(records: pa.Table, encoding: Encoding) -> dict[str, Any]:
    """The bytes of records in an encoding, and the processor time to write and to read them."""
    begun = time.process_time()
    encoded = encode_batches(
        records,
        compression_type=cast("Any", encoding.codec),
        compression_level=encoding.level,
        batch_size=encoding.batch_size,
    )
    written = time.process_time()
    read_records(encoded, columns=["key", "value"], threads=1)
    return {
        "codec": encoding.codec,
        "level": encoding.level,
        "batchBytes": encoding.batch_size,
        "bytes": encoded.size,
        "encodeSeconds": round(written - begun, 6),
        "decodeSeconds": round(time.process_time() - written, 6),
    }


def retention(segments: list[tuple[int, int | None]], now: int) -> list[dict[str, int]]:
    """The bytes of segments whose newest record is older than some days.

    >>> retention([(100, 0), (50, 10 * 86_400_000)], 15 * 86_400_000)[1:4]
    [{'days': 3, 'bytes': 150}, {'days': 7, 'bytes': 100}, {'days': 14, 'bytes': 100}]
    """
    return [
        {
            "days": days,
            "bytes": sum(
                size
                for size, newest in segments
                if newest is not None and newest < now - days * DAY
            ),
        }
        for days in DAYS
    ]
