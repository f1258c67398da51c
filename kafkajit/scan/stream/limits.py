"""Admission: the offsets at which a micro-batch ends, if it may not read everything.

Each limit is shared among the partitions that have something to read: those with little are read
whole, and the others get equal parts. If several limits are given, the smallest wins, partition by
partition. One partition, another one each time, gets a batch even if that is larger than its part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkajit.scan.stream.options import Limits
from kafkajit.scan.stream.partition import Partition
from kafkajit.scan.stream.reach import after_bytes, after_files, after_records


class Unread(NamedTuple):
    """A partition, and the offsets that it could be read from and to."""

    partition: Partition
    first: int
    end: int


def admitted(unread: Sequence[Unread], limits: Limits, turn: int, *, may_cut: bool) -> list[int]:
    """The offset up to which each partition is read; `turn` counts the micro-batches."""
    ends = [part.end for part in unread]
    if not unread:
        return ends
    favoured = turn % len(unread)
    if limits.records is not None:
        sizes = [part.end - part.first for part in unread]
        for row, share in enumerate(shares(sizes, limits.records, turn)):
            partition, first, end = unread[row]
            found = after_records(partition, first, end, share, may_cut=may_cut) if share else first
            ends[row] = min(ends[row], found)
    if limits.bytes is not None:
        sizes = [part.partition.size_of(part.first, part.end) for part in unread]
        for row, share in enumerate(shares(sizes, limits.bytes, turn)):
            partition, first, end = unread[row]
            found = after_bytes(partition, first, end, share, at_least_one=row == favoured)
            ends[row] = min(ends[row], found)
    if limits.files is not None:
        sizes = [sum(1 for _ in part.partition.pieces(part.first, part.end)) for part in unread]
        for row, share in enumerate(shares(sizes, limits.files, turn)):
            partition, first, end = unread[row]
            ends[row] = min(ends[row], after_files(partition, first, end, share))
    return ends


def shares(sizes: Sequence[int], most: int, turn: int) -> list[int]:
    """Parts of `most` for these sizes: small ones get all they need, the rest equal parts.

    >>> shares([2, 100, 50], 42, turn=0)
    [2, 20, 20]
    >>> shares([5, 5, 5], 2, turn=0), shares([5, 5, 5], 2, turn=1)
    ([1, 1, 0], [0, 1, 1])
    """
    given = [0] * len(sizes)
    left = most
    order = sorted(range(len(sizes)), key=lambda row: sizes[row])
    for done, row in enumerate(order):
        part = left // (len(order) - done)
        if sizes[row] > part:
            for other in order[done:]:
                given[other] = part
            left -= part * (len(order) - done)
            break
        given[row] = sizes[row]
        left -= sizes[row]
    for step in range(len(sizes)):  # what division has left
        row = (turn + step) % len(sizes)
        if left and given[row] < sizes[row]:
            given[row] += 1
            left -= 1
    return given
