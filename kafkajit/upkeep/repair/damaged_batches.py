"""The batches that damaged bytes may have had, read from their headers.

Nothing proves such a header. It counts only if it fits the offsets that are missing.
"""

from __future__ import annotations

import re
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
from kafkajit.storage.source import open_file
from kafkajit.upkeep.repair.wrong_bit import without_wrong_bit

_MOST_OF_A_MARKER = 100  # most have 78 bytes
_MOST_BYTES = 64 << 20  # of damaged bytes that are looked at
# The only record of a marker's batch: its key has a version and the type, its value a version and
# the coordinator's epoch (EndTransactionMarker).
_MARKER = re.compile(
    rb".\x00..?\x00\x08\x00\x00\x00(?P<type>[\x00\x01])\x0c\x00\x00(?P<epoch>.{4})\x00",
    re.DOTALL,
)


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
    wrong_bits: int | None  # of which the checksum knows; None: more than one

    @property
    def may_be_marker(self) -> bool:
        """Whether it may have been a marker, although its header has data."""
        is_unsure = self.wrong_bits is None and self.first == self.last
        return is_unsure and len(self.content) <= _MOST_OF_A_MARKER

    @property
    def is_unproved_control(self) -> bool:
        """Whether it seems to be a marker, perhaps of another producer than its header has."""
        return self.wrong_bits is None and self.is_control


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
    with open_file(log) as file:
        file.seek(position)
        content = file.read(min(length, _MOST_BYTES))
    found = []
    expected = first
    for batch in _headers(content, position):
        if batch.first != expected or (last is not None and batch.last > last):
            return []
        if last is None and batch.wrong_bits is None:
            # Neither number is proved, and no batch behind bounds them.
            batch = batch._replace(last=min(batch.last, batch.first + max(batch.records - 1, 0)))
        found.append(batch)
        expected = batch.last + 1
    if last is not None and expected != last + 1:
        return []
    return found


def _headers(content: bytes, position: int) -> Iterator[DamagedBatch]:
    start = 0
    while start + RECORD_BATCH_OVERHEAD <= len(content):
        header = np.frombuffer(content[start : start + RECORD_BATCH_OVERHEAD], BATCH_HEADER)[0]
        size = int(header["batchLength"]) + LOG_OVERHEAD
        whole, wrong_bits = without_wrong_bit(content[start : start + max(size, 0)])
        if len(whole) >= RECORD_BATCH_OVERHEAD:
            header = np.frombuffer(whole[:RECORD_BATCH_OVERHEAD], BATCH_HEADER)[0]
        first, delta = int(header["baseOffset"]), int(header["lastOffsetDelta"])
        count, attributes = int(header["recordsCount"]), int(header["attributes"])
        is_control = bool(attributes & CONTROL_MASK)
        if is_control and wrong_bits is None and size <= _MOST_OF_A_MARKER:
            delta = 0  # a marker has one offset, whatever the damaged header has
        if (
            header["magic"] != MAGIC_V2
            or size < RECORD_BATCH_OVERHEAD
            or delta < 0
            or not 0 <= count <= delta + 1
        ):
            return
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
            whole,
            wrong_bits,
        )
        start += size


class DamagedMarker(NamedTuple):
    """A marker as the bytes of a damaged batch have it."""

    control_type: int
    coordinator_epoch: int
    wrong_bits: int | None  # so many that the checksum is right without them; None: more than one


def marker_in(batch: DamagedBatch) -> DamagedMarker | None:
    """The commit or abort marker in a damaged batch; None if its bytes are not those of one."""
    found = _MARKER.fullmatch(batch.content[RECORD_BATCH_OVERHEAD:])
    if found is None:
        return None
    epoch = int.from_bytes(found["epoch"], signed=True)
    return DamagedMarker(int.from_bytes(found["type"]), epoch, batch.wrong_bits)
