"""Compact a log in two passes: mark the superseded records, then hand out what stays.

Answers to Cleaner of Kafka 4.1.1. The first pass reads the dirty segments and marks each record
that a later record of its key follows. If the keys do not fit into memory, it runs several times,
each time for some of the keys. The second pass reads all segments and hands out what is left of
them.

One thing differs from Kafka. If the first dirty offset is in the middle of a segment, Kafka begins
to read behind markers, takes their transactions for open, and leaves what their producers have
committed since out of its map. Here the segment is read from its start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.errors import CorruptRecordError, InvalidOffsetError
from kafkajit.format.limits import MAX_INT64
from kafkajit.index.transaction_index import ENTRY, transaction_entries
from kafkajit.log.segment import Segment
from kafkajit.log.timestamps import modified_ms
from kafkajit.records.batches import Batches
from kafkajit.records.chunk import without_bad_markers
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Mask, Source, as_bytes
from kafkajit.storage.stored_file import StoredFile
from kafkajit.upkeep.compact.cleanable import Cleanable
from kafkajit.upkeep.compact.cleaned_transactions import (
    NO_CONTROL,
    CleanedTransactions,
    control_types,
)
from kafkajit.upkeep.compact.offset_map import Hashes, OffsetMap
from kafkajit.upkeep.compact.record_bitmap import RecordBitmap
from kafkajit.upkeep.compact.record_filter import BatchDecisions, Filtered, RecordFilter, Run
from kafkajit.walk.frames import frames

_NO_OFFSET = -1


class LastRecord(NamedTuple):
    """The last record of a producer. Brokers check the producer's next batch against it."""

    offset: int | None  # of its last data; None if it has only markers
    epoch: int


