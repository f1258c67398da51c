"""The transactions that imported records leave open: their markers are not among the records.

An export has no markers unless its columns name controlType, and none that follow its last record.
Consumers that read committed data stop at the first open transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.records.control_records import END_TRANSACTION

# The columns of records, beside their offsets, that tell transactions.
OF_TRANSACTIONS = ("isTransactional", "controlType", "producerId")


@dataclass
class OpenTransactions:
    """The transactions in a partition's records, or in a part of them, that have no marker.

    >>> rows = {"offset": [5, 6], "producerId": [1, 2], "isTransactional": [True, False]}
    >>> part = OpenTransactions()
    >>> part.add(pa.RecordBatch.from_pydict(rows))
    >>> part.first_offsets
    {1: 5}
    """

    first_offsets: dict[int, int] = field(default_factory=dict)  # by producer
    _ended: set[int] = field(default_factory=set)  # producers that have a marker here

    def add(self, records: pa.RecordBatch) -> None:
        """Follow records with offsets, in their order."""
        names = records.schema.names
        if "isTransactional" not in names or not pc.any(records["isTransactional"]).as_py():
            return
        records = records.filter(records["isTransactional"])
        ends = pa.nulls(records.num_rows, pa.bool_())
        if "controlType" in names:
            ends = pc.is_in(records["controlType"], pa.array(END_TRANSACTION))
        producers = pa.nulls(records.num_rows, pa.int64())
        if "producerId" in names:
            producers = records["producerId"]
        changes = _changes(producers, ends)
        for producer, offset, is_end in zip(
            pc.fill_null(producers, -1).filter(changes).to_pylist(),
            records["offset"].filter(changes).to_pylist(),
            ends.filter(changes).to_pylist(),
            strict=True,
        ):
            if is_end:
                self.first_offsets.pop(producer, None)
                self._ended.add(producer)
            else:
                self.first_offsets.setdefault(producer, offset)

    def join(self, following: OpenTransactions) -> None:
        """Add those of the records that follow."""
        for producer in following._ended:
            self.first_offsets.pop(producer, None)
        for producer, offset in following.first_offsets.items():
            self.first_offsets.setdefault(producer, offset)
        self._ended |= following._ended


def joined(parts: Iterable[OpenTransactions]) -> OpenTransactions:
    """Those of all parts of a partition, in their order."""
    whole = OpenTransactions()
    for part in parts:
        whole.join(part)
    return whole


def _changes(producers: pa.Array, ends: pa.Array) -> pa.Array:
    """Whether each record is a marker, follows one, or is another producer's than the last."""
    is_end = pc.fill_null(ends, False)
    same = pc.and_(
        pc.equal(pc.fill_null(producers, -1)[1:], pc.fill_null(producers, -1)[:-1]),
        pc.invert(pc.or_(is_end[1:], is_end[:-1])),
    )
    return pa.concat_arrays([pa.array([True]), pc.invert(same)])


def without_producers(columns: Mapping[str, pa.Array]) -> Iterator[tuple[str, pa.Array]]:
    """The columns that put rows into transactions, and whether the producer of each is missing."""
    producers = columns.get("producerId", pa.scalar(-1, pa.int64()))
    is_unknown = pc.less(pc.fill_null(producers, -1), 0)
    if "isTransactional" in columns:
        is_lost = pc.and_(columns["isTransactional"], is_unknown)
        yield "isTransactional", pc.fill_null(is_lost, False)
    if "controlType" in columns:
        is_end = pc.is_in(columns["controlType"], pa.array(END_TRANSACTION))
        yield "controlType", pc.and_(is_end, is_unknown)
