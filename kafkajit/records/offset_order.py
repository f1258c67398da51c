"""Batches whose offsets do not follow each other.

No checksum covers a batch's base offset. A log's offsets grow from batch to batch, with holes where
compaction has removed some. So a batch that goes back has a wrong base offset, or the one before
it, which has leapt. That one fits in between its neighbours, and the wrong one does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kafkajit.errors import CorruptRecordError
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.format.log_path import parse_log_path
from kafkajit.format.ranges import ALL, Range
from kafkajit.records.batches import Batches, Framing, SingleMessages, frame
from kafkajit.storage.source import Bytes, Int64s, Mask


class Misplaced(NamedTuple):
    """The error of a batch that does not fit, and the position of its end."""

    error: CorruptRecordError
    end: int


class OffsetOrder:
    """The offsets of a log's batches, run by run; sets of messages are taken as they are.

    Args:
        path: of the log.
        between: the offsets between what is read before these and behind them, if it is known.
        base: the offset in a segment's name, before which it may begin.
        is_inside: whether others of its segment may lie before the first batch, but not before
            `between`.
    """

    def __init__(
        self,
        path: str | None,
        between: Range = ALL,
        base: int | None = None,
        *,
        is_inside: bool = False,
    ) -> None:
        self._path = path
        first = None if between.first == MIN_INT64 else between.first
        self._is_by_name = first is None and base is not None
        self._is_inside = is_inside
        self._base = base  # until the first batch has been compared with it
        first = base if first is None else first
        self._last = None if first is None else first - 1
        self._maximum = between.last
        self._last_batch: Batches | None = None  # that has this offset

    @classmethod
    def from_position(cls, path: str, between: Range, position: int) -> OffsetOrder:
        """The order in a log from a position on: only at its beginning does its name tell."""
        base = parse_log_path(path).base_offset
        if not position:
            return cls(path, between, base)
        return cls(path, between, is_inside=base is None or between.first <= base)

    @property
    def is_bounded(self) -> bool:
        """Whether something is read behind these."""
        return self._maximum < MAX_INT64

    @property
    def behind(self) -> int | None:
        """The offset at which what is read behind these begins, if it is known."""
        return self._maximum + 1 if self.is_bounded else None

    def parts(self, framing: Framing, content: Bytes) -> Iterator[tuple[Framing, Misplaced | None]]:
        """A run in parts, each with the batch behind it that does not fit, or None."""
        batches = framing.batches
        if is_old(batches) or not len(batches):
            self._last = self._last_batch = self._base = None
            yield framing, None
            return
        wrong, is_below = self._wrong(batches, content, framing.position)
        firsts, lasts = offsets_of(batches)
        start, before = 0, self._last
        for row in np.flatnonzero(wrong).tolist():
            before = int(lasts[row - 1]) if row > start else before
            position, after = int(batches.position[row]), firsts[row + 1 :][~wrong[row + 1 :]]
            behind = int(after[0]) if after.size else self.behind
            name = self._base if row == 0 and is_below else None
            error = CorruptRecordError(
                misfit(before, behind, name),
                path=self._path,
                position=position,
                base_offset=int(firsts[row]),
            )
            part = replace(framing, batches=batches[start:row], position=position)
            yield part, Misplaced(error, int(batches.end[row]))
            start = row + 1
        yield replace(framing, batches=batches[start:]), None
        self._base = None
        if not wrong.all():  # and whoever reads it has not gone on elsewhere
            self._last_batch = batches[~wrong][-1:]
            self._last = int(self._last_batch.last_offset[0])

    def _wrong(self, batches: Batches, content: Bytes, position: int) -> tuple[Mask, bool]:
        """Batches of a run that do not fit, and whether the name of the log tells so of the first.

        Two batches behind the run tell about its end.
        """
        firsts, lasts = offsets_of(batches)
        last, ahead = self._last, frame(content, position, max_records=1).batches[:1]
        is_behind = (
            not len(ahead) or has_messages(ahead) or ahead.header["baseOffset"][0] > lasts[-1]
        )
        is_below = self._is_below_name(batches, ahead)
        is_before = max(firsts[-1], lasts[-1]) <= self._maximum and not is_below
        if is_behind and is_before and grow(firsts, lasts, last):
            return np.zeros(len(batches), dtype=np.bool_), False
        if self._last_batch is None:
            if self._is_by_name and last is not None and firsts[0] <= last:
                last = None  # the segment begins before the offset in its name
            elif self._is_inside and last is not None and firsts[0] > last + 1:
                last = None  # other batches may lie between them
        elif not self._last_batch.is_valid(content)[0]:
            last = None
        known = [batches]
        for _ in range(2):
            if not len(ahead) or has_messages(ahead) or not ahead.is_valid(content)[0]:
                break
            known.append(ahead)
            ahead = frame(content, int(ahead.end[0]), max_records=1).batches[:1]
        wrong = wrong_in(known, content, last)
        wrong[0] |= is_below
        is_over = (firsts > self._maximum) | (lasts > self._maximum)
        if is_over.any():
            wrong |= is_over & batches.is_valid(content)
        return wrong, is_below

    def _is_below_name(self, batches: Batches, ahead: Batches) -> bool:
        """Whether the first batch of a segment is damaged, by the offset in the segment's name."""
        if self._base is None or has_messages(ahead):
            return False
        firsts, lasts = offsets_of(batches[:2])
        if len(firsts) == 1:
            firsts = np.append(firsts, ahead.header["baseOffset"][:1].astype(np.int64))
        return is_below_name(firsts, lasts, self._base)


