from __future__ import annotations

import os
from pathlib import Path

import pytest
from retaining import checkpoint

from kafkajit.change.partitions import check_finished, interrupted_in, partitions_at, seen_in
from kafkajit.errors import KafkaJitError

UUID = "0" * 32


def folder(root: Path, name: str, *files: str) -> Path:
    made = root / name
    made.mkdir(parents=True)
    for file in files:
        (made / file).touch()
    return made


def test_a_partitions_folder_is_one(tmp_path: Path) -> None:
    orders = folder(tmp_path, "orders-0", f"{0:020d}.log")
    assert partitions_at(orders) == [orders]


def test_a_log_dirs_folder_has_those_that_are_not_on_their_way_out(tmp_path: Path) -> None:
    root = folder(tmp_path, "kafka-logs-1", "meta.properties", "cleaner-offset-checkpoint")
    found = [folder(root, name) for name in ("a-0", f"a-1.{UUID}-future", "b.c-12")]
    for name in (f"a-2.{UUID}-delete", f"a-3.{UUID}-stray", "lost+found", ".kafkajit-a-0"):
        folder(root, name)
    assert partitions_at(root) == found


def test_a_link_is_where_it_is(tmp_path: Path) -> None:
    orders = folder(tmp_path / "elsewhere", "orders-0", f"{0:020d}.log")
    (tmp_path / "logs").mkdir()
    link = tmp_path / "logs" / "orders-0"
    link.symlink_to(orders)
    assert partitions_at(link) == [link]


def test_what_has_no_partition_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*no-such-folder: name a"):
        partitions_at(tmp_path / "no-such-folder")
    log = folder(tmp_path / "kafka", "orders-0", f"{0:020d}.log") / f"{0:020d}.log"
    with pytest.raises(
        NotADirectoryError, match=f"{log} is not a folder: name the .* {log.parent}$"
    ):
        partitions_at(log)
    with pytest.raises(FileNotFoundError, match="does not contain one"):
        partitions_at(tmp_path)


def test_what_has_changed_in_a_partition_is_seen(tmp_path: Path) -> None:
    orders = folder(tmp_path, "orders-0", f"{0:020d}.log")
    log = orders / f"{0:020d}.log"
    seen = [seen_in(orders)]
    log.write_bytes(b"1")
    seen.append(seen_in(orders))
    os.utime(log, ns=(0, 0))
    seen.append(seen_in(orders))
    (orders / "leader-epoch-checkpoint").touch()
    seen.append(seen_in(orders))
    checkpoint(tmp_path, "replication-offset-checkpoint", "orders-0", 4)
    seen.append(seen_in(orders))
    assert all(one != other for at, one in enumerate(seen) for other in seen[at + 1 :])
    checkpoint(tmp_path, "log-start-offset-checkpoint", "orders-1", 4)  # another's
    (orders / ".kafkajit-repair").mkdir()
    assert seen_in(orders) == seen[-1]


def test_what_an_interrupted_change_has_left_is_told(tmp_path: Path) -> None:
    orders = folder(tmp_path, "orders-0")
    assert interrupted_in(orders) == []
    folder(orders, ".kafkajit-change.ready")
    ((name, what),) = interrupted_in(orders)
    assert name == ".kafkajit-change.ready"
    assert what.startswith("finish: a change was interrupted")


def test_what_nobody_can_finish_is_in_the_way(tmp_path: Path) -> None:
    orders = folder(tmp_path, "orders-0")
    check_finished(orders)
    (orders / ".kafkajit-change").touch()
    with pytest.raises(KafkaJitError, match=f"cannot be removed in {orders}/.kafkajit-change"):
        check_finished(orders)
