"""Markers that are damaged at the borders of segments, or have an offset or an epoch that lies."""

from __future__ import annotations

from pathlib import Path

import pytest
from partitions import (
    CONFIG,
    damaged,
    data,
    flipped,
    log_name,
    make_partition,
    marker,
    offsets_in,
    transactional,
)

import kafkajit
import kafkajit.testing as kt
from kafkajit.upkeep.repair.lost_ends import LostEnd

ABORT, COMMIT = 0, 1


def ends(folder: Path, **options: object) -> list[LostEnd]:
    plan = kafkajit.repair(folder, config=CONFIG, salvage=True, **options)  # type: ignore[arg-type]
    return plan.partitions[0].transactions


def by_producer(found: list[LostEnd]) -> dict[int, tuple[int | None, int | None]]:
    """What each producer's transaction was, and becomes."""
    return {one.transaction.producer_id: (one.was, one.becomes) for one in found}


@pytest.mark.parametrize("lost", ["bit", "zeros"])
def test_markers_at_both_sides_of_a_border_are_named(tmp_path: Path, lost: str) -> None:
    first, second = marker(4, 8, COMMIT), marker(5, 9, COMMIT)
    head = [transactional(0, 9), transactional(2, 8)]
    tail = [data(6), transactional(8, 9, 2), marker(10, 9, ABORT), data(11)]
    gone = flipped(second) if lost == "bit" else bytes(len(second))
    folder = damaged(
        tmp_path,
        {0: [*head, first], 5: [second, *tail]},
        {0: [*head, flipped(first)], 5: [gone, *tail]},
    )
    found = by_producer(ends(folder))
    assert found[8] == (COMMIT, None)
    assert found[9][1] == ABORT


def test_a_damaged_marker_does_not_stand_for_a_missing_segment_behind_it(tmp_path: Path) -> None:
    other = marker(2, 8, COMMIT)
    head = [transactional(0, 9)]
    folder = damaged(
        tmp_path,
        {
            0: [*head, other],
            3: [data(3), marker(5, 9, COMMIT)],
            6: [transactional(6, 9, 2), marker(8, 9, ABORT), data(9)],
        },
        {0: [*head, flipped(other)], 3: []},
    )
    (end,) = ends(folder)
    assert (end.transaction.producer_id, end.becomes) == (9, ABORT)
    assert "may be lost in offsets 3 to 5" in end.text


@pytest.mark.parametrize("option", ["commit_open", "abort_open"])
def test_a_marker_with_a_wrong_base_offset_belongs_behind_the_segment_before_it(
    tmp_path: Path, option: str
) -> None:
    head = [transactional(0, 7), marker(2, 7, ABORT), data(3), transactional(5, 7, 2)]
    last = marker(7, 7, COMMIT)
    wrong = flipped(last, *range(16, 24))
    folder = damaged(tmp_path, {0: head, 7: [last]}, {7: [wrong]})
    (end,) = ends(folder)
    assert (end.transaction.first_offset, end.becomes) == (5, None)
    kafkajit.repair(folder, config=CONFIG, salvage=True, **{option: True}).apply()  # type: ignore[arg-type]
    assert offsets_in(folder) == list(range(8))
    aborted = kafkajit.Log(folder).aborted_transactions(0, 99).to_pylist()
    assert (aborted[0]["firstOffset"], aborted[0]["lastOffset"]) == (0, 2)
    assert len(aborted) == (2 if option == "abort_open" else 1)
    assert not kafkajit.repair(folder, config=CONFIG, salvage=True).is_needed


@pytest.mark.parametrize("epoch", [0xFF00, 0x7F00])
def test_a_new_marker_does_not_have_an_epoch_that_nothing_proves(
    tmp_path: Path, epoch: int
) -> None:
    lost = bytearray(marker(2, 7, ABORT))
    lost[51:53] = epoch.to_bytes(2, "big")
    lost[-2] ^= 1
    batches = [transactional(0, 7), marker(2, 7, ABORT), data(3), transactional(5, 7, 2)]
    batches.append(marker(7, 7, COMMIT))
    folder = damaged(tmp_path, {0: batches}, {0: [batches[0], bytes(lost), *batches[2:]]})
    kafkajit.repair(folder, config=CONFIG, salvage=True, abort_open=True).apply()
    headers = kafkajit.read_record_batches(folder / log_name(0)).to_pylist()
    assert {one["producerEpoch"] for one in headers if one["producerId"] == 7} == {0}


