from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from encoding import huge_rows, rows_of_records
from hypothesis import given
from hypothesis import strategies as st
from strategies import HEADER, INT64, NULLABLE

from kafkajit import InvalidOffsetError
from kafkajit import testing as kt
from kafkajit.encode.batch_plan import first_rows, not_increasing, plain_headers

UNLIMITED = 2**62
MAX_INT32 = 2**31 - 1
HEAD = 61

# A record whose counts and sizes are all true.
RECORD = st.builds(
    kt.Record,
    key=NULLABLE,
    value=NULLABLE,
    headers=st.lists(HEADER, max_size=3),
    timestamp=INT64,
)

# The rows that begin batches


def slow_first_rows(
    records: Sequence[kt.Record],
    offsets: Sequence[int],
    begins: Sequence[bool],
    batch_size: int,
    batch_records: int,
    base_timestamp: int | None = None,
) -> list[int]:
    """The slow twin of first_rows, which builds every candidate batch."""
    firsts = [0]
    for row in range(1, len(records)):
        first = firsts[-1]
        fits = offsets[row] - offsets[first] <= MAX_INT32
        if fits:
            base = records[first].timestamp if base_timestamp is None else base_timestamp
            assert base is not None
            size = HEAD + sum(
                len(records[at].encode(offsets[at] - offsets[first], base))
                for at in range(first, row + 1)
            )
            fits = size <= batch_size and row - first < batch_records
        if begins[row] or not fits:
            firsts.append(row)
    return [*firsts, len(records)] if records else [0]


STEPS = st.integers(1, 3) | st.sampled_from([63, 64, 8191, 8192, MAX_INT32, MAX_INT32 + 1])


@given(
    st.lists(st.tuples(RECORD, STEPS, st.integers(0, 5)), max_size=15),
    st.integers(1, 700),
    st.sampled_from([1, 2, 3, UNLIMITED]),
    st.none() | INT64,
)
def test_a_batch_ends_when_it_is_full_and_where_a_row_must_begin_one(
    given_rows: list[tuple[kt.Record, int, int]],
    batch_size: int,
    batch_records: int,
    base_timestamp: int | None,
) -> None:
    records = [record for record, _, _ in given_rows]
    offsets = [0, *np.cumsum([step for _, step, _ in given_rows]).tolist()][: len(records)]
    begins = np.array([chance == 0 for _, _, chance in given_rows], dtype=np.bool_)
    found = first_rows(
        rows_of_records(records, offsets),
        begins,
        batch_size=batch_size,
        batch_records=batch_records,
        base_timestamp=base_timestamp,
    )
    expected = slow_first_rows(records, offsets, begins, batch_size, batch_records, base_timestamp)
    assert found.tolist() == expected


@pytest.mark.parametrize("size", [*range(50, 70), *range(8150, 8200)])
def test_a_record_that_fits_to_the_byte_is_not_the_next_batchs(size: int) -> None:
    records = [kt.Record(value=b"a"), kt.Record(value=bytes(size))]
    rows = rows_of_records(records, [0, 1])
    exact = len(kt.batch(records, base_timestamp=0))
    for batch_size, batches in ((exact, 1), (exact - 1, 2)):
        begins = np.zeros(2, dtype=np.bool_)
        found = first_rows(rows, begins, batch_size=batch_size, batch_records=UNLIMITED)
        assert found.size == batches + 1


def test_offsets_of_a_batch_are_within_an_int32_of_each_other() -> None:
    offsets = [0, MAX_INT32, MAX_INT32 + 1, 2**40, 2**40 + MAX_INT32, 2**62, 2**63 - 1]
    rows = rows_of_records([kt.Record()] * len(offsets), offsets)
    begins = np.zeros(len(offsets), dtype=np.bool_)
    found = first_rows(rows, begins, batch_size=UNLIMITED, batch_records=UNLIMITED)
    assert found.tolist() == [0, 2, 3, 5, 6, 7]


def test_sizes_are_counted_with_the_varints_before_them() -> None:
    edges = [2 ** (7 * n - 1) + step for n in range(1, 5) for step in (-1, 0)]
    sizes = [-1, 0, 1, *edges, MAX_INT32]
    for name in ("key", "value"):
        rows = replace(huge_rows([0] * len(sizes)), **{name: huge_rows(sizes).value})
        other = 1  # for the size of a null or an empty value
        expected = [1 + len(kt.varint(size)) + max(size, 0) + other + 1 for size in sizes]
        assert rows.fixed_sizes.tolist() == expected
        assert rows.bound > sum(expected)


def test_sizes_other_than_those_of_records_may_be_given() -> None:
    rows = rows_of_records([kt.Record()] * 4, range(4))
    begins = np.zeros(4, dtype=np.bool_)
    sizes = np.full(4, 100, dtype=np.int64)
    found = first_rows(rows, begins, batch_size=HEAD + 210, batch_records=9, sizes=sizes)
    assert found.tolist() == [0, 2, 4]


@pytest.mark.parametrize("offsets", [[5, 5], [5, 4], [5, 6, 6], [5, 6, 2**40, 0], [0, -(2**63)]])
@pytest.mark.parametrize("batch_records", [1, 2, 9])
def test_offsets_that_do_not_grow_are_an_error(offsets: list[int], batch_records: int) -> None:
    rows = rows_of_records([kt.Record()] * len(offsets), offsets)
    with pytest.raises(InvalidOffsetError) as raised:
        first_rows(
            rows, np.zeros(len(offsets), np.bool_), batch_size=999, batch_records=batch_records
        )
    assert raised.value.row == len(offsets) - 1
    assert str(raised.value) == str(not_increasing(offsets[-1], offsets[-2], len(offsets) - 1))


# Headers


def test_plain_headers_say_what_a_producer_without_idempotence_does() -> None:
    records = [kt.Record(timestamp=stamp) for stamp in (5, 3, 9, 7, 1)]
    rows = rows_of_records(records, [10, 11, 20, 30, 35])
    headers = plain_headers(rows, np.array([0, 2, 3, 5]))
    assert headers["baseOffset"].tolist() == [10, 20, 30]
    assert headers["lastOffsetDelta"].tolist() == [1, 0, 5]
    assert headers["baseTimestamp"].tolist() == [5, 9, 7]
    assert headers["maxTimestamp"].tolist() == [5, 9, 7]
    assert headers["recordsCount"].tolist() == [2, 1, 2]
    assert set(headers["magic"].tolist()) == {2}
    for name in ("producerId", "producerEpoch", "baseSequence"):
        assert set(headers[name].tolist()) == {-1}
    for name in ("attributes", "partitionLeaderEpoch"):
        assert set(headers[name].tolist()) == {0}


def test_rows_behind_the_last_batch_say_nothing_of_it() -> None:
    rows = rows_of_records([kt.Record(timestamp=t) for t in (5, 3, 9, 7, 1)], range(5))
    headers = plain_headers(rows, np.array([0, 1, 2]))
    assert headers["maxTimestamp"].tolist() == [5, 3]
    assert plain_headers(rows, np.array([0])).size == 0
