from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkajit.change.change import Change
from kafkajit.change.lock import FolderLock
from kafkajit.change.partition_plan import FolderState, PartitionPlan, UpkeepPlan
from kafkajit.errors import KafkaJitError, LockedError

EPOCHS = "leader-epoch-checkpoint"


class Emptying(PartitionPlan):
    """A plan that empties one file of the partition."""

    ACTION = "empty"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = FolderState(folder)

    @property
    def is_needed(self) -> bool:
        return (self.folder / EPOCHS).stat().st_size > 0

    @property
    def lines(self) -> list[str]:
        return [f"{self.folder.name}: to be emptied"] * self.is_needed

    def replanned(self) -> Emptying:
        return Emptying(self.folder)

    def summary(self) -> str:
        return "to be emptied"

    def document(self) -> dict[str, Any]:
        return {"empties": EPOCHS}

    def stage(self, change: Change) -> None:
        change.new(self.folder / EPOCHS).touch()


@pytest.fixture
def plan(tmp_path: Path) -> UpkeepPlan[Emptying]:
    folders = [tmp_path / f"orders-{partition}" for partition in range(2)]
    for folder in folders:
        folder.mkdir()
        (folder / EPOCHS).write_bytes(b"0 0")
    return UpkeepPlan(tmp_path, list(map(Emptying, folders)))


def files(plan: UpkeepPlan[Emptying]) -> list[bytes]:
    return [(partition.folder / EPOCHS).read_bytes() for partition in plan.partitions]


def test_a_plan_says_what_is_to_be_done_and_changes_nothing(plan: UpkeepPlan[Emptying]) -> None:
    assert plan.is_needed
    assert str(plan) == "orders-0: to be emptied\norders-1: to be emptied"
    assert files(plan) == [b"0 0"] * 2


def test_what_goes_is_kept_in_a_folder_of_its_own(plan: UpkeepPlan[Emptying]) -> None:
    kept = plan.apply()
    assert files(plan) == [b"", b""]
    assert [(path / path.parent.name / EPOCHS).read_bytes() for path in kept] == [b"0 0"] * 2
    assert all(path.name.startswith(".kafkajit-empty-") for path in kept)


def test_nothing_is_kept_where_nobody_wants_it(plan: UpkeepPlan[Emptying]) -> None:
    assert plan.apply(keep=False) == []
    assert files(plan) == [b"", b""]
    assert [path.name for path in plan.partitions[0].folder.iterdir()] == [EPOCHS]


def test_only_partitions_that_need_it_are_changed(plan: UpkeepPlan[Emptying]) -> None:
    (plan.partitions[0].folder / EPOCHS).write_bytes(b"")
    assert len(plan.apply()) == 1
    assert not plan.is_needed
    assert str(plan) == ""


def test_a_partition_that_has_changed_since_is_not_touched(plan: UpkeepPlan[Emptying]) -> None:
    (plan.partitions[1].folder / EPOCHS).write_bytes(b"0 0 1 5")
    with pytest.raises(KafkaJitError, match="files have changed since the plan was made"):
        plan.apply()
    assert files(plan) == [b"", b"0 0 1 5"]


def test_a_folder_that_somebody_holds_is_refused(plan: UpkeepPlan[Emptying]) -> None:
    with FolderLock(plan.location), pytest.raises(LockedError):
        plan.apply()
    assert files(plan) == [b"0 0"] * 2


def test_an_interrupted_change_is_finished_and_what_is_there_then_is_planned_for(
    plan: UpkeepPlan[Emptying], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    folder = plan.partitions[0].folder
    with monkeypatch.context() as patch:
        patch.setattr("kafkajit.change.change.carry_out", stop)
        change = Change(folder, "append")
        change.new(folder / EPOCHS).write_bytes(b"being written")
        with pytest.raises(KeyboardInterrupt):
            change.commit()
    again = UpkeepPlan(plan.location, [Emptying(folder)])
    assert again.partitions[0].state.interrupted
    (kept,) = again.apply()
    assert (folder / EPOCHS).read_bytes() == b""
    assert (kept / folder.name / EPOCHS).read_bytes() == b"being written"