@pytest.mark.parametrize(("magic", "bit"), [(0, None), (1, None), (0, 2), (0, 10), (0, 40)])
@pytest.mark.parametrize("option", ["abort_open", "commit_open", None])
def test_no_marker_is_written_at_an_offset_within_a_set_of_messages(
    tmp_path: Path, option: str | None, magic: int, bit: int | None
) -> None:
    records = [kt.Record(b"k", b"v")] * 6
    rest = kt.message_set(records, base_offset=2, magic=magic, codec="gzip")
    head = transactional(0, 8, count=1)
    folder = damaged(
        tmp_path,
        {0: [head, data(1, 1), rest]},
        {0: [head, flipped(data(1, 1)), rest if bit is None else flipped(rest, 63 - bit)]},
    )
    options = {} if option is None else {option: True}
    kafkajit.repair(folder, config=CONFIG, salvage=True, **options).apply()
    assert offsets_in(folder) == [0, *range(2, 8)]
    assert not kafkajit.repair(folder, config=CONFIG, salvage=True).is_needed


@pytest.mark.parametrize("wrong", [0xFF, 0xFFFF00, 0x80000000])
def test_a_damaged_marker_hides_no_others_behind_the_offsets_it_claims(
    tmp_path: Path, wrong: int
) -> None:
    first, second = marker(2, 8, COMMIT), marker(5, 7, COMMIT)
    lying = first[:23] + wrong.to_bytes(4, "big") + first[27:]
    head = [transactional(0, 8)]
    tail = [transactional(6, 7, 2), marker(8, 7, ABORT), data(9)]
    folder = damaged(
        tmp_path,
        {0: [*head, first], 3: [transactional(3, 7), second, *tail]},
        {0: [*head, lying], 3: [transactional(3, 7), flipped(second), *tail]},
    )
    assert by_producer(ends(folder))[7] == (COMMIT, ABORT)
    kafkajit.repair(folder, config=CONFIG, salvage=True, commit_open=True).apply()
    assert offsets_in(folder) == list(range(11))
    aborted = kafkajit.Log(folder).aborted_transactions(0, 99).to_pylist()
    assert [(one["producerId"], one["firstOffset"]) for one in aborted] == [(7, 6)]


def test_a_new_marker_has_no_leader_epoch_that_no_broker_writes(tmp_path: Path) -> None:
    head, lost = transactional(0, 8), marker(2, 8, COMMIT)
    low = head[:12] + b"\xff\x00\x00\x00" + head[16:]
    folder = damaged(tmp_path, {0: [head, lost, data(3)]}, {0: [low, flipped(lost), data(3)]})
    kafkajit.repair(folder, config=CONFIG, salvage=True, commit_open=True).apply()
    assert offsets_in(folder) == list(range(5))


@pytest.mark.parametrize("damage", ["bit", "zeros"])
def test_a_marker_is_found_behind_copies_of_another_segment(tmp_path: Path, damage: str) -> None:
    own = [transactional(0, 8), marker(2, 8, COMMIT), data(3)]
    copies = [data(5), data(7)]
    gone = flipped(own[1]) if damage == "bit" else bytes(len(own[1]))
    folder = damaged(
        tmp_path,
        {0: own, 5: copies, 9: [data(9)]},
        {0: [*copies, own[0], gone, own[2]]},
    )
    (end,) = ends(folder)
    assert (end.since, end.hole.last, end.was) == (2, 2, COMMIT if damage == "bit" else None)
    kafkajit.repair(folder, config=CONFIG, salvage=True, commit_open=True).apply()
    assert offsets_in(folder) == list(range(11))
    assert not kafkajit.repair(folder, config=CONFIG, salvage=True).is_needed


