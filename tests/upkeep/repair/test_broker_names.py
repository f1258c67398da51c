"""Repair names files that a broker takes for those of segments, and leaves them alone.

What a broker makes of each name is from opening such folders in the UnifiedLog of Kafka 4.1.1, by
tests/broker/log_operations.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from partitions import data, files_in, log_name, make_partition

import kafkajit
from kafkajit.cli import main

FAILS = [  # with a NumberFormatException
    "foo.log",
    "00000000000000000000-copy.log",
    ".x.log",
    "foo.index",
    "foo.timeindex",
    "foo.snapshot",
    "foo.swap",
    "foo.log.swap",
    "foo.cleaned",
    "123456789012345678901234.log",
]
MAKES_A_SEGMENT = ["7.log", "+7.log", "-5.log", "\u0660\u0660\u0667.log"]
REMOVES = ["3.txnindex", "007.index"]
LOADS = [
    "00000000000000000000.copy.log",
    "00000000000000000000.log.bak",
    "0.log",
    "3.snapshot",
    "foo.LOG",
    "notes.txt",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_partition(tmp_path / "orders-0", {0: [data(0)]})


@pytest.mark.parametrize("name", FAILS)
def test_a_name_that_stops_a_broker_is_an_obstacle(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).write_bytes(data(0))
    before = files_in(folder)
    assert main(["repair", "--apply", str(folder)]) == 1
    assert f"obstacle: {name}: a broker takes it for a file of a segment" in capsys.readouterr().out
    assert files_in(folder) == before


@pytest.mark.parametrize("name", MAKES_A_SEGMENT)
def test_a_name_of_which_a_broker_makes_a_segment_is_an_obstacle(name: str, folder: Path) -> None:
    (folder / name).write_bytes(data(0))
    (partition,) = kafkajit.repair(folder).partitions
    assert [
        one.startswith(f"{name}: a broker takes it for a segment") for one in partition.obstacles
    ]
    assert not partition.is_needed


@pytest.mark.parametrize("name", REMOVES)
def test_a_name_that_a_broker_removes_is_noted(name: str, folder: Path) -> None:
    (folder / name).write_bytes(b"")
    (partition,) = kafkajit.repair(folder).partitions
    assert partition.notes == [f"{name}: a broker removes it when it loads the log"]
    assert not partition.obstacles


@pytest.mark.parametrize("name", LOADS)
def test_a_broker_does_not_mind_other_names(name: str, folder: Path) -> None:
    (folder / name).write_bytes(data(0))
    (partition,) = kafkajit.repair(folder).partitions
    assert (partition.is_needed, partition.obstacles, partition.notes) == (False, [], [])


def test_folders_with_such_names_are_no_obstacle(folder: Path) -> None:
    (folder / "foo.log").mkdir()
    assert not kafkajit.repair(folder).partitions[0].obstacles
    assert (folder / log_name(0)).is_file()
