from __future__ import annotations

import random

import numpy as np
import pytest
import reference
from compaction_twin import Aborted, Transactions
from corpus import NO_JIT

import kafkajit.testing as kt
from kafkajit.errors import CorruptIndexError
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
    return transactions.discards(chunk.batches, control_types(chunk), "0.log").tolist()


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


@pytest.mark.parametrize("seed", range(10 if NO_JIT else 100))
def test_what_is_discarded_is_what_the_twin_discards(seed: int) -> None:
    rng = random.Random(seed)
    batches, aborted = random_batches(rng)
    twin, transactions = Transactions(aborted), CleanedTransactions(entries_of(aborted), 0)
    at = 0
    while at < len(batches):  # chunk after chunk
        size = rng.randrange(1, 9)
        log = b"".join(batches[at : at + size])
        expected = [twin.discards(batch) for batch in reference.read_batches(log)[0]]
        assert found_in(transactions, log) == expected
        assert ended_of(transactions) == twin.ended
        twin.ended = []
        at += size


def test_a_marker_is_discarded_where_its_transaction_has_no_data() -> None:
    transactions = CleanedTransactions(entries_of([]), 0)
    log = data(1, 0) + marker(1, 1, COMMIT) + marker(1, 2, COMMIT) + marker(2, 3, ABORT)
    assert found_in(transactions, log) == [False, False, True, True]


def test_aborted_data_is_discarded_and_the_marker_kept_for_it() -> None:
    aborted = [Aborted(1, 0, 2, 3)]
    transactions = CleanedTransactions(entries_of(aborted), 0)
    log = data(1, 0) + data(1, 1) + marker(1, 2, ABORT) + data(1, 3) + marker(1, 4, COMMIT)
    assert found_in(transactions, log) == [True, True, False, False, False]
    assert ended_of(transactions) == aborted
    assert ended_of(transactions) == []


def test_aborted_data_that_no_index_names_is_an_error_unless_nobody_can_read_it() -> None:
    log = data(1, 0) + marker(1, 1, ABORT)
    with pytest.raises(CorruptIndexError, match=r"producer 1 that ends with offset 1 .*in 0\.log"):
        found_in(CleanedTransactions(entries_of([]), 0), log)
    for start_offset in (1, 2):
        assert found_in(CleanedTransactions(entries_of([]), start_offset), log) == [False, True]


def test_many_producers_come_and_go() -> None:
    log = b"".join(data(producer, producer) for producer in range(40))
    log += b"".join(marker(producer, 40 + producer, COMMIT) for producer in range(41))
    transactions = CleanedTransactions(entries_of([]), 0)
    assert found_in(transactions, log) == [False] * 80 + [True]
