"""Find the records that a later record of the same key supersedes, in bounded memory.

Answers to Kafka's SkimpyOffsetMap: the map knows keys by their hashes, and takes two keys for equal
if their hashes are. Kafka's hash is MD5. Ours is two polynomials over the field of 2**61 - 1, each
at a point that is chosen at random when the map is made. The map keeps 92 bits of the two. Two keys
of up to 7 * n bytes have the same hash with a chance of at most (n + 1)**2 in 2**92, even if an
attacker chose them, because the points are random and secret. Among 10 million keys of 16 bytes,
the chance that any two have the same hash is 1 in 6 * 10**12. The map would then drop an older
record of one of them.

Beside the hash the map keeps the number of the key's last record, counted from the first record
that was put, and not its offset. When the next record of that key comes, the record before it is
marked as superseded in a bitmap with one bit per record. So no record is looked up a second time.
Keys that do not fit into memory can wait for another pass from the start: a bit that is set stays
right.

A slot has two words. The first holds 64 bits of the hash, the second the other 28 bits above the
number, which counts from 1.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import multiply_high, prefetch, read_int64
from kafkajit.storage.source import Bytes
from kafkajit.upkeep.compact.record_bitmap import Bitmap, set_bit

Hashes = npt.NDArray[np.uint64]

_SLOT_BYTES = 16
# A full table is copied to one of four times its size; both are in memory meanwhile.
_GROWTH = 4
_LEAST_SLOTS = 16
# In a fuller table, a key that is not there takes more than 13 slots to miss.
_FULLEST = 0.8

_PRIME = 2**61 - 1
_WORD_BYTES = 7  # of a key: less than the prime
_NUMBER_BITS = 36
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1
# In place of the number: the record has no key, or is left out.
_NO_KEY, _LEFT_OUT = 1, 2
# Memory answers after about this many records.
_AHEAD = 12


class OffsetMap:
    """The hashes of keys with the number of each key's last record.

    The map looks only at keys whose hashes end in a suffix. Its table takes at most `max_bytes`. If
    that is not enough, `halve` leaves half of the keys for another pass.
    """

    def __init__(self, max_bytes: int) -> None:
        self._most_slots = max_bytes * _GROWTH // (_GROWTH + 1) // _SLOT_BYTES
        if self._most_slots < _LEAST_SLOTS:
            raise ValueError(f"{max_bytes} bytes are too few for a map of keys")
        self._points = np.array([_point(), _point()], dtype=np.uint64)
        self._hashes: Hashes = np.empty(0, dtype=np.uint64)
        self.restart(0, 0)

    def restart(self, suffix_bits: int, suffix: int) -> None:
        """Forget all keys, and look only at those with this suffix from now on."""
        slots = self._most_slots
        while slots // _GROWTH >= _LEAST_SLOTS:
            slots //= _GROWTH
        self._table: Hashes = np.zeros(2 * slots, dtype=np.uint64)
        self._suffix_bits, self._suffix = suffix_bits, suffix
        self._keys = 0

    def __len__(self) -> int:
        """The number of keys in the map."""
        return self._keys

    def hashes(
        self,
        content: Bytes,
        records: npt.NDArray[np.void],
        left_out: npt.NDArray[np.bool_] | None = None,
    ) -> Hashes:
        """Two words for the key of each record; valid until the next call.

        Records that are left out are neither put nor marked.
        """
        if self._hashes.size < 2 * records.size:
            self._hashes = np.empty(2 * records.size, dtype=np.uint64)
        hashes = self._hashes[: 2 * records.size]
        _hash_keys(content, records, self._points, hashes)
        if left_out is not None and left_out.any():
            hashes[1::2][left_out] = _LEFT_OUT
        return hashes

    def put(self, hashes: Hashes, first: int, superseded: Bitmap, start: int = 0) -> int:
        """Put records from row `start` on into the map, and mark the records they supersede.

        A record without a key is marked too: it is not kept. The first row is the record of number
        `first`.

        Returns:
            The row where the map stopped. It is before the end if that row's key has no room.
        """
        rows = hashes.size // 2
        if first + rows >= 2**_NUMBER_BITS:
            raise OverflowError(f"the map counts at most {2**_NUMBER_BITS} records")
        while True:
            row, self._keys = _put(
                *(hashes, start, first, superseded),
                *(self._table, self._keys, self._capacity, self._suffix_bits, self._suffix),
            )
            if row == rows or not self._grow():
                return int(row)
            start = row

    def find(self, hashes: Hashes, first: int, superseded: Bitmap) -> None:
        """Mark records, all older than those put, whose keys the map has or that have no key."""
        _find(hashes, first, superseded, self._table, self._suffix_bits, self._suffix)

    def halve(self) -> tuple[int, int]:
        """Drop every other key; return the suffix of the dropped keys, its number of bits first."""
        left_out = self._suffix | 1 << self._suffix_bits
        self._suffix_bits += 1
        self._keys -= _drop_others(self._table, self._suffix_bits, self._suffix)
        return self._suffix_bits, left_out

    @property
    def _capacity(self) -> int:
        return int(self._table.size // 2 * _FULLEST)

    def _grow(self) -> bool:
        slots = self._table.size // 2 * _GROWTH
        if slots > self._most_slots:
            return False
        table = np.zeros(2 * slots, dtype=np.uint64)
        _move(self._table, table)
        self._table = table
        return True


def _point() -> int:
    return secrets.randbelow(_PRIME - 1) + 1


@kernel
def _hash_keys(content, records, points, hashes):
    for row in range(records.size):
        size = np.int64(records[row]["keySize"])
        if size < 0:
            hashes[2 * row + 1] = np.uint64(_NO_KEY)
            continue
        first, second = _hash(content, np.int64(records[row]["key"]), size, points[0], points[1])
        hashes[2 * row] = _mixed(first | second << np.uint64(61))
        hashes[2 * row + 1] = second >> np.uint64(3) << np.uint64(_NUMBER_BITS)


@kernel
def _hash(content, start, size, first_point, second_point):
    """Both polynomials over the size, then every word of seven bytes."""
    first = second = np.uint64(size + 1)
    p, end = start, start + size
    last_wide = content.size - 8
    while p < end:
        rest = min(end - p, np.int64(_WORD_BYTES))
        if p <= last_wide:
            word = np.uint64(read_int64(content, p)) >> np.uint64(64 - 8 * rest)
        else:
            word = np.uint64(0)
            for i in range(rest):
                word = word << np.uint64(8) | np.uint64(content[p + i])
        first = _step(first, first_point, word)
        second = _step(second, second_point, word)
        p += rest
    return _reduced(first), _reduced(second)


@inlined
def _step(sum_, point, word):
    """The sum times the point plus the word, reduced to less than 2**62."""
    low = sum_ * point
    high = multiply_high(sum_, point)
    folded = (low & np.uint64(_PRIME)) + (high << np.uint64(3) | low >> np.uint64(61)) + word
    return (folded & np.uint64(_PRIME)) + (folded >> np.uint64(61))


@inlined
def _reduced(sum_):
    folded = (sum_ & np.uint64(_PRIME)) + (sum_ >> np.uint64(61))
    return folded if folded < np.uint64(_PRIME) else folded - np.uint64(_PRIME)


@inlined
def _mixed(word):
    """Mix a word so that every bit depends on every other (MurmurHash3's finalizer).

    Similar keys have similar sums, which would crowd them in one place of the table.
    """
    word = (word ^ word >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    word = (word ^ word >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ word >> np.uint64(33)


@inlined
def _home(word, table):
    """The slot where the search for a key begins."""
    return np.int64(multiply_high(word, np.uint64(table.size >> 1)))


@inlined
def _next(slot, table):
    slot += 1
    return slot if 2 * slot < table.size else np.int64(0)


@inlined
def _slot(word, tagged, table):
    """The slot of a key, or the free slot for it."""
    slot = _home(word, table)
    held = table[2 * slot + 1]
    while held != np.uint64(0) and (
        table[2 * slot] != word or (held ^ tagged) >> np.uint64(_NUMBER_BITS) != np.uint64(0)
    ):
        slot = _next(slot, table)
        held = table[2 * slot + 1]
    return slot


@inlined
def _is_other(tagged, suffix_bits, suffix):
    """Whether the map does not look at this key."""
    others = (tagged >> np.uint64(_NUMBER_BITS)) ^ np.uint64(suffix)
    return others & ((np.uint64(1) << np.uint64(suffix_bits)) - np.uint64(1)) != np.uint64(0)


@inlined
def _slot_of_row(hashes, row, first, superseded, table, suffix_bits, suffix):
    """The slot of a record's key, or -1 if the map does not look at it; marks one without a key."""
    if 2 * (row + _AHEAD) < hashes.size:
        prefetch(table, 2 * _home(hashes[2 * (row + _AHEAD)], table))
    word, tagged = hashes[2 * row], hashes[2 * row + 1]
    if tagged & np.uint64(_NUMBER_MASK):
        if tagged & np.uint64(_NO_KEY):
            set_bit(superseded, first + row)
        return np.int64(-1)
    if _is_other(tagged, suffix_bits, suffix):
        return np.int64(-1)
    return _slot(word, tagged, table)


@kernel
def _put(hashes, start, first, superseded, table, keys, capacity, suffix_bits, suffix):
    """Put records into the table; return the row where it stopped, and the number of keys."""
    rows = hashes.size >> 1
    for row in range(start, rows):
        slot = _slot_of_row(hashes, row, first, superseded, table, suffix_bits, suffix)
        if slot < 0:
            continue
        held = table[2 * slot + 1]
        if held == np.uint64(0):
            if keys >= capacity:
                return row, keys
            keys += 1
            table[2 * slot] = hashes[2 * row]
        else:
            set_bit(superseded, np.int64(held & np.uint64(_NUMBER_MASK)) - 1)
        table[2 * slot + 1] = hashes[2 * row + 1] | np.uint64(first + row + 1)
    return rows, keys


@kernel
def _find(hashes, first, superseded, table, suffix_bits, suffix):
    for row in range(hashes.size >> 1):
        slot = _slot_of_row(hashes, row, first, superseded, table, suffix_bits, suffix)
        if slot >= 0 and table[2 * slot + 1] != np.uint64(0):
            set_bit(superseded, first + row)


@kernel
def _move(table, larger):
    """Copy every key to a larger table."""
    for old in range(table.size >> 1):
        if table[2 * old + 1] != np.uint64(0):
            slot = _home(table[2 * old], larger)
            while larger[2 * slot + 1] != np.uint64(0):
                slot = _next(slot, larger)
            larger[2 * slot] = table[2 * old]
            larger[2 * slot + 1] = table[2 * old + 1]


@kernel
def _drop_others(table, suffix_bits, suffix):
    """Remove the keys that the map no longer looks at, and return their number."""
    dropped = 0
    for slot in range(table.size >> 1):
        while table[2 * slot + 1] != np.uint64(0) and _is_other(
            table[2 * slot + 1], suffix_bits, suffix
        ):
            _take_out(table, slot)
            dropped += 1
    return dropped


@kernel
def _take_out(table, hole):
    """Empty a slot, and move up the keys behind it that it had pushed back."""
    slots = table.size >> 1
    slot = _next(hole, table)
    while table[2 * slot + 1] != np.uint64(0):
        behind_home = slot - _home(table[2 * slot], table)
        behind_hole = slot - hole
        if behind_home < 0:
            behind_home += slots
        if behind_hole < 0:
            behind_hole += slots
        if behind_home >= behind_hole:
            table[2 * hole] = table[2 * slot]
            table[2 * hole + 1] = table[2 * slot + 1]
            hole = slot
        slot = _next(slot, table)
    table[2 * hole + 1] = np.uint64(0)
