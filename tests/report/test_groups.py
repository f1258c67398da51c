"""Commits come from __consumer_offsets, and from nowhere else."""

from __future__ import annotations

import shutil
from pathlib import Path

from corpus import DATA
from scanning import write_partition

import kafkajit.testing as kt
from kafkajit.report.groups import commits_of, plan_commits, read_newest


def offsets_folder() -> Path:
    return next(path for path in sorted((DATA / "internal").rglob("__consumer_offsets-*")))


def test_other_topics_are_not_read(tmp_path: Path) -> None:
    shutil.copytree(offsets_folder(), tmp_path / "__consumer_offsets-0")
    write_partition(tmp_path, {0: kt.batch([kt.Record(b"k", b"v")])}, "orders-0")
    tasks, _ = plan_commits([str(tmp_path)])
    topics = {Path(split.file.path).parent.name for task in tasks for split in task}
    assert topics == {"__consumer_offsets-0"}


def test_a_tombstone_is_newer_than_the_commit_before_it() -> None:
    tasks, options = plan_commits([str(DATA / "internal")])
    newest = {key: value for task in tasks for key, value in read_newest(task, options).items()}
    assert commits_of(newest)
    assert None in newest.values()
    assert commits_of(dict.fromkeys(newest)) == []
