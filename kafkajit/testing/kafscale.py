"""Segments of KafScale: batches between a head and a footer."""

from __future__ import annotations

import struct

from crc32c import crc32c


def kafscale_segment(
    batches: bytes,
    base_offset: int,
    last_offset: int,
    records: int,
    *,
    created: int = 1_700_000_000_000,
    version: int = 1,
    crc: int | None = None,
) -> bytes:
    """Build a segment of KafScale's, segment-00000000000000000042.kfs.

    Args:
        batches: its batches, one behind the other.
        base_offset: the first offset of the first batch.
        last_offset: the last offset of the last batch.
        records: the number of their records.
        created: the time of its creation, in milliseconds.
        version: the format's version; KafScale writes 1.
        crc: overrides the right checksum of the batches.

    >>> from kafkajit.testing import Record, batch
    >>> segment = kafscale_segment(batch([Record(value=b"v")], base_offset=42), 42, 42, 1)
    >>> segment[:4], segment[-4:], len(segment)
    (b'KAFS', b'END!', 117)
    """
    head = b"KAFS" + struct.pack(">HHqiqI", version, 0, base_offset, records, created, 0)
    footer = struct.pack(">Iq", crc32c(batches) if crc is None else crc, last_offset) + b"END!"
    return head + batches + footer
