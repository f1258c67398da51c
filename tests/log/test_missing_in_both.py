"""Offsets that a log lacks of which tiered storage has the first part, and a broker the rest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import data
import pytest
from partitions import log_name

import kafkajit
from kafkajit.cli import main

Locations = tuple[Path, Path]


@pytest.fixture
def both(tmp_path: Path) -> Locations:
    """Tiered storage up to offset 298 of orders-0, and a broker's folder up to 313."""
    for name in ("remote", "logs"):
        shutil.copytree(data.objects() / "local-storage" / name, tmp_path / name)
    return tmp_path / "remote", tmp_path / "logs"


def emptied(logs: Path) -> None:
    (logs / "orders-0" / log_name(299)).write_bytes(b"")


def removed(logs: Path) -> None:
    for path in (logs / "orders-0").glob(f"{299:020}.*"):
        path.unlink()


def alone(logs: Path) -> None:
    """The emptied segment is the only one that the broker has."""
    emptied(logs)
    for base in (244, 282, 298):
        for path in (logs / "orders-0").glob(f"{base:020}.*"):
            path.unlink()


def cut(logs: Path) -> None:
    os.truncate(logs / "orders-0" / log_name(299), 939)


LOST = [
    (emptied, "offsets 299 to 313 are missing at the log's end: replication-offset-checkpoint has"),
    (removed, "offsets 299 to 313 are missing at the log's end: replication-offset-checkpoint has"),
    (alone, "offsets 299 to 313 are missing at the log's end: replication-offset-checkpoint has"),
    (cut, "offsets 309 to 313 are missing at the log's end: replication-offset-checkpoint has"),
]


def losses(both: Locations) -> list[str]:
    plan = kafkajit.restore(both, both[0].with_name("kafka"), partitions="orders-0")
    return [str(loss) for loss in plan.losses]


def test_a_log_that_is_whole_lacks_nothing(both: Locations) -> None:
    assert losses(both) == []


@pytest.mark.parametrize(("change", "words"), LOST, ids=lambda it: getattr(it, "__name__", ""))
def test_the_end_that_the_brokers_files_know_of_is_named(
    change: Callable[[Path], None], words: str, both: Locations, capsys: pytest.CaptureFixture[str]
) -> None:
    change(both[1])
    (loss,) = losses(both)
    assert words in loss
    places = [*map(str, both), "--partition", "orders-0"]
    assert main(["grep", "-c", "zzz", *places]) == 2
    assert words in capsys.readouterr().err
    assert main(["export", *places, "-o", str(both[0].with_name("a")), "--to", "parquet"]) == 1
    assert words in capsys.readouterr().err


def test_the_start_that_the_brokers_files_know_of_is_named(both: Locations) -> None:
    for path in both[0].rglob(f"orders-0-*/{0:020}-*"):
        path.unlink()
    (loss,) = losses(both)
    assert f"offsets 0 to 55 are missing before {log_name(56)}, the first segment" in loss


def test_records_that_were_deleted_from_tiered_storage_are_not_missing(both: Locations) -> None:
    remote, logs = both
    for path in remote.rglob(f"orders-0-*/{0:020}-*"):
        path.unlink()
    (logs / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 56\n2 157\n")
    assert losses(both) == []  # log-start-offset-checkpoint is up to a minute older


def test_a_folder_whose_segments_are_all_gone_is_named(
    both: Locations, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (both[1] / "orders-0").glob("0*"):
        path.unlink()  # leader-epoch-checkpoint and partition.metadata stay
    words = f"{both[1]}/orders-0: no segment is left, only files that lie beside some: "
    to_files = ["-o", str(both[0].with_name("a")), "--to", "parquet"]
    for places in ([both[1]], both):
        for command in (["grep", "-c", "zzz"], ["export", *to_files], ["restore"], ["info"]):
            target = [str(both[0].with_name("kafka"))] if command == ["restore"] else []
            assert main([*command, *map(str, places), *target]) in {1, 2}
            assert words in capsys.readouterr().err
    with pytest.raises(FileNotFoundError, match="only files that lie beside some: leader"):
        kafkajit.restore(both[1] / "orders-0", both[0].with_name("kafka"))


def test_a_damaged_checkpoint_that_may_know_of_missing_offsets_is_named(
    both: Locations, capsys: pytest.CaptureFixture[str]
) -> None:
    removed(both[1])
    (both[1] / "replication-offset-checkpoint").write_text("garbage\n")
    logs, top = str(both[1]), both[0].parent
    for command in (
        ["info", logs],
        ["report", logs, "-o", f"{top}/page.html"],
        ["grep", "-c", "zzz", logs],
        ["export", logs, "-o", f"{top}/a", "--to", "parquet"],
        ["restore", logs, f"{top}/kafka"],
    ):
        assert main(command) in {1, 2}, command
        assert "Malformed line in checkpoint file: garbage" in capsys.readouterr().err
