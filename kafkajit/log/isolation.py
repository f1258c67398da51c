"""Find what a consumer with isolation.level=read_committed may see of a partition's log.

The markers in the log decide which transactions were aborted, and the headers of batches which are
open. A transaction may span segments, so all segments are read, in order. A .txnindex may be stale
or of another log: it is compared with the markers (`aborts_in_index`), and used only for markers
that damage has taken.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from kafkajit.errors import CorruptIndexError, Failed, LeftOutError, RemoteStorageError
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.index.transaction_index import aborted_transactions
from kafkajit.log.aborts_in_index import (
    IndexedAborts,
    lost_markers,
    over_damage,
    undisputed,
    warn_of_contradictions,
)
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.records.transactions import (
    NONE_ABORTED,
    AbortedTransactions,
    TransactionalBatches,
    find_transactions,
    joined,
    open_rows,
)
from kafkajit.storage.source import Int64s, Mask, Source, as_bytes
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import FAILFAST, PERMISSIVE, Stretch
from kafkajit.walk.selection import Selection
from kafkajit.walk.transactional_batches import Holes, transactional_batches
from kafkajit.walk.walk import Walk

logger = logging.getLogger("kafkajit")


def find_isolation(
    segments: Iterable[tuple[StoredFile, StoredFile | None, Range]],
    mode: str,
    *,
    check_crcs: bool = True,
    failed: Failed = None,
) -> tuple[AbortedTransactions, int | None]:
    """Aborted transactions, and the last stable offset if a transaction is open.

    Args:
        segments: all logs of a partition in order, each with its transaction index, if any, and the
            offsets that are read of it.
        mode: how to treat damage.
        check_crcs: whether to check the checksums of markers, and of open transactions.
        failed: is called with an error about records that are left out because of damage.
    """
    segments = list(segments)
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
    if check_crcs:
        rows = open_rows(whole)
        begins = whole.base_offset[rows]
        stretches = [
            (log, Stretch(0, log.size), cut)
            for (log, _, cut), batches in zip(segments, found, strict=True)
            if np.isin(batches.base_offset, begins).any()
        ]
        bad = rows[are_damaged(begins, stretches, mode)]
        lost = sorted([*lost, *(Range(at, at) for at in whole.base_offset[bad].tolist())])
        whole = whole.without(bad)
    entries = undisputed(indexed, whole, lost) if indexed and lost else NONE_ABORTED
    if entries.producer_id.size:
        whole = joined([lost_markers(entries, whole, lost), whole])
    aborted, first_open = find_transactions([whole])
    if first_open is not None and mode != FAILFAST:
        name_hidden(first_open, lost, segments[0][0].folder, failed)
    if entries.producer_id.size:
        columns = zip(aborted, over_damage(entries, lost), strict=True)
        aborted = AbortedTransactions(*map(np.concatenate, columns))
    for one in indexed:
        warn_of_contradictions(one, whole, aborted, lost)
    return aborted, first_open


def name_hidden(first_open: int, lost: Sequence[Range], folder: str, failed: Failed) -> bool:
    """Name the records that are left out because damage may have had a marker, if there are any.

    Args:
        first_open: the first offset of a transaction that seems to be open.
        lost: the offsets that damage has taken.
        folder: of the partition.
        failed: is called with the error; None: a warning has the text.
    """
    # Damaged bytes at the log's end may be a batch that a broker writes.
    behind = [one for one in lost if one.first > first_open and one.last < MAX_INT64]
    if not behind:
        return False
    text = (
        f"{folder}: records from offset {first_open} on are left out: a transaction is open since "
        f"then, and damage at offset {behind[0].first} may have been its marker"
    )
    if failed is None:
        logger.warning("%s", text)
    else:
        failed(LeftOutError(text))
    return True


def are_damaged(
    begins: Int64s, parts: Sequence[tuple[StoredFile, Stretch, Range]], mode: str
) -> Mask:
    """Find the batches of open transactions with wrong checksums; with FAILFAST one is an error.

    Such a batch may have been another producer's, or none of a transaction.

    Args:
        begins: the base offsets of the batches.
        parts: the stretches of logs with some of them, and the offsets that are read there.
        mode: how to treat damage.
    """
    damaged = np.zeros(begins.size, dtype=np.bool_)
    for log, (start, end), cut in parts:
        if not cut.holds(begins).any():
            continue
        source, asked = log.open(start, end), Selection(offsets=cut)
        walk = Walk(source, mode=PERMISSIVE, start=start, end=end, selection=asked)
        for part in walk.framed():
            here = part[np.isin(part.field("baseOffset"), begins)]
            bad = here[~here.is_valid(source.content)]
            if len(bad) and mode == FAILFAST:
                raise Decoder(source, ColumnMemory(Wanted())).unsound(bad, 0)
            damaged |= np.isin(begins, bad.field("baseOffset"))
            source.forget(int(part.end[-1]))
    return damaged


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
