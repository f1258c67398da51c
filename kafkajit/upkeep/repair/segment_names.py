"""The segments of a log in order, each under the base offset that its batches ask for.

A broker does not load a log if a batch has an offset from before its segment's base offset:
the file must have got a wrong name. If no other segment has offsets of the file, it becomes a
segment that begins with its first offset.
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
        if len(first) and first.header["baseOffset"][0] < base_offset:
            others = {base: path for base, path in named.items() if path != log}
            found = _free_place(log, others)
            if found is not None:
                named = {**others, found: log}
    return [
        NamedSegment(base, named[base], _has_own(named[base], base, mode)) for base in sorted(named)
    ]


def _first_batch(log: Path) -> Batches:
    """The first batch, or no batch if it is not sound."""
    source = Source(str(log), leaps=True)
    batch = frame(source.content, max_records=1).batches[:1]
    return batch[batch.is_valid(source.content)] if len(batch) else batch


def _free_place(log: Path, others: Mapping[int, Path]) -> int | None:
    """The first offset of a log in order, if no other segment has any of its offsets."""
    offsets = _offsets_of(log)
    if offsets is None or offsets.first < 0:
        return None
    if any(offsets.first <= base <= offsets.last for base in others):
        return None
    before = max((base for base in others if base < offsets.first), default=None)
    if before is not None and _last_offset_of(others[before]) >= offsets.first:
        return None
    return offsets.first


def _offsets_of(log: Path) -> Range | None:
    """The range of a log's offsets; None if the log is damaged or its offsets go back anywhere."""
    source = Source(str(log))
    walk = Walk(source, mode=FAILFAST)
    first, last = None, -1
    try:
        for part in walk.checked():
            assert not isinstance(part, Gap)
            begins, ends = part.header["baseOffset"], part.last_offset
            is_growing = (begins[1:] > ends[:-1]).all() and (begins <= ends).all()
            if not is_growing or begins[0] <= last or (part.header["magic"] != MAGIC_V2).any():
                return None
            first = int(begins[0]) if first is None else first
            last = int(ends[-1])
            source.forget(walk.position)
    except KafkaJitError:
        return None
    return None if first is None or walk.position < source.content.size else Range(first, last)


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
