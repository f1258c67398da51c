"""The ends of what a stream may read of partitions: with read_committed, open transactions.

A marker decides about all records of its producer before it, up to an earlier marker. One that is
still to come, in a segment that a copy lacks, decides about those before the missing offsets. So
markers behind such offsets are not read.
"""

from __future__ import annotations

from kafkajit.log.missing_offsets import Missing
from kafkajit.places.named import Place
from kafkajit.scan.options import READ_COMMITTED
from kafkajit.scan.stream.gaps import Gaps
from kafkajit.scan.stream.options import StreamOptions
from kafkajit.scan.stream.partition import Partition
from kafkajit.scan.stream.reports import Reports
from kafkajit.scan.stream.transactions import Transactions

_WHY = ": a transaction is open in front of them, and its marker may be among them"


class StableEnds:
    """The offsets up to which partitions may be read, and the transactions that decide it."""

    def __init__(self, options: StreamOptions, gaps: Gaps, reports: Reports) -> None:
        self._options = options
        self._gaps = gaps
        self._reports = reports
        self._is_committed = options.scan.isolation_level == READ_COMMITTED
        self._known: dict[Place, Transactions] = {}

    def of(self, place: Place, partition: Partition, first: int, planned: int | None = None) -> int:
        """The offset up to which a partition may be read now, from an offset on.

        Args:
            place: of the partition.
            partition: as it is now.
            first: the first offset to read.
            planned: the end of the offsets, if they have been planned: if some of them are missing
                now, the others are read all the same.
        """
        if not self._is_committed:
            return partition.end_offset
        known = self._known.get(place)
        if known is None or not known.serves(partition, first):
            known = self._known[place] = Transactions(partition, first, self._options)
        end = self._gaps.next(place, partition, first)
        if planned is not None and end < planned:
            end = partition.end_offset
        lost = self._gaps.lost_from(place, partition, first) if planned is None else []
        for gap in lost:
            # Another query reads the markers behind it.
            if known.read_up_to <= gap.first < end and known.stable_end(gap.first) < gap.first:
                self._report(gap, partition, is_open=True)
        stable = known.stable_end(end)
        for gap in lost:
            # A strict query has nothing left to read before it.
            if stable <= first <= end == gap.first and self._options.fail_on_data_loss:
                self._report(gap, partition, is_open=stable < end)
        if stable < first and partition.end_offset == first:
            # Transactions from the last stable offset on may have been aborted before `first`.
            self._known[place] = Transactions(partition, stable, self._options)
            self._known[place].stable_end(end)
        return stable

    def _report(self, gap: Missing, partition: Partition, *, is_open: bool) -> None:
        text = f"{gap.text}{_WHY}" if is_open else gap.text
        self._reports.loss(text, partition.listing.folder)

    def undecided(self, place: Place, partition: Partition, first: int) -> list[str]:
        """Lines about missing offsets, from an offset on, behind the end of what may be read."""
        if not self._is_committed:
            return []
        end = max(first, self.newest(place, partition))
        missing = self._gaps.missing_from(place, partition, end)
        return [f"{gap.text}{_WHY}" for gap in missing if gap.first > end]

    def newest(self, place: Place, partition: Partition) -> int:
        """The offset up to which a partition may be read, if no more of its segments come."""
        end = partition.end_offset
        if (
            not self._is_committed
            or self._gaps.next(place, partition, partition.start_offset) >= end
        ):
            return self.of(place, partition, end)
        return Transactions(partition, end, self._options).stable_end(end)

    def transactions(
        self, place: Place, partition: Partition, first: int, planned: int
    ) -> Transactions | None:
        """The transactions that decide about planned records, if they matter."""
        if not self._is_committed:
            return None
        self.of(place, partition, first, planned)
        return self._known[place]

    def forget(self, place: Place, before: int) -> None:
        """Forget what was needed only for records before an offset."""
        if place in self._known:
            self._known[place].forget(before)
