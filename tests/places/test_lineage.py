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


def batches(epochs: Epochs, first: int, last: int) -> list[bytes]:
    """A batch of one record for each offset; its value is the epoch in which it was written."""
    return [
        kt.batch(
            [kt.Record(value=str(epoch_at(epochs, offset)).encode())],
            base_offset=offset,
            partition_leader_epoch=epoch_at(epochs, offset),
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

    def copy(self, epochs: Epochs, first: int, last: int) -> None:
        """Copy a segment of a leader whose epochs these are."""
        known = [pair for pair in epochs if pair[1] <= last]
        lines = [f"{epoch} {at}" for epoch, at in known]
        self._count += 1
        write_segment(
            self.folder,
            first,
            b"".join(batches(epochs, first, last)),
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
            assert (
                log.segment_for(first).offsets.first <= first <= log.segment_for(first).offsets.last
            )
        assert log.end_offset == log.last_stable_offset == len(found)
        globbed = read_table(f"{self.folder}/*.log", columns=["offset", "value"])
        assert [(row["offset"], int(row["value"])) for row in globbed.to_pylist()] == found
        return found


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