class Cleaner:
    """Compacts the cleanable segments of a log: first `index` them, then `clean` each, in order.

    Args:
        cleanable: the segments to compact.
        segments: all segments of the log.
        start_offset: the log start offset.
        producers: the last record of each active producer.
        now: the time in milliseconds.
        delete_retention_ms: how much later tombstones go.
        dedupe_buffer_size: memory for the map of keys in bytes.
        max_decompressed_bytes: the largest batch that is read.
        progress: is called with the number of bytes read since the last call.
    """

    def __init__(
        self,
        cleanable: Cleanable,
        segments: Sequence[Segment],
        start_offset: int,
        producers: Mapping[int, LastRecord],
        *,
        now: int,
        delete_retention_ms: int,
        dedupe_buffer_size: int,
        max_decompressed_bytes: int,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._dirty = cleanable.segments[cleanable.first_dirty :]
        self._clean = cleanable.segments[: cleanable.first_dirty]
        self._first_dirty_offset = cleanable.first_dirty_offset
        self._end = cleanable.first_uncleanable_offset
        self._aborted = _aborted(segments, start_offset, self._end)
        self._transactions = CleanedTransactions(self._aborted)
        self._producers = _Producers(producers)
        self._now = now
        before = [s for s in cleanable.segments if s.base_offset < cleanable.first_dirty_offset]
        self._legacy_horizon = modified_ms(before[-1].log) - delete_retention_ms if before else 0
        self._filter = RecordFilter(_int64(now + delete_retention_ms))
        self._max_decompressed_bytes = max_decompressed_bytes
        self._progress = progress
        self._memory = ColumnMemory(Wanted(fields=True))
        self._map = OffsetMap(dedupe_buffer_size)
        self._is_parted = False  # whether the map had no room for all keys at once
        self._superseded = RecordBitmap()  # in the dirty segments
        self._superseded_before = RecordBitmap()  # in the clean ones
        self._without_key: dict[str, int] = {}
        self._checked: set[str] = set()  # logs whose checksums and offsets are right
        bases = [segment.base_offset for segment in segments]
        self._behind = dict(zip(bases, [*bases[1:], MAX_INT64], strict=True))

    def index(self) -> None:
        """Mark the superseded records."""
        parts = [(0, 0)]
        while parts:
            self._map.restart(*parts.pop())
            self._put(parts)
            self._is_parted |= bool(parts)
            if self._dirty[0].base_offset < self._first_dirty_offset:
                self._find(self._dirty[:1], self._superseded)
            if self._is_parted:
                self._find(self._clean, self._superseded_before)
        self._superseded.rewind()
        self._superseded_before.rewind()

    def clean(self, segment: Segment) -> Iterator[tuple[Run, Filtered]]:
        """Yield what is left of a segment, run by run; each is valid until the next."""
        superseded = self._superseded if self._is_dirty(segment) else self._superseded_before
        is_known = self._is_dirty(segment) or self._is_parted
        if not is_known:
            self._without_key[segment.log.path] = 0
        keeps_tombstones = modified_ms(segment.log) > self._legacy_horizon
        for run, source in self._runs(segment, superseded.wanted if is_known else _every):
            types = np.full(len(run.batches), NO_CONTROL)
            types[run.is_read] = control_types(run.chunk)
            discards = self._transactions.discards(run.batches, types)
            first = superseded.take(run.counts)
            if not is_known:
                left_out = np.repeat(discards | run.batches.is_control, run.counts)
                hashes = self._hashes(segment, run, left_out)
                self._map.find(hashes, first, superseded.bits)
            decisions = self._decisions(run.batches, discards, keeps_tombstones)
            yield run, self._filter.filter(run, source.content, decisions, superseded.bits, first)

    def take_aborted(self) -> npt.NDArray[np.void]:
        """The transaction index of what was cleaned since the last call."""
        return self._transactions.take_ended()

    def records_without_key(self, segment: Segment) -> int:
        """The number of records that a cleaned segment has lost because they have no key."""
        return self._without_key[segment.log.path]

    def _is_dirty(self, segment: Segment) -> bool:
        """Whether a segment has dirty offsets."""
        return segment.base_offset >= self._dirty[0].base_offset

    def _put(self, parts: list[tuple[int, int]]) -> None:
        """Mark superseded records in the dirty segments; add the keys left out to `parts`."""
        superseded, transactions = self._superseded, self._transactions_from(self._dirty[0])
        superseded.rewind()
        for segment in self._dirty:
            self._without_key[segment.log.path] = 0
            for run, _ in self._runs(segment, _every):
                left_out = _left_out(run, transactions)
                left_out |= run.chunk.fields["offset"] < self._first_dirty_offset
                hashes = self._hashes(segment, run, left_out)
                first, row = superseded.note(run.chunk), 0
                while (row := self._map.put(hashes, first, superseded.bits, row)) < run.chunk.rows:
                    parts.append(self._map.halve())

    def _find(self, segments: Sequence[Segment], superseded: RecordBitmap) -> None:
        """Mark superseded records before the first dirty offset."""
        if not segments:
            return
        transactions = self._transactions_from(segments[0])
        superseded.rewind()
        for segment in segments:
            if not self._is_dirty(segment):
                self._without_key[segment.log.path] = 0
            for run, _ in self._runs(segment, _every):
                left_out = _left_out(run, transactions)
                left_out |= run.chunk.fields["offset"] >= self._first_dirty_offset
                hashes = self._hashes(segment, run, left_out)
                first = superseded.note(run.chunk)
                self._map.find(hashes, first, superseded.bits)

    def _transactions_from(self, segment: Segment) -> CleanedTransactions:
        """The transactions with a marker in this segment or later."""
        has_part = self._aborted["lastOffset"] >= segment.base_offset
        return CleanedTransactions(self._aborted[has_part])

    def _hashes(self, segment: Segment, run: Run, left_out: Mask) -> Hashes:
        """Hash the keys of a run that is read whole, and count its records without a key."""
        has_no_key = (run.chunk.fields["keySize"] < 0) & ~left_out
        self._without_key[segment.log.path] += int(np.count_nonzero(has_no_key))
        return self._map.hashes(run.chunk.content, run.chunk.fields, left_out)

    def _runs(
        self, segment: Segment, wanted: Callable[[Batches], Mask]
    ) -> Iterator[tuple[Run, Source]]:
        """Yield all batches of a segment, and the records of the wanted ones."""
        log = segment.log
        source = log.open()
        limit = self._max_decompressed_bytes
        decoder = Decoder(source, self._memory, max_decompressed_bytes=limit)
        position, offset = 0, segment.base_offset
        for framing in frames(source):
            if log.path not in self._checked:
                sound = decoder.sound(framing.batches, check_crcs=True)
                if not sound.all():
                    raise decoder.unsound(framing.batches, int(np.argmin(sound)))
                offset = _in_order(framing.batches, offset, self._behind[segment.base_offset], log)
            for batches in _of_one_kind(framing.batches):
                is_wanted = wanted(batches)
                done, window = 0, len(batches)
                while done < len(batches):
                    part = slice(done, done + window)
                    run = _read(decoder, batches[part], is_wanted[part])
                    done += len(run.batches)
                    window = 2 * len(run.batches)  # the next batches are much like the last
                    yield run, source
            if self._progress is not None:
                self._progress(framing.position - position)
            position = framing.position
            source.forget(position)
        if position < log.size:
            raise CorruptRecordError(
                f"the last {log.size - position} bytes of the log are not a whole batch",
                path=log.path,
                position=position,
            )
        self._checked.add(log.path)

    def _decisions(
        self, batches: Batches, discards: Mask, keeps_legacy_tombstones: bool
    ) -> BatchDecisions:
        is_past = batches.has_delete_horizon & (batches.field("baseTimestamp") <= self._now)
        is_past &= ~batches.is_message
        keeps_tombstones = ~is_past
        keeps_tombstones[batches.is_message] = keeps_legacy_tombstones
        # Cleaners give each tombstone a horizon when they look for older records of its key. In
        # front of the first dirty offset a tombstone without one may have such records there: a
        # stale cleaner-offset-checkpoint calls them clean. They would come back without it.
        is_dirty = batches.header["baseOffset"] >= self._first_dirty_offset
        keeps_tombstones[batches.is_message] |= ~is_dirty[batches.is_message]
        return BatchDecisions(
            discards=discards & (~batches.is_control | is_past),
            keeps_header=self._producers.last_of(batches) | (batches.last_offset + 1 == self._end),
            keeps_tombstones=keeps_tombstones,
            wants_horizon=discards & batches.is_control,
            ages_tombstones=is_dirty,
        )


class _Producers:
    """The last records of active producers."""

    def __init__(self, producers: Mapping[int, LastRecord]) -> None:
        known = sorted(producers.items())
        self._ids = np.array([each for each, _ in known], dtype=np.int64)
        offsets = [_NO_OFFSET if last.offset is None else last.offset for _, last in known]
        self._offsets = np.array(offsets, dtype=np.int64)
        self._epochs = np.array([last.epoch for _, last in known], dtype=np.int64)

    def last_of(self, batches: Batches) -> Mask:
        """Find the batches that have the last record of their producers."""
        ids = batches.field("producerId")
        if not self._ids.size:
            return np.zeros(ids.size, dtype=np.bool_)
        at = np.minimum(np.searchsorted(self._ids, ids), self._ids.size - 1)
        is_marker = batches.is_control & (batches.field("producerEpoch") == self._epochs[at])
        is_last = np.where(
            self._offsets[at] == _NO_OFFSET, is_marker, batches.last_offset == self._offsets[at]
        )
        found: Mask = is_last & (ids >= 0) & (self._ids[at] == ids)
        return found


def _every(batches: Batches) -> Mask:
    return np.ones(len(batches), dtype=np.bool_)


def _left_out(run: Run, transactions: CleanedTransactions) -> Mask:
    """Find the records that are aborted, or not data, in a run that is read whole."""
    types = control_types(run.chunk)
    discards = transactions.discards(run.batches, types)
    left_out: Mask = np.repeat(discards | run.batches.is_control, run.counts)
    return left_out


def _in_order(batches: Batches, offset: int, behind: int, log: StoredFile) -> int:
    """The offset behind these batches; raise if one is not in order from `offset` to `behind`."""
    first, last = batches.header["baseOffset"], batches.last_offset
    begin = np.append(offset, last[:-1] + 1)
    is_wrong = (first < begin) | (last < first) | (last >= behind)
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise InvalidOffsetError(
            f"the batch has offsets {first[row]} to {last[row]}, and those from {begin[row]} to "
            f"{behind - 1} belong here",
            path=log.path,
            position=int(batches.position[row]),
        )
    return int(last[-1]) + 1 if len(batches) else offset


def _of_one_kind(batches: Batches) -> Iterator[Batches]:
    """Split batches into runs of v2 and of messages."""
    changes = np.flatnonzero(np.diff(batches.is_message)) + 1
    for start, end in pairwise([0, *changes.tolist(), len(batches)]):
        yield batches[start:end]


def _read(decoder: Decoder, batches: Batches, is_wanted: Mask) -> Run:
    """Read the first of these batches: all of them unless they are large."""
    asked = batches[is_wanted]
    if len(asked):
        chunk = without_bad_markers(decoder.decode(asked))
        if chunk.error is not None:
            raise chunk.error
    else:
        chunk = decoder.headers(asked)
    if len(chunk.batches) < len(asked):
        end = int(np.flatnonzero(is_wanted)[len(chunk.batches)])
        batches, is_wanted = batches[:end], is_wanted[:end]
    counts = batches.field("recordsCount").astype(np.int64)
    counts[is_wanted] = chunk.counts
    return Run(batches, counts, is_wanted, chunk)


def _aborted(segments: Sequence[Segment], first: int, end: int) -> npt.NDArray[np.void]:
    """The entries of all transaction indexes for offsets from `first` up to `end`."""
    files = [segment.transaction_index for segment in segments]
    parts = [transaction_entries(as_bytes(f.read()), f.path) for f in files if f is not None]
    entries = np.concatenate([np.empty(0, dtype=ENTRY), *parts], dtype=ENTRY)
    return entries[(entries["lastOffset"] >= first) & (entries["firstOffset"] < end)]


def _int64(number: int) -> int:
    """Wrap a sum as Java does."""
    return (number + 2**63) % 2**64 - 2**63
