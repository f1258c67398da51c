"""What a consumer with isolation.level=read_committed may see of a partition's log.

Aborted transactions come from a segment's .txnindex where there is one, else from the markers in
it; open ones from the headers of its batches. A transaction may span segments, so all of them are
looked at, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from kafkajit.index.transaction_index import read_transaction_index
from kafkajit.reader import FAILFAST, SegmentReader
from kafkajit.records.batches import Batches
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.control_records import control_type
from kafkajit.records.decode import Decoder, without_bad_markers
from kafkajit.records.transactions import (
    AbortedTransactions,
    TransactionalBatches,
    find_transactions,
)
from kafkajit.source import Source
from kafkajit.storage import StoredFile


def find_isolation(
    segments: Iterable[tuple[StoredFile, StoredFile | None]], mode: str
) -> tuple[AbortedTransactions, int | None]:
    """Aborted transactions, and the last stable offset where a transaction is open.

    `segments` are all logs of a partition in order, each with its transaction index, if any.
    """
    indexed: list[AbortedTransactions] = []
    found: list[TransactionalBatches] = []
    for log, index in segments:
        if index is not None:
            indexed.append(read_transaction_index(index.read(), index.path))
        found.extend(_transactional(log.open(), mode, reads_markers=index is None))
    from_markers, first_open = find_transactions(found)
    columns = zip(from_markers, *indexed, strict=True)
    return AbortedTransactions(*map(np.concatenate, columns)), first_open


def _transactional(
    source: Source, mode: str, *, reads_markers: bool
) -> Iterator[TransactionalBatches]:
    decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
    for framed in SegmentReader(source, mode=mode).framed():
        batches = framed[framed.is_transactional]
        is_abort = np.zeros(len(batches), dtype=np.bool_)
        if reads_markers and batches.is_control.any():
            is_abort[batches.is_control] = _aborts(decoder, batches[batches.is_control], mode)
        yield TransactionalBatches(
            batches.field("producerId").astype(np.int64),
            batches.field("baseOffset").astype(np.int64),
            batches.is_control,
            is_abort,
        )


def _aborts(decoder: Decoder, markers: Batches, mode: str) -> list[bool]:
    """Which of these control batches say ABORT; in the lenient modes a bad one says nothing."""
    aborts: list[bool] = []
    while len(aborts) < len(markers):
        chunk = without_bad_markers(decoder.decode(markers[len(aborts) :]))
        first_rows = np.cumsum(chunk.counts) - chunk.counts
        for row, count in zip(first_rows.tolist(), chunk.counts.tolist(), strict=True):
            aborts.append(count > 0 and control_type(chunk.field(row, "key")) == "ABORT")
        if chunk.error is not None:
            if mode == FAILFAST:
                raise chunk.error
            aborts.append(False)
    return aborts
