"""Compares a .txnindex with the markers in its own segment.

A transaction may begin in an earlier segment, and compaction removes records before their marker.
So an entry may begin where the segment has no batch, but not before another marker of its producer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.format.ranges import Range
from kafkajit.index.index_file import whole_entries
from kafkajit.index.transaction_index import ENTRY
from kafkajit.index.verify import OUT_OF_ORDER, TORN
from kafkajit.records.transactions import (
    AbortedTransactions,
    TransactionalBatches,
    find_transactions,
    joined,
    previous_offsets,
)
from kafkajit.schema import TRANSACTION_INDEX_PROBLEM_COLUMNS, table_schema
from kafkajit.storage.source import Source, whole
from kafkajit.walk.damage import DROPMALFORMED
from kafkajit.walk.selection import Selection
from kafkajit.walk.transactional_batches import Holes, transactional_batches
from kafkajit.walk.walk import Walk

_KEYS = ("producerId", "firstOffset", "lastOffset")


def verify_transaction_index(log: Any, index: Any) -> pa.Table:
    """List the entries of a .txnindex that do not fit its log, and the ones it lacks.

    An entry fits if an ABORT marker of its producer has its last offset, and its transaction begins
    behind the producer's marker before that one. Each aborted transaction with records in the
    segment has an entry. Where the log is damaged, the markers contradict no entry. The columns
    are `kafkajit.schema.TRANSACTION_INDEX_PROBLEM_COLUMNS`.

    Args:
        log: the segment, as for `kafkajit.read_records`.
        index: the .txnindex file: bytes or a path.

    >>> import kafkajit.testing as kt
    >>> log = kt.batch([kt.Record(value=b"v")], producer_id=7, is_transactional=True)
    >>> index = kt.transaction_index([(7, 0, 1, 2)])
    >>> verify_transaction_index(log, index)["problem"].to_pylist()
    ['the log has no such marker']
    """
    source = log if isinstance(log, Source) else Source(log)
    content, _ = whole(index)
    raw = whole_entries(content, ENTRY)
    entries = AbortedTransactions(
        *(raw[name].astype(np.int64) for name in ("producerId", "firstOffset", "lastOffset"))
    )
    holes = Holes()
    batches = joined(list(transactional_batches(source, DROPMALFORMED, True, holes=holes)))
    problem = _problems(entries, batches, holes.ranges())
    problem[raw["version"] != 0] = "its version is not 0"
    rows = [
        {"entry": row, "problem": problem[row]}
        | dict(zip(_KEYS, (int(column[row]) for column in entries), strict=True))
        for row in np.flatnonzero(problem).tolist()
    ]
    if content.size % ENTRY.itemsize:
        rows.append({"entry": problem.size, "problem": TORN})
    aborted, _ = find_transactions([batches])
    for row in np.flatnonzero(~np.isin(aborted.last_offset, entries.last_offset)).tolist():
        lacking = dict(zip(_KEYS, (int(column[row]) for column in aborted), strict=True))
        if _has_records(source, lacking):
            rows.append(lacking | {"problem": "the index lacks this aborted transaction"})
    return pa.Table.from_pylist(rows, schema=table_schema(TRANSACTION_INDEX_PROBLEM_COLUMNS))


def _problems(
    entries: AbortedTransactions, batches: TransactionalBatches, lost: list[Range]
) -> npt.NDArray[np.object_]:
    """The problem of each entry, or an empty text."""
    producer, first, last = entries
    problem = np.full(last.size, "", dtype=object)
    is_lost = np.zeros(last.size, dtype=np.bool_)
    for one in lost:
        is_lost |= one.holds(last)
    markers = batches.producer_id[batches.is_marker], batches.base_offset[batches.is_marker]
    before = previous_offsets(*markers, producer, last - 1)
    begins_elsewhere = (first <= before) | (first > last)
    if not lost:  # a lost marker may have ended the transaction of an earlier batch
        data = batches.producer_id[~batches.is_marker], batches.base_offset[~batches.is_marker]
        begins_elsewhere |= previous_offsets(*data, producer, first - 1) > before
    problem[begins_elsewhere] = "its transaction begins at another offset"
    problem[~is_lost & ~batches.have_aborts(entries)] = "the log has no such marker"
    problem[1:][last[1:] <= last[:-1]] = OUT_OF_ORDER
    return problem


def _has_records(log: Source, transaction: dict[str, int]) -> bool:
    """Whether compaction has left records of a transaction, not only empty batches."""
    asked = Selection(Range(transaction["firstOffset"], transaction["lastOffset"]))
    for batches in Walk(log, mode=DROPMALFORMED, selection=asked).framed():
        own = batches.is_transactional & ~batches.is_control
        own &= batches.field("producerId") == transaction["producerId"]
        if (batches.field("recordsCount")[own] > 0).any():
            return True
    return False
