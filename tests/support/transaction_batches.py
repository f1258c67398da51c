"""Batches of transactions, and what compaction discards of them."""

from __future__ import annotations

import random

import numpy as np
from compaction_twin import Aborted

import kafkajit.testing as kt
from kafkajit.index.transaction_index import transaction_entries
from kafkajit.records.batches import frame
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Source, as_bytes
from kafkajit.upkeep.compact.cleaned_transactions import CleanedTransactions, control_types

ABORT, COMMIT = 0, 1


def data(producer: int, offset: int, **fields: object) -> bytes:
    settings = {"is_transactional": True, "producer_epoch": 0, "base_sequence": 0} | fields
    return kt.batch([kt.Record(b"k")], producer_id=producer, base_offset=offset, **settings)  # type: ignore[arg-type]


def marker(producer: int, offset: int, control_type: int) -> bytes:
    return kt.control_batch(control_type, producer_id=producer, base_offset=offset)


def found_in(transactions: CleanedTransactions, log: bytes) -> list[bool]:
    source = Source(log)
    decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
    chunk = decoder.decode(frame(source.content).batches)
    return transactions.discards(chunk.batches, control_types(chunk)).tolist()


def entries_of(aborted: list[Aborted]) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    return transaction_entries(as_bytes(kt.transaction_index([tuple(one) for one in aborted])))


def ended_of(transactions: CleanedTransactions) -> list[Aborted]:
    return [Aborted(*entry[1:]) for entry in transactions.take_ended().tolist()]


def random_batches(rng: random.Random) -> tuple[list[bytes], list[Aborted]]:
    """Transactions of several producers, some without data, and their index entries."""
    batches: list[bytes] = []
    aborted: list[Aborted] = []
    begun: dict[int, int] = {}
    for offset in range(rng.randrange(1, 60)):
        producer = rng.choice([1, 2, 3, 2**40])
        draw = rng.random()
        if draw < 0.4:
            batches.append(data(producer, offset))
            begun.setdefault(producer, offset)
        elif draw < 0.8:
            control_type = rng.choice([ABORT, COMMIT])
            batches.append(marker(producer, offset, control_type))
            first = begun.pop(producer, None)
            if control_type == ABORT and (first is not None or rng.random() < 0.2):
                first = offset if first is None else first
                aborted.append(Aborted(producer, first, offset, offset + 1))
        elif draw < 0.9:
            batches.append(data(producer, offset, is_transactional=False))
        else:
            control_type = rng.choice([2, 5, 77, -1, -2])
            batches.append(
                kt.batch([], base_offset=offset, is_control=True, producer_id=producer)
                if control_type == 5
                else marker(-1, offset, control_type)
            )
    return batches, aborted
