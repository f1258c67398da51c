"""A salvage keeps segments, if a swap that was to replace them is not what the cleaner wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
import reference
from partitions import CONFIG, data, log_name, make_partition

import kafkajit
from kafkajit.cli import main
from kafkajit.errors import CorruptRecordError
from kafkajit.upkeep.repair.plan import PartitionRepair

BATCHES = [data(offset, 2) for offset in range(0, 24, 2)]
EVERY = list(range(24))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_partition(tmp_path / "orders-0", {0: BATCHES[:4], 8: BATCHES[4:8], 16: BATCHES[8:]})


def salvaged(folder: Path, swap: bytes) -> tuple[PartitionRepair, list[int]]:
    (folder / f"{log_name(0)}.swap").write_bytes(swap)
    (plan,) = kafkajit.repair(folder, config=CONFIG, salvage=True).partitions
    plan.apply(keep=False)
    return plan, offsets_in(folder)


def flipped(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def offsets_in(folder: Path) -> list[int]:
    logs = [path.read_bytes() for path in sorted(folder.glob("*.log"))]
    return [row["offset"] for log in logs for row in reference.rows(log)]


SPOILT = {
    "is empty": b"",
    "has no sound batches": bytes(70) + b"x",
    "is damaged at": b"".join(BATCHES[:6])[:-10],
    "is damaged at 0": flipped(BATCHES[0]) + b"".join(BATCHES[1:8]),
}


@pytest.mark.parametrize("why", SPOILT)
def test_the_segments_stay_if_they_have_all_of_a_spoilt_swap(folder: Path, why: str) -> None:
    plan, offsets = salvaged(folder, SPOILT[why])
    assert offsets == EVERY
    assert (plan.records.lost, plan.records.kept) == (0, len(EVERY))
    assert any(f"it {why}" in line and "the segments stay" in line for line in plan.lines)
    assert not [*folder.glob("*.swap")]
    assert not kafkajit.repair(folder, config=CONFIG).partitions[0].is_needed


@pytest.mark.parametrize("kept", [BATCHES[:8], BATCHES[1:8:2], [BATCHES[3], bytes(300)]])
def test_a_swap_that_the_cleaner_finished_takes_the_place_of_segments(
    folder: Path, kept: list[bytes]
) -> None:
    last = [int.from_bytes(batch[:8]) for batch in kept if any(batch)][-1]
    _, offsets = salvaged(folder, b"".join(kept))
    own = [int.from_bytes(batch[:8]) for batch in kept if any(batch)]
    assert [at for at in offsets if at <= last + 1] == [at for one in own for at in (one, one + 1)]


def test_a_swap_with_all_offsets_takes_the_place_of_segments_that_are_gone(folder: Path) -> None:
    (folder / log_name(8)).unlink()
    assert salvaged(folder, b"".join(BATCHES[:8]))[1] == EVERY


def test_a_torn_swap_is_completed_if_the_segments_are_gone(folder: Path) -> None:
    for base in (0, 8):
        (folder / log_name(base)).unlink()
    assert salvaged(folder, b"".join(BATCHES[:8])[:-10])[1] == [*range(14), *range(16, 24)]


@pytest.mark.parametrize(
    ("swap", "why"),
    ids=["leaps", "is damaged"],
    argvalues=[
        (BATCHES[0] + data(500, 2), "goes on at offset 500, and the segments end at 23"),
        (flipped(BATCHES[0]) + b"".join(BATCHES[1:8]), "is damaged at 0"),
    ],
)
def test_a_spoilt_swap_with_offsets_that_no_segment_has_is_an_error(
    folder: Path, swap: bytes, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / log_name(8)).unlink()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(CorruptRecordError, match=f"a swap {why}.*, but it has offsets") as error:
        salvaged(folder, swap)
    path = Path(f"{folder / log_name(0)}.swap")
    assert error.value.path == str(path)
    assert main(["repair", "--salvage", "--apply", str(folder)]) == 1
    assert "move the .swap files away" in capsys.readouterr().err
    assert {one: one.read_bytes() for one in folder.iterdir()} == before | {path: swap}
    # A broker completes it, as a repair without salvage does.
    assert kafkajit.repair(folder, config=CONFIG).partitions[0].is_needed
