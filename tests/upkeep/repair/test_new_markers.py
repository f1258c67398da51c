"""New markers: offsets that nothing has which stays; and what a damaged header is believed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from partitions import CONFIG

import kafkajit.testing as kt
from kafkajit.records.control_records import ABORT
from kafkajit.upkeep.repair.damaged_batches import damaged_batches
from kafkajit.upkeep.repair.losses import Kept
from kafkajit.upkeep.repair.lost_ends import CERTAIN, Hole, LostEnd, Transaction
from kafkajit.upkeep.repair.new_markers import new_markers
from kafkajit.upkeep.repair.options import Producers, RepairOptions


def lost_end(hole: Hole, marker_offset: int | None = None) -> LostEnd:
    """A transaction of producer 7 at offset 0, whose end is lost in a hole."""
    one = Transaction(7, 0, 0, 0, 1, 0, 0, 0, 0, 0)
    return LostEnd(one, hole, hole.first, CERTAIN, None, [], None, None, marker_offset, 0, 0)


def offsets(end: LostEnd, kept: list[tuple[int, int]]) -> list[int]:
    options = RepairOptions(CONFIG, salvage=True, abort=Producers(all=True))
    runs = np.array(kept, dtype=np.int64).reshape(-1, 2)
    return [offset for offset, _ in new_markers([end], options, Kept(runs))]


@pytest.mark.parametrize(
    ("hole", "kept", "expected"),
    [
        (Hole(3, 6, []), [(0, 2), (7, 9)], [6]),
        (Hole(3, 6, []), [(0, 2), (5, 9)], [4]),
        (Hole(3, 6, []), [(0, 3), (5, 5), (6, 9)], [4]),
        (Hole(3, 6, []), [(0, 9)], []),
        (Hole(3, None, []), [(0, 2)], [3]),
        (Hole(3, None, []), [(0, 2), (4, 6)], [7]),
    ],
)
def test_a_marker_is_written_where_nothing_stays(
    hole: Hole, kept: list[tuple[int, int]], expected: list[int]
) -> None:
    assert offsets(lost_end(hole), kept) == expected


def test_no_marker_is_written_at_an_offset_that_another_batch_has() -> None:
    end = lost_end(Hole(3, 6, []), marker_offset=5)
    assert offsets(end, [(0, 2), (5, 9)]) == []
    assert end.written is None
    assert end.problem == "no marker is written, since another batch has its offset"
    end = lost_end(Hole(3, 6, []), marker_offset=4)
    assert offsets(end, [(0, 2), (5, 9)]) == [4]
    assert end.written == (4, ABORT)


def test_a_damaged_batch_of_several_control_records_keeps_its_offsets(tmp_path: Path) -> None:
    """Only what is as small as a marker has a single offset."""
    records = [kt.Record(b"\0\0\0\5", b"x" * 60), kt.Record(b"\0\0\0\6", b"y" * 60)]
    content = bytearray(kt.batch(records, base_offset=4, is_control=True))
    content[-2] ^= 0xFF
    (tmp_path / "a.log").write_bytes(content)
    (found,) = damaged_batches(tmp_path / "a.log", 0, len(content), 4, 5)
    assert (found.first, found.last, found.wrong_bits) == (4, 5, None)
