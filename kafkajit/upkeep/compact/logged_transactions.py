"""The transactions of a log by its own batches and markers, and whether its indexes agree.

Kafka's cleaner trusts the transaction indexes and the snapshots of producers. A stale one, or that
of another log, makes it discard committed records. The log itself knows better: compaction keeps
the marker of a transaction while a batch of the transaction stays (CleanedTransactionMetadata), so
the producer's next marker decides about a batch. Only the headers and the markers are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from kafkajit.errors import CorruptIndexError, KafkaJitError
from kafkajit.index.transaction_index import transaction_entries
from kafkajit.kernel import kernel
from kafkajit.log.producers import are_markers, markers_of
from kafkajit.log.repair_advice import advise_repair
from kafkajit.log.segment import Segment
from kafkajit.records.batches import Batches
from kafkajit.records.control_records import ABORT, COMMIT
from kafkajit.records.markers import Markers
from kafkajit.storage.source import as_bytes
from kafkajit.walk.frames import frames

_NONE = -1  # in place of an offset

# What the log has of a producer so far.
_PRODUCER = np.dtype(
    [
        ("marker", np.int64),  # the offset of its last marker
        ("first", np.int64),  # of its batches behind that
        ("last", np.int64),  # the last offset of those with records
    ]
)
# An ABORT marker.
_ABORTED = np.dtype(
    [
        ("producerId", np.int64),
        ("offset", np.int64),
        ("before", np.int64),  # the offset of the producer's marker before it
        ("first", np.int64),  # of the transaction's batches that are left
        ("last", np.int64),  # the last offset of those with records
    ]
)


class LoggedTransactions:
    """The transactions that the batches and markers of these segments show.

    A segment that cannot be read is an error.
    """

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._rows: dict[int, int] = {}  # of producers
        self._producers = np.empty(0, dtype=_PRODUCER)
        found = [np.empty(0, dtype=_ABORTED)]
        for segment in segments:
            source = segment.log.open()
            try:
                for framing in frames(source):
                    batches = framing.batches
                    ids = batches.header["producerId"]
                    batches = batches[(batches.is_transactional | batches.is_control) & (ids >= 0)]
                    if len(batches):
                        markers = markers_of(source, batches, check_crcs=True)
                        found.append(self._followed(batches, markers))
                    source.forget(framing.position)
            except KafkaJitError as error:
                advise_repair(error)
                raise
        aborted = np.concatenate(found)
        self._aborted = aborted[np.argsort(aborted["offset"], kind="stable")]

    @property
    def first_open_offset(self) -> int | None:
        """The first offset of the earliest transaction without a marker, if there is one."""
        firsts = self._producers["first"]
        opened = firsts[firsts != _NONE]
        return int(opened.min()) if opened.size else None

    def check_indexes(self, segments: Sequence[Segment], start: int, end: int) -> None:
        """Raise if the log contradicts an entry of its transaction indexes, or one is missing.

        Args:
            segments: all segments of the log.
            start: the log start offset. What ends before it concerns nobody.
            end: so does what begins here or behind it.
        """
        is_listed = np.zeros(self._aborted.size, dtype=np.bool_)
        for segment in segments:
            file = segment.transaction_index
            if file is None:
                continue
            try:
                entries = transaction_entries(as_bytes(file.read()), file.path)
            except CorruptIndexError as error:
                advise_repair(error)
                raise
            firsts, lasts = (entries[n].astype(np.int64) for n in ("firstOffset", "lastOffset"))
            rows = np.flatnonzero((lasts >= start) & (firsts < end))
            found = self._matching(entries["producerId"][rows].astype(np.int64), lasts[rows])
            for row, at in zip(rows.tolist(), found.tolist(), strict=True):
                problem = self._problem_with(at, int(firsts[row]), int(lasts[row]))
                if problem is not None:
                    producer = int(entries["producerId"][row])
                    raise advise_repair(
                        CorruptIndexError(
                            f"entry {row}, an aborted transaction of producer {producer} from "
                            f"offset {firsts[row]} to {lasts[row]}, contradicts the log: {problem}",
                            path=file.path,
                        )
                    )
            is_listed[found[found != _NONE]] = True
        # A broker that recovered the log has no entry for data before the log start offset.
        needed = (self._aborted["last"] >= start) & (self._aborted["first"] < end)
        for aborted in self._aborted[needed & ~is_listed][:1]:
            offset = int(aborted["offset"])
            last = max((s for s in segments if s.base_offset <= offset), key=_base_offset)
            raise advise_repair(
                CorruptIndexError(
                    f"the transaction index lacks the aborted transaction of producer "
                    f"{aborted['producerId']} that ends with offset {offset}",
                    path=last.log.path,
                )
            )

    def _matching(
        self, producer_ids: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """The rows of these producers' ABORT markers at these offsets, or _NONE."""
        if not self._aborted.size:
            return np.full(offsets.size, _NONE, dtype=np.int64)
        at = np.searchsorted(self._aborted["offset"], offsets).clip(max=self._aborted.size - 1)
        found = self._aborted[at]
        is_it = (found["offset"] == offsets) & (found["producerId"] == producer_ids)
        return np.where(is_it, at, _NONE)

    def _problem_with(self, row: int, first: int, last: int) -> str | None:
        """Describe how the marker in this row contradicts an entry; None if it does not."""
        if row == _NONE:
            return "it has no such marker"
        if first > last:
            return "it would begin behind its marker"
        marker = self._aborted[row]
        if marker["before"] >= first:
            return f"another transaction ends with offset {marker['before']}"
        if _NONE != marker["first"] < first:
            return f"the transaction has a batch at offset {marker['first']}"
        return None

    def _followed(self, batches: Batches, markers: Markers) -> npt.NDArray[np.void]:
        """Follow the next batches and markers of producers; return the ABORT markers."""
        producer_ids = batches.header["producerId"].astype(np.int64)
        is_marker = are_markers(batches)
        types = np.zeros(len(batches), dtype=np.int64)
        types[is_marker] = markers.type_id
        found = np.empty(len(batches), dtype=_ABORTED)
        count = _follow(
            *(producer_ids, self._rows_of(producer_ids), is_marker, types),
            *(batches.header["baseOffset"].astype(np.int64), batches.last_offset),
            *(batches.header["recordsCount"].astype(np.int64), self._producers, found),
        )
        return found[:count]

    def _rows_of(self, producer_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        distinct, inverse = np.unique(producer_ids, return_inverse=True)
        known = [self._rows.setdefault(each, len(self._rows)) for each in distinct.tolist()]
        missing = len(self._rows) - self._producers.size
        if missing > 0:
            more = np.empty(missing + self._producers.size, dtype=_PRODUCER)
            for name in _PRODUCER.names or ():
                more[name] = _NONE
            self._producers = np.concatenate([self._producers, more])
        return np.array(known, dtype=np.int64)[inverse]


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


@kernel
def _follow(
    producer_ids, rows, are_markers, types, base_offsets, last_offsets, counts, producers, aborted
):
    """Follow batches of transactions and markers; return the number of ABORT markers."""
    found = 0
    for batch in range(rows.size):
        producer = producers[rows[batch]]
        if not are_markers[batch]:
            if producer["first"] == _NONE:
                producer["first"] = base_offsets[batch]
            if counts[batch] > 0:
                producer["last"] = last_offsets[batch]
        elif types[batch] == ABORT or types[batch] == COMMIT:
            if types[batch] == ABORT:
                entry = aborted[found]
                entry["producerId"] = producer_ids[batch]
                entry["offset"] = base_offsets[batch]
                entry["before"] = producer["marker"]
                entry["first"] = producer["first"]
                entry["last"] = producer["last"]
                found += 1
            producer["marker"] = base_offsets[batch]
            producer["first"] = _NONE
            producer["last"] = _NONE
    return found
