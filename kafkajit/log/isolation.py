"""Find what a consumer with isolation.level=read_committed may see of a partition's log.

Aborted transactions come from a segment's .txnindex, or from the markers in the segment if it has
no .txnindex (in the lenient modes: no sound one). Open transactions come from the headers of
batches. A transaction may span segments, so all segments are read, in order.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import CorruptIndexError, RemoteStorageError
from kafkajit.format.ranges import Range
from kafkajit.index.transaction_index import aborted_transactions
from kafkajit.records.batches import Batches
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.control_records import ABORT
from kafkajit.records.decode import Decoder
from kafkajit.records.markers import read_markers
from kafkajit.records.transactions import (
    AbortedTransactions,
    TransactionalBatches,
    find_transactions,
)
from kafkajit.storage.source import Source, as_bytes
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import FAILFAST
from kafkajit.walk.selection import EVERYTHING, Selection
from kafkajit.walk.walk import Walk

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
    indexed: list[AbortedTransactions] = []
    found: list[TransactionalBatches] = []
    for log, index, cut in segments:
        if not cut.is_everything:
            index = None  # it has transactions that end elsewhere, too
        if index is not None:
            try:
                indexed.append(aborted_transactions(as_bytes(index.read()), index.path))
            except (CorruptIndexError, RemoteStorageError) as error:
                if mode == FAILFAST:
                    raise
                logger.warning("%s: the markers in the log are read instead", error)
                index = None
        found.extend(
            transactional_batches(
                log.open(),
                mode,
                check_crcs,
                reads_markers=index is None,
                asked=Selection(offsets=cut),
            )
        )
    from_markers, first_open = find_transactions(found)
    columns = zip(from_markers, *indexed, strict=True)
    return AbortedTransactions(*map(np.concatenate, columns)), first_open


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


def transactional_batches(
    source: Source,
    mode: str,
    check_crcs: bool,
    *,
    reads_markers: bool,
    start: int = 0,
    end: int | None = None,
    asked: Selection = EVERYTHING,
) -> Iterator[TransactionalBatches]:
    """The batches of transactions in a stretch of a segment, and their markers."""
    decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
    for framed in Walk(source, mode=mode, start=start, end=end, selection=asked).framed():
        batches = framed[framed.is_transactional]
        is_abort = np.zeros(len(batches), dtype=np.bool_)
        if reads_markers and batches.is_control.any():
            markers = batches[batches.is_control]
            is_abort[batches.is_control] = _aborts(decoder, markers, mode, check_crcs)
        yield TransactionalBatches(
            batches.field("producerId").astype(np.int64),
            batches.field("baseOffset").astype(np.int64),
            batches.is_control,
            is_abort,
        )
        source.forget(int(framed.end[-1]))


def _aborts(
    decoder: Decoder, markers: Batches, mode: str, check_crcs: bool
) -> npt.NDArray[np.bool_]:
    """Find the ABORT markers among these control batches; the lenient modes skip bad batches."""
    sound = decoder.sound(markers, check_crcs=check_crcs)
    aborts = np.zeros(len(markers), dtype=np.bool_)
    done = 0
    while done < len(markers):
        found, error = read_markers(decoder, markers[done:], sound[done:])
        aborts[done : done + len(found)] = found.type_id == ABORT
        if error is not None and mode == FAILFAST:
            raise error
        done += len(found) + 1  # behind the bad batch, if there is one
    return aborts
