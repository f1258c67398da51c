"""The aborted transactions in a .txnindex, compared with the markers of its log.

An index may be stale or of another log, so the log's markers decide. Two things are asked of it:

- If damage may have taken markers, the index names the lost ABORT markers. It also has the first
  offset of each aborted transaction, so records before it belong to a transaction that was
  committed, though its marker is lost.
- If one of its entries contradicts the log, a warning names it.

A cleaner removes records before their marker, so an entry may begin before the first batch that is
left, and may end in a later segment.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kafkajit.format.ranges import Range
from kafkajit.records.transactions import (
    AbortedTransactions,
    TransactionalBatches,
    previous_offsets,
)
from kafkajit.storage.source import Int64s, Mask

logger = logging.getLogger("kafkajit")


class IndexedAborts(NamedTuple):
    """The entries of a segment's .txnindex, and the batches of transactions in the segment."""

    path: str
    entries: AbortedTransactions
    batches: TransactionalBatches


def undisputed(
    indexed: Sequence[IndexedAborts], log: TransactionalBatches, lost: Sequence[Range]
) -> AbortedTransactions:
    """The entries that end at an ABORT marker or in damage, and hold no other sound marker.

    `lost` are the offsets that damage has taken, in order.
    """
    entries = AbortedTransactions(
        *map(np.concatenate, zip(*(one.entries for one in indexed), strict=True))
    )
    is_lost = _in_ranges(entries.last_offset, lost)
    is_sound = log.is_marker & ~_in_ranges(log.base_offset, lost)
    markers = log.producer_id[is_sound], log.base_offset[is_sound]
    before = previous_offsets(*markers, entries.producer_id, entries.last_offset - 1)
    return entries.where((is_lost | log.have_aborts(entries)) & (before < entries.first_offset))


def lost_markers(
    entries: AbortedTransactions, log: TransactionalBatches, lost: Sequence[Range]
) -> TransactionalBatches:
    """The markers of a log that damage has taken, as far as these entries tell."""
    is_lost = _in_ranges(entries.last_offset, lost)
    producer = np.concatenate([log.producer_id[log.is_marker], entries.producer_id[is_lost]])
    offset = np.concatenate([log.base_offset[log.is_marker], entries.last_offset[is_lost]])
    before = previous_offsets(producer, offset, entries.producer_id, entries.first_offset - 1)
    # The transaction before an aborted one has ended behind its last marker that is left. If this
    # was in damage, the last of it before the aborted one is a place for the lost marker.
    firsts, lasts = np.array(lost, dtype=np.int64).T
    hole = np.searchsorted(firsts, entries.first_offset) - 1
    ends = np.minimum(lasts[hole], entries.first_offset - 1)
    is_ended = (hole >= 0) & (ends > before)
    count = np.count_nonzero(is_lost)
    found = np.concatenate([entries.producer_id[is_lost], entries.producer_id[is_ended]])
    return TransactionalBatches(
        found,
        np.concatenate([entries.last_offset[is_lost], ends[is_ended]]),
        np.ones(found.size, dtype=np.bool_),
        np.arange(found.size) < count,
    )


def over_damage(entries: AbortedTransactions, lost: Sequence[Range]) -> AbortedTransactions:
    """The entries of transactions that damage may have taken batches of."""
    is_any = np.zeros(entries.last_offset.size, dtype=np.bool_)
    for one in lost:
        is_any |= (entries.first_offset <= one.last) & (entries.last_offset >= one.first)
    return entries.where(is_any)


def warn_of_contradictions(
    index: IndexedAborts, log: TransactionalBatches, aborted: AbortedTransactions, lost: list[Range]
) -> None:
    """Warn if an index has transactions that the markers of its log contradict."""
    entries, batches = index.entries, index.batches
    if not batches.base_offset.size:
        return
    first, last = int(batches.base_offset.min()), int(batches.base_offset.max())
    ends_here = (entries.last_offset >= first) & (entries.last_offset <= last)
    entries = entries.where(ends_here & ~_in_ranges(entries.last_offset, lost))
    is_wrong = ~batches.have_aborts(entries)
    if not lost:
        begins = _first_offsets(entries, aborted)
        markers = log.producer_id[log.is_marker], log.base_offset[log.is_marker]
        before = previous_offsets(*markers, entries.producer_id, entries.last_offset - 1)
        is_wrong |= (entries.first_offset > begins) | (entries.first_offset <= before)
    if is_wrong.any():
        producer, start, end = (int(column[is_wrong][0]) for column in entries)
        more = np.count_nonzero(is_wrong) - 1
        logger.warning(
            "%s contradicts the markers in the log, which decide: producer %d has no aborted "
            "transaction from offset %d to %d%s. `kafkajit repair` rebuilds the file",
            index.path,
            producer,
            start,
            end,
            f", and {more} more entries are wrong" if more else "",
        )


def _first_offsets(entries: AbortedTransactions, aborted: AbortedTransactions) -> Int64s:
    """The first offset that is left of each entry's transaction, or its marker's."""
    found = entries.last_offset.copy()
    order = np.argsort(aborted.last_offset)
    lasts = aborted.last_offset[order]
    if lasts.size:
        at = np.minimum(np.searchsorted(lasts, entries.last_offset), lasts.size - 1)
        is_known = lasts[at] == entries.last_offset
        found[is_known] = aborted.first_offset[order][at[is_known]]
    return found


def _in_ranges(offsets: Int64s, ranges: Sequence[Range]) -> Mask:
    inside = np.zeros(offsets.size, dtype=np.bool_)
    for one in ranges:
        inside |= one.holds(offsets)
    return inside
