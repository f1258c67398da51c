"""A partition's log as it stays, what is beside it, and what is bad: one pass over its bytes.

Answers to LogLoader.recoverLog and LogSegment.recover of Kafka 4.1.1 with nothing flushed: each
segment is read, its indexes are made and its producers followed, until one is cut short, and those
behind it go. Where Kafka gives up or forgets, this is kinder: a segment under a wrong name is given
the right one, and of two with the same offsets one is cut where the other begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kafkajit.errors import CorruptSnapshotError, InvalidRecordError, KafkaJitError
from kafkajit.format.limits import MAX_INT32, MAX_INT64
from kafkajit.index.transaction_index import ENTRY as ABORTED
from kafkajit.log.config import LogConfig
from kafkajit.log.indexing import SegmentIndexes
from kafkajit.log.producers import ProducerStates, are_markers
from kafkajit.records.batches import Batches
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.control_records import ABORT
from kafkajit.records.decode import Decoder
from kafkajit.records.markers import NO_MARKERS, read_markers
from kafkajit.state.producer_snapshot import snapshot_entries
from kafkajit.storage.source import Source, as_bytes
from kafkajit.upkeep.repair.segment_names import Named, rightly_named
from kafkajit.upkeep.repair.side_file_checks import contradiction_in_snapshot, misfit_of_snapshot
from kafkajit.upkeep.repair.sound_batches import Bounds, Sieve, sound_batches
from kafkajit.walk.selection import Range
from kafkajit.walk.tail import foreign_error
from kafkajit.walk.walk import Corruption, Gap, Stretch, corruption

Entries = npt.NDArray[np.void]

_BEHIND = "it is behind what is cut away"
_NO_OFFSET = "its name is no offset"  # 20 digits may be more than there are
_MARKER = np.dtype([("offset", np.int64), ("producerId", np.int64)])


@dataclass
class LoadedSegment:
    """A segment as it is to be."""

    base_offset: int
    log: Path  # where its bytes are now
    known_since: int  # producers and transactions are, from this offset on
    entries: SegmentIndexes | None  # until it has been read
    stretches: list[Stretch] = field(default_factory=list)  # of those that stay
    aborted: list[Entries] = field(default_factory=list)  # rows of the .txnindex
    aborts: list[Entries] = field(default_factory=list)  # offset and producer of each ABORT

    @property
    def name(self) -> str:
        """What its files are called before their suffixes."""
        return f"{self.base_offset:020d}"

    @property
    def size(self) -> int:
        """Of its log."""
        return sum(stretch.end - stretch.start for stretch in self.stretches)

    def indexes(self) -> tuple[bytes, bytes]:
        """What is in the .index and in the .timeindex."""
        assert self.entries is not None
        self.entries.close()
        return self.entries.offset_index, self.entries.time_index

    def forget(self) -> None:
        """Its entries, so that a log may have many segments."""
        self.entries = None
        self.aborted, self.aborts = [], []

    @property
    def all_aborted(self) -> Entries:
        """What is in the .txnindex; numpy would turn its numbers round when it joins them."""
        return np.concatenate([np.empty(0, ABORTED), *self.aborted]).astype(ABORTED)

    @property
    def all_aborts(self) -> Entries:
        """Offset and producer of each ABORT."""
        return np.concatenate([np.empty(0, dtype=_MARKER), *self.aborts])


@dataclass
class _Cursor:
    """What is known at a place of the log."""

    producers: ProducerStates = field(default_factory=ProducerStates)
    known_since: int = 0  # producers are, from this offset on
    next_offset: int = 0
    has_holes: bool = False  # whether offsets are missing before
    latest_epoch: int = -1
    is_changed: bool = False  # whether something before is to go

    def copy(self) -> _Cursor:
        return _Cursor(
            self.producers.copy(),
            self.known_since,
            self.next_offset,
            self.has_holes,
            self.latest_epoch,
            self.is_changed,
        )


@dataclass
class Loading:
    """A log that is being loaded: `load` fills what is not given."""

    logs: dict[int, Path]  # by base offset
    snapshots: dict[int, Path]  # by offset
    log_start_offset: int
    config: LogConfig
    salvage: bool
    truncate_to: int | None
    discard: frozenset[Path]  # files that are no logs, to be taken for empty ones
    progress: Callable[[int], None]  # is told how many bytes have been read since it last was
    finish: Callable[[LoadedSegment], None]  # is given each segment that has been read

    segments: list[LoadedSegment] = field(default_factory=list)
    gone: dict[Path, str] = field(default_factory=dict)  # logs of which nothing stays, and why
    gaps: list[Corruption] = field(default_factory=list)
    new_snapshots: dict[int, tuple[bytes, str]] = field(default_factory=dict)  # and why
    right_snapshots: set[int] = field(default_factory=set)
    has_messages: bool = False  # of v0 or v1
    loses: int = 0  # sound batches that are behind damage
    starts_anew: bool = False  # with nothing that was known of the log before
    # Each leader's epoch that is later than all before, and where its first batch begins.
    epochs: list[tuple[int, int]] = field(default_factory=list)
    _at: _Cursor = field(default_factory=_Cursor)
    _open: LoadedSegment | None = None
    _runs: list[tuple[Stretch, Range]] = field(default_factory=list)  # of the log that is read

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record will have."""
        last = self.segments[-1]
        return self._at.next_offset if last.stretches else last.base_offset

    @property
    def has_holes(self) -> bool:
        """Whether offsets are missing, as compaction leaves it."""
        return self._at.has_holes

    @property
    def open_transactions(self) -> list[tuple[int, int]]:
        """Producers with a transaction that is open at the log's end, and where that begins."""
        entries = self._at.producers.entries
        entries = entries[entries["currentTxnFirstOffset"] >= 0]
        ids, offsets = entries["producerId"], entries["currentTxnFirstOffset"]
        return list(zip(ids.tolist(), offsets.tolist(), strict=True))

    def load(self) -> None:
        """Read all of it."""
        self._check_logs()
        named = rightly_named(self.logs, salvage=self.salvage)
        self.gone = {one.log: _NO_OFFSET for one in named if one.base_offset > MAX_INT64}
        named = [one for one in named if one.base_offset <= MAX_INT64]
        why = None
        for place, segment in enumerate(named):
            if self.truncate_to is not None and segment.base_offset > self.truncate_to:
                why = why or f"as asked, from offset {self.truncate_to} on"
            if why is not None:
                self.gone[segment.log] = why
                if why == _BEHIND:
                    self.loses += sound_batches(Source(str(segment.log)))
                    self.progress(segment.log.stat().st_size)
                continue
            if self._load(segment, named[place + 1 :]):
                why = _BEHIND
        if self.truncate_to is None:
            self._drop_what_was_deleted()
        if not self.segments:
            start = self.log_start_offset
            if named and self.truncate_to is not None and self.truncate_to < named[0].base_offset:
                start, self.starts_anew = self.truncate_to, True
            self._begin(start, Path())
            self._finish(0)
        self._check_snapshot(self.log_end_offset)

    def _check_logs(self) -> None:
        """Raise if a file is no log, unless it is to be discarded."""
        for log in self.logs.values():
            error = foreign_error(Source(str(log)))
            if error is not None and log not in self.discard:
                error.advice = "nothing is done, move it away or name it with --discard"
                raise error
            if error is None and log in self.discard:
                raise ValueError(f"{log} is a Kafka log: it is not discarded")

    def _load(self, segment: Named, later: list[Named]) -> bool:
        """Read a segment; whether it is cut short."""
        limits = [other.base_offset for other in later if other.has_batches]
        behind = min(limits, default=MAX_INT64)
        bounds = Bounds(segment.base_offset, behind, "its offsets are the next segment's")
        if self.truncate_to is not None and self.truncate_to < behind:
            why = f"as asked, from offset {self.truncate_to} on"
            bounds = Bounds(segment.base_offset, self.truncate_to, why)
        sieve = Sieve(Source(str(segment.log)), bounds, self.salvage)
        before, places = self._at.copy(), (len(self.segments), len(self.epochs))
        new_snapshots, right_snapshots = self.new_snapshots.copy(), self.right_snapshots.copy()
        self._read(sieve, segment)
        if sieve.contradicts:
            self._at = before.copy()
            del self.segments[places[0] :], self.epochs[places[1] :]
            self.new_snapshots, self.right_snapshots = new_snapshots, right_snapshots
            sieve = sieve.resolved()
            self._read(sieve, segment)
        self._at.is_changed |= bool(sieve.bad)
        if self._open is None:
            if sieve.was_early or self._at.next_offset > segment.base_offset:
                self.gone[segment.log] = "no batch of it stays, and other segments have its offsets"
            else:
                self._begin(segment.base_offset, segment.log)
        following = None if sieve.is_cut or not later else later[0].base_offset
        if self.truncate_to is not None and (following or 0) > self.truncate_to:
            following = None
        self._find_gaps(sieve.bad, max(before.next_offset, segment.base_offset), following)
        self._finish(places[0])
        # Behind what a crash leaves at a log's end is nothing.
        self.loses += sieve.lost_batches
        return sieve.is_cut

    def _finish(self, first: int) -> None:
        for segment in self.segments[first:]:
            self.finish(segment)
            segment.forget()

    def _read(self, sieve: Sieve, segment: Named) -> None:
        self._open = None
        self._runs = []
        decoder = Decoder(sieve.source, ColumnMemory(Wanted(fields=True)))
        for batches in sieve:
            self._take(batches, sieve, decoder, segment)
            self.progress(int(batches.size_in_bytes.sum()))

    def _take(self, batches: Batches, sieve: Sieve, decoder: Decoder, segment: Named) -> None:
        """Batches that are whole and in order, into one segment, or several where it has to be."""
        while len(batches):
            if self._open is None:
                self._begin(segment.base_offset, segment.log)
            assert self._open is not None
            too_far = batches.last_offset - self._open.base_offset > MAX_INT32
            if too_far[0]:
                self._begin(int(batches.header["baseOffset"][0]), segment.log)
                continue
            fitting = batches[: int(np.argmax(too_far))] if too_far.any() else batches
            good, error = self._follow(fitting, decoder)
            if good:
                self._keep(fitting[:good])
            if error is not None:
                sieve.reject(fitting, good, f"{type(error).__name__}: {error.message}")
                if not self.salvage:
                    return
                good += 1
            batches = batches[good:]

    def _begin(self, base_offset: int, log: Path) -> None:
        """A segment begins there."""
        at = self._at
        if not self.segments:
            at.next_offset = base_offset
            self._begin_producers(base_offset)
        elif base_offset <= self.log_start_offset:
            at.producers, at.known_since = ProducerStates(), base_offset
        else:
            self._check_snapshot(base_offset)
        entries = SegmentIndexes(base_offset, self.config)
        self._open = LoadedSegment(base_offset, log, at.known_since, entries)
        self.segments.append(self._open)

    def _begin_producers(self, base_offset: int) -> None:
        """Those from before the log, which a snapshot may have."""
        self._at.known_since = base_offset
        for offset in sorted(self.snapshots, reverse=True):
            if self.log_start_offset < offset <= base_offset:
                content = as_bytes(self.snapshots[offset].read_bytes())
                try:
                    if contradiction_in_snapshot(snapshot_entries(content), offset) is not None:
                        continue
                    self._at.producers = ProducerStates.of_snapshot(content)
                except CorruptSnapshotError:
                    continue
                break

    def _follow(self, batches: Batches, decoder: Decoder) -> tuple[int, KafkaJitError | None]:
        """Follow producers through batches; how many could be read, and why not more."""
        if not (batches.header["producerId"] >= 0).any():
            return len(batches), None
        assert self._open is not None
        is_marker = are_markers(batches)
        markers, error = NO_MARKERS, None
        good = len(batches)
        if is_marker.any():
            control = batches[is_marker]
            markers, error = read_markers(decoder, control, np.ones(len(control), dtype=np.bool_))
            if error is not None:
                good = int(np.flatnonzero(is_marker)[len(markers)])
        before = self._at.producers.copy()
        try:
            aborted = self._at.producers.update(batches[:good], markers)
        except InvalidRecordError as reason:
            error, good = reason, int(np.searchsorted(batches.position, reason.position or 0))
            self._at.producers = before
            markers = markers.between(0, int(is_marker[:good].sum()))
            aborted = before.update(batches[:good], markers)
        if aborted.size:
            self._open.aborted.append(aborted)
        if (markers.type_id == ABORT).any():
            rows = np.flatnonzero(is_marker[:good])[markers.type_id == ABORT]
            aborts = np.empty(rows.size, dtype=_MARKER)
            aborts["offset"] = batches.header["baseOffset"][rows]
            aborts["producerId"] = batches.header["producerId"][rows]
            self._open.aborts.append(aborts)
        return good, error

    def _keep(self, batches: Batches) -> None:
        """Batches that stay, into the open segment."""
        assert self._open is not None
        assert self._open.entries is not None
        at, first, last = self._at, batches.header["baseOffset"], batches.last_offset
        self._open.entries.add(batches, str(self._open.log))
        stretch = Stretch(int(batches.position[0]), int(batches.end[-1]))
        offsets = Range(int(first[0]), int(last[-1]))
        stretches = self._open.stretches
        if stretches and stretches[-1].end == stretch.start:
            (start, _), (offset, _) = self._runs.pop()
            stretch, offsets = Stretch(start, stretch.end), Range(offset, offsets.last)
            stretches.pop()
        stretches.append(stretch)
        self._runs.append((stretch, offsets))
        at.has_holes |= bool(first[0] != at.next_offset or (first[1:] != last[:-1] + 1).any())
        at.next_offset = int(last[-1]) + 1
        self.has_messages |= bool(batches.is_message.any())
        epochs = batches.header["partitionLeaderEpoch"]
        while (later := epochs > at.latest_epoch).any():
            row = int(np.argmax(later))
            at.latest_epoch = int(epochs[row])
            self.epochs.append((at.latest_epoch, int(first[row])))

    def _check_snapshot(self, offset: int) -> None:
        """The snapshot of what is known here: whether it is there, and if so is right."""
        start = max(self.log_start_offset, self.segments[0].base_offset)
        if offset <= start or offset in self.right_snapshots or offset in self.new_snapshots:
            return  # brokers have none of their log's start
        asked = self._at.producers.snapshot()
        path = self.snapshots.get(offset)
        if path is None:
            self.new_snapshots[offset] = (asked, "it is missing")
            return
        content = path.read_bytes()
        misfit = None if content == asked else self._misfit(content, asked, offset, path)
        if misfit is not None:
            self.new_snapshots[offset] = (asked, misfit)
            return
        self.right_snapshots.add(offset)
        if content != asked:
            self._at.producers = ProducerStates.of_snapshot(as_bytes(content))

    def _misfit(self, content: bytes, asked: bytes, offset: int, path: Path) -> str | None:
        try:
            entries = snapshot_entries(as_bytes(content))
        except CorruptSnapshotError as error:
            return f"{type(error).__name__}: {error.message}"
        if self._at.is_changed:
            return "what is before it changes"
        return misfit_of_snapshot(
            entries,
            snapshot_entries(as_bytes(asked)),
            offset,
            known_since=self._at.known_since,
            has_holes=self._at.has_holes or offset > self._at.next_offset,
            taken_ms=path.stat().st_mtime_ns // 1_000_000,
        )

    def _find_gaps(self, bad: list[Gap], start: int, following: int | None) -> None:
        """What is bad of a log, with the offsets that are missing for it.

        `start` is the first that it may have, `following` the next segment's, if that stays.
        """
        end = MAX_INT64 if following is None else following - 1
        gaps: list[Gap] = []
        runs = iter([*self._runs, None])
        run = next(runs)
        for gap in bad:
            while run is not None and run[0].start < gap.position:
                if gaps:
                    self.gaps.append(corruption(gaps, Range(start, run[1].first - 1)))
                    gaps = []
                start = run[1].last + 1
                run = next(runs)
            gaps.append(gap)
        if gaps:
            self.gaps.append(
                corruption(gaps, Range(start, end if run is None else run[1].first - 1))
            )

    def _drop_what_was_deleted(self) -> None:
        """A log that ends before its start has nothing that may be read: brokers delete it."""
        if not self.segments or self.log_end_offset >= self.log_start_offset:
            return
        why = f"the log ends at {self.log_end_offset}, before its start {self.log_start_offset}"
        self.gone.update((segment.log, why) for segment in self.segments)
        self.segments, self.gaps, self.epochs = [], [], []
        self.new_snapshots, self.right_snapshots = {}, set()
        self._at = _Cursor(is_changed=True)
        self.starts_anew = True
