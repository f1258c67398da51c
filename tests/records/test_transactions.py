from __future__ import annotations

from typing import Any

import numpy as np
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import transactional_logs

import kafkajit.testing as kt
from kafkajit.records.batches import frame
from kafkajit.records.transactions import (
    NONE_ABORTED,
    AbortedTransactions,
    TransactionalBatches,
    find_transactions,
)
from kafkajit.storage.source import as_bytes


def transactional(log: bytes) -> TransactionalBatches:
    """The rows of one segment, in the reference's words."""
    batches = [batch for batch in reference.read_batches(log)[0] if batch.is_transactional]
    return TransactionalBatches(
        np.array([batch.producer_id for batch in batches], dtype=np.int64),
        np.array([batch.base_offset for batch in batches], dtype=np.int64),
        np.array([batch.is_control for batch in batches], dtype=np.bool_),
        np.array(
            [
                batch.is_control
                and reference.rows(log[batch.position :])[0]["controlType"] == "ABORT"
                for batch in batches
            ],
            dtype=np.bool_,
        ),
    )


def entries(aborted: AbortedTransactions) -> list[tuple[int, ...]]:
    return sorted(zip(*(column.tolist() for column in aborted), strict=True))


@given(transactional_logs())
def test_transactions_are_those_of_a_broker(segments: dict[int, bytes]) -> None:
    logs = list(segments.values())
    expected, stable = reference.transactions(logs)
    aborted, first_open = find_transactions(map(transactional, logs))
    assert entries(aborted) == sorted(
        (one.producer_id, one.first_offset, one.last_offset) for one in expected
    )
    end = max((row["offset"] for log in logs for row in reference.rows(log)), default=-1) + 1
    assert (end if first_open is None else first_open) == stable


@given(transactional_logs())
def test_the_order_of_segments_does_not_matter(segments: dict[int, bytes]) -> None:
    parts = [transactional(log) for log in segments.values()]
    forwards, backwards = find_transactions(parts), find_transactions(parts[::-1])
    assert entries(forwards[0]) == entries(backwards[0])
    assert forwards[1] == backwards[1]


def test_no_batches_have_no_transactions() -> None:
    assert find_transactions([]) == (NONE_ABORTED, None)
    assert find_transactions([transactional(b"")]) == (NONE_ABORTED, None)


def aborted_of(*rows: tuple[int, int, int]) -> AbortedTransactions:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return AbortedTransactions(*columns)


def batches_of(*rows: tuple[int, int], **fields: Any) -> Any:
    settings: dict[str, Any] = {"is_transactional": True} | fields
    log = b"".join(
        kt.batch([kt.Record()], producer_id=producer, base_offset=offset, **settings)
        for producer, offset in rows
    )
    return frame(as_bytes(log)).batches


def test_a_transaction_holds_its_producers_batches_between_its_ends() -> None:
    aborted = aborted_of((7, 10, 20), (7, 40, 45), (8, 30, 31), (-1, 50, 60))
    rows = [(7, 9), (7, 10), (7, 20), (7, 21), (7, 39), (7, 45), (7, 46), (8, 10), (8, 30), (9, 15)]
    rows += [(6, 10), (-1, 55)]
    held = aborted.holds(batches_of(*rows)).tolist()
    assert [row for row, is_held in zip(rows, held, strict=True) if is_held] == [
        (7, 10),
        (7, 20),
        (7, 45),
        (8, 30),
        (-1, 55),
    ]


def test_a_batch_outside_of_transactions_is_in_none() -> None:
    aborted = aborted_of((7, 10, 20))
    assert aborted.holds(batches_of((7, 15))).all()
    assert not aborted.holds(batches_of((7, 15), is_transactional=False)).any()
    assert not NONE_ABORTED.holds(batches_of((7, 15))).any()
    assert aborted.holds(batches_of()).size == 0


IDS = st.one_of(st.integers(0, 3), st.sampled_from([2**63 - 1, -1]))


@given(
    st.dictionaries(IDS, st.lists(st.integers(0, 30), max_size=6, unique=True).map(sorted)),
    st.lists(st.tuples(IDS, st.integers(-1, 32)), max_size=8),
    st.randoms(use_true_random=False),
)
def test_held_is_what_a_loop_over_all_of_them_says(
    ends: dict[int, list[int]], rows: list[tuple[int, int]], random: Any
) -> None:
    transactions = [
        (producer, first, last)
        for producer, offsets in ends.items()
        for first, last in zip(offsets[::2], offsets[1::2], strict=False)
    ]
    random.shuffle(transactions)
    held = aborted_of(*transactions).holds(batches_of(*rows)).tolist()
    assert held == [
        any(id_ == producer and first <= offset <= last for id_, first, last in transactions)
        for producer, offset in rows
    ]


def test_within_are_those_that_reach_into_a_range() -> None:
    aborted = aborted_of((1, 0, 9), (1, 10, 19), (2, 5, 25), (3, 30, 40))
    assert entries(aborted.within(10, 19)) == [(1, 10, 19), (2, 5, 25)]
    assert entries(aborted.within(9, 9)) == [(1, 0, 9), (2, 5, 25)]
    assert entries(aborted.within(26, 29)) == []
    assert entries(aborted.within(-9, 0)) == [(1, 0, 9)]
    assert entries(aborted.within(40, 99)) == [(3, 30, 40)]
    assert entries(aborted.within(-(2**63), 2**63 - 1)) == entries(aborted)
