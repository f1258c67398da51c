"""Files with which Kafka 4.1.1 was started: it ended, or took the log.dirs folder offline."""

from __future__ import annotations

from pathlib import Path

import pytest
from partitions import data, make_partition

import kafkajit
from kafkajit.state.checkpoints import NAMES as CHECKPOINTS
from kafkajit.upkeep.repair.broker_start import foreign_folders

META = b"version=1\nnode.id=1\ncluster.id=jUcBo3S7QwGKNZGQ9f6ytw\n"
TOPIC_ID = b"version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_partition(tmp_path / "kafka" / "orders-0", {0: [data(0)]})


def obstacles(folder: Path) -> list[str]:
    (partition,) = kafkajit.repair(folder).partitions
    return partition.obstacles


@pytest.mark.parametrize("content", [b"", b"noise\n", b"\xff", b"version: 0\n", TOPIC_ID[:-3]])
def test_a_topic_id_that_no_broker_reads_is_told(folder: Path, content: bytes) -> None:
    (folder / "partition.metadata").write_bytes(content)
    (obstacle,) = obstacles(folder)
    assert obstacle.startswith("partition.metadata: ")
    assert "a broker ends, or takes the whole log.dirs folder offline" in obstacle


def test_a_topic_id_that_is_missing_is_told_in_the_folder_of_a_broker_with_kraft(
    folder: Path,
) -> None:
    assert obstacles(folder) == []  # in a backup
    meta = folder.parent / "meta.properties"
    meta.write_bytes(b"version=0\nbroker.id=1\n")
    assert obstacles(folder) == []
    meta.write_bytes(META)
    (obstacle,) = obstacles(folder)
    assert obstacle.startswith("partition.metadata is missing: ")
    (folder / "partition.metadata").write_bytes(TOPIC_ID)
    assert obstacles(folder) == []


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_that_no_broker_reads_is_told(folder: Path, name: str) -> None:
    (folder.parent / name).write_text("noise")
    (obstacle,) = obstacles(folder)
    assert obstacle.startswith(f"{folder.parent / name}: CorruptCheckpointError: ")
    assert "a broker takes the whole log.dirs folder offline: move the file away" in obstacle


def test_folders_with_which_no_broker_starts_are_named(folder: Path) -> None:
    log_dirs = folder.parent
    foreign = ["backup", "lost+found", "orders-0.bak"]
    unique = "0123456789abcdef0123456789abcdef"
    fine = [f"orders-1.{unique}-delete", f"orders-2.{unique}-stray", "remote-log-index-cache"]
    twice = ["orders-03", "orders-3"]
    for name in (*foreign, *fine, *twice, "orders-04", "orders-1", "orders-2"):
        (log_dirs / name).mkdir()
    (log_dirs / "notes.txt").touch()
    assert foreign_folders(log_dirs) == []  # a backup may have them
    (log_dirs / "meta.properties").write_bytes(META)
    assert foreign_folders(log_dirs) == [*foreign, "orders-03"]
