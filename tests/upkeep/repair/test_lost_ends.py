"""Transactions whose commit or abort marker is lost: what they were, and what they become."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from partitions import (
    CONFIG,
    check_soundness,
    data,
    log_name,
    make_partition,
    marker,
    transactional,
)

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.upkeep.repair.lost_ends import CERTAIN, LIKELY, POSSIBLE, LostEnd

ABORT, COMMIT = 0, 1
Damage = Callable[[bytes], bytes]


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def flipped(batch: bytes, bit: int = 8 * 70) -> bytes:
    content = bytearray(batch)
    content[bit // 8] ^= 1 << bit % 8
    return bytes(content)


def zeros(batch: bytes) -> bytes:
    return bytes(len(batch))


def noise(batch: bytes) -> bytes:
    return b"\xa5" * len(batch)


def two(first: int, second: int) -> list[bytes]:
    """Two transactions of producer 7, from offsets 2 and 5."""
    return [
        data(0),
        transactional(2, 7),
        marker(4, 7, first),
        transactional(5, 7, 2),
        marker(7, 7, second),
        data(8),
    ]


class Damaged:
    """A partition in which batches are damaged."""

    def __init__(
        self,
        work: Path,
        batches: Sequence[bytes],
        damage: Damage,
        *places: int,
        without: str = "",
    ) -> None:
        self.folder = make_partition(work / "kafka" / "orders-0", {0: batches})
        content = [
            damage(batch) if place in places else batch for place, batch in enumerate(batches)
        ]
        (self.folder / log_name(0)).write_bytes(b"".join(content))
        for path in self.folder.glob(without) if without else ():
            path.unlink()

    def plan(self, **options: object) -> kafkajit.RepairPlan:
        return kafkajit.repair(self.folder, config=CONFIG, **{"salvage": True} | options)  # type: ignore[arg-type]

    def ends(self, **options: object) -> list[LostEnd]:
        return self.plan(**options).partitions[0].transactions

    def repaired(self, **options: object) -> Outcomes:
        self.plan(**options).apply()
        check_soundness(self.folder)
        assert not self.plan().is_needed
        log = kafkajit.Log(self.folder)
        aborted = log.aborted_transactions(0, 99).to_pylist()
        return Outcomes(
            {(row["producerId"], row["firstOffset"], row["lastOffset"]) for row in aborted},
            log.last_stable_offset,
        )


class Outcomes(tuple[set[tuple[int, int, int]], int]):
    """The aborted transactions and the last stable offset."""

    __slots__ = ()

    def __new__(cls, aborted: set[tuple[int, int, int]], last_stable_offset: int) -> Outcomes:
        return super().__new__(cls, (aborted, last_stable_offset))


@pytest.mark.parametrize("bit", [8 * 17, 8 * 30 + 3, 8 * 61, 8 * 69, 8 * 70, 8 * 77])
@pytest.mark.parametrize(("first", "second"), [(ABORT, COMMIT), (COMMIT, ABORT)])
def test_one_wrong_bit_does_not_hide_how_a_transaction_ended(
    tmp_path: Path, bit: int, first: int, second: int
) -> None:
    damaged = Damaged(tmp_path, two(first, second), lambda batch: flipped(batch, bit), 2)
    (end,) = damaged.ends()
    assert (end.transaction.producer_id, end.transaction.first_offset) == (7, 2)
    assert (end.transaction.records, end.marker_offset, end.certainty) == (2, 4, CERTAIN)
    assert (end.was, end.becomes, end.decided_at, end.changes) == (first, second, 7, True)
    words = {ABORT: "aborted", COMMIT: "committed"}
    assert end.text.startswith(
        "transaction of producer 7, epoch 0, 2 records from offsets 2 to 3: its end is lost at "
        "offset 4 (its damaged bytes are "
    )
    assert end.text.endswith(
        f"; it was {words[first]}, and it becomes {words[second]} by the producer's next marker, "
        "at offset 7: CHANGED for consumers with read_committed"
    )
    plan = damaged.plan()
    assert end.text in str(plan)
    assert "0 records lost, 8 kept; the outcome of 1 transaction changes" in str(plan)
    (found,) = plan.partitions[0].document()["transactions"]
    assert found["was"] == words[first]
    assert found["becomes"] == words[second]
    assert found["changes"] is True
    # As before kafkajit could write markers: what the lines announce.
    both = {(7, 2, 7)} if second == ABORT else set()
    assert damaged.repaired() == Outcomes(both, 10)


@pytest.mark.parametrize("damage", [flipped, zeros, noise])
@pytest.mark.parametrize(("first", "second"), [(ABORT, COMMIT), (COMMIT, ABORT), (ABORT, ABORT)])
@pytest.mark.parametrize("option", ["abort_open", "commit_open"])
def test_the_marker_is_written_where_it_was(
    tmp_path: Path, damage: Damage, first: int, second: int, option: str
) -> None:
    damaged = Damaged(tmp_path, two(first, second), damage, 2)
    before = (damaged.folder / log_name(0)).read_bytes()
    aborted, end = damaged.repaired(**{option: True})
    expected = {(7, 5, 7)} if second == ABORT else set()
    expected |= {(7, 2, 4)} if option == "abort_open" else set()
    assert (aborted, end) == (expected, 10)
    log = damaged.folder / log_name(0)
    written = log.read_bytes()
    assert written[:186] == before[:186]
    assert written[186 + 78 :] == before[186 + 78 :]
    right = bytearray(marker(4, 7, ABORT if option == "abort_open" else COMMIT))
    new = bytearray(written[186 : 186 + 78])
    # It has the time of the transaction's last batch.
    rows = [kafkajit.read_records(bytes(one)).to_pylist()[0] for one in (right, new)]
    for row in rows:
        del row["timestamp"]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(("first", "second"), [(ABORT, COMMIT), (COMMIT, ABORT)])
def test_a_marker_of_which_nothing_is_left(tmp_path: Path, first: int, second: int) -> None:
    damaged = Damaged(tmp_path, two(first, second), zeros, 2)
    (end,) = damaged.ends()
    assert end.becomes == second
    if first == ABORT:  # the .txnindex has it
        assert (end.certainty, end.was, end.changes) == (CERTAIN, ABORT, True)
        assert "the .txnindex has its ABORT at offset 4" in end.text
    else:
        assert (end.certainty, end.was, end.changes) == (CERTAIN, COMMIT, True)
        assert (
            "(the .txnindex has its next transaction from offset 5 on; the .txnindex has no ABORT "
            "of it)"
        ) in end.text
    (damaged.folder / log_name(0, ".txnindex")).unlink(missing_ok=True)
    (end,) = damaged.ends()
    assert (end.certainty, end.was, end.changes) == (LIKELY, None, None)
    assert "its end is probably lost at offset 4; nothing tells its outcome" in end.text
    assert "it may CHANGE" in end.text


@pytest.mark.parametrize("has_sound_data", [True, False])
def test_damaged_data_whose_header_is_known_does_not_hide_a_lost_marker(
    tmp_path: Path, has_sound_data: bool
) -> None:
    lost = marker(2, 7, COMMIT)
    batches = [transactional(0, 7), lost, data(3), transactional(5, 7, 2)]
    batches += [transactional(7, 7, 4)] if has_sound_data else [data(7)]
    batches.append(marker(9, 7, ABORT))

    def damage(batch: bytes) -> bytes:
        return zeros(batch) if batch == lost else flipped(batch, 8 * (len(batch) - 2))

    damaged = Damaged(tmp_path, batches, damage, 1, 3, without="*.txnindex")
    (end,) = damaged.ends()
    assert (end.transaction.first_offset, end.was, end.becomes) == (0, None, ABORT)
    assert end.certainty == (LIKELY if has_sound_data else POSSIBLE)
    assert "it may CHANGE for consumers with read_committed" in end.text


def test_a_marker_that_was_the_last_batch(tmp_path: Path) -> None:
    batches = [data(0), transactional(2, 7), marker(4, 7, COMMIT)]
    damaged = Damaged(tmp_path, batches, flipped, 2)
    (end,) = damaged.ends()
    assert (end.was, end.becomes, end.changes) == (COMMIT, None, True)
    assert "it is open then: consumers with read_committed stop before it" in end.text
    assert "4 kept; the outcome of 1 transaction changes" in str(damaged.plan())
    assert damaged.repaired() == Outcomes(set(), 2)


def test_a_last_marker_is_written_again(tmp_path: Path) -> None:
    batches = [data(0), transactional(2, 7), marker(4, 7, COMMIT)]
    damaged = Damaged(tmp_path, batches, flipped, 2)
    assert damaged.repaired(commit_open=True) == Outcomes(set(), 5)


INTERLEAVED = [
    transactional(0, 7),
    transactional(2, 8),
    marker(4, 7, ABORT),
    marker(5, 8, COMMIT),
    transactional(6, 7, 2),
    transactional(8, 8, 2),
    marker(10, 8, ABORT),
    marker(11, 7, COMMIT),
    data(12),
]


@pytest.mark.parametrize("damage", [flipped, zeros])
def test_each_of_several_producers_gets_its_own_marker(tmp_path: Path, damage: Damage) -> None:
    damaged = Damaged(tmp_path, INTERLEAVED, damage, 2, 3)
    seven, eight = damaged.ends()
    assert (seven.was, seven.becomes, seven.decided_at) == (ABORT, COMMIT, 11)
    assert (eight.becomes, eight.decided_at) == (ABORT, 10)
    assert eight.was == COMMIT  # the .txnindex has no ABORT of it
    asked = {"abort_open": [7], "commit_open": [8]}
    assert [end.written for end in damaged.ends(**asked)] == [(4, ABORT), (5, COMMIT)]
    assert damaged.repaired(**asked) == Outcomes({(7, 0, 4), (8, 8, 10)}, 14)


def test_only_the_lost_marker_counts(tmp_path: Path) -> None:
    damaged = Damaged(tmp_path, INTERLEAVED, flipped, 3)
    assert [end.transaction.producer_id for end in damaged.ends()] == [8]


@pytest.mark.parametrize("damage", [flipped, zeros])
def test_lost_data_of_a_transaction_is_no_lost_end(tmp_path: Path, damage: Damage) -> None:
    batches = [
        *(transactional(2 * place, 7, 2 * place) for place in range(3)),
        marker(6, 7),
        data(7),
    ]
    for place in range(3):
        damaged = Damaged(tmp_path / str(place), batches, damage, place)
        assert damaged.ends() == []  # the .txnindex has it open up to offset 6
        (damaged.folder / log_name(0, ".txnindex")).unlink()
        # The last batch may have been a marker and all of another transaction.
        may_be = [POSSIBLE] if damage is zeros and place == 2 else []
        assert [end.certainty for end in damaged.ends()] == may_be
        (aborted,) = damaged.repaired(abort_open=True)[0]
        assert aborted == (7, 2 if place == 0 else 0, 6)


def test_what_may_be_lost_is_told_but_only_written_for_named_producers(tmp_path: Path) -> None:
    batches = [transactional(0, 7), data(2, 5), transactional(7, 7, 2), marker(9, 7), data(10)]
    damaged = Damaged(tmp_path, batches, zeros, 1, without="*.txnindex")
    (end,) = damaged.ends()
    assert (end.certainty, end.was, end.becomes) == (POSSIBLE, None, ABORT)
    assert "its end may be lost in offsets 2 to 6; if so, nothing tells its outcome" in end.text
    assert damaged.ends(commit_open=True)[0].written is None
    assert damaged.ends(commit_open=[7])[0].written == (6, COMMIT)
    assert damaged.repaired(commit_open=[7]) == Outcomes({(7, 7, 9)}, 12)


def test_a_later_epoch_proves_the_end(tmp_path: Path) -> None:
    later = data(7, producer_id=7, producer_epoch=1, base_sequence=0, is_transactional=True)
    batches = [transactional(0, 7), data(2, 5), later, marker(9, 7), data(10)]
    damaged = Damaged(tmp_path, batches, zeros, 1, without="*.txnindex")
    (end,) = damaged.ends(abort_open=True)
    assert (end.certainty, end.written, end.marker_epoch) == (CERTAIN, (6, ABORT), 1)
    assert "the producer writes on with epoch 1" in end.text


def test_a_snapshot_proves_the_end_or_that_there_was_none(tmp_path: Path) -> None:
    batches = [transactional(0, 7), data(2, 5), data(7)]
    damaged = Damaged(tmp_path, batches, zeros, 1)
    assert damaged.ends() == []  # the snapshot of the log's end has it open
    entry = kt.Producer(7, last_sequence=1, last_offset=1)
    snapshot = damaged.folder / log_name(9, ".snapshot")
    snapshot.write_bytes(kt.producer_snapshot([entry]))
    (end,) = damaged.ends()
    assert end.certainty == CERTAIN
    assert "the producers' snapshot at offset 9 has it as ended" in end.text
    snapshot.unlink()
    (end,) = damaged.ends()
    assert end.certainty == LIKELY


def torn(batch: bytes) -> bytes:
    return batch[:-13]


@pytest.mark.parametrize(
    ("damage", "has_snapshot", "certainty"),
    [
        (zeros, True, CERTAIN),
        (noise, True, CERTAIN),
        (torn, True, CERTAIN),
        (zeros, False, POSSIBLE),
        (noise, False, POSSIBLE),
        (torn, False, LIKELY),
    ],
)
def test_an_end_is_told_if_another_log_has_the_offset_of_its_damaged_marker(
    tmp_path: Path, damage: Damage, has_snapshot: bool, certainty: str
) -> None:
    batches = [data(0), transactional(2, 7), marker(4, 7, COMMIT)]
    damaged = Damaged(tmp_path, batches, damage, 2, without="" if has_snapshot else "*5.snapshot")
    (damaged.folder / log_name(3)).write_bytes(data(3, 1) + data(4) + data(6))
    (end,) = damaged.ends(abort_open=[7])
    assert (end.transaction.producer_id, end.certainty, end.becomes) == (7, certainty, None)
    assert "lost at offset 4" in end.text
    assert end.text.endswith("no marker is written, since another batch has its offset")


def test_an_end_is_told_if_another_log_has_all_offsets_of_a_log_without_a_sound_batch(
    tmp_path: Path,
) -> None:
    damaged = Damaged(tmp_path, [data(0), transactional(2, 7)], zeros)
    (damaged.folder / log_name(3)).write_bytes(data(3, 1) + data(4) + data(6))
    (damaged.folder / log_name(5)).write_bytes(zeros(marker(5, 7)))
    (end,) = damaged.ends()
    assert (end.transaction.producer_id, end.certainty, end.becomes) == (7, POSSIBLE, None)
    assert "its end may be lost in offsets 4 to 5" in end.text


@pytest.mark.parametrize("damage", [flipped, zeros, noise])
def test_no_end_is_lost_if_a_copy_of_the_log_has_the_damaged_batch(
    tmp_path: Path, damage: Damage
) -> None:
    batches = [data(0), transactional(2, 7), data(4, 1), transactional(5, 7, 2), marker(7, 7)]
    damaged = Damaged(tmp_path, batches, damage, 2)
    (damaged.folder / log_name(3)).write_bytes(b"".join(batches[1:]))
    assert damaged.ends() == []
    assert damaged.plan().partitions[0].records.lost == 0


def test_without_salvage_the_plan_names_the_ends_that_are_cut_away(tmp_path: Path) -> None:
    batches = [data(0), transactional(2, 7), data(4), marker(6, 7, ABORT), data(7)]
    damaged = Damaged(tmp_path, batches, flipped, 2)
    (end,) = damaged.ends(salvage=False)
    assert (end.was, end.becomes, end.marker_offset) == (ABORT, None, 6)
    assert "its marker is among what is cut away" in end.text
    assert damaged.ends() == []


def _state(status: int, start_ms: int, end_ms: int) -> kt.Record:
    value = struct.pack(">hqhib", 0, 7, 0, 60_000, status) + struct.pack(">i", -1)
    key = struct.pack(">hh", 0, 4) + b"txid"
    return kt.Record(key, value + struct.pack(">qq", end_ms, start_ms))


@pytest.mark.parametrize(("status", "was"), [(4, COMMIT), (5, ABORT), (1, None)])
def test_the_coordinators_log_tells_the_outcome(
    tmp_path: Path, status: int, was: int | None
) -> None:
    damaged = Damaged(tmp_path, two(COMMIT, ABORT), zeros, 2, without="*.txnindex")
    time = 1_700_000_002_000  # of the batch at offset 2
    states = damaged.folder.parent / "__transaction_state-3"
    states.mkdir()
    log = kt.batch([_state(4, time - 90_000, time - 80_000), _state(status, time - 5, time + 9)])
    (states / log_name(0)).write_bytes(log)
    (end,) = damaged.ends()
    assert end.was == was
    assert ("__transaction_state has it as" in end.text) is (was is not None)


def test_markers_are_written_for_salvaged_logs_only(tmp_path: Path) -> None:
    damaged = Damaged(tmp_path, two(ABORT, COMMIT), zeros, 2)
    with pytest.raises(ValueError, match="only if the log is salvaged"):
        damaged.plan(salvage=False, abort_open=True)
    with pytest.raises(ValueError, match="name the producers of one kind"):
        damaged.plan(abort_open=True, commit_open=True)
    with pytest.raises(ValueError, match="producer 7 cannot be"):
        damaged.plan(abort_open=[7], commit_open=[7])
    with pytest.raises(ValueError, match="not written while a log is truncated"):
        damaged.plan(abort_open=True, truncate_to=2)


def test_a_producer_whose_markers_are_all_there_is_an_error(tmp_path: Path) -> None:
    damaged = Damaged(tmp_path, two(ABORT, COMMIT), zeros, 2)
    with pytest.raises(ValueError, match="producer 99 has no transaction whose marker may be lost"):
        damaged.plan(abort_open=[7, 99])
    assert main(["repair", "--salvage", "--commit-producer", "99", str(damaged.folder)]) == 1


def test_an_open_transaction_that_gets_no_marker_is_noted(tmp_path: Path) -> None:
    folder = make_partition(tmp_path / "orders-0", {0: [data(0), transactional(2, 7)]})
    (partition,) = kafkajit.repair(folder, salvage=True, abort_open=True).partitions
    (note,) = partition.notes
    assert note.startswith("the transaction of producer 7 from offset 2 on stays open")
    assert not kafkajit.repair(folder, salvage=True).partitions[0].notes


def test_the_first_of_several_lost_markers_decides(tmp_path: Path) -> None:
    batches = [transactional(0, 7), marker(2, 7, COMMIT), transactional(3, 7, 2)]
    damaged = Damaged(tmp_path, [*batches, marker(5, 7, ABORT), data(6)], flipped, 1, 2, 3)
    (end,) = damaged.ends()
    assert (end.certainty, end.was, end.marker_offset) == (CERTAIN, COMMIT, 2)


def test_a_later_lost_marker_does_not_tell_the_outcome(tmp_path: Path) -> None:
    batches = [transactional(0, 7), marker(2, 7, COMMIT), transactional(3, 7, 2)]
    damaged = Damaged(tmp_path, [*batches, marker(5, 7, ABORT)], zeros, 1, without="*.*index")
    for salvage in (False, True):
        (end,) = damaged.ends(salvage=salvage)
        assert (end.certainty, end.was, end.marker_offset) == (
            LIKELY if salvage else CERTAIN,
            None,
            None,
        )
        # Without the next marker, consumers stop before a transaction that had ended.
        assert (end.becomes, end.changes) == ((ABORT, None) if salvage else (None, True))


def test_an_indexed_abort_of_the_next_transaction_is_not_the_lost_end(tmp_path: Path) -> None:
    lost = [marker(2, 7, COMMIT), transactional(4, 7, 2), marker(6, 7, ABORT)]
    batches = [transactional(0, 7), lost[0], data(3, 1), *lost[1:], data(7), data(9)]
    damaged = Damaged(tmp_path, batches, zeros, without="*.snapshot")
    cleaned = damaged.folder.parent / "cleaner-offset-checkpoint"  # so compaction explains gaps
    cleaned.write_text("0\n1\norders 0 9\n")
    kept = [batch for batch in batches if batch not in lost]
    (damaged.folder / log_name(0)).write_bytes(b"".join([*kept[:-1], noise(kept[-1])]))
    (end,) = damaged.ends()
    assert (end.certainty, end.was, end.marker_offset) == (CERTAIN, None, None)
    assert (
        "its end is lost in offsets 2 to 6 (the .txnindex has its next transaction from offset 4 "
        "on); nothing tells its outcome"
    ) in end.text


def test_a_marker_after_damage_is_named_if_its_offset_is_cut_away(tmp_path: Path) -> None:
    batches = [transactional(0, 7), data(2), data(4), marker(6, 7)]
    damaged = Damaged(tmp_path, batches, zeros, 1, 3)
    (end,) = damaged.ends(truncate_to=4)
    assert (end.certainty, end.becomes, end.changes) == (CERTAIN, None, True)
    damaged = Damaged(tmp_path / "flipped", batches, flipped, 1, without="*.txnindex")
    log = damaged.folder / log_name(0)
    log.write_bytes(log.read_bytes()[: -len(batches[-1])] + zeros(batches[-1]))
    (end,) = damaged.ends(truncate_to=4)
    assert "is lost from offset 4 on (the producers' snapshot at offset 7" in end.text
