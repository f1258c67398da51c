"""The batches that damaged bytes may have had, read from their headers.

Nothing proves such a header. It counts only if it fits the offsets that are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kafkajit.format.layout import (
    BATCH_HEADER,
    CONTROL_MASK,
    LOG_OVERHEAD,
    MAGIC_V2,
    RECORD_BATCH_OVERHEAD,
    TRANSACTIONAL_MASK,
)

_MOST_BYTES = 64 << 20  # of damaged bytes that are looked at


class DamagedBatch(NamedTuple):
    """A header in damaged bytes."""

    position: int
    size: int
    first: int
    last: int
    records: int  # 0 for a marker
    is_control: bool
    is_transactional: bool
    producer_id: int
    producer_epoch: int
    content: bytes


def damaged_batches(
    log: Path, position: int, length: int, first: int, last: int | None
) -> list[DamagedBatch]:
    """The batches that these bytes had, if they account for all missing offsets; else none.

    Args:
        log: the damaged log.
        position: where the damaged bytes begin.
        length: their number.
        first: the first missing offset.
        last: the last one, or None if the log ends with the damage.
    """
    with log.open("rb") as file:
        file.seek(position)
        content = file.read(min(length, _MOST_BYTES))
    found = []
    expected = first
    for batch in _headers(content, position):
        if batch.first != expected or (last is not None and batch.last > last):
            return []
        found.append(batch)
        expected = batch.last + 1
    if last is not None and expected != last + 1:
        return []
    return found


def _headers(content: bytes, position: int) -> Iterator[DamagedBatch]:
    start = 0
    while start + RECORD_BATCH_OVERHEAD <= len(content):
        head = content[start : start + RECORD_BATCH_OVERHEAD]
        header = np.frombuffer(head, BATCH_HEADER)[0]
        size = int(header["batchLength"]) + LOG_OVERHEAD
        first, delta = int(header["baseOffset"]), int(header["lastOffsetDelta"])
        count, attributes = int(header["recordsCount"]), int(header["attributes"])
        if (
            header["magic"] != MAGIC_V2
            or size < RECORD_BATCH_OVERHEAD
            or delta < 0
            or not 0 <= count <= delta + 1
        ):
            return
        is_control = bool(attributes & CONTROL_MASK)
        yield DamagedBatch(
            position + start,
            size,
            first,
            first + delta,
            0 if is_control else count,
            is_control,
            bool(attributes & TRANSACTIONAL_MASK),
            int(header["producerId"]),
            int(header["producerEpoch"]),
            content[start : start + size],
        )
        start += size
