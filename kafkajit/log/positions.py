"""Positions in the segments of a log that grows, from the offset index and the headers of batches.

Nothing here maps a file, decompresses a batch or reads a record. An index entry is used only if a
sound batch begins where it leads.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kafkajit.errors import OK
from kafkajit.format.layout import BATCH_LENGTH_OFFSET, LOG_OVERHEAD
from kafkajit.kernel.intrinsics import read_int32
from kafkajit.log.footing import ReadBatch
from kafkajit.log.segment import Segment
from kafkajit.records.batches import Batches, frame
from kafkajit.records.offset_order import (
    is_below_name,
    is_old,
    misplaced,
    offsets_of,
    wrong_in,
)
from kafkajit.storage.live_file import LiveFile
from kafkajit.storage.source import Bytes, Int64s, Mask, Source, as_bytes
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk import tail
from kafkajit.walk.resync import PrefixChecksums

logger = logging.getLogger("kafkajit")

# The bytes read at first, and at most unless a batch is larger.
_WINDOW = 128 << 10
_MOST = 8 << 20
_HEAD = 21  # bytes of a batch's header up to its checksum, or beyond that of a message
_ENTRY = 8  # bytes of an index entry: the relative offset and the position


class Boundary(NamedTuple):
    """Positions: reading from an offset begins at `start`, and reading up to it ends at `end`."""

    start: int
    end: int


class Believed(NamedTuple):
    """The end of a segment's sound batches, the offset behind the last of them, and that batch."""

    position: int
    offset: int
    last: ReadBatch | None = None
    head: bytes = b""  # of that batch
    leap: ReadBatch | None = None  # the one behind it, if its base offset may be wrong

    @property
    def ends_in_batch(self) -> bool:
        """Whether nothing lies between the last batch and the position."""
        return self.position == (0 if self.last is None else self.last.position + self.last.size)

    def is_in(self, log: StoredFile) -> bool:
        """Whether a log still has the last batch: a broker may have written others over it."""
        return self.last is None or log.read(self.last.position, _HEAD) == self.head


def headers(log: StoredFile, position: int) -> Iterator[Batches]:
    """The headers of the sound batches from a position on, as far as one leads to the next.

    A batch whose base offset does not fit, or whose checksum is wrong, is left out. Nothing in the
    header of the latter counts, except a length that leads to a sound batch.
    """
    was_sound = True
    for content, batches, start in _framed(log, position):
        sound = batches.is_valid(content)
        led_nowhere = ~(sound | np.concatenate(([was_sound], sound[:-1])))
        count = int(np.argmax(led_nowhere)) if led_nowhere.any() else len(batches)
        known = batches[:count][sound[:count]]
        right = known[~wrong_in([known], content, None)]
        if len(right):
            yield Batches(right.position + start, right.header)
        if count < len(batches):
            return
        was_sound = bool(sound[-1])


def framed(log: StoredFile, position: int) -> Iterator[Batches]:
    """As `headers`, with the batches whose base offsets do not fit."""
    for _, batches, start in _framed(log, position):
        yield Batches(batches.position + start, batches.header)


def _framed(log: StoredFile, position: int) -> Iterator[tuple[Bytes, Batches, int]]:
    """Windows of a log, the batches in each, and the window's position."""
    window = _WINDOW
    while position < log.size:
        count = min(window, log.size - position)
        content = as_bytes(log.read(position, count))
        found = frame(content)
        if len(found.batches):
            yield content, found.batches, position
            position += found.position
            window = min(2 * window, max(_MOST, window))
            continue
        if found.status != OK or content.size < count or count == log.size - position:
            return
        size = LOG_OVERHEAD + int(read_int32(content, BATCH_LENGTH_OFFSET))
        if size > log.size - position:
            return
        window = max(window, size)


def believe(
    log: StoredFile, known: Believed, *, check_crcs: bool = True, may_leap: bool = False
) -> Believed:
    """Go on from what is known of a segment that a broker writes, as far as its batches are sound.

    A batch at the end may be incomplete although the file is long enough for it. A batch with a
    wrong checksum is damage only if a sound one follows. No checksum covers base offsets, so unless
    the log `may_leap`, a batch behind a hole is believed only once another one follows it.
    """
    found, without_leap = known._replace(leap=None), None
    for content, batches, start in _framed(log, known.position):
        sound = batches.is_valid(content) if check_crcs else np.ones(len(batches), dtype=np.bool_)
        if sound.any():
            found, without_leap = _grown(found, without_leap, batches, sound, start, content)
        if not sound[-1]:
            break
    if without_leap is None or may_leap:
        return found
    assert found.last is not None
    return without_leap._replace(position=found.last.position, leap=found.last)


