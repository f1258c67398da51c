"""What one pass over batches finds out for the next: a bit for each record, and one for each batch.

They are numbered in the order in which they go by. A record's bit is set where it is not to be
kept, a batch's where it has tombstones. So the next pass needs to read only those batches of which
some records stay and some do not, or tombstones might have to go.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.kernel import inlined, kernel
from kafkajit.records.batches import Batches
from kafkajit.records.decode import Chunk
from kafkajit.storage.source import Int64s, Mask

Bitmap = npt.NDArray[np.uint8]


class Superseded:
    """The bits of the records, and how many have gone by."""

    def __init__(self) -> None:
        self.bits: Bitmap = np.zeros(1, dtype=np.uint8)
        self._tombstones: Bitmap = np.zeros(1, dtype=np.uint8)
        self.rewind()

    def rewind(self) -> None:
        """Begin again with the first record; the bits stay."""
        self._records = self._batches = 0

    def take(self, counts: Int64s) -> int:
        """The number of the first record of the next batches, which have so many each."""
        first = self._records
        self._records += int(counts.sum())
        self._batches += counts.size
        self.bits = _with_room(self.bits, self._records)
        self._tombstones = _with_room(self._tombstones, self._batches)
        return first

    def note(self, chunk: Chunk) -> int:
        """The same of batches that have been read; remembers which have tombstones."""
        first_batch = self._batches
        first = self.take(chunk.counts)
        rows = np.flatnonzero(chunk.fields["valueSize"] < 0)
        if rows.size:
            of_chunk = np.searchsorted(np.cumsum(chunk.counts), rows, side="right")
            batches = first_batch + np.unique(of_chunk)
            np.bitwise_or.at(self._tombstones, batches >> 3, _bit(batches))
        return first

    def wanted(self, batches: Batches) -> Mask:
        """Which of the next batches have to be read: some of what is in them may have to go."""
        if batches.is_message.any():  # how many records they have is not known
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
    """Batches that are neither kept as they are nor left out, as far as the bits tell."""
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
    """Whether a bit is set, of the least significant first."""
    return bits[number >> 3] >> (number & 7) & 1 != 0


@inlined
def set_bit(bits, number):
    """Set one."""
    bits[number >> 3] |= np.uint8(1 << (number & 7))
