"""A partition that a stream follows: its segments, and how far they may be read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from kafkajit.format.ranges import Range
from kafkajit.log.footing import Epochs, Footing, ReadBatch, epochs_before
from kafkajit.log.leaps import Leaps, leap_text
from kafkajit.log.positions import (
    Believed,
    Boundary,
    IndexEntries,
    batch_before,
    batch_with,
    believe,
    boundary,
    framed,
    headers,
    only_zeros,
    sound_behind,
)
from kafkajit.log.segment import Segment
from kafkajit.records.batches import Batches
from kafkajit.scan.stream.listing import STEP_NS, EpochFile, Listing
from kafkajit.scan.stream.options import StreamOptions
from kafkajit.storage.live_file import LiveFile
from kafkajit.storage.stored_file import StoredFile

# Where the last reads ended, and the next ones begin.
_REMEMBERED = 16


class Piece(NamedTuple):
    """A stretch of a segment between two batches, and the offsets that are read there."""

    segment: Segment
    offsets: Range
    start: int
    end: int
    is_cut: bool = False  # its first batch begins before the first offset

    @property
    def size(self) -> int:
        return self.end - self.start


class Partition:
    """A partition at one moment; `update` brings it to the next.

    Rolled segments do not change. The partition remembers how far the last segment is sound, so
    each trigger reads only the bytes that have come since.
    """

    def __init__(self, listing: Listing, options: StreamOptions) -> None:
        # Another one from the moment at which the log may lack what was seen of it before.
        self.generation = object()
        self._options = options
        self._epochs = EpochFile(listing.folder)
        self._last: StoredFile | None = None  # the last segment's log when it was looked at
        self._believed = Believed(0, 0)
        # The segment before the last one, and what was seen of it when it was the last.
        self._rolled: tuple[StoredFile, Believed] | None = None
        self._looked_ns = 0
        self._waits_at = -1  # for bytes behind the sound batches to become one
        self._waits_since_ns = 0
        self._leaps = Leaps()
        self._boundaries: dict[tuple[object, int], Boundary] = {}
        self.segments: list[Segment] = []
        self.start_offset = 0  # the first offset that the log may have
        self.end_offset = 0  # the one after the last sound batch that is read
        self.listing = listing
        self.update(listing)

    @property
    def unsound_tail(self) -> tuple[StoredFile, int] | None:
        """The last log and the position from which on it has no sound batch, if it has bytes there.

        A broker may be writing them. Zeros are preallocated.
        """
        log, position = self._last, self._believed.position
        if log is None or position >= log.size or only_zeros(log, position):
            return None
        return log, position

    @property
    def leap(self) -> str | None:
        """A line about the log's last batch if it is not read; None if it is."""
        return None if self._last is None else leap_text(self._last, self._believed)

    def update(self, listing: Listing, reached: int = 0) -> None:
        """Take over a new listing, which has a segment, and read what has come.

        `reached` is an offset up to which the log has been read before.
        """
        last = listing.segments[-1]
        if listing is self.listing and self.segments and not self._may_have_more(last.log):
            return
        now = time.time_ns()
        known = self._believed
        if listing is not self.listing and _has_replaced(self.listing, listing):
            self.generation = object()
            self._boundaries.clear()
        log = last.log.kept_open() if isinstance(last.log, LiveFile) else last.log
        if self._last is not None and self._has_rolled(listing, self._last, known):
            if known.last is not None:
                self._rolled = self._last, known
            self._believed = self._anew(last, log)
        elif self._is_new(listing, log):
            self.generation = object()
            self._boundaries.clear()
            self._believed = self._anew(last, log)
            self._rolled = None
            if self._believed.last is None and len(listing.segments) > 1:
                before = listing.segments[-2]
                self._rolled = before.log, self._anew(before, before.log)
        else:
            is_empty = known.last is None
            self._believed = self._anew(last, log) if is_empty else self._more(log, known)
        self._believed = self._reconsidered(last, log, self._believed)
        if self._leaps.is_usual(listing.segments, log, self._believed):
            self._believed = self._more(log, self._believed, may_leap=True)
        self._believed = self._past_damage(log, self._believed, now, reached)
        self._last, self._looked_ns = last.log, now
        if listing is self.listing and self.segments and self._believed == known:
            return
        self.listing = listing
        sound = replace(last, log=replace(last.log, size=self._believed.position))
        self.segments = [*listing.segments[:-1], sound]
        self.start_offset = _first_offset(self.segments[0])
        # A segment before the last one may have higher offsets than it.
        end = min(self._believed.offset, sound.offsets.last + 1)
        self.end_offset = max(end, _first_offset(sound))
        self.remember(sound, self._believed.offset, Boundary(*[self._believed.position] * 2))

    def _anew(self, last: Segment, log: StoredFile) -> Believed:
        """The sound part of the last segment with its open log, from late entries of its index on.

        The batch of the last entry may be the newest, which is compared with the one before it.
        """
        jump = IndexEntries(replace(last, log=log)).late_position()
        return self._more(log, Believed(jump, last.base_offset))

    def _more(self, log: StoredFile, known: Believed, *, may_leap: bool = False) -> Believed:
        check_crcs = self._options.scan.check_crcs
        return believe(log, known, check_crcs=check_crcs, may_leap=may_leap)

    def _reconsidered(self, last: Segment, log: StoredFile, known: Believed) -> Believed:
        """Look again from an earlier batch on if one goes back behind the last that was believed.

        That one may have leapt, and a compacted log has holes.
        """
        if known.leap is None or known.leap.base_offset >= known.offset:
            return known
        found = self._anew(last, log)
        if found.offset >= known.offset:
            return known
        self.generation = object()
        self._boundaries.clear()
        return found

    def _past_damage(self, log: StoredFile, known: Believed, now: int, reached: int) -> Believed:
        """Go on behind bytes that are damaged, because a sound batch follows them.

        A broker writes a batch within milliseconds, and a batch in one of its values may be whole
        before. So bytes have a moment to become a batch, unless the log has been read further.
        """
        while known.position < log.size and known.leap is None:
            if known.position != self._waits_at:
                self._waits_at = known.position
                self._waits_since_ns = min(now, log.modified_ns or now)
            has_waited = now - self._waits_since_ns > STEP_NS
            behind = sound_behind(log, known) if has_waited or known.offset < reached else None
            if behind is None:
                break
            known = self._more(log, behind)
        return known

    def _may_have_more(self, log: StoredFile) -> bool:
        """Whether the last segment may have other bytes than at the last look.

        A preallocated file has its size from the start, and a truncated one may have it again. So
        the modification time decides.
        """
        if log is not self._last and log != self._last:
            return True
        return self._looked_ns - (log.modified_ns or 0) <= STEP_NS

    def _is_new(self, listing: Listing, log: StoredFile) -> bool:
        """Whether the last log may lack what was seen of it, or of the segment before it."""
        before, known = self._last, self._believed
        if before is None or listing.topic_id != self.listing.topic_id:
            return True
        if known.last is None and self._rolled is not None and log.path == before.path:
            return not self._has_rolled(listing, *self._rolled)
        return not _has(log, before, known)

    def _has_rolled(self, listing: Listing, before: StoredFile, known: Believed) -> bool:
        """Whether a file is among the rolled segments now, with what was seen of it."""
        return listing.topic_id == self.listing.topic_id and any(
            _has(segment.log, before, known) for segment in listing.segments[:-1]
        )

    def footing(self, offset: int) -> Footing:
        """The ground of a position in the log."""
        newest = self._newest
        if newest is None and self._rolled is not None:
            newest = self._rolled[1].last
        if newest is None or offset != self.end_offset or newest.last_offset != offset - 1:
            newest = self._last_before(offset)
        epochs = epochs_before(self.epochs, offset, newest)
        return Footing(self.listing.topic_id or None, newest, epochs, self.start_offset)

    @property
    def epochs(self) -> Epochs:
        """The leader epochs of the log, and their first offsets, as far as a broker noted them."""
        return self._epochs.now() if isinstance(self._last, LiveFile) else ()

    def ends_with(self, batch: ReadBatch) -> bool:
        """Whether the log's last sound batch is this one, which is known without a look."""
        return self._newest == batch

    @property
    def _newest(self) -> ReadBatch | None:
        """The last sound batch of the last segment, unless a segment before it is read there."""
        last = self._believed.last
        return last if last is None or self.segments[-1].cut.first <= last.base_offset else None

    def right_end_before(self, batch: ReadBatch) -> int | None:
        """The offset behind the batches before this one, if the log has it, but as a wrong one."""
        last = self.segments[-1]
        if last.cut.first > batch.base_offset:  # a segment before it is read there
            return None
        segment = replace(last, log=self.listing.segments[-1].log)
        found = next(framed(segment.log, batch.position), None) if batch.position >= 0 else None
        if found is None or not batch.is_same(ReadBatch.of(found)):
            return None
        end = segment.base_offset
        for batches in headers(segment.log, 0):
            ends = batches.last_offset[batches.position < batch.position]
            end = max(end, int(ends.max(initial=end - 1)) + 1)
            if ends.size < len(batches):
                break
        return end

    def batch_with(self, offset: int) -> tuple[StoredFile, Batches] | None:
        """The batch that has an offset or, if the log lacks it, the next one, and its file."""
        for segment in self.segments:
            if segment.offsets.last >= offset:
                found = batch_with(segment, offset)
                if found is not None:
                    return segment.log, found
        return None

    def _last_before(self, offset: int) -> ReadBatch | None:
        for segment in reversed(self.segments):
            if segment.cut and _first_offset(segment) < offset:
                found = batch_before(segment, offset)
                if found is not None and found.last_offset >= segment.cut.first:
                    return found
        return None

    def spans(self, first: int, end: int) -> Iterator[tuple[Segment, int, int]]:
        """The segments with offsets from `first` up to `end`, and the range of these in each."""
        for segment in self.segments:
            behind = min(segment.offsets.last + 1, self.end_offset)
            start = max(first, _first_offset(segment))
            if start < min(end, behind):
                yield segment, start, min(end, behind)

    def pieces(self, first: int, end: int) -> Iterator[Piece]:
        """The stretches that hold the offsets from `first` up to `end`."""
        for segment, start, behind in self.spans(first, end):
            is_whole = behind == min(segment.offsets.last + 1, self.end_offset)
            begin, end_of = self.boundary(segment, start)
            stop = segment.log.size if is_whole else self.boundary(segment, behind).end
            if begin < stop:
                yield Piece(segment, Range(start, behind - 1), begin, stop, begin < end_of)

    def boundary(self, segment: Segment, offset: int) -> Boundary:
        """The boundary at an offset of a segment, which may be known."""
        found = self._boundaries.get((self._identity(segment), offset))
        return boundary(segment, offset) if found is None else found

    def _identity(self, segment: Segment) -> object:
        """A key for the file of a segment: a cleaner's new file may get the old one's inode."""
        log = segment.log
        if not isinstance(log, LiveFile):
            return log.path
        if self._last is not None and log.path == self._last.path:
            return (log.path, log.inode)  # it grows; whether it is the same is known
        return (log.path, log.inode, log.size, log.modified_ns)

    def remember(self, segment: Segment, offset: int, where: Boundary) -> None:
        """Keep a boundary, because the next read may begin there."""
        key = (self._identity(segment), offset)
        self._boundaries.pop(key, None)
        self._boundaries[key] = where
        if len(self._boundaries) > _REMEMBERED:
            del self._boundaries[next(iter(self._boundaries))]

    def size_of(self, first: int, end: int) -> int:
        """The bytes of the stretches from `first` up to `end`."""
        return sum(piece.size for piece in self.pieces(first, end))


def _first_offset(segment: Segment) -> int:
    """The first offset that is read of a segment: others may have its first ones."""
    if segment.cut.is_everything or not segment.cut:
        return max(segment.base_offset, segment.offsets.first)
    return segment.cut.first


def _has(log: StoredFile, before: StoredFile, known: Believed) -> bool:
    """Whether a file is the one that it was, with what was seen of it."""
    if log.path != before.path or log.size < known.position:
        return False
    if isinstance(log, LiveFile) and isinstance(before, LiveFile) and log.inode != before.inode:
        return False
    return known.is_in(log)


def _has_replaced(before: Listing, now: Listing) -> bool:
    """Whether a segment that others follow is another file than it was, has changed, or has come.

    A cleaner has compacted it, or somebody copies another log over this one, or its segments in
    another order.
    """
    files = {one.log.path: one.log for one in before.segments[:-1]}
    last = before.segments[-1].base_offset
    return any(
        files.get(one.log.path, None if one.base_offset < last else one.log) != one.log
        for one in now.segments[:-1]
        if isinstance(one.log, LiveFile)
    )
