"""Folders and FIFOs where a broker has files: commands name them, and never wait."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from partitions import data
from scanning import write_partition

import kafkajit
from kafkajit.change.change import Change

MAKE: dict[str, Callable[[Path], None]] = {"a folder": Path.mkdir, "a FIFO": os.mkfifo}
OPTIONS = {"retention.bytes": 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_partition(tmp_path, {0: data(0), 2: data(2)})


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex"])
def test_no_file_of_a_segment_is_a_folder_or_a_fifo(kind: str, suffix: str, folder: Path) -> None:
    strange = folder / f"{2:020}{suffix}"
    strange.unlink(missing_ok=True)
    MAKE[kind](strange)
    for act in (
        lambda: kafkajit.repair(folder),
        lambda: kafkajit.retain(folder, config=OPTIONS),
        lambda: kafkajit.LogWriter(folder),
    ):
        with pytest.raises(OSError, match=f"{strange} is {kind}, not a file"):
            act()


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("name", ["recovery-point", "replication", "log-start", "cleaner"])
def test_a_checkpoint_that_is_a_folder_or_a_fifo_is_an_obstacle(
    kind: str, name: str, folder: Path
) -> None:
    name = {"log-start": "log-start-offset", "replication": "replication-offset"}.get(
        name, f"{name}-offset"
    )
    path = folder.parent / f"{name}-checkpoint"
    MAKE[kind](path)
    (plan,) = kafkajit.repair(folder).partitions
    (obstacle,) = plan.obstacles
    assert obstacle.startswith(f"{path}: is {kind}, not a file: a broker takes the whole log.dirs")


def test_a_fifo_in_the_place_of_a_change_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / ".kafkajit-change")
    with pytest.raises(PermissionError, match="or remove it"), Change(folder, "repair"):
        pass
