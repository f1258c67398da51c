"""The transactions of a partition that a stream reads with isolationLevel read_committed.

Headers and markers are read once, as they come. What is kept: the aborted transactions that may
still be read, and the first offset of each open one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np

from kafkajit.errors import CorruptSnapshotError
from kafkajit.log.isolation import are_damaged, name_hidden
from kafkajit.records.transactions import (
    NONE_ABORTED,
    AbortedTransactions,
    TransactionalBatches,
    find_transactions,
    joined,
    open_rows,
)
from kafkajit.scan.stream.options import StreamOptions
from kafkajit.scan.stream.partition import Partition, Piece
from kafkajit.state.producer_snapshot import parse_producer_snapshot
from kafkajit.storage.source import Int64s, as_bytes
from kafkajit.walk.damage import DROPMALFORMED, FAILFAST, Stretch
from kafkajit.walk.selection import Selection
from kafkajit.walk.transactional_batches import Holes, transactional_batches

logger = logging.getLogger("kafkajit")


class Transactions:
    """The transactions of a partition from an offset on."""

    def __init__(self, partition: Partition, since: int, options: StreamOptions) -> None:
        self.aborted = NONE_ABORTED
        self._since = since
        self._stable: int | None = None
        self._options = options.scan
        self._partition = partition
        self._generation = partition.generation
        self._open, self._read = _open_before(partition, since)
        self._holes = Holes()
        self._named = -1  # the offset from which on damage hides records

    @property
    def read_up_to(self) -> int:
        """The offset up to which the log has been read."""
        return self._read

    def serves(self, partition: Partition, first: int) -> bool:
        """Whether these are a partition's transactions from an offset on."""
        # Transactions that were truncated away must not decide about what was written since.
        return partition.generation is self._generation and self._since <= first

    def stable_end(self, end: int) -> int:
        """The last stable offset, once the log has been read up to an end."""
        if self._read == end and self._stable is not None:
            return self._stable
        found = [self._open]
        pieces = list(self._partition.pieces(self._read, end))
        for piece in pieces:
            found += transactional_batches(
                piece.segment.log.open(piece.start, piece.end),
                self._options.mode,
                self._options.check_crcs,
                reads_markers=True,
                start=piece.start,
                end=piece.end,
                asked=Selection(offsets=piece.offsets),
                holes=self._holes,
            )
        if len(found) > 1:
            found = [self._without_damaged(found, pieces)]
            more, _ = find_transactions(found)
            columns = zip(self.aborted, more, strict=True)
            self.aborted = AbortedTransactions(*map(np.concatenate, columns))
            self._open = _still_open(found)
        self._read = max(self._read, end)
        first = self._open.base_offset
        self._stable = min(end, int(first.min())) if first.size else end
        if self._stable < end and self._stable != self._named and self._options.mode != FAILFAST:
            folder = self._partition.listing.folder
            if name_hidden(self._stable, self._holes.ranges(), folder, None):
                self._named = self._stable
        return self._stable

    def _without_damaged(
        self, found: list[TransactionalBatches], pieces: list[Piece]
    ) -> TransactionalBatches:
        """The batches without those that only seem to open a transaction."""
        batches = joined(found)
        if not self._options.check_crcs:
            return batches
        parts = [
            (piece.segment.log, Stretch(piece.start, piece.end), piece.offsets) for piece in pieces
        ]
        rows = open_rows(batches)
        damaged = are_damaged(batches.base_offset[rows], parts, self._options.mode)
        return batches.without(rows[damaged])

    def forget(self, before: int) -> None:
        """Drop the aborted transactions that end before an offset."""
        is_needed = self.aborted.last_offset >= before
        self.aborted = AbortedTransactions(*(column[is_needed] for column in self.aborted))
        self._since = max(self._since, before)


def _open_before(partition: Partition, offset: int) -> tuple[TransactionalBatches, int]:
    """The transactions that are open at the newest snapshot up to an offset, and its offset."""
    for since, opened in _snapshots(partition, -1, offset):
        # Compaction removes a marker behind the snapshot, but no record of an open transaction. And
        # the snapshot may be another log's.
        gone = {one for one in opened if one[1] < partition.start_offset}
        there = [one for one in opened if one not in gone and _begins(partition, *one)]
        # Where retention has removed the records, compaction may have removed the marker, too.
        if gone:
            _, newest = next(_snapshots(partition, since, partition.end_offset), (since, opened))
            there += gone.intersection(newest)
        ids, firsts = np.array(there, dtype=np.int64).reshape(-1, 2).T
        return _data(ids, firsts), since
    empty = np.empty(0, dtype=np.int64)
    return _data(empty, empty), partition.start_offset


def _snapshots(
    partition: Partition, above: int, up_to: int
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The offsets of snapshots, the newest first, and the producers and starts of what is open."""
    for file in reversed(partition.listing.snapshots):
        since = int(file.name[:20])
        if not above < since <= up_to:
            continue
        try:
            rows = parse_producer_snapshot(as_bytes(file.read_now()), file.path)
        except FileNotFoundError:
            continue  # a broker that starts after a crash makes its snapshots anew
        except CorruptSnapshotError as error:
            logger.warning("%s: transactions are looked for without it", error)
            continue
        known = rows.filter(rows["currentTxnFirstOffset"].is_valid())
        columns = (known[name].to_pylist() for name in ("producerId", "currentTxnFirstOffset"))
        yield since, list(zip(*columns, strict=True))


def _begins(partition: Partition, producer: int, offset: int) -> bool:
    """Whether a batch of a producer's transaction begins at an offset."""
    return any(
        ((found.producer_id == producer) & (found.base_offset == offset)).any()
        for piece in partition.pieces(offset, offset + 1)
        for found in transactional_batches(
            piece.segment.log.open(piece.start, piece.end),
            DROPMALFORMED,
            check_crcs=False,
            reads_markers=False,
            start=piece.start,
            end=piece.end,
        )
    )


def _data(producer_id: Int64s, base_offset: Int64s) -> TransactionalBatches:
    none = np.zeros(producer_id.size, dtype=np.bool_)
    return TransactionalBatches(
        producer_id.astype(np.int64), base_offset.astype(np.int64), none, none
    )


def _still_open(found: list[TransactionalBatches]) -> TransactionalBatches:
    """The first batch of each transaction without a marker."""
    producer = np.concatenate([part.producer_id for part in found])
    if not producer.size:
        return found[0]
    offset = np.concatenate([part.base_offset for part in found])
    is_marker = np.concatenate([part.is_marker for part in found])
    order = np.lexsort((offset, producer))
    producer, offset, is_marker = producer[order], offset[order], is_marker[order]
    begins = np.ones(producer.size, dtype=np.bool_)
    begins[1:] = (producer[1:] != producer[:-1]) | is_marker[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], producer.size) - 1
    is_open = ~is_marker[last]
    return _data(producer[first[is_open]], offset[first[is_open]])
