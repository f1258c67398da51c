"""The binary files beside a log: snapshots of producers and the three kinds of indexes."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from crc32c import crc32c


@dataclass(frozen=True)
class Producer:
    """An entry of a snapshot; a producer without a batch has -1 as its last offset."""

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
    """Build a .snapshot file.

    Args:
        producers: its entries.
        version: the format's version; Kafka writes 1.
        count: overrides the number of entries.
        tail: bytes behind the entries.
        crc: overrides the right checksum.

    >>> len(producer_snapshot([Producer(1), Producer(2)]))
    102
    """
    entries = [struct.pack(">qhiqiqiq", *astuple(producer)) for producer in producers]
    checked = struct.pack(">i", len(entries) if count is None else count) + b"".join(entries) + tail
    return struct.pack(">hI", version, crc32c(checked) if crc is None else crc) + checked


def offset_index(entries: Iterable[tuple[int, int]]) -> bytes:
    """Build an .index file from relative offsets and positions.

    >>> offset_index([(9, 4096)]).hex(" ", 4)
    '00000009 00001000'
    """
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def time_index(entries: Iterable[tuple[int, int]]) -> bytes:
    """Build a .timeindex file from timestamps in milliseconds and relative offsets.

    >>> time_index([(100, 9)]).hex(" ", 4)
    '00000000 00000064 00000009'
    """
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def transaction_index(entries: Iterable[tuple[int, int, int, int]]) -> bytes:
    """Build a .txnindex file from producer ids, first, last and last stable offsets.

    >>> len(transaction_index([(4711, 23, 25, 26)]))
    34
    """
    return b"".join(struct.pack(">hqqqq", 0, *entry) for entry in entries)
