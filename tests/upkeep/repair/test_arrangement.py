"""Which batches stay. No file is read: a batch is its offsets and a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pytest

from kafkajit.upkeep.repair.arrangement import (
    BEHIND,
    CLEANED,
    COPY,
    HIDDEN,
    Arrangement,
    arrange,
)
from kafkajit.upkeep.repair.census import BATCH
from kafkajit.upkeep.repair.log_bodies import CONTRADICTS, LEAPS, MISPLACED, Facts, LogRows

Offsets = tuple[int, ...]  # first, last, and a number that makes it another batch
SIZE = 100


def pairs(first: int, behind: int, kind: int = 0) -> list[Offsets]:
    """Batches of two records each."""
    return [(offset, offset + 1, offset + kind) for offset in range(first, behind, 2)]


def log(base_offset: int, batches: Iterable[Offsets], gaps: Iterable[int] = ()) -> LogRows:
    """A log; a gap is the number of the batch that is damaged."""
    bad = set(gaps)
    rows = [
        (SIZE * place, SIZE * (place + 1), first, last, sum(kind) % 2**32, last - first + 1)
        for place, (first, last, *kind) in enumerate(batches)
        if place not in bad
    ]
    positions = np.array([SIZE * place for place in sorted(bad)], dtype=np.int64)
    return LogRows(base_offset, np.array(rows, BATCH), positions)


def arranged(
    logs: Mapping[int, LogRows] | Iterable[LogRows],
    *,
    salvage: bool = True,
    truncate_to: int | None = None,
    **facts: object,
) -> Arrangement:
    given = list(logs.values()) if isinstance(logs, Mapping) else list(logs)
    return arrange(
        given,
        Facts(**facts),  # type: ignore[arg-type]
        salvage=salvage,
        truncate_to=truncate_to,
    )


def offsets(found: Arrangement) -> list[tuple[int, int]]:
    """The number of the log and the first offset of each batch that stays."""
    return list(zip(found.places["log"].tolist(), found.places["first"].tolist(), strict=True))


def bases(found: Arrangement) -> list[int]:
    return [*found.bases.values()]


def test_a_consumer_gets_all_of_a_segment_and_then_the_next_offset() -> None:
    # Brokers of 4.1.1 and 4.4.0 serve these: tests/broker/repairs_back.py.
    found = arranged([log(0, pairs(0, 20)), log(6, pairs(6, 30, 7)), log(26, pairs(26, 40, 9))])
    assert offsets(found) == [
        *((0, offset) for offset in range(0, 20, 2)),
        *((1, offset) for offset in range(20, 30, 2)),
        *((2, offset) for offset in range(30, 40, 2)),
    ]
    assert bases(found) == [0, 20, 30]  # a consumer that asks for offset 6 gets the same
    assert set(found.fates[1][:7]) == set(found.fates[2][:2]) == {HIDDEN}


def test_a_batch_that_reaches_over_the_end_of_another_stays_in_part() -> None:
    found = arranged([log(0, [(0, 3), (4, 7)]), log(6, [(6, 9, 1), (10, 11)])])
    assert [tuple(place)[2:5] for place in found.places.tolist()] == [
        (0, 3, False),
        (4, 7, False),
        (8, 9, True),
        (10, 11, False),
    ]


def test_a_hidden_segment_of_which_nothing_is_read_goes() -> None:
    found = arranged([log(0, pairs(0, 20)), log(6, pairs(6, 12, 7)), log(20, pairs(20, 22))])
    assert {number for number, _ in offsets(found)} == {0, 2}
    assert set(found.fates[1]) == {HIDDEN}


def test_a_batch_that_nobody_gets_stays_if_its_offsets_are_free() -> None:
    logs = [log(0, [*pairs(0, 6), *pairs(10, 20)]), log(4, pairs(4, 14, 7))]
    assert (1, 6) in offsets(arranged(logs))
    assert (1, 8) in offsets(arranged(logs))
    cleaned = arranged(logs, was_cleaned=True)  # what compaction has removed does not come back
    assert {number for number, _ in offsets(cleaned)} == {0}
    assert CLEANED in cleaned.fates[1]
    longer = [log(0, pairs(0, 20)), log(4, pairs(4, 30, 7)), log(20, pairs(20, 24, 9))]
    behind = offsets(arranged(longer, was_cleaned=True))  # a cleaner leaves the log's end alone
    assert [offset for number, offset in behind if number == 1] == [24, 26, 28]
    damaged = [log(0, pairs(0, 20), gaps=[3, 4]), log(4, pairs(4, 14, 7))]
    assert [one for one in offsets(arranged(damaged, was_cleaned=True)) if one[0]] == [
        (1, 6),
        (1, 8),
    ]


@pytest.mark.parametrize("salvage", [False, True])
def test_a_copy_under_any_name_costs_nothing(salvage: bool) -> None:
    for name in (3, 5, 9, 11, 99):
        logs = {0: log(0, pairs(0, 8)), 8: log(8, pairs(8, 20)), 20: log(20, pairs(20, 24))}
        for source in (0, 8, 20):
            copies = dict(sorted((logs | {name: logs[source]._replace(base_offset=name)}).items()))
            found = arranged(copies, salvage=salvage)
            assert [offset for _, offset in offsets(found)] == [*range(0, 24, 2)], (name, source)
            assert bases(found) == [0, 8, 20]
            assert set(found.fates[[*copies].index(name)]) <= {COPY, ""}


@pytest.mark.parametrize("was_cleaned", [False, True])
def test_exchanged_names_cost_nothing(was_cleaned: bool) -> None:
    logs = [log(0, pairs(0, 8)), log(10, pairs(20, 26)), log(20, pairs(10, 18))]
    for salvage in (False, True):
        found = arranged(logs, salvage=salvage, was_cleaned=was_cleaned)
        assert offsets(found) == [
            *((0, offset) for offset in range(0, 8, 2)),
            *((2, offset) for offset in range(10, 18, 2)),
            *((1, offset) for offset in range(20, 26, 2)),
        ]
        assert bases(found) == [0, 10, 20]


def test_exchanged_names_with_a_damaged_first_batch_are_salvaged() -> None:
    logs = [log(0, pairs(0, 8)), log(10, pairs(20, 26), gaps=[0]), log(20, pairs(10, 18), gaps=[0])]
    found = arranged(logs, was_cleaned=True)
    assert [offset for _, offset in offsets(found)] == [0, 2, 4, 6, 12, 14, 16, 22, 24]
    assert bases(found) == [0, 12, 22]


def test_a_wrong_name_is_put_right() -> None:
    logs = [log(0, pairs(0, 8)), log(15, pairs(10, 18)), log(20, pairs(20, 26))]
    for salvage in (False, True):
        assert bases(arranged(logs, salvage=salvage)) == [0, 10, 20]


@pytest.mark.parametrize(
    ("order", "before_the_first_bad"),
    [
        ([0, 2, 6, 4, 8], [0, 2, 6]),
        ([4, 0, 2, 6], [0, 2, 6]),
        ([0, 8, 2, 4, 6], [0]),
        ([6, 4, 2, 0], [6]),
    ],
)
def test_batches_out_of_order_are_put_in_order(
    order: list[int], before_the_first_bad: list[int]
) -> None:
    batches = [(offset, offset + 1) for offset in order]
    found = arranged([log(0, batches)])
    assert [offset for _, offset in offsets(found)] == sorted(order)
    if before_the_first_bad[0] == order[0]:
        found = arranged([log(0, batches)], salvage=False)
        assert [offset for _, offset in offsets(found)] == before_the_first_bad
        assert CONTRADICTS in found.fates[0]


def test_batches_that_two_segments_have_exchanged_are_put_back() -> None:
    one, two = pairs(0, 10), pairs(10, 20)
    one[2], two[3] = two[3], one[2]
    found = arranged([log(0, one), log(10, two)])
    assert [offset for _, offset in offsets(found)] == [*range(0, 20, 2)]
    assert bases(found) == [0, 10]


@pytest.mark.parametrize("bit", [0, 1, 2, 4, 12, 31, 40, 62])
def test_a_base_offset_that_lies_between_batches_is_damage(bit: int) -> None:
    for place in range(5):
        batches = pairs(0, 10)
        first = batches[place][0] ^ 1 << bit
        batches[place] = (first, first + 1, 7)
        for salvage in (False, True):
            found = arranged([log(0, batches), log(10, pairs(10, 14))], salvage=salvage)
            kept = [offset for _, offset in offsets(found)]
            expected = [offset for offset in range(0, 14, 2) if offset != 2 * place]
            assert kept == (expected if salvage else expected[:place]), (place, first)
            assert found.fates[0][place] == MISPLACED


@pytest.mark.parametrize("bit", [1, 5, 20, 40])
def test_a_last_batch_that_leaps_beyond_all_that_is_known_is_damage(bit: int) -> None:
    lying = (6 + (1 << bit) * 8, 7 + (1 << bit) * 8)
    for salvage in (False, True):
        found = arranged([log(0, [*pairs(0, 6), lying])], salvage=salvage, known_offset=7)
        assert [offset for _, offset in offsets(found)] == [0, 2, 4]
        assert found.fates[0][3] in (LEAPS, CONTRADICTS)
    for facts in ({"known_offset": lying[1]}, {}, {"known_offset": 7, "was_cleaned": True}):
        found = arranged([log(0, [*pairs(0, 6), lying])], **facts)
        is_far = lying[1] > 2**31 and facts.get("known_offset", -1) < lying[0]
        assert len(found.places) == (3 if is_far else 4), facts


def test_a_leap_over_the_next_segment_hides_nothing() -> None:
    logs = [log(0, [(0, 1), (2, 3), (700, 701)]), log(10, pairs(10, 900))]
    found = arranged(logs, was_cleaned=True)
    assert [offset for _, offset in offsets(found)] == [0, 2, *range(10, 900, 2)]
    assert found.fates[0][2] == HIDDEN


def test_without_salvage_damage_ends_the_log() -> None:
    logs = [log(0, pairs(0, 10), gaps=[2]), log(10, pairs(10, 20)), log(20, [])]
    found = arranged(logs, salvage=False)
    assert offsets(found) == [(0, 0), (0, 2)]
    assert found.is_cut
    assert (found.tails[0].position, found.tails[0].reason) == (2 * SIZE, None)
    assert found.tails[1] == found.tails[2] == (0, BEHIND)
    assert set(found.fates[0][2:]) == set(found.fates[1]) == {BEHIND}


def test_damage_that_no_consumer_meets_ends_nothing() -> None:
    logs = [log(0, pairs(0, 20)), log(6, pairs(6, 12, 7), gaps=[1]), log(20, pairs(20, 22))]
    found = arranged(logs, salvage=False)
    assert len(found.places) == 11
    assert not found.is_cut


def test_a_segment_of_nothing_but_damage_ends_the_log_or_stays_empty() -> None:
    logs = [log(0, pairs(0, 10)), log(10, [(10, 11)], gaps=[0]), log(20, pairs(20, 24))]
    found = arranged(logs, salvage=False)
    assert (len(found.places), found.empty, found.is_cut) == (5, {10: 1}, True)
    found = arranged(logs)
    assert (len(found.places), found.empty) == (7, {10: 1})


@pytest.mark.parametrize(
    ("offset", "kept", "empty"), [(13, 6, {}), (10, 5, {10: 1}), (11, 5, {10: 1})]
)
def test_a_log_is_cut_at_an_offset(offset: int, kept: int, empty: dict[int, int]) -> None:
    logs = [log(0, pairs(0, 10)), log(10, pairs(10, 20)), log(20, pairs(20, 24))]
    for salvage in (False, True):
        found = arranged(logs, salvage=salvage, truncate_to=offset)
        assert (len(found.places), found.empty) == (kept, empty)
        assert set(found.fates[2]) == {f"as asked, from offset {offset} on"}


def test_no_segment_becomes_too_large() -> None:
    rows = log(0, pairs(0, 8)).rows
    rows["end"] = rows["position"] + 2**30
    found = arranged([LogRows(0, rows, np.empty(0, dtype=np.int64))])
    assert bases(found) == [0, 2, 4, 6]
