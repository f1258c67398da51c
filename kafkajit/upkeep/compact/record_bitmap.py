"""A bit for each record and each batch: what one pass over a log finds out for the next.

Records and batches are numbered in the order of the log. A record's bit is set if the record is
superseded, a batch's bit if the batch has tombstones. The next pass then reads only batches that
lose some of their records, or whose tombstones may have to go.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.kernel import inlined, kernel
from kafkajit.records.batches import Batches
from kafkajit.records.chunk import Chunk
from kafkajit.storage.source import Int64s, Mask

Bitmap = npt.NDArray[np.uint8]


class RecordBitmap:
    """The bits of records, and the number of records so far."""

    def __init__(self) -> None:
        self.bits: Bitmap = np.zeros(1, dtype=np.uint8)
        self._tombstones: Bitmap = np.zeros(1, dtype=np.uint8)
        self.rewind()

    def rewind(self) -> None:
        """Go back to the first record; the bits stay."""
        self._records = self._batches = 0

    def take(self, counts: Int64s) -> int:
        """Count the records of the next batches, and return the number of their first record."""
        first = self._records
        self._records += int(counts.sum())
        self._batches += counts.size
        self.bits = _with_room(self.bits, self._records)
        self._tombstones = _with_room(self._tombstones, self._batches)
        return first

    def note(self, chunk: Chunk) -> int:
        """Do the same for batches that have been read, and note which have tombstones."""
        first_batch = self._batches
        first = self.take(chunk.counts)
        rows = np.flatnonzero(chunk.fields["valueSize"] < 0)
        if rows.size:
            of_chunk = np.searchsorted(np.cumsum(chunk.counts), rows, side="right")
            batches = first_batch + np.unique(of_chunk)
            np.bitwise_or.at(self._tombstones, batches >> 3, _bit(batches))
        return first

    def wanted(self, batches: Batches) -> Mask:
        """Find the next batches that have to be read, because some of their records may go."""
        if batches.is_message.any():  # their headers do not have the number of records
            return np.ones(len(batches), dtype=np.bool_)
        wanted = batches.is_control.copy()
        counts = batches.field("recordsCount")
        _find_mixed(counts, self.bits, self._records, self._tombstones, self._batches, wanted)
        return wanted


def _with_room(bits: Bitmap, count: int) -> Bitmap:
    if count <= 8 * bits.size:
        return bits
    grown = np.zeros(count // 4 + 1, dtype=np.uint8)  # twice as many as are needed
    grown[: bits.size] = bits
    return grown


def _bit(numbers: Int64s) -> Bitmap:
    return (1 << (numbers & 7)).astype(np.uint8)


@kernel
def _find_mixed(counts, bits, record, tombstones, first_batch, wanted):
    """Find batches that, by the bits, neither stay as they are nor go."""
    for batch in range(counts.size):
        behind = record + counts[batch]
        if not wanted[batch] and record < behind:
            is_superseded = is_set(bits, record)
            while record < behind and is_set(bits, record) == is_superseded:
                record += 1
            has_tombstones = is_set(tombstones, first_batch + batch)
            wanted[batch] = record < behind or (has_tombstones and not is_superseded)
        record = behind


@inlined
def is_set(bits, number):
    """Whether a bit is set; the least significant bit of a byte is its first."""
    return bits[number >> 3] >> (number & 7) & 1 != 0


@inlined
def set_bit(bits, number):
    """Set a bit."""
    bits[number >> 3] |= np.uint8(1 << (number & 7))