def _grown(
    known: Believed,
    without_leap: Believed | None,
    batches: Batches,
    sound: Mask,
    start: int,
    content: Bytes,
) -> tuple[Believed, Believed | None]:
    """Go on with the sound batches of a window; return the same without the last one if that leaps.

    Args:
        known: what is known before the window.
        without_leap: the same without the last batch, if that leaps.
        batches: the window's.
        sound: which of them are.
        start: the window's position.
        content: its bytes.
    """
    every = rows = np.flatnonzero(sound)
    if not is_old(batches):
        firsts, lasts = offsets_of(batches[sound])
        if without_leap is not None and known.last is not None:
            firsts = np.insert(firsts, 0, known.last.base_offset)
            lasts = np.insert(lasts, 0, known.last.last_offset)
        before = without_leap or known
        last = before.offset - 1 if before.last is not None or before.position == 0 else None
        if before.last is None and last is not None and not is_below_name(firsts, lasts, last + 1):
            last = None if firsts[0] <= last else last  # it may have another segment's name
        wrong = misplaced(firsts, lasts, last)
        if without_leap is not None and wrong[0]:
            known = without_leap
        rows = rows[~wrong[-rows.size :] | batches.is_message[rows]]
    grown, before = known, known
    for row in rows[-2:].tolist():
        before, grown = grown, _behind(grown, batches, rows, row, start, content)
    if not rows.size or rows[-1] < every[-1]:  # what is behind is not believed
        behind = every if not rows.size else every[every > rows[-1]]
        return grown._replace(leap=_batch(batches, int(behind[0]), start)), None
    position, base = int(batches.position[rows[-1]]), int(batches.header["baseOffset"][rows[-1]])
    is_next = before.ends_in_batch and before.position == start + position
    may_leap = is_next and not batches.is_message[rows[-1]]
    return grown, before if may_leap and base > before.offset else None


def _behind(
    known: Believed, batches: Batches, rows: Int64s, row: int, start: int, content: Bytes
) -> Believed:
    """Go on with the rows of a window up to one of them."""
    newest = _batch(batches, row, start)
    offset = max(known.offset, int(batches.last_offset[rows[rows <= row]].max()) + 1)
    head = content[newest.position - start :][:_HEAD].tobytes()
    return Believed(start + int(batches.end[row]), offset, newest, head)


def _batch(batches: Batches, row: int, start: int) -> ReadBatch:
    """One of the batches in a window that begins at a position."""
    found = ReadBatch.of(batches, row)
    return found._replace(position=found.position + start)


def sound_behind(log: StoredFile, known: Believed) -> Believed | None:
    """Find a sound batch behind bytes that are not one: its position and base offset, or None.

    A batch with lower offsets than the log has there does not count: it lies in a record's value.
    """
    if only_zeros(log, known.position):
        return None
    source = _opened(log, known.position)
    try:
        source.load(log.size)
    except EOFError:  # it has been cut: a new listing has its size
        return None
    prover = PrefixChecksums(source.content, source.data_end)
    at = prover.next_sound_batch(known.position + 1)
    while at < log.size:
        first = frame(source.content, at, max_records=1).batches[:1]
        base_offset = int(first.field("baseOffset")[0])
        if base_offset >= known.offset:
            return Believed(at, base_offset, known.last, known.head)
        at = prover.next_sound_batch(at + 1)
    return None


def only_zeros(log: StoredFile, position: int) -> bool:
    """Whether a log has only zeros from a position on, as a preallocated file has."""
    if position >= log.size:
        return True
    try:
        return tail.only_zeros(_opened(log, position), position)
    except EOFError:  # it has been cut
        return True


def _opened(log: StoredFile, position: int) -> Source:
    """A log's bytes from a position on, which are read in order and never mapped."""
    if log.is_local and not isinstance(log, LiveFile):
        log = replace(LiveFile.at(log.key), size=log.size)
    return log.open(position)


