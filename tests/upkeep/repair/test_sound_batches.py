from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partitions import data

import kafkajit.testing as kt
from kafkajit.storage.source import Source
from kafkajit.upkeep.repair.sound_batches import BatchTriage, Bounds, longest_chain

INTERVALS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 4)).map(lambda pair: (pair[0], sum(pair))),
    max_size=8,
)
EVERYWHERE = Bounds(0, 2**63 - 1, "")


def first_longest_chain(intervals: list[tuple[int, int]]) -> list[int]:
    """The first valid choice of rows, tried from the largest on."""
    for size in range(len(intervals), 0, -1):
        for rows in combinations(range(len(intervals)), size):
            pairs = pairwise(rows)
            if all(intervals[one][1] < intervals[two][0] for one, two in pairs):
                return list(rows)
    return []


@given(INTERVALS)
def test_as_many_rows_stay_in_order_as_can(intervals: list[tuple[int, int]]) -> None:
    first = np.array([first for first, _ in intervals], dtype=np.int64)
    last = np.array([last for _, last in intervals], dtype=np.int64)
    assert longest_chain(first, last).tolist() == first_longest_chain(intervals)


def sound(
    log: bytes, bounds: Bounds = EVERYWHERE, *, salvage: bool
) -> tuple[list[int], BatchTriage]:
    """Base offsets of the batches that stay."""
    triage = BatchTriage(Source(log), bounds, salvage)
    kept = [int(offset) for batches in triage for offset in batches.header["baseOffset"]]
    if triage.contradicts:
        triage = triage.resolved()
        kept = [int(offset) for batches in triage for offset in batches.header["baseOffset"]]
        assert not triage.contradicts
    return kept, triage


def extents(triage: BatchTriage) -> list[tuple[int, int]]:
    return [(gap.position, gap.position + gap.length) for gap in triage.bad]


def flipped(batch: bytes, at: int = 70) -> bytes:
    return batch[:at] + bytes([batch[at] ^ 1]) + batch[at + 1 :]


def test_all_of_a_sound_log_stays() -> None:
    log = b"".join(data(offset) for offset in (3, 5, 90, 92))
    for salvage in (False, True):
        kept, triage = sound(log, salvage=salvage)
        assert kept == [3, 5, 90, 92]
        assert triage.bad == []
        assert not triage.is_cut


def test_a_log_ends_before_the_first_bad_batch_unless_it_is_salvaged() -> None:
    one, bad, two = data(0), flipped(data(2)), data(4)
    kept, triage = sound(one + bad + two, salvage=False)
    assert kept == [0]
    assert extents(triage) == [(len(one), len(one + bad + two))]
    assert "Record is corrupt" in triage.bad[0].reason
    assert triage.is_cut
    assert triage.lost_batches == 1
    kept, triage = sound(one + bad + two, salvage=True)
    assert kept == [0, 4]
    assert extents(triage) == [(len(one), len(one + bad))]
    assert not triage.is_cut


@pytest.mark.parametrize(
    ("tail", "reason"), [(data(9)[:40], "an incomplete batch"), (bytes(300), "zeros")]
)
def test_what_a_crash_leaves_at_the_end_goes(tail: bytes, reason: str) -> None:
    log = data(0)
    for salvage in (False, True):
        kept, triage = sound(log + tail, salvage=salvage)
        assert kept == [0]
        assert extents(triage) == [(len(log), len(log + tail))]
        assert triage.bad[0].reason == reason
        assert triage.lost_batches == 0


@pytest.mark.parametrize(
    ("offsets", "kept", "before_the_first_bad"),
    [
        ((0, 2, 900, 4, 6), [0, 2, 4, 6], [0, 2]),
        ((0, 2, 4, 1, 6), [0, 2, 4, 6], [0, 2, 4]),
        ((0, 2, 4, 2, 4, 6), [0, 2, 4, 6], [0, 2, 4]),
        ((90, 0), [90], [90]),
    ],
)
def test_offsets_that_contradict_others_cost_as_few_batches_as_can_be(
    offsets: tuple[int, ...], kept: list[int], before_the_first_bad: list[int]
) -> None:
    log = b"".join(data(offset) for offset in offsets)
    assert sound(log, salvage=True)[0] == kept
    found, triage = sound(log, salvage=False)
    assert found == before_the_first_bad
    assert "contradict" in triage.bad[0].reason


def test_a_batch_that_ends_before_it_begins_goes() -> None:
    log = data(0) + kt.batch([kt.Record()], base_offset=2, last_offset_delta=-2) + data(3)
    assert sound(log, salvage=True)[0] == [0, 3]
    assert sound(log, salvage=False)[0] == [0]


def test_what_is_not_the_segments_own_goes_and_ends_nothing() -> None:
    log = b"".join(data(offset) for offset in (0, 2, 10, 12, 20, 22))
    for salvage in (False, True):
        kept, triage = sound(log, Bounds(10, 20, "the next segment's"), salvage=salvage)
        assert kept == [10, 12]
        assert [gap.reason for gap in triage.bad] == [
            "its offsets are before 10, where its segment begins",
            "the next segment's",
        ]
        assert triage.was_early
        assert not triage.is_cut


def test_damage_behind_what_is_its_own_ends_nothing() -> None:
    log = data(0) + data(20) + flipped(data(22)) + data(24)
    kept, triage = sound(log, Bounds(0, 20, "the next segment's"), salvage=False)
    assert kept == [0]
    assert not triage.is_cut


def test_contradictions_among_others_are_found_before_and_behind_them() -> None:
    offsets = (0, 2, 10, 14, 12, 16, 20, 22)
    log = b"".join(data(offset) for offset in offsets)
    kept, triage = sound(log, Bounds(10, 20, "the next segment's"), salvage=True)
    assert kept == [10, 14, 16]
    assert triage.was_early
    assert [gap.length for gap in triage.bad] == [
        2 * len(data(0)),
        len(data(12)),
        len(data(20) + data(22)),
    ]


def test_who_iterates_may_reject_a_batch() -> None:
    log = data(0) + data(2) + data(4)
    for salvage, expected in ((True, [0, 4]), (False, [0])):
        triage = BatchTriage(Source(log), EVERYWHERE, salvage)
        kept = []
        for batches in triage:
            triage.reject(batches, 1, "no good")
            kept += [0, 4] if salvage else [0]
        assert kept == expected
        assert triage.bad[0].reason == "no good"
        assert triage.bad[0].position == len(data(0))
        assert triage.is_cut is not salvage
