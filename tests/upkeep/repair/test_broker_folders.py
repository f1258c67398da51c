"""Two log.dirs folders of one broker: it does not start if both have a partition."""

from __future__ import annotations

from pathlib import Path

import pytest
from partitions import data, make_partition

from kafkajit.cli import main
from kafkajit.upkeep.repair.broker_folders import duplicates_in

IDS = {
    "one": "pUM3BMsVQk2fe-klgEgLLA",
    "other": "jUcBo3S7QwGKNZGQ9f6ytw",
    "replica": "5TFTyEeVQSqJxvd4fXPTRg",
}


def log_dirs(path: Path, node: int | None = 1, directory: str = "") -> Path:
    make_partition(path / "orders-0", {0: [data(0)]})
    (path / "orders-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA"
    )
    if node is not None:
        (path / "meta.properties").write_text(
            f"version=1\nnode.id={node}\ncluster.id=jUcBo3S7QwGKNZGQ9f6ytw\n"
            f"directory.id={IDS[directory or path.name]}\n"
        )
    return path


def test_a_partition_in_two_folders_of_a_broker_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = log_dirs(tmp_path / "one"), log_dirs(tmp_path / "other")
    make_partition(other / "orders-1", {0: [data(0)]})
    text = f"orders-0: in {one} and in {other}, log.dirs folders of one broker"
    # The second is found beside the first.
    for places in ([one], [one, other], [one / "orders-0"]):
        (found,) = duplicates_in(places)
        assert (found.names, found.is_certain) == (["orders-0"], True)
        assert found.text.startswith(text)
        assert main(["repair", *map(str, places)]) == 1
        assert text in capsys.readouterr().out


def test_folders_of_other_brokers_and_copies_are_not_named(tmp_path: Path) -> None:
    one = log_dirs(tmp_path / "one")
    assert duplicates_in([one, log_dirs(tmp_path / "replica", 2)]) == []
    assert duplicates_in([one, log_dirs(tmp_path / "copy", 1, "one")]) == []
    assert duplicates_in([one, log_dirs(tmp_path / "backup", None)]) == []
    (found,) = duplicates_in([tmp_path / "backup", log_dirs(tmp_path / "another", None)])
    assert not found.is_certain


def test_a_replica_that_moves_between_folders_is_not_twice(tmp_path: Path) -> None:
    one, other = log_dirs(tmp_path / "one"), log_dirs(tmp_path / "other")
    moving = other / f"orders-0.{'0' * 32}-future"
    (other / "orders-0").rename(moving)
    assert duplicates_in([one, other]) == []


def test_lines_have_the_folder_if_there_are_several(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = log_dirs(tmp_path / "one"), log_dirs(tmp_path / "other", 2)
    for folder in (one, other):
        (folder / "orders-0" / f"{0:020}.index").unlink()
    assert main(["repair", str(one), str(other)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert f"{one}/orders-0:" in lines
    assert f"{other}/orders-0:" in lines
