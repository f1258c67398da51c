from __future__ import annotations

import random

import pytest
import reference
from compaction_twin import Aborted, Transactions
from corpus import NO_JIT
from transaction_batches import (
    ABORT,
    COMMIT,
    data,
    ended_of,
    entries_of,
    found_in,
    marker,
    random_batches,
)

from kafkajit.upkeep.compact.cleaned_transactions import CleanedTransactions


@pytest.mark.parametrize("seed", range(10 if NO_JIT else 100))
def test_what_is_discarded_is_what_the_twin_discards(seed: int) -> None:
    rng = random.Random(seed)
    batches, aborted = random_batches(rng)
    twin, transactions = Transactions(aborted), CleanedTransactions(entries_of(aborted))
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
    transactions = CleanedTransactions(entries_of([]))
    log = data(1, 0) + marker(1, 1, COMMIT) + marker(1, 2, COMMIT) + marker(2, 3, ABORT)
    assert found_in(transactions, log) == [False, False, True, True]


def test_aborted_data_is_discarded_and_the_marker_kept_for_it() -> None:
    aborted = [Aborted(1, 0, 2, 3)]
    transactions = CleanedTransactions(entries_of(aborted))
    log = data(1, 0) + data(1, 1) + marker(1, 2, ABORT) + data(1, 3) + marker(1, 4, COMMIT)
    assert found_in(transactions, log) == [True, True, False, False, False]
    assert ended_of(transactions) == aborted
    assert ended_of(transactions) == []


def test_many_producers_come_and_go() -> None:
    log = b"".join(data(producer, producer) for producer in range(40))
    log += b"".join(marker(producer, 40 + producer, COMMIT) for producer in range(41))
    transactions = CleanedTransactions(entries_of([]))
    assert found_in(transactions, log) == [False] * 80 + [True]
