"""Segments of several leaders are one log, which has what the brokers went on with."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanning import read_table

import kafkajit
import kafkajit.testing as kt
from asv_bench.benchmarks.tiered_objects import TOPIC_ID, write_segment

Epochs = list[tuple[int, int]]  # each with its first offset


def batches(epochs: Epochs, first: int, last: int, *, late: int = 10**6) -> list[bytes]:
    """A batch of one record for each offset; its value is the epoch in which it was written."""
    return [
        kt.batch(
            [kt.Record(value=str(epoch_at(epochs, offset)).encode())],
            base_offset=offset,
            partition_leader_epoch=epoch_at(epochs, offset),
            base_timestamp=1000 + 9000 * (offset >= late),
        )
        for offset in range(first, last + 1)
    ]


def epoch_at(epochs: Epochs, offset: int) -> int:
    return [epoch for epoch, first in epochs if first <= offset][-1]


class Tier:
    """A partition in tiered storage."""

    def __init__(self, root: Path) -> None:
        self.folder = root / f"orders-{TOPIC_ID}" / "0"
        self._count = 0

    def copy(
        self,
        epochs: Epochs,
        first: int,
        last: int,
        *,
        known: Epochs | None = None,
        late: int = 10**6,
        instead: dict[int, bytes] | None = None,
    ) -> None:
        """Copy a segment of a leader whose epochs these are.

        Args:
            epochs: those of the leader.
            first: the first offset.
            last: the last one.
            known: those that are left of the epochs.
            late: the offset from which on records have a later timestamp.
            instead: other batches, by their offsets.
        """
        known = [pair for pair in known or epochs if pair[1] <= last]
        written = batches(epochs, first, last, late=late)
        for offset, batch in (instead or {}).items():
            written[offset - first] = batch
        lines = [f"{epoch} {at}" for epoch, at in known]
        self._count += 1
        write_segment(
            self.folder,
            first,
            b"".join(written),
            end_offset=last,
            indexes={"leaderEpoch": "\n".join(["0", str(len(lines)), *lines, ""]).encode()},
            epochs=dict(known),
            segment_id=f"{self._count:022}",
        )

    def rows(self) -> list[tuple[int, int]]:
        """(offset, epoch) of each record."""
        table = read_table(self.folder, columns=["offset", "value"])
        found = [(row["offset"], int(row["value"])) for row in table.to_pylist()]
        log = kafkajit.Log(str(self.folder))
        for first in range(0, len(found), 13):
            rows = log.read(first, 10**6, columns=["offset", "value"]).to_pylist()
            assert [(row["offset"], int(row["value"])) for row in rows] == found[first:]
            inside = log.segment_for(first).offsets
            assert inside.first <= first <= inside.last
        assert log.end_offset == log.last_stable_offset == len(found)
        globbed = read_table(f"{self.folder}/*.log", columns=["offset", "value"])
        assert [(row["offset"], int(row["value"])) for row in globbed.to_pylist()] == found
        assert self.restored() == found
        return found

    def restored(self) -> list[tuple[int, int]]:
        """The same of the log that a broker gets back."""
        with tempfile.TemporaryDirectory() as root:
            kafkajit.restore(self.folder, root).apply()
            assert not kafkajit.repair(root).is_needed
            rows = kafkajit.Log(f"{root}/orders-0").read(0, 10**6, columns=["offset", "value"])
            return [(row["offset"], int(row["value"])) for row in rows.to_pylist()]


def expected(epochs: Epochs, last: int) -> list[tuple[int, int]]:
    return [(offset, epoch_at(epochs, offset)) for offset in range(last + 1)]


@pytest.fixture
def tier(tmp_path: Path) -> Tier:
    return Tier(tmp_path)


def test_a_new_leader_rolls_at_other_offsets(tier: Tier) -> None:
    epochs = [(0, 0), (1, 30)]
    tier.copy(epochs, 0, 9)
    tier.copy(epochs, 10, 18)
    tier.copy(epochs, 19, 25)
    tier.copy(epochs, 5, 40)
    tier.copy(epochs, 41, 50)
    assert tier.rows() == expected(epochs, 50)


def test_segments_that_an_election_has_lost_are_not_read(
    tier: Tier, caplog: pytest.LogCaptureFixture
) -> None:
    lost, won = [(0, 0), (1, 20)], [(0, 0), (2, 15)]
    tier.copy(lost, 0, 9)
    tier.copy(lost, 10, 24)
    tier.copy(lost, 25, 40)
    tier.copy(won, 10, 30)
    tier.copy(won, 31, 33)
    assert tier.rows() == expected(won, 33)
    assert "not read from offset 15 on, which an election of another leader has lost" in caplog.text


def test_a_lost_segment_may_be_longer_than_the_log(tier: Tier) -> None:
    tier.copy([(0, 0)], 0, 9)
    tier.copy([(0, 0)], 10, 90)
    tier.copy([(0, 0), (1, 40)], 10, 50)
    assert tier.rows() == expected([(0, 0), (1, 40)], 50)


def broker(root: Path, epochs: Epochs, *segments: tuple[int, int]) -> Path:
    """The folder of a broker that has these segments."""
    folder = root / "broker" / "orders-0"
    folder.mkdir(parents=True)
    for first, last in segments:
        (folder / f"{first:020}.log").write_bytes(b"".join(batches(epochs, first, last)))
    lines = [f"{epoch} {at}" for epoch, at in epochs]
    text = "\n".join(["0", str(len(lines)), *lines, ""])
    (folder / "leader-epoch-checkpoint").write_text(text)
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    return folder


def values_of(*paths: Path, **options: object) -> list[tuple[int, int]]:
    """(offset, epoch) of each record at these paths."""
    table = read_table(*paths, columns=["offset", "value"], **options)
    return [(row["offset"], int(row["value"])) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("copied", "kept"),
    [
        ([(0, 9), (10, 20)], [(0, 30), (31, 40)]),  # the broker rolled at other offsets
        ([(0, 99), (100, 140)], [(100, 109)]),  # a follower that is behind
        ([(0, 19), (20, 39), (40, 59)], [(30, 49), (50, 70)]),
        ([(10, 20)], [(0, 40)]),
    ],
)
def test_a_brokers_segments_end_where_they_end(
    copied: list[tuple[int, int]], kept: list[tuple[int, int]], tier: Tier, tmp_path: Path
) -> None:
    epochs = [(0, 0), (1, 15)]
    for first, last in copied:
        tier.copy(epochs, first, last)
    folder = broker(tmp_path, epochs, *kept)
    last = max(last for _, last in copied + kept)
    for paths in ([tier.folder, folder], [folder, tier.folder]):
        assert values_of(*paths) == expected(epochs, last)


def test_a_broker_has_what_an_election_has_not_lost(tier: Tier, tmp_path: Path) -> None:
    tier.copy([(0, 0)], 0, 19)
    tier.copy([(0, 0), (1, 20)], 20, 40)
    won = [(0, 0), (2, 20)]
    folder = broker(tmp_path, won, (0, 30))
    assert values_of(tier.folder, folder) == expected(won, 30)


def test_the_first_epochs_of_a_log_may_have_been_cut_off(tier: Tier) -> None:
    epochs = [(0, 0), (2, 15), (3, 25)]
    tier.copy(epochs, 0, 26)
    tier.copy(epochs, 10, 30, known=[(2, 17), (3, 25)])
    assert tier.rows() == expected(epochs, 30)


def test_times_are_looked_for_in_what_the_log_went_on_with(tier: Tier) -> None:
    lost, won = [(0, 0), (1, 20)], [(0, 0), (2, 15)]
    tier.copy(lost, 0, 24, late=15)
    tier.copy(won, 10, 30, late=25)
    assert values_of(tier.folder, startingTimestamp="5000ms")[0] == (25, 2)
    assert values_of(tier.folder, endingTimestamp="5000ms")[-1] == (24, 2)


def test_transactions_are_those_that_the_log_went_on_with(tier: Tier) -> None:
    """The lost leader has aborted one that was committed, and has one that is open."""
    lost, won = [(0, 0), (1, 20)], [(0, 0), (2, 15)]

    def sent(offset: int, producer_id: int) -> bytes:
        return kt.batch(
            [kt.Record(value=b"0")],
            base_offset=offset,
            partition_leader_epoch=0,
            is_transactional=True,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
        )

    def marker(offset: int, epoch: int, type_: int) -> bytes:
        return kt.control_batch(
            type_, producer_id=7, base_offset=offset, partition_leader_epoch=epoch
        )

    tier.copy(lost, 0, 24, instead={14: sent(14, 7), 16: marker(16, 0, 0), 17: sent(17, 8)})
    tier.copy(won, 10, 30, instead={14: sent(14, 7), 17: marker(17, 2, 1)})
    rows = [row for row in expected(won, 30) if row[0] != 17]
    assert values_of(tier.folder, isolationLevel="read_committed") == rows
    log = kafkajit.Log(str(tier.folder))
    assert log.last_stable_offset == 31
    assert log.aborted_transactions(0, 100).num_rows == 0


@given(st.data())
def test_whatever_leaders_copy_each_offset_is_read_once(data: st.DataObject) -> None:
    """Leaders roll where they like, and copy from any of their segments on."""
    cuts = sorted(data.draw(st.sets(st.integers(1, 59), max_size=4)))
    epochs = [(0, 0), *((number + 1, cut) for number, cut in enumerate(cuts))]
    with tempfile.TemporaryDirectory() as folder:
        tier = Tier(Path(folder))
        for _ in range(data.draw(st.integers(1, 3))):
            rolls = sorted({0, 60, *data.draw(st.sets(st.integers(1, 59), max_size=5))})
            for first, behind in pairwise(rolls):
                tier.copy(epochs, first, behind - 1)
        lost = data.draw(st.integers(1, 59))
        tier.copy([*(pair for pair in epochs if pair[1] < lost), (0, lost)][:1], lost, 70)
        tier.copy([*epochs, (9, 60)], 60, 65)
        assert tier.rows() == expected([*epochs, (9, 60)], 65)
