"""Find what a consumer with isolation.level=read_committed may see of a partition's log.

The markers in the log decide which transactions were aborted, and the headers of batches which are
open. A transaction may span segments, so all segments are read, in order. A .txnindex may be stale
or of another log: it is compared with the markers (`aborts_in_index`), and used only for markers
that damage has taken.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from kafkajit.errors import CorruptIndexError, RemoteStorageError
from kafkajit.format.ranges import Range
from kafkajit.index.transaction_index import aborted_transactions
from kafkajit.log.aborts_in_index import (
    IndexedAborts,
    lost_markers,
    over_damage,
    undisputed,
    warn_of_contradictions,
)
from kafkajit.records.transactions import (
    NONE_ABORTED,
    AbortedTransactions,
    TransactionalBatches,
    find_transactions,
    joined,
)
from kafkajit.storage.source import Source, as_bytes
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import FAILFAST
from kafkajit.walk.selection import Selection
from kafkajit.walk.transactional_batches import Holes, transactional_batches

logger = logging.getLogger("kafkajit")


def find_isolation(
    segments: Iterable[tuple[StoredFile, StoredFile | None, Range]],
    mode: str,
    *,
    check_crcs: bool = True,
) -> tuple[AbortedTransactions, int | None]:
    """Aborted transactions, and the last stable offset if a transaction is open.

    Args:
        segments: all logs of a partition in order, each with its transaction index, if any, and the
            offsets that are read of it.
        mode: how to treat damage.
        check_crcs: whether to check the checksums of markers.
    """
    indexed: list[IndexedAborts] = []
    found: list[TransactionalBatches] = []
    holes = Holes()
    for log, index, cut in segments:
        parts = transactional_batches(
            log.open(), mode, check_crcs, asked=Selection(offsets=cut), holes=holes
        )
        batches = joined(list(parts))
        found.append(batches)
        # A broker writes the index after the log. The index of a segment of which only a part is
        # read has transactions that end elsewhere, too.
        if index is not None and cut.is_everything:
            entries = _entries(index, mode)
            if entries.producer_id.size:
                indexed.append(IndexedAborts(index.path, entries, batches))
    whole, lost = joined(found), holes.ranges()
    entries = undisputed(indexed, whole, lost) if indexed and lost else NONE_ABORTED
    if entries.producer_id.size:
        whole = joined([lost_markers(entries, whole, lost), whole])
    aborted, first_open = find_transactions([whole])
    if entries.producer_id.size:
        columns = zip(aborted, over_damage(entries, lost), strict=True)
        aborted = AbortedTransactions(*map(np.concatenate, columns))
    for one in indexed:
        warn_of_contradictions(one, whole, aborted, lost)
    return aborted, first_open


def _entries(index: StoredFile, mode: str) -> AbortedTransactions:
    try:
        return aborted_transactions(as_bytes(index.read()), index.path)
    except (CorruptIndexError, RemoteStorageError) as error:
        if mode == FAILFAST:
            raise
        logger.warning("%s: only the markers in the log are read", error)
        return NONE_ABORTED


def first_open_offset(
    producers: pa.Table, logs: Iterable[tuple[Source, int, Range]], since: int, mode: str
) -> int | None:
    """The start offset of the earliest transaction that is open at a log's end, if there is one.

    Args:
        producers: the producers at the offset `since`.
        logs: the segments from that offset on, each with a position to begin at and the offsets
            that are read of it.
        since: the offset of the producers' snapshot.
        mode: how to treat damage.
    """
    known = producers.filter(producers["currentTxnFirstOffset"].is_valid())
    none = np.zeros(known.num_rows, dtype=np.bool_)
    ids, firsts = (known[name].to_numpy() for name in ("producerId", "currentTxnFirstOffset"))
    found = [TransactionalBatches(ids, firsts, none, none)]
    for source, start, cut in logs:
        later = Selection(offsets=Range(since) & cut)
        found.extend(
            transactional_batches(source, mode, True, reads_markers=False, start=start, asked=later)
        )
    return find_transactions(found)[1]
