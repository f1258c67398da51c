"""Decide which batches of a damaged segment stay, and why the others go.

Answers to LogSegment.recover of Kafka 4.1.1, which keeps the batches before the first one that is
cut short or has a wrong checksum. Kafka checks offsets only when it adds an index entry, and then
throws the whole segment away or gives up the log. Here a batch whose offsets are not behind those
before it is as bad as one with a wrong checksum.

Salvaging keeps every other sound batch: only the bad batch goes, not the batches behind it. Of
batches whose offsets contradict one another, as many as possible stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from kafkajit.errors import KafkaJitError
from kafkajit.kernel import kernel
from kafkajit.records.batches import Batches, frame
from kafkajit.storage.source import Int64s, Source
from kafkajit.walk.damage import DROPMALFORMED, FAILFAST, Gap
from kafkajit.walk.tail import only_zeros
from kafkajit.walk.walk import Walk


class Bounds(NamedTuple):
    """The offsets that a segment may have."""

    first: int
    behind: int  # offsets from here on do not belong to it
    why: str  # the reason for that, as a plan shows it


@dataclass
class BatchTriage:
    """One pass over a segment: iterate over the batches that stay, then see what went.

    If the segment `contradicts` itself, because offsets occur twice or go back, the batches of this
    pass mean nothing. Iterate over the triage that `resolved` returns instead.
    """

    source: Source
    bounds: Bounds
    salvage: bool
    contradicting: Int64s | None = None  # positions of the batches that `resolved` drops

    def __post_init__(self) -> None:
        self.bad: list[Gap] = []  # in the order of their positions
        self.contradicts = False
        self.is_cut = False  # damage ends the segment: everything behind it is lost
        self.was_early = False  # some batches are from before its offsets
        self._has_begun = False
        self._last_offset = self.bounds.first - 1
        self._is_behind = False
        self._has_ended = False

    def __iter__(self) -> Iterator[Batches]:
        walk = self._walk()
        try:
            for part in walk.checked():
                if isinstance(part, Gap):
                    self.bad.append(part)
                else:
                    yield from self._sorted_out(part)
                if self._has_ended:
                    return
                self.source.forget(walk.position)
        except KafkaJitError as error:
            self._end(walk.position, f"{type(error).__name__}: {error.message}")
            return
        if walk.position < self.source.content.size:
            is_padding = only_zeros(self.source, walk.position)
            self._end(walk.position, "zeros" if is_padding else "an incomplete batch")

    def reject(self, batches: Batches, row: int, reason: str) -> None:
        """Reject one of the yielded batches although its checksum is right."""
        if self.salvage:
            self._skip(batches[row : row + 1], reason)
        else:
            self._end(int(batches.position[row]), reason)

    @property
    def lost_batches(self) -> int:
        """The number of sound batches behind the damage that ends the segment."""
        if not self.is_cut:
            return 0
        position = self.bad[-1].position
        behind = sound_batches(self.source, position)
        first = frame(self.source.content, position, max_records=1).batches[:1]
        # A batch whose offsets contradict others is bad although its checksum is right.
        return behind - int(first.is_valid(self.source.content).sum())

    def resolved(self) -> Self:
        """A triage that drops batches until no offsets contradict one another."""
        columns: list[tuple[Int64s, ...]] = []
        walk = self._walk()
        try:
            for part in walk.checked():
                if not isinstance(part, Gap):
                    columns.append((part.position, part.header["baseOffset"], part.last_offset))
                self.source.forget(walk.position)
        except KafkaJitError:
            pass  # the damage ends the segment; iterating reports it
        position, first, last = map(np.concatenate, zip(*columns, strict=True))
        is_early, is_late = first < self.bounds.first, last >= self.bounds.behind
        fits = np.flatnonzero(~is_early & ~is_late & (first <= last))
        # Batches before and behind these go anyway.
        begin = int(np.argmin(is_early))
        finish = position.size - int(np.argmin(is_late[::-1]))
        goes = np.zeros(position.size, dtype=np.bool_)
        goes[begin:finish] = True
        goes[fits[longest_chain(first[fits], last[fits])]] = False
        return type(self)(self.source, self.bounds, self.salvage, position[goes])

    def _walk(self) -> Walk:
        # Kafka recovers every segment as if it were the last: an incomplete batch at its end goes.
        mode = DROPMALFORMED if self.salvage else FAILFAST
        return Walk(self.source, mode=mode, is_last=True)

    def _sorted_out(self, batches: Batches) -> Iterator[Batches]:
        """The batches that stay, of some with right checksums."""
        batches = self._without_early(batches)
        if not len(batches):
            return
        if self.contradicting is not None:
            yield from self._consistent(batches, self.contradicting)
            return
        first, last = batches.header["baseOffset"], batches.last_offset
        before = np.append(self._last_offset, last[:-1])
        if (first <= before).any() or (last < first).any():
            self.contradicts = self._has_ended = True
            return
        self._last_offset = int(last[-1])
        yield from self._without_late(batches)

    def _without_early(self, batches: Batches) -> Batches:
        if self._has_begun:
            return batches
        early = batches.header["baseOffset"] < self.bounds.first
        begin = len(batches) if early.all() else int(np.argmin(early))
        self._has_begun = begin < len(batches)
        if begin:
            self.was_early = True
            self._skip(
                batches[:begin],
                f"its offsets are before {self.bounds.first}, where its segment begins",
            )
        return batches[begin:]

    def _without_late(self, batches: Batches) -> Iterator[Batches]:
        late = batches.last_offset >= self.bounds.behind
        end = int(np.argmax(late)) if late.any() else len(batches)
        if end:
            yield batches[:end]
        if end < len(batches) and not self._has_ended:
            self._is_behind = True
            self._skip(batches[end:], self.bounds.why)

    def _consistent(self, batches: Batches, contradicting: Int64s) -> Iterator[Batches]:
        reason = "InvalidOffsetError: its offsets contradict those of other batches"
        done = 0
        for row in np.flatnonzero(np.isin(batches.position, contradicting)).tolist():
            if row > done:
                yield from self._without_late(batches[done:row])
            if self._has_ended:
                return
            self.reject(batches, row, reason)
            if self._has_ended:
                return
            done = row + 1
        if done < len(batches):
            yield from self._without_late(batches[done:])

    def _skip(self, batches: Batches, reason: str) -> None:
        """Drop consecutive batches."""
        start, end = int(batches.position[0]), int(batches.end[-1])
        last = self.bad[-1] if self.bad else None
        if last and last.position + last.length == start and last.reason == reason:
            self.bad.pop()
            start = last.position
        self.bad.append(Gap(self.source.path, start, end - start, reason))

    def _end(self, position: int, reason: str) -> None:
        """Drop everything from this position on."""
        self._has_ended = True
        # Damage behind the segment's own offsets costs none of them.
        self.is_cut = not self.salvage and not self._is_behind
        length = self.source.content.size - position
        self.bad.append(Gap(self.source.path, position, length, reason))


def sound_batches(source: Source, start: int = 0) -> int:
    """The number of batches from this position on whose checksums are right."""
    walk = Walk(source, mode=DROPMALFORMED, start=start, is_last=True)
    count = 0
    for part in walk.checked():
        count += 0 if isinstance(part, Gap) else len(part)
        source.forget(walk.position)
    return count


def longest_chain(first: Int64s, last: Int64s) -> npt.NDArray[np.int64]:
    """The rows of the longest chain of intervals that each lie behind the one before.

    Of several such chains it is the first.

    >>> longest_chain(np.array([0, 90, 5, 7]), np.array([4, 93, 6, 9])).tolist()
    [0, 2, 3]
    >>> longest_chain(np.array([5, 0]), np.array([9, 4])).tolist()
    [0]
    """
    rows = np.empty(first.size, dtype=np.int64)
    lengths = np.empty(first.size, dtype=np.int64)
    first, last = first.astype(np.int64), last.astype(np.int64)
    # Negated and in reverse order, chains are chains again.
    _measure_chains(-last[::-1], -first[::-1], rows, lengths)
    count = _take_chain(first, last, lengths[::-1], rows)
    return rows[:count]


@kernel
def _measure_chains(first, last, ends, lengths):
    """Measure the longest chain that ends with each row.

    `ends` holds the earliest end of all chains of each length so far.
    """
    longest = np.int64(0)
    for row in range(first.size):
        low, high = np.int64(0), longest
        while low < high:
            middle = (low + high) // 2
            if ends[middle] < first[row]:
                low = middle + 1
            else:
                high = middle
        if low == longest or last[row] < ends[low]:
            ends[low] = last[row]
        longest = max(longest, low + 1)
        lengths[row] = low + 1


@kernel
def _take_chain(first, last, lengths, rows):
    """Write the rows of the first of the longest chains, and return their number."""
    left = np.int64(0)
    for row in range(lengths.size):
        left = max(left, lengths[row])
    count = np.int64(0)
    for row in range(lengths.size):
        if lengths[row] == left - count and (count == 0 or first[row] > last[rows[count - 1]]):
            rows[count] = row
            count += 1
    return count
