"""Transactions whose markers are not among the rows of a job.

Rows that were read with read_committed have no markers, and neither have rows from which control
records were left out. With their offsets, they would begin transactions that never end: a consumer
that reads committed data would see none of them, nor anything behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from kafkajit.format.amounts import number_of
from kafkajit.format.batch_checksum import batch_checksums
from kafkajit.format.layout import ATTRIBUTES_OFFSET, CRC_OFFSET, TRANSACTIONAL_MASK
from kafkajit.records.batches import Batches
from kafkajit.storage.source import Source
from kafkajit.system import disk
from kafkajit.walk.frames import frames

# What happens to these transactions.
ERROR = "error"
PLAIN = "plain"
OPEN = "open"


def first_unmarked(logs: Iterable[Path]) -> dict[int, int]:
    """The first offset of each producer that has transactions in these segments, and no marker."""
    first: dict[int, int] = {}
    marked: set[int] = set()
    for batches, _ in _transactional(logs):
        is_control = batches.is_control
        marked.update(np.unique(batches.header["producerId"][is_control]).tolist())
        data = batches[~is_control]
        producers, rows = np.unique(data.header["producerId"], return_index=True)
        for producer, row in zip(producers.tolist(), rows.tolist(), strict=True):
            first.setdefault(producer, int(data.header["baseOffset"][row]))
    return {producer: offset for producer, offset in first.items() if producer not in marked}


def refuse_unmarked(partition: str, first: dict[int, int]) -> None:
    """Raise an error for transactions without markers.

    >>> refuse_unmarked("orders-0", {5: 12, 6: 20})
    Traceback (most recent call last):
    ValueError: the rows of orders-0 lack the marker of producer 5, whose transaction begins at \
offset 12, and those of 1 other producer: consumers that read committed data would not get its \
records, nor those behind them. Write the rows with a controlType, too; or set the option \
transactions to plain, if the rows were read with isolationLevel read_committed, or to open
    """
    if not first:
        return
    producer, offset = min(first.items(), key=lambda pair: pair[1])
    others = number_of(len(first) - 1, "other producer")
    more = f", and those of {others}" if len(first) > 1 else ""
    raise ValueError(
        f"the rows of {partition} lack the marker of producer {producer}, whose transaction begins "
        f"at offset {offset}{more}: consumers that read committed data would not get its records, "
        "nor those behind them. Write the rows with a controlType, too; or set the option "
        "transactions to plain, if the rows were read with isolationLevel read_committed, or to "
        "open"
    )


def make_plain(logs: Iterable[Path], producers: Iterable[int]) -> None:
    """Write the batches of these producers' transactions as batches of no transaction.

    The caller syncs the files when they become part of a log.
    """
    wanted = np.array(sorted(producers), dtype=np.int64)
    for batches, log in _transactional(logs):
        chosen = batches[np.isin(batches.header["producerId"], wanted)]
        if not len(chosen):
            continue
        with disk.open_to_change(log) as file:
            content = np.memmap(file, dtype=np.uint8, mode="r+").view(np.ndarray)
        content[chosen.position + ATTRIBUTES_OFFSET + 1] &= ~np.uint8(TRANSACTIONAL_MASK)
        sums = batch_checksums(content, chosen.position, chosen.end)
        for place, byte in enumerate(sums.astype(">u4").view(np.uint8).reshape(-1, 4).T):
            content[chosen.position + CRC_OFFSET + place] = byte


def _transactional(logs: Iterable[Path]) -> Iterator[tuple[Batches, Path]]:
    """The batches of transactions, and the segment that has them."""
    for log in logs:
        source = Source(log)
        for framing in frames(source):
            found = framing.batches[framing.batches.is_transactional]
            if len(found):
                yield found, log
            source.forget(framing.position)
