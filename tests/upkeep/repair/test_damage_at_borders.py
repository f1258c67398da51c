"""Damage at the borders of segments and of the log: its offsets, and its records counted once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from partitions import CONFIG, damaged, data, files_in, flipped, log_name, moved, offsets_in

import kafkajit
import kafkajit.testing as kt


def salvaged(folder: Path) -> dict[str, Any]:
    """The plan's document of the partition, which is then repaired."""
    plan = kafkajit.repair(folder, config=CONFIG, salvage=True)
    document = plan.partitions[0].document()
    plan.apply()
    assert not kafkajit.repair(folder, config=CONFIG, salvage=True).is_needed
    return document


@pytest.mark.parametrize("count", [1, 9])
def test_records_at_both_sides_of_a_border_are_counted_once(tmp_path: Path, count: int) -> None:
    last = 4 + count
    sound = {0: [data(0), data(2)], 4: [data(4, count)], last: [data(last)]}
    lost = {0: [data(0), flipped(data(2))], 4: [flipped(data(4, count))]}
    document = salvaged(damaged(tmp_path, sound, lost))
    assert document["records"] == {
        "there": 6 + count,
        "kept": 4,
        "lost": 2 + count,
        "uncountedBytes": 0,
    }
    found = [(one["firstMissingOffset"], one["lastMissingOffset"]) for one in document["damage"]]
    assert found == [(2, 3), (4, last - 1)]


@pytest.mark.parametrize("at", [494, 0, 999])
def test_a_last_batch_before_the_logs_start_is_damage(tmp_path: Path, at: int) -> None:
    """Kept under its offset, it would be a record that no consumer has seen there."""
    sound = {1000: [data(1000, 3), data(1003)], 1005: [data(1005, 1), data(1006, 1)]}
    wrong = {1005: [data(1005, 1), moved(data(1006, 1), at)]}
    folder = damaged(tmp_path, sound, wrong)
    document = salvaged(folder)
    assert document["records"]["lost"] == 1
    assert offsets_in(folder) == list(range(1000, 1006))


def test_batches_beside_damage_do_not_move_before_the_logs_start(tmp_path: Path) -> None:
    batches = [data(1000, 3), data(1003), data(1005), data(1007)]
    zeroed = [batches[0], bytes(len(batches[1])), moved(batches[2], 0), batches[3]]
    folder = damaged(tmp_path, {1000: batches, 1009: [data(1009)]}, {1000: zeroed})
    document = salvaged(folder)
    assert document["records"]["lost"] == 4
    assert offsets_in(folder) == [1000, 1001, 1002, *range(1007, 1011)]
    assert [name for name in files_in(folder) if name.endswith(".log")] == [
        log_name(1000),
        log_name(1009),
    ]


@pytest.mark.parametrize("salvage", [False, True])
def test_a_second_copy_of_what_stays_is_no_loss(tmp_path: Path, salvage: bool) -> None:
    sound = {0: [data(0)], 2: [data(2)], 4: [data(4)]}
    folder = damaged(tmp_path, sound, {4: [data(2), data(2), data(4)]})
    plan = kafkajit.repair(folder, config=CONFIG, salvage=salvage)
    assert plan.partitions[0].document()["records"]["lost"] == 0
    plan.apply()
    assert offsets_in(folder) == list(range(6))


@pytest.mark.parametrize("in_front", [False, True])
def test_copies_beside_a_segments_own_batches_do_not_make_these_leap(
    tmp_path: Path, in_front: bool
) -> None:
    sound = {0: [data(0), data(2), data(4)], 9: [data(9)]}
    both = [*sound[0], *sound[9]] if in_front else [*sound[9], *sound[0]]
    folder = damaged(tmp_path, sound, {9: both})
    assert salvaged(folder)["records"]["lost"] == 0
    assert offsets_in(folder) == [*range(6), 9, 10]


@pytest.mark.parametrize("bit", [1, 10, 40, 62])
@pytest.mark.parametrize("salvage", [False, True])
def test_a_set_of_v0_gets_the_offset_of_its_last_message(
    tmp_path: Path, salvage: bool, bit: int
) -> None:
    def messages(base: int) -> bytes:
        return kt.message_set([kt.Record(b"k")] * 3, base_offset=base, magic=0, codec="gzip")

    sound = {0: [messages(0), messages(3)], 6: [messages(6)], 9: [messages(9)]}
    folder = damaged(tmp_path, sound, {0: [messages(0), flipped(messages(3), 63 - bit)]})
    plan = kafkajit.repair(folder, config=CONFIG, salvage=salvage)
    assert plan.partitions[0].document()["records"]["lost"] == 0
    plan.apply()
    assert (folder / log_name(0)).read_bytes() == b"".join(sound[0])
    assert offsets_in(folder) == list(range(12))
    assert not kafkajit.repair(folder, config=CONFIG, salvage=salvage).is_needed


def test_a_batch_between_two_segments_that_lies_in_the_second_stays(tmp_path: Path) -> None:
    sound = {0: [data(0), data(2), data(4)], 6: [data(6), data(8), data(10)]}
    moved_in = {0: [data(0), data(2)], 6: [data(6), data(4), data(8), data(10)]}
    folder = damaged(tmp_path, sound, moved_in)
    assert salvaged(folder)["records"]["lost"] == 0
    assert offsets_in(folder) == list(range(12))


def test_batches_of_a_lost_segment_in_front_of_anothers_stay(tmp_path: Path) -> None:
    sound = {19: [data(19, 3), data(22)], 26: [data(26), data(28)], 30: [data(30)]}
    folder = damaged(tmp_path, sound, {19: [], 26: [*sound[19], data(28)]})
    assert salvaged(folder)["records"]["kept"] == 9
    assert offsets_in(folder) == [*range(19, 24), *range(28, 32)]


def test_damage_reaches_up_to_the_next_batch_that_stays(tmp_path: Path) -> None:
    """A segment's name does not end the damage before it if it begins with a sound batch."""
    sound = {0: [data(0), data(2)], 4: [data(6), data(8), data(10)]}
    lost = {0: [data(0), flipped(data(2))], 4: [data(6), flipped(data(8)), data(10)]}
    document = salvaged(damaged(tmp_path, sound, lost))
    found = [(one["firstMissingOffset"], one["lastMissingOffset"]) for one in document["damage"]]
    assert found == [(2, 5), (8, 9)]
