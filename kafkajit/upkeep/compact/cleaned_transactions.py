"""Find the batches that compaction discards: aborted data, and markers without data.

Answers to CleanedTransactionMetadata of Kafka 4.1.1. Batches come in the order of the log. The
marker of a transaction stays while a batch of the transaction does. If the transaction was aborted,
the new transaction index of the marker's segment has an entry for it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.kernel import kernel
from kafkajit.records.batches import Batches
from kafkajit.records.chunk import Chunk
from kafkajit.records.control_records import ABORT, COMMIT, CONTROL_TYPES, read_control_records
from kafkajit.storage.source import Mask

# In place of a control type: a batch of data, and a control batch without records.
NO_CONTROL, _EMPTY = -1, -2

# What the log has of a producer so far.
_PRODUCER = np.dtype(
    [
        ("hasCommitted", np.bool_),  # data behind its last COMMIT that is not known to be aborted
        ("aborted", np.int64),  # the row of its current aborted transaction, or _NONE
        ("hasAborted", np.bool_),  # data of that transaction
    ]
)
_NONE = -1


class CleanedTransactions:
    """The transactions of a log up to some batch.

    Args:
        aborted: the entries of the log's transaction indexes, which the log does not contradict
            (`LoggedTransactions.check_indexes`).
    """

    def __init__(self, aborted: npt.NDArray[np.void]) -> None:
        self._aborted = aborted[np.argsort(aborted["firstOffset"], kind="stable")]
        self._begun = 0
        self._ended = np.empty(0, dtype=np.int64)
        self._rows: dict[int, int] = {}  # of producers
        self._producers = np.empty(0, dtype=_PRODUCER)
        self._owners = self._rows_of(self._aborted["producerId"].astype(np.int64))
        self._firsts = self._aborted["firstOffset"].astype(np.int64)

    def discards(self, batches: Batches, types: npt.NDArray[np.int64]) -> Mask:
        """Find the batches that compaction discards; `types` are their `control_types`."""
        discarded = np.zeros(len(batches), dtype=np.bool_)
        rows = np.flatnonzero(batches.is_transactional | batches.is_control)
        if not rows.size:
            return discarded
        producer_ids = batches.field("producerId")[rows].astype(np.int64)
        of_rows = np.empty(rows.size, dtype=np.bool_)
        ended = np.empty(rows.size, dtype=np.int64)
        self._begun, count = _follow(
            *(batches.last_offset[rows], self._rows_of(producer_ids), types[rows]),
            *(self._firsts, self._owners, self._begun),
            *(self._producers, of_rows, ended),
        )
        self._ended = np.concatenate([self._ended, ended[:count]])
        discarded[rows] = of_rows
        return discarded

    def take_ended(self) -> npt.NDArray[np.void]:
        """The entries of aborted transactions with data that have ended since the last call."""
        ended, self._ended = self._aborted[self._ended], self._ended[:0]
        return ended

    def _rows_of(self, producer_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        distinct, inverse = np.unique(producer_ids, return_inverse=True)
        known = [self._rows.setdefault(each, len(self._rows)) for each in distinct.tolist()]
        missing = len(self._rows) - self._producers.size
        if missing > 0:
            more = np.zeros(missing + self._producers.size, dtype=_PRODUCER)
            more["aborted"] = _NONE
            self._producers = np.concatenate([self._producers, more])
        return np.array(known, dtype=np.int64)[inverse]


def control_types(chunk: Chunk) -> npt.NDArray[np.int64]:
    """The type of each batch's first control record, which must have been checked."""
    is_control = chunk.batches.is_control
    types = np.where(is_control, _EMPTY, NO_CONTROL)
    has_type = is_control & (chunk.counts > 0)
    first_rows = (np.cumsum(chunk.counts) - chunk.counts)[has_type]
    numbers = read_control_records(chunk.content, chunk.fields[first_rows]).type_id
    # Kafka treats a negative type as an unknown one.
    types[has_type] = np.where(numbers < 0, len(CONTROL_TYPES), numbers)
    return types


@kernel
def _follow(last_offsets, rows, types, firsts, owners, begun, producers, discarded, ended):
    """Follow transactional batches and markers.

    Returns:
        The number of aborted transactions that have begun, and the number of those with data that
        have ended.
    """
    count = 0
    for batch in range(last_offsets.size):
        while begun < firsts.size and firsts[begun] <= last_offsets[batch]:
            owner = producers[owners[begun]]
            if owner["aborted"] == _NONE:
                owner["aborted"] = begun
                owner["hasAborted"] = False
            begun += 1
        producer = producers[rows[batch]]
        if types[batch] == NO_CONTROL:
            discarded[batch] = producer["aborted"] != _NONE
            if discarded[batch]:
                producer["hasAborted"] = True
            else:
                producer["hasCommitted"] = True
        elif types[batch] == ABORT:
            is_needed = producer["aborted"] != _NONE and producer["hasAborted"]
            if is_needed:
                ended[count] = producer["aborted"]
                count += 1
            discarded[batch] = not is_needed
            producer["aborted"] = _NONE
        elif types[batch] == COMMIT:
            discarded[batch] = not producer["hasCommitted"]
            producer["hasCommitted"] = False
        else:
            discarded[batch] = types[batch] == _EMPTY
    return begun, count
