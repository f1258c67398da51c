"""The part of the logs that a stream has not read: the metrics of a query's progress."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from kafkajit.scan.stream.partition import Partition


class Behind(NamedTuple):
    """A part of a log that a stream has not read."""

    offsets: int
    bytes: int
    segments: int


def behind_from(partition: Partition, first: int) -> Behind:
    """The part of a partition from an offset on."""
    first = max(first, partition.start_offset)
    offsets = partition.end_offset - first
    if offsets <= 0:
        return Behind(0, 0, 0)
    spans = list(partition.spans(first, partition.end_offset))
    size = sum(segment.log.size for segment, _, _ in spans)
    if spans:
        segment, start, _ = spans[0]
        # One that was deleted since it was listed counts as a whole, until the next look.
        with suppress(FileNotFoundError):
            size -= partition.boundary(segment, start).start
    return Behind(offsets, size, len(spans))


def metrics(parts: Sequence[Behind]) -> dict[str, str]:
    """The metrics of a stream, from those of its partitions, named as Spark's Kafka source does.

    >>> found = metrics([Behind(0, 0, 0), Behind(5, 700, 1)])
    >>> found["avgOffsetsBehindLatest"], found["totalBytesBehindLatest"]
    ('2.5', '700')
    """
    if not parts:
        return {}
    offsets = [part.offsets for part in parts]
    return {
        "minOffsetsBehindLatest": str(min(offsets)),
        "maxOffsetsBehindLatest": str(max(offsets)),
        "avgOffsetsBehindLatest": str(sum(offsets) / len(offsets)),
        "totalOffsetsBehindLatest": str(sum(offsets)),
        "totalBytesBehindLatest": str(sum(part.bytes for part in parts)),
        "totalSegmentsBehindLatest": str(sum(part.segments for part in parts)),
    }
