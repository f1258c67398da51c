"""The segments of a log in order, each under the base offset that its batches ask for.

A broker does not load a log if a batch has an offset from before its segment's base offset:
the file must have got a wrong name. If no other segment has offsets of the file, it becomes a
segment that begins with its first offset. A file that has that name, as when two were exchanged,
does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kafkajit.errors import KafkaJitError
from kafkajit.format.layout import MAGIC_V2
from kafkajit.format.ranges import Range
from kafkajit.records.batches import Batches, frame
from kafkajit.storage.source import Source
from kafkajit.walk.damage import DROPMALFORMED, FAILFAST, Gap
from kafkajit.walk.walk import Walk


class NamedSegment(NamedTuple):
    """A segment's log, and the base offset that its name gets."""

    base_offset: int
    log: Path
    has_batches: bool  # whether it has sound batches that no segment before it can have


def name_segments(logs: Mapping[int, Path], *, salvage: bool) -> list[NamedSegment]:
    """Name the segments of a log, which are given by the base offsets of their present names."""
    mode = DROPMALFORMED if salvage else FAILFAST
    named = dict(logs)
    for base_offset, log in logs.items():
        first = _first_batch(log)
        is_early = len(first) > 0 and first.header["baseOffset"][0] < base_offset
        if is_early and named.get(base_offset) == log:
            named = _renamed(log, named, mode) or named
    return [
        NamedSegment(base, named[base], _has_own(named[base], base, mode)) for base in sorted(named)
    ]


def _first_batch(log: Path) -> Batches:
    """The first batch, or no batch if it is not sound."""
    source = Source(str(log), leaps=True)
    batch = frame(source.content, max_records=1).batches[:1]
    return batch[batch.is_valid(source.content)] if len(batch) else batch


def _renamed(log: Path, named: Mapping[int, Path], mode: str) -> dict[int, Path] | None:
    """The logs by base offset if one begins with its first offset; None if it has no room there.

    A log whose name is in the way moves to its own first offset.
    """
    moved: dict[Path, Range] = {}
    waiting = [log]
    while waiting:
        path = waiting.pop()
        offsets = _offsets_of(path, mode)
        if offsets is None or offsets.first < 0:
            return None
        moved[path] = offsets
        waiting += [
            other
            for base, other in named.items()
            if offsets.first <= base <= offsets.last and other not in {*moved, *waiting}
        ]
    places = {base: path for base, path in named.items() if path not in moved}
    places |= {offsets.first: path for path, offsets in moved.items()}
    if len(places) < len(named):
        return None
    for offsets in moved.values():
        if any(offsets.first < base <= offsets.last for base in places):
            return None
        before = max((base for base in places if base < offsets.first), default=None)
        if before is not None and _last_offset_of(places[before]) >= offsets.first:
            return None
    return places


def _offsets_of(log: Path, mode: str) -> Range | None:
    """The range of a log's offsets; None if they go back anywhere, or at damage under FAILFAST."""
    source = Source(str(log))
    walk = Walk(source, mode=mode)
    first, last = None, -1
    try:
        for part in walk.checked():
            if isinstance(part, Gap):
                continue
            begins, ends = part.header["baseOffset"], part.last_offset
            is_growing = (begins[1:] > ends[:-1]).all() and (begins <= ends).all()
            if not is_growing or begins[0] <= last or (part.header["magic"] != MAGIC_V2).any():
                return None
            first = int(begins[0]) if first is None else first
            last = int(ends[-1])
            source.forget(walk.position)
    except KafkaJitError:
        return None
    is_whole = mode == DROPMALFORMED or walk.position == source.content.size
    return Range(first, last) if first is not None and is_whole else None


def _last_offset_of(log: Path) -> int:
    source = Source(str(log))
    last = -1
    for batches in Walk(source, mode=DROPMALFORMED).framed():
        last = max(last, int(batches.last_offset.max()))
        source.forget(int(batches.end[-1]))
    return last


def _has_own(log: Path, base_offset: int, mode: str) -> bool:
    """Whether the log has a sound batch with an offset that the segment may have."""
    first = _first_batch(log)
    if len(first) and first.header["baseOffset"][0] >= base_offset:
        return True
    source = Source(str(log))
    walk = Walk(source, mode=mode)
    try:
        for part in walk.checked():
            if not isinstance(part, Gap) and (part.header["baseOffset"] >= base_offset).any():
                return True
            source.forget(walk.position)
    except KafkaJitError:
        pass
    return False
