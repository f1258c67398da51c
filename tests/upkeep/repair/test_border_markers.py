"""Markers that are damaged at the borders of segments, or have an offset or an epoch that lies."""

from __future__ import annotations

from pathlib import Path

import pytest
from partitions import CONFIG, data, log_name, make_partition, marker, offsets_in, transactional

import kafkajit
from kafkajit.upkeep.repair.lost_ends import LostEnd

ABORT, COMMIT = 0, 1
Segments = dict[int, list[bytes]]


def flipped(batch: bytes, *bits: int) -> bytes:
    content = bytearray(batch)
    for bit in bits or (8 * (len(batch) - 2),):
        content[bit // 8] ^= 1 << bit % 8
    return bytes(content)


def damaged(work: Path, sound: Segments, damage: Segments) -> Path:
    """A partition of sound segments, of which some get other batches, and some go."""
    folder = make_partition(work / "kafka" / "orders-0", sound)
    for base, batches in damage.items():
        log = folder / log_name(base)
        log.write_bytes(b"".join(batches)) if batches else log.unlink()
    for path in [*folder.glob("*.txnindex"), *folder.glob("*.snapshot")]:
        path.unlink()
    return folder


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
