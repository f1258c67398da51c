"""Finds which transactions were aborted and which are still open, from markers or a .txnindex.

Answers to Kafka's ProducerStateManager and TransactionIndex. A producer's transaction begins with
its first batch behind its last marker, and ends with the next marker; if that is an ABORT, the
batches between are aborted. Consumers that read committed data stop at the last stable offset: the
first offset of the earliest transaction without a marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.records.batches import Batches
from kafkajit.storage.source import Int64s, Mask

_NO_OFFSETS: Int64s = np.empty(0, dtype=np.int64)


class AbortedTransactions(NamedTuple):
    """Aborted transactions, a row each: the producer, and its first and last offset."""

    producer_id: Int64s
    first_offset: Int64s
    last_offset: Int64s

    def holds(self, batches: Batches) -> Mask:
        """Find the batches that belong to one of these transactions."""
        held = np.zeros(len(batches), dtype=np.bool_)
        rows = np.flatnonzero(batches.is_transactional)
        if not rows.size or not self.producer_id.size:
            return held
        producers = batches.field("producerId")[rows]
        offsets = batches.field("baseOffset")[rows]
        # The producer's last transaction that begins at or before the batch.
        order = np.lexsort((self.first_offset, self.producer_id))
        sorted_ = AbortedTransactions(*(column[order] for column in self))
        before = last_at_or_before(sorted_.producer_id, sorted_.first_offset, producers, offsets)
        found = before >= 0
        at = np.where(found, before, 0)
        held[rows] = found & (sorted_.producer_id[at] == producers)
        held[rows] &= offsets <= sorted_.last_offset[at]
        return held

    def within(self, first: int, last: int) -> AbortedTransactions:
        """The transactions that have an offset in that range."""
        return self.where((self.first_offset <= last) & (self.last_offset >= first))

    def where(self, rows: Mask) -> AbortedTransactions:
        """The transactions of these rows."""
        return AbortedTransactions(*(column[rows] for column in self))


NONE_ABORTED = AbortedTransactions(_NO_OFFSETS, _NO_OFFSETS, _NO_OFFSETS)


def last_at_or_before(
    known_producers: Int64s,
    known_offsets: Int64s,
    producers: npt.NDArray[np.integer],
    offsets: npt.NDArray[np.integer],
) -> npt.NDArray[np.intp]:
    """For each producer and offset, the row before the first known larger pair, or -1."""
    first = np.searchsorted(known_producers, producers)
    behind = np.searchsorted(known_producers, producers, side="right")
    # Bisect all stretches of a producer at once: NumPy searches pairs 20 times slower.
    for _ in range(int(known_producers.size).bit_length()):
        middle = (first + behind) >> 1
        is_before = known_offsets[np.minimum(middle, known_offsets.size - 1)] <= offsets
        is_open = first < behind
        first = np.where(is_open & is_before, middle + 1, first)
        behind = np.where(is_open & ~is_before, middle, behind)
    return first - 1


def previous_offsets(
    producer: Int64s, offset: Int64s, asked_producer: Int64s, asked_offset: Int64s
) -> Int64s:
    """The last offset that a producer has at or before each one that is asked for, or -1."""
    order = np.lexsort((offset, producer))
    producer, offset = producer[order], offset[order]
    rows = last_at_or_before(producer, offset, asked_producer, asked_offset)
    found = np.full(asked_offset.size, -1, dtype=np.int64)
    known = (rows >= 0) & (producer[rows] == asked_producer) if producer.size else rows >= 0
    found[known] = offset[rows[known]]
    return found


@dataclass(frozen=True)
class TransactionalBatches:
    """The header fields that the search for transactions uses, a row for each batch or marker."""

    producer_id: Int64s
    base_offset: Int64s
    is_marker: Mask
    is_abort: Mask

    def without(self, rows: npt.NDArray[np.intp]) -> TransactionalBatches:
        """The batches but these."""
        kept = np.ones(self.base_offset.size, dtype=np.bool_)
        kept[rows] = False
        return TransactionalBatches(
            self.producer_id[kept],
            self.base_offset[kept],
            self.is_marker[kept],
            self.is_abort[kept],
        )

    def have_aborts(self, entries: AbortedTransactions) -> Mask:
        """Whether each of these transactions ends at an ABORT marker of its producer."""
        offset, producer = self.base_offset[self.is_abort], self.producer_id[self.is_abort]
        if not offset.size:
            return np.zeros(entries.last_offset.size, dtype=np.bool_)
        order = np.argsort(offset, kind="stable")
        offset, producer = offset[order], producer[order]
        at = np.minimum(np.searchsorted(offset, entries.last_offset), offset.size - 1)
        are: Mask = (offset[at] == entries.last_offset) & (producer[at] == entries.producer_id)
        return are


def joined(parts: Sequence[TransactionalBatches]) -> TransactionalBatches:
    """The batches of several stretches of a log.

    >>> joined([]).producer_id.size
    0
    """
    if not parts:
        none = np.zeros(0, dtype=np.bool_)
        return TransactionalBatches(_NO_OFFSETS, _NO_OFFSETS, none, none)
    return TransactionalBatches(
        np.concatenate([part.producer_id for part in parts]),
        np.concatenate([part.base_offset for part in parts]),
        np.concatenate([part.is_marker for part in parts]),
        np.concatenate([part.is_abort for part in parts]),
    )


def open_rows(log: TransactionalBatches) -> npt.NDArray[np.intp]:
    """The rows of the batches of transactions that have no marker, by producer and offset.

    >>> offsets, markers = np.array([0, 1, 2]), np.array([False, True, False])
    >>> open_rows(TransactionalBatches(np.array([7, 7, 7]), offsets, markers, ~markers)).tolist()
    [2]
    """
    order = np.lexsort((log.base_offset, log.producer_id))
    producer, is_marker = log.producer_id[order], log.is_marker[order]
    is_last = np.ones(order.size, dtype=np.bool_)
    is_last[:-1] = producer[1:] != producer[:-1]
    # The runs that end with a marker, or with the last batch of a producer.
    run = np.cumsum(np.concatenate(([False], (is_marker | is_last)[:-1]))) if order.size else order
    is_open = np.ones(int(run[-1]) + 1 if order.size else 0, dtype=np.bool_)
    is_open[run[is_marker]] = False
    rows: npt.NDArray[np.intp] = order[is_open[run]]
    return rows


def find_transactions(
    log: Iterable[TransactionalBatches],
) -> tuple[AbortedTransactions, int | None]:
    """Find a log's aborted transactions, and the first offset of the earliest open one.

    Of two rows with the same producer and offset, the first comes first.
    """
    whole = joined(list(log))
    if not whole.producer_id.size:
        return NONE_ABORTED, None
    producer, offset = whole.producer_id, whole.base_offset
    is_marker, is_abort = whole.is_marker, whole.is_abort
    order = np.lexsort((offset, producer))
    producer, offset = producer[order], offset[order]
    is_marker, is_abort = is_marker[order], is_abort[order]
    # A run begins with a new producer, and after each marker.
    begins = np.ones(producer.size, dtype=np.bool_)
    begins[1:] = (producer[1:] != producer[:-1]) | is_marker[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], producer.size) - 1
    has_data = ~is_marker[first]
    ends = is_marker[last]
    aborted = has_data & ends & is_abort[last]
    still_open = offset[first[has_data & ~ends]]
    transactions = AbortedTransactions(
        producer[first[aborted]], offset[first[aborted]], offset[last[aborted]]
    )
    return transactions, int(still_open.min()) if still_open.size else None