def boundary(segment: Segment, offset: int) -> Boundary:
    """The boundary at an offset of a segment; behind the last batch if all offsets are lower.

    Reading begins at damage that may have held the offset, and goes to the segment's end.
    """
    if offset <= segment.base_offset:
        return Boundary(0, 0)
    before, last = IndexEntries(segment).position_of(offset - 1), offset
    for batches in _sound_from(segment, before):
        early = int(np.searchsorted(np.maximum.accumulate(batches.last_offset), offset))
        if early:
            before, last = int(batches.end[early - 1]), int(batches.last_offset[early - 1])
        if early == len(batches):
            continue
        # The header of a set of messages does not have its first offset.
        is_set, base = batches.is_message_set[early], batches.field("baseOffset")[early]
        if last != offset - 1 and (is_set or base < offset):
            return Boundary(int(batches.position[early]), int(batches.end[early]))
        return Boundary(before, before)
    return Boundary(before, before if last == offset - 1 else segment.log.size)


def batches_from(segment: Segment, offset: int) -> Iterator[Batches]:
    """The headers of a segment's batches, from the one with an offset, or an earlier one, on."""
    return _sound_from(segment, IndexEntries(segment).position_of(offset))


def _sound_from(segment: Segment, position: int) -> Iterator[Batches]:
    """The headers of a segment's sound batches from a position on."""
    while True:
        for batches in headers(segment.log, position):
            yield batches
            position = int(batches.end[-1])
        behind = sound_behind(segment.log, Believed(position, segment.base_offset))
        if behind is None:
            return
        position = behind.position


def batch_before(segment: Segment, offset: int) -> ReadBatch | None:
    """The last sound batch of a segment that begins before an offset."""
    found = None
    for batches in batches_from(segment, offset - 1):
        early = np.flatnonzero(batches.field("baseOffset") < offset)
        if early.size:
            found = ReadBatch.of(batches, int(early[-1]))
        if early.size < len(batches):
            break
    return found


def batch_with(segment: Segment, offset: int) -> Batches | None:
    """The first batch of a segment that ends at an offset or after it, alone."""
    for batches in batches_from(segment, offset):
        rows = np.flatnonzero(batches.last_offset >= offset)
        if rows.size:
            row = int(rows[0])
            return batches[row : row + 1]
    return None


class IndexEntries:
    """The entries of a segment's offset index, read one by one.

    The index of a segment that a broker writes is 10 MiB of zeros behind a few entries.
    """

    def __init__(self, segment: Segment) -> None:
        self._log = segment.log
        self._base_offset = segment.base_offset
        index = segment.index
        if isinstance(index, LiveFile):
            index = index.opened()
        # Each look into a remote file costs a round trip.
        self._content = None if index is None or index.is_local else index.read()
        self._index = index
        # No entry leads to position 0; behind the entries are zeros.
        self._count = bisect_left(
            range(0 if index is None else index.size // _ENTRY),
            True,
            key=lambda row: not 0 < self._entry(row)[1] < segment.log.size,
        )

    def _entry(self, row: int) -> tuple[int, int]:
        at = row * _ENTRY
        if self._content is not None:
            found = self._content[at : at + _ENTRY]
        else:
            assert self._index is not None
            found = self._index.read(at, _ENTRY)
        if len(found) < _ENTRY:  # a broker has cut it to its entries
            return 0, 0
        return int.from_bytes(found[:4], signed=True), int.from_bytes(found[4:], signed=True)

    def late_position(self) -> int:
        """The position of the batch of the last entry but one, or 0."""
        return self._checked(self._count - 2)

    def position_of(self, offset: int) -> int:
        """The position of a batch before which all offsets are lower, or 0."""
        relative = offset - self._base_offset
        row = bisect_right(range(self._count), relative, key=lambda at: self._entry(at)[0]) - 1
        return self._checked(row, offset)

    def position_before(self, position: int) -> int:
        """The position of a batch at or before this one whose header has its first offset, or 0."""
        row = bisect_right(range(self._count), position, key=lambda at: self._entry(at)[1]) - 1
        return self._checked(row, has_first_offset=True)

    def _checked(
        self, row: int, offset: int | None = None, *, has_first_offset: bool = False
    ) -> int:
        """The position in a row, if a sound batch begins there; otherwise 0."""
        if row < 0:
            return 0
        # A broker may still write the last entry's batch, but not the one before.
        for position in (self._entry(at)[1] for at in (row, row - 1) if at >= 0):
            for content, batches, _ in _framed(self._log, position):
                first = batches[:1]
                if has_first_offset and first.is_message_set[0]:
                    return 0
                base = int(first.field("baseOffset")[0])
                if first.is_valid(content)[0] and (offset is None or base <= offset):
                    return position
                break
        logger.warning("%s: the segment is read without its offset index", self._log.path)
        return 0
