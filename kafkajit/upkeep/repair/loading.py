"""Load a partition's log: find the batches that stay, the files beside them, and the damage.

Answers to LogLoader.recoverLog and LogSegment.recover of Kafka 4.1.1 for a log that was never
flushed. One pass reads each segment, builds its indexes and follows its producers. The first
segment that is cut short ends the log, and the segments behind it go. In two cases Kafka gives up
or forgets records, and this module does not: a segment with a wrong name gets the right one, and if
two segments have the same offsets, the first is cut where the second begins.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.storage.source import Source
from kafkajit.upkeep.repair.segment_names import NamedSegment, name_segments
from kafkajit.upkeep.repair.segment_reading import (
    Known,
    SegmentReading,
    StoredLog,
    check_snapshot,
)
from kafkajit.upkeep.repair.segment_repairs import (
    RepairedSegment,
    SegmentContext,
    repaired_segment,
)
from kafkajit.upkeep.repair.sound_batches import BatchTriage, Bounds, sound_batches
from kafkajit.walk.damage import DROPMALFORMED, Corruption, Gap, Stretch, corruption
from kafkajit.walk.tail import foreign_error
from kafkajit.walk.walk import Walk

_NO_OFFSET = "its name is not an offset"  # 20 digits can be larger than any offset
_BEHIND_CUT = "it is behind what is cut away"


@dataclass
class LoadedLog:
    """A log as it will be after the repair."""

    log_start_offset: int
    log_end_offset: int = 0  # the offset that the next record gets
    segments: list[RepairedSegment] = field(default_factory=list)
    gone: dict[Path, str] = field(default_factory=dict)  # logs that go, and why
    gaps: list[Corruption] = field(default_factory=list)
    kept: list[Range] = field(default_factory=list)  # the offsets of what stays, in order
    new_snapshots: Mapping[int, tuple[bytes, str]] = field(default_factory=dict)  # and why
    right_snapshots: set[int] = field(default_factory=set)
    epochs: list[tuple[int, int]] = field(default_factory=list)  # each with its start offset
    open_transactions: list[tuple[int, int]] = field(default_factory=list)  # producer, start offset
    has_messages: bool = False  # of v0 or v1
    loses: int = 0  # sound batches behind damage
    starts_anew: bool = False  # nothing that was known of the log before is true any more


def load(stored: StoredLog, progress: Callable[[int], None]) -> LoadedLog:
    """Read all of a log; `progress` is called with the number of bytes read since the last call."""
    check_logs(stored)
    truncate_to = stored.options.truncate_to
    loaded = LoadedLog(stored.log_start_offset)
    named = name_segments(stored.logs, salvage=stored.options.salvage)
    loaded.gone = {one.log: _NO_OFFSET for one in named if one.base_offset > MAX_INT64}
    named = [one for one in named if one.base_offset <= MAX_INT64]
    known, why = Known(), None
    for place, segment in enumerate(named):
        if truncate_to is not None and segment.base_offset > truncate_to:
            why = why or _as_asked(truncate_to)
        if why is not None:
            loaded.gone[segment.log] = why
            if why == _BEHIND_CUT:
                loaded.loses += sound_batches(Source(str(segment.log)))
                progress(segment.log.stat().st_size)
            continue
        known, is_cut = _load_segment(stored, segment, named[place + 1 :], known, loaded, progress)
        why = _BEHIND_CUT if is_cut else None
    if truncate_to is None and loaded.segments:
        end = _end_offset(loaded.segments[-1], known)
        if end < stored.log_start_offset:  # brokers delete such a log: it has nothing to read
            _drop_all(loaded, end)
            known = Known(is_changed=True, has_messages=known.has_messages)
    if not loaded.segments:
        start = stored.log_start_offset
        if named and truncate_to is not None and truncate_to < named[0].base_offset:
            start, loaded.starts_anew = truncate_to, True
        reading = SegmentReading(stored, None, known)
        reading.begin(start)
        _finish(stored, reading, [], loaded)
        known = reading.known
    _complete(loaded, stored, known)
    return loaded


def check_logs(stored: StoredLog) -> None:
    """Raise if a file is not a log, unless the options discard it."""
    for log in stored.logs.values():
        error, is_discarded = foreign_error(Source(str(log))), log in stored.options.discard
        if error is not None and not is_discarded:
            error.advice = "nothing is done, move it away or name it with --discard"
            raise error
        if error is None and is_discarded:
            raise ValueError(f"{log} is a Kafka log: it is not discarded")


def _load_segment(
    stored: StoredLog,
    segment: NamedSegment,
    later: Sequence[NamedSegment],
    before: Known,
    loaded: LoadedLog,
    progress: Callable[[int], None],
) -> tuple[Known, bool]:
    """Read a segment; return what is known behind it, and whether it was cut short."""
    truncate_to = stored.options.truncate_to
    following = min((one.base_offset for one in later if one.has_batches), default=MAX_INT64)
    bounds = Bounds(segment.base_offset, following, "its offsets are the next segment's")
    if truncate_to is not None and truncate_to < following:
        bounds = Bounds(segment.base_offset, truncate_to, _as_asked(truncate_to))
    triage = BatchTriage(Source(str(segment.log)), bounds, stored.options.salvage)
    reading = SegmentReading(stored, segment, before.copy())
    reading.read(triage, progress)
    if triage.contradicts:  # what was read means nothing: read it again
        triage = triage.resolved()
        reading = SegmentReading(stored, segment, before.copy())
        reading.read(triage, progress)
    known = reading.known
    known.is_changed |= bool(triage.bad)
    if not reading.segments:
        if triage.was_early or known.next_offset > segment.base_offset:
            loaded.gone[segment.log] = _why_gone(segment, loaded.kept)
        else:
            reading.begin(segment.base_offset)
    last_offset = MAX_INT64
    if later and not triage.is_cut:
        is_staying = truncate_to is None or later[0].base_offset <= truncate_to
        last_offset = later[0].base_offset - 1 if is_staying else MAX_INT64
    offsets = Range(max(before.next_offset, segment.base_offset), last_offset)
    _finish(stored, reading, _gaps(triage.bad, reading.runs, offsets), loaded)
    loaded.kept += [kept for _, kept in reading.runs]
    loaded.loses += triage.lost_batches
    return known, triage.is_cut


def _why_gone(segment: NamedSegment, kept: Sequence[Range]) -> str:
    """The reason why a segment without a batch that may stay goes; `kept` is what stays before."""
    lost: list[Range] = []
    source = Source(str(segment.log))
    walk = Walk(source, mode=DROPMALFORMED, is_last=True)
    for part in walk.checked():
        if not isinstance(part, Gap):
            bounds = zip(part.header["baseOffset"].tolist(), part.last_offset.tolist(), strict=True)
            lost += [Range(*batch) for batch in bounds if not _is_within(Range(*batch), kept)]
        source.forget(walk.position)
    if not lost:
        return "no batch of it stays, and other segments have its offsets"
    first, last = min(one.first for one in lost), max(one.last for one in lost)
    return (
        f"its offsets are before {segment.base_offset}, where it begins, and offsets from {first} "
        f"to {last} are missing then"
    )


def _is_within(offsets: Range, kept: Sequence[Range]) -> bool:
    place = bisect_right(kept, offsets.first, key=lambda one: one.first) - 1
    return place >= 0 and offsets.last <= kept[place].last


def _finish(
    stored: StoredLog, reading: SegmentReading, gaps: list[Corruption], loaded: LoadedLog
) -> None:
    """Find the repairs of the segments that a log has become, and forget their indexes."""
    loaded.gaps += gaps
    for segment in reading.segments:
        context = SegmentContext(
            stored.folder,
            stored.files,
            gaps,
            earlier_logs=[one.log for one in loaded.segments if one.log is not None],
            has_holes=reading.known.has_holes,
            index_interval=stored.options.config.index_interval_bytes,
            contents=stored.contents,
        )
        loaded.segments.append(repaired_segment(segment, context))


def _drop_all(loaded: LoadedLog, end: int) -> None:
    """Drop the segments of a log that ends before its start."""
    why = f"the log ends at {end}, before its start {loaded.log_start_offset}"
    loaded.gone.update((one.log, why) for one in loaded.segments if one.log is not None)
    loaded.segments, loaded.gaps, loaded.starts_anew = [], [], True


def _complete(loaded: LoadedLog, stored: StoredLog, known: Known) -> None:
    """Take over what is known at the log's end."""
    loaded.log_end_offset = _end_offset(loaded.segments[-1], known)
    check_snapshot(stored, known, loaded.log_end_offset)
    loaded.new_snapshots, loaded.right_snapshots = known.new_snapshots, known.right_snapshots
    loaded.epochs, loaded.has_messages = known.epochs, known.has_messages
    entries = known.producers.entries
    entries = entries[entries["currentTxnFirstOffset"] >= 0]
    ids, offsets = entries["producerId"], entries["currentTxnFirstOffset"]
    loaded.open_transactions = list(zip(ids.tolist(), offsets.tolist(), strict=True))


def _end_offset(last: RepairedSegment, known: Known) -> int:
    return last.base_offset if last.is_empty else known.next_offset


def _as_asked(truncate_to: int) -> str:
    return f"as asked, from offset {truncate_to} on"


def _gaps(
    bad: Sequence[Gap], runs: Sequence[tuple[Stretch, Range]], offsets: Range
) -> list[Corruption]:
    """The bad bytes of a log with the offsets that are missing for them.

    Args:
        bad: the bad bytes, in order.
        runs: what stays between them.
        offsets: those that the log may have.
    """
    found: list[Corruption] = []
    waiting: list[Gap] = []
    start = offsets.first
    following = iter([*runs, None])
    run = next(following)
    for gap in bad:
        while run is not None and run[0].start < gap.position:
            if waiting:
                found.append(corruption(waiting, Range(start, run[1].first - 1)))
                waiting = []
            start = run[1].last + 1
            run = next(following)
        waiting.append(gap)
    if waiting:
        last = offsets.last if run is None else run[1].first - 1
        found.append(corruption(waiting, Range(start, last)))
    return found
