"""Which records are followed by another of the same key, found in bounded memory.

Answers to Kafka's SkimpyOffsetMap: keys are known by their hash, and taken for equal where the
hashes are. Kafka's is MD5. Ours is two polynomials over the field of 2**61 - 1, each at a point
that is chosen at random when the map is made; 92 bits of the two are kept. Whatever two keys of up
to 7 * n bytes are, they are taken for the same with a chance of at most (n + 1)**2 in 2**92, since
nobody who writes keys knows the points. Among 10 million keys of 16 bytes that any two are is one
chance in 6 * 10**12; what it would mean is that an older record of the one is dropped.

What is kept beside the hash is not the key's last offset but the number of its last record, counted
from the first that was put. When the next one of that key comes, the one before is marked as
superseded, in a bitmap with a bit for each record. So records are not looked up a second time, and
keys that do not fit can be gone through later, from the start: what is marked once stays right.

A slot is two words: 64 bits of the hash; the other 28 above the number, which counts from 1.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import multiply_high, prefetch, read_int64
from kafkajit.storage.source import Bytes
from kafkajit.upkeep.compact.record_bitmap import Bitmap, set_bit

Words = npt.NDArray[np.uint64]

_SLOT_BYTES = 16
# A table that is full gives way to one of four times its size; both are there for a moment.
_GROWTH = 4
_LEAST_SLOTS = 16
# Fuller, it takes more than 13 slots to find out that a key is not there.
_FULLEST = 0.8

_PRIME = 2**61 - 1
_WORD_BYTES = 7  # of a key: less than the prime
_NUMBER_BITS = 36
# In the number's place, of a record without a key, and of one that is left out.
_NO_KEY, _LEFT_OUT = 1, 2
# Memory answers after about as many records.
_AHEAD = 12


class OffsetMap:
    """Hashes of keys, and the number of the last record of each.

    Only keys whose hash ends in a suffix are looked at. `max_bytes` is what the table may take;
    where that is not enough, `halve` leaves half of the keys for another time.
    """

    def __init__(self, max_bytes: int) -> None:
        self._most_slots = max_bytes * _GROWTH // (_GROWTH + 1) // _SLOT_BYTES
        if self._most_slots < _LEAST_SLOTS:
            raise ValueError(f"{max_bytes} bytes are too few for a map of keys")
        self._points = np.array([_point(), _point()], dtype=np.uint64)
        self._hashes: Words = np.empty(0, dtype=np.uint64)
        self.restart(0, 0)

    def restart(self, suffix_bits: int, suffix: int) -> None:
        """Forget all, and look at the keys with this suffix."""
        slots = self._most_slots
        while slots // _GROWTH >= _LEAST_SLOTS:
            slots //= _GROWTH
        self._table: Words = np.zeros(2 * slots, dtype=np.uint64)
        self._suffix_bits, self._suffix = suffix_bits, suffix
        self._keys = 0

    def __len__(self) -> int:
        """Keys that are there."""
        return self._keys

    def hashes(
        self,
        content: Bytes,
        records: npt.NDArray[np.void],
        left_out: npt.NDArray[np.bool_] | None = None,
    ) -> Words:
        """Two words for the key of each record; good until it is called again.

        Records that are left out are neither put nor marked.
        """
        if self._hashes.size < 2 * records.size:
            self._hashes = np.empty(2 * records.size, dtype=np.uint64)
        hashes = self._hashes[: 2 * records.size]
        _hash_keys(content, records, self._points, hashes)
        if left_out is not None and left_out.any():
            hashes[1::2][left_out] = _LEFT_OUT
        return hashes

    def put(self, hashes: Words, first: int, superseded: Bitmap, start: int = 0) -> int:
        """Take in records from row `start` on, and mark those that they supersede.

        A record without a key is superseded by nothing, and marked all the same: it is not kept.
        The first row is the record of number `first`. Returns the row where it stopped: before the
        end only where there is no room for that row's key.
        """
        rows = hashes.size // 2
        if first + rows >= 2**_NUMBER_BITS:
            raise OverflowError(f"more than {2**_NUMBER_BITS} records are not counted")
        while True:
            row, self._keys = _put(
                *(hashes, start, first, superseded),
                *(self._table, self._keys, self._capacity, self._suffix_bits, self._suffix),
            )
            if row == rows or not self._grow():
                return int(row)
            start = row

    def find(self, hashes: Words, first: int, superseded: Bitmap) -> None:
        """Mark the records whose keys are here, older than all that were put, or that have none."""
        _find(hashes, first, superseded, self._table, self._suffix_bits, self._suffix)

    def halve(self) -> tuple[int, int]:
        """Look at every other key only; the suffix of those that are left out, bits first."""
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
    """Both polynomials: the size, then every word, seven bytes each."""
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
    """The sum times the point, and the word; reduced to less than 2**62."""
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
    """The word with every bit depending on every other (MurmurHash3's finalizer).

    Keys that differ little have sums that differ little, which would crowd them in one place.
    """
    word = (word ^ word >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    word = (word ^ word >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ word >> np.uint64(33)


@inlined
def _home(word, table):
    """The slot where a key is looked for first."""
    return np.int64(multiply_high(word, np.uint64(table.size >> 1)))


@inlined
def _next(slot, table):
    slot += 1
    return slot if 2 * slot < table.size else np.int64(0)


@inlined
def _slot(word, tagged, table):
    """The slot of a key, or the free one where it is to be."""
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
    """Whether it is a key that is not looked at."""
    others = (tagged >> np.uint64(_NUMBER_BITS)) ^ np.uint64(suffix)
    return others & ((np.uint64(1) << np.uint64(suffix_bits)) - np.uint64(1)) != np.uint64(0)


@kernel
def _put(hashes, start, first, superseded, table, keys, capacity, suffix_bits, suffix):
    """(row where it stopped, keys that are there then)."""
    rows = hashes.size >> 1
    number_mask = np.uint64((1 << _NUMBER_BITS) - 1)
    for row in range(start, rows):
        if row + _AHEAD < rows:
            prefetch(table, 2 * _home(hashes[2 * (row + _AHEAD)], table))
        word, tagged = hashes[2 * row], hashes[2 * row + 1]
        if tagged & number_mask:
            if tagged & np.uint64(_NO_KEY):
                set_bit(superseded, first + row)
            continue
        if _is_other(tagged, suffix_bits, suffix):
            continue
        slot = _slot(word, tagged, table)
        held = table[2 * slot + 1]
        if held == np.uint64(0):
            if keys >= capacity:
                return row, keys
            keys += 1
            table[2 * slot] = word
        else:
            set_bit(superseded, np.int64(held & number_mask) - 1)
        table[2 * slot + 1] = tagged | np.uint64(first + row + 1)
    return rows, keys


@kernel
def _find(hashes, first, superseded, table, suffix_bits, suffix):
    rows = hashes.size >> 1
    number_mask = np.uint64((1 << _NUMBER_BITS) - 1)
    for row in range(rows):
        if row + _AHEAD < rows:
            prefetch(table, 2 * _home(hashes[2 * (row + _AHEAD)], table))
        word, tagged = hashes[2 * row], hashes[2 * row + 1]
        if tagged & number_mask:
            if tagged & np.uint64(_NO_KEY):
                set_bit(superseded, first + row)
            continue
        if _is_other(tagged, suffix_bits, suffix):
            continue
        if table[2 * _slot(word, tagged, table) + 1] != np.uint64(0):
            set_bit(superseded, first + row)


@kernel
def _move(table, larger):
    """Every key to a larger table."""
    for old in range(table.size >> 1):
        if table[2 * old + 1] != np.uint64(0):
            slot = _home(table[2 * old], larger)
            while larger[2 * slot + 1] != np.uint64(0):
                slot = _next(slot, larger)
            larger[2 * slot] = table[2 * old]
            larger[2 * slot + 1] = table[2 * old + 1]


@kernel
def _drop_others(table, suffix_bits, suffix):
    """Take out the keys that are no longer looked at; how many those were."""
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
    """Empty a slot; keys behind it that were looked for there first move up."""
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