@pytest.mark.parametrize("before", [[data(3, 1)], []])
def test_a_marker_is_found_at_the_end_of_a_segment_with_another_ones_name(
    tmp_path: Path, before: list[bytes]
) -> None:
    at = 3 + len(before)
    last = [*before, transactional(at, 7, count=1), marker(at + 1, 7, ABORT)]
    sound = {0: [data(0, 2)], 2: [data(2, 1)], 3: last}
    exchanged = {0: [*last[:-1], flipped(last[-1])], 3: sound[0]}
    (end,) = ends(damaged(tmp_path, sound, exchanged))
    assert (end.transaction.producer_id, end.marker_offset, end.was) == (7, at + 1, ABORT)


@pytest.mark.parametrize("wrong", [0x00FF0000, 0x7F000000])
def test_a_damaged_last_batch_does_not_put_the_logs_end_far_away(
    tmp_path: Path, wrong: int
) -> None:
    last = data(2, 2)
    lying = last[:23] + wrong.to_bytes(4, "big") + last[27:]
    folder = damaged(tmp_path, {0: [transactional(0, 7), last]}, {0: [transactional(0, 7), lying]})
    kafkajit.repair(folder, config=CONFIG, salvage=True, abort_open=True).apply()
    assert kafkajit.Log(folder).end_offset <= 5


def test_a_txnindex_tells_nothing_of_a_log_with_another_ones_name(tmp_path: Path) -> None:
    """The .txnindex of segment 6 has all aborts of that segment, but the hole is in another."""
    first = [transactional(0, 9), marker(2, 9, ABORT), data(3, 3)]
    second = [transactional(6, 8), marker(8, 8, ABORT), data(9)]
    folder = make_partition(tmp_path / "orders-0", {0: first, 6: second})
    (folder / log_name(0)).write_bytes(b"".join(second))
    lost = [first[0], bytes(len(first[1])), first[2]]
    (folder / log_name(6)).write_bytes(b"".join(lost))
    (folder / log_name(0, ".txnindex")).unlink()
    (end,) = ends(folder)
    assert (end.transaction.producer_id, end.was) == (9, None)


@pytest.mark.parametrize("option", ["commit_open", "abort_open"])
def test_an_entry_of_a_txnindex_begins_behind_a_new_marker(tmp_path: Path, option: str) -> None:
    """The transaction began in the lost segment, where the new marker ends the one before it."""
    middle = [data(2), marker(4, 7, COMMIT), transactional(5, 7, 2), data(7)]
    last = [transactional(9, 7, 4), marker(11, 7, ABORT), data(12)]
    folder = make_partition(tmp_path / "orders-0", {0: [transactional(0, 7)], 2: middle, 9: last})
    (folder / log_name(2)).unlink()
    kafkajit.repair(folder, config=CONFIG, salvage=True, **{option: True}).apply()  # type: ignore[arg-type]
    assert not kafkajit.repair(folder, config=CONFIG, salvage=True).is_needed


def test_two_markers_that_one_hole_is_too_small_for_are_written(tmp_path: Path) -> None:
    """The second one takes an earlier hole, in which it may have been as well."""
    rest = [data(5), marker(7, 8, COMMIT), data(8)]
    sound = {0: [transactional(0, 7, count=1), transactional(1, 8, count=1), data(2), data(4, 1)]}
    sound[0] += [*rest[:1], marker(7, 7, COMMIT), *rest[2:]]
    lost = [*sound[0][:3], bytes(len(sound[0][3])), rest[0], bytes(len(rest[1])), rest[2]]
    folder = damaged(tmp_path, sound, {0: lost})
    plan = kafkajit.repair(folder, config=CONFIG, salvage=True, commit_open=True)
    found = [end for end in plan.partitions[0].transactions if end.written]
    assert sorted(end.written[0] for end in found if end.written) == [4, 7]
    plan.apply()
    assert offsets_in(folder) == list(range(10))
