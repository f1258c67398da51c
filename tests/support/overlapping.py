"""Logs whose segments overlap, and what a consumer of a broker would get of them."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hypothesis import assume
from hypothesis import strategies as st

import kafkajit.testing as kt


class Batch(NamedTuple):
    """A batch: its first offset, and the offsets of its records relative to it."""

    base: int
    deltas: tuple[int, ...]
    span: int  # offsets, of which compaction may have removed the records

    @property
    def last(self) -> int:
        return self.base + self.span - 1


Segments = dict[int, list[Batch]]  # by base offset


@st.composite
def overlapping_segments(draw: st.DrawFn) -> Segments:
    """Segments of some hundred offsets; each is in order, and may reach over any of the others."""
    bases = sorted(draw(st.sets(st.integers(0, 60), min_size=1, max_size=5)))
    segments: Segments = {}
    for base in bases:
        batches, at = [], base
        for _ in range(draw(st.integers(0, 8))):
            at += draw(st.sampled_from([0, 0, 0, 1, 5]))
            span = draw(st.integers(1, 6))
            deltas = draw(st.sets(st.integers(0, span - 1), max_size=span))
            batches.append(Batch(at, tuple(sorted(deltas)), span))
            at += span
        segments[base] = batches
    assume(not leaps(segments))
    return segments


def leaps(segments: Segments) -> bool:
    """Whether a segment overlaps the next one only by a batch with a wrong bit in its base offset.

    With another bit, it would follow the batch before it and end before the next segment.
    """
    for base, bound in pairwise(sorted(segments)):
        expected = base
        for batch in segments[base]:
            is_a_bit = (batch.base ^ expected).bit_count() == 1 and batch.base > expected
            if is_a_bit and batch.last >= bound == expected + batch.span:
                return True
            expected = batch.last + 1
    return False


_LONG_AGO = 1_700_000_000


def write(folder: Path, segments: Segments, codec: str = "none") -> None:
    """Write the segments; a record's value has the base offset of its segment."""
    folder.mkdir(parents=True)
    for base, batches in segments.items():
        log = b"".join(
            kt.batch(
                [kt.Record(b"k", b"%d" % base, offset_delta=delta) for delta in batch.deltas],
                base_offset=batch.base,
                last_offset_delta=batch.span - 1,
                codec=codec if batch.deltas else "none",
            )
            for batch in batches
        )
        path = folder / f"{base:020}.log"
        path.write_bytes(log)
        os.utime(path, (_LONG_AGO, _LONG_AGO))  # a copy that is being made grows


def consumed(segments: Segments, start: int | None = None) -> list[tuple[int, int]]:
    """The offset of each record that a consumer gets, and the segment that it is served from."""
    return [
        (batch.base + delta, base)
        for base, position, batches in _served(segments, start)
        for batch in batches
        for delta in batch.deltas
        if batch.base + delta >= position
    ]


def only_hidden(segments: Segments) -> set[int]:
    """The offsets of records that no consumer gets, and that are in no batch that one gets."""
    known = {
        offset
        for _, position, batches in _served(segments, None)
        for batch in batches
        for offset in range(max(batch.base, position), batch.last + 1)
    }
    recorded = {
        batch.base + delta
        for batches in segments.values()
        for batch in batches
        for delta in batch.deltas
    }
    return recorded - known


def _served(segments: Segments, start: int | None) -> Iterator[tuple[int, int, list[Batch]]]:
    """The answers of a broker: the segment, the offset that was asked for, and the batches.

    This is LocalLog.read of Kafka, called again and again: the segment that an offset belongs to,
    or a later one, answers with everything from the first batch that reaches the offset.
    """
    bases = sorted(segments)
    position = bases[0] if start is None else start
    while True:
        at = max(bisect_right(bases, position) - 1, 0)
        served: list[Batch] = []
        while at < len(bases) and not served:
            inside = segments[bases[at]]
            first = next((n for n, one in enumerate(inside) if one.last >= position), None)
            served = [] if first is None else inside[first:]
            at += 1
        if not served:
            return
        yield bases[at - 1], position, served
        position = max(position, served[-1].last + 1)