def has_messages(batches: Batches) -> bool:
    """Whether some are messages of v0 or v1; their headers need not have their offsets."""
    return isinstance(batches, SingleMessages) or bool(batches.is_message.any())


def is_old(batches: Batches) -> bool:
    """Whether all are messages of v0 or v1. Behind some, the first offsets of batches count."""
    return isinstance(batches, SingleMessages) or bool(batches.is_message.all())


def is_below_name(firsts: Int64s, lasts: Int64s, base: int) -> bool:
    """Whether a segment's first batch begins before the offset in its name, and no other does.

    A file with another segment's name has several such batches, which follow each other.

    >>> is_below_name(np.array([16, 22]), np.array([17, 26]), 20)  # 20 with another bit
    True
    >>> is_below_name(np.array([16, 18]), np.array([17, 26]), 20)
    False
    """
    first, last = int(firsts[0]), int(lasts[0])
    if first >= base:
        return False
    if firsts.size == 1:
        return (first ^ base).bit_count() == 1
    behind = int(firsts[1])
    return behind != last + 1 and behind > base + last - first


def wrong_in(runs: list[Batches], content: Bytes, last: int | None) -> Mask:
    """The batches of the first run that do not fit; those with wrong checksums tell nothing."""
    wrong = np.zeros(len(runs[0]), dtype=np.bool_)
    if is_old(runs[0]):
        return wrong
    places = [offsets_of(run) for run in runs]
    if len(runs) == 1 and grow(*places[0], last):
        return wrong
    sound = runs[0].is_valid(content)
    firsts = np.concatenate((places[0][0][sound], *(first for first, _ in places[1:])))
    lasts = np.concatenate((places[0][1][sound], *(one for _, one in places[1:])))
    wrong[sound] = misplaced(firsts, lasts, last)[: int(sound.sum())]
    return wrong & ~runs[0].is_message


def grow(firsts: Int64s, lasts: Int64s, last: int | None) -> bool:
    """Whether each batch begins behind the one before it."""
    if not firsts.size:
        return True
    return bool((firsts[1:] > lasts[:-1]).all()) and (last is None or bool(firsts[0] > last))


def offsets_of(batches: Batches) -> tuple[Int64s, Int64s]:
    """The first and the last offsets of batches by their headers."""
    return batches.header["baseOffset"].astype(np.int64), batches.last_offset


def misfit(before: int | None, after: int | None, name: int | None = None) -> str:
    """A line about a batch whose base offset is wrong, with the offsets around it.

    `name` is the offset in the segment's name, if the batch should not begin before it.

    >>> misfit(39, 41)
    'The base offset does not fit between the batches around it, which end at 39 and begin at 41'
    """
    text = "The base offset does not fit"
    if name is not None:
        return f"{text} into its segment, which is named by offset {name}"
    if before is None:
        return text
    if after is None:
        return f"{text} behind the batch before it, which ends at {before}"
    return f"{text} between the batches around it, which end at {before} and begin at {after}"


def misplaced(firsts: Int64s, lasts: Int64s, last: int | None) -> Mask:
    """The batches whose base offsets do not fit between those around them.

    Args:
        firsts: the base offsets of batches that lie one behind the other.
        lasts: their last offsets.
        last: the last offset before them, if it is known.

    >>> misplaced(np.array([0, 9, 2, 3]), np.array([1, 9, 2, 3]), None).tolist()
    [False, True, False, False]
    >>> misplaced(np.array([0, 1, 0, 2]), np.array([0, 1, 0, 3]), None).tolist()
    [False, False, True, False]
    """
    wrong = np.zeros(firsts.size, dtype=np.bool_)
    if grow(firsts, lasts, last):
        return wrong
    places = list(zip(firsts.tolist(), lasts.tolist(), strict=True))
    for row in range(len(places)):
        wrong[row] = _is_wrong(places[row : row + 3], last)
        if not wrong[row]:
            last = places[row][1]
    return wrong


def _is_wrong(places: list[tuple[int, int]], last: int | None) -> bool:
    """Whether the offsets of the first of three batches are wrong; those of the second may be."""
    (first, end), *following = places
    if last is not None and first <= last:
        return True
    if not following or following[0][0] > end or (last is not None and first == last + 1):
        return False
    # One of the two is wrong: the one that has room at its right place.
    begin, behind = following[0]
    has_room = last is None or begin - last > end - first + 1
    if len(following) == 1:
        return last is not None and has_room
    later = following[1][0]
    next_has_room = later - end > behind - begin + 1
    return later <= end if has_room == next_has_room else has_room
