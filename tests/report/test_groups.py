"""Commits come from __consumer_offsets, and from nowhere else."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest
from corpus import DATA
from scanning import write_partition

import kafkajit.report.newest
import kafkajit.testing as kt
from kafkajit.report.groups import OFFSETS_TOPIC, Groups
from kafkajit.report.newest import Newest, plan_newest, read_newest


def offsets_folder() -> Path:
    return next(path for path in sorted((DATA / "internal").rglob("__consumer_offsets-*")))


def test_other_topics_are_not_read(tmp_path: Path) -> None:
    shutil.copytree(offsets_folder(), tmp_path / "__consumer_offsets-0")
    write_partition(tmp_path, {0: kt.batch([kt.Record(b"k", b"v")])}, "orders-0")
    tasks, _ = plan_newest(OFFSETS_TOPIC, [str(tmp_path)])
    topics = {Path(split.file.path).parent.name for task in tasks for split in task}
    assert topics == {"__consumer_offsets-0"}


def newest_in(location: Path) -> Newest:
    tasks, options = plan_newest(OFFSETS_TOPIC, [str(location)])
    newest = Newest()
    for task in tasks:
        newest.follow(pickle.loads(pickle.dumps(read_newest(task, options))))
    return newest


def test_a_tombstone_is_newer_than_the_commit_before_it(tmp_path: Path) -> None:
    newest = newest_in(DATA / "internal")
    assert Groups(newest).commits
    (key, *_) = newest.decided
    value = newest.decided[key][1]
    log = record(0, key, value)
    write_partition(tmp_path, {0: log}, "__consumer_offsets-0")
    assert newest_in(tmp_path).decided == {key: (0, value)}
    write_partition(tmp_path, {0: log + record(1, key, None)}, "__consumer_offsets-0")
    newest = newest_in(tmp_path)
    assert newest.decided == {key: (1, None)}
    assert Groups(newest).commits == []


def record(offset: int, key: bytes, value: bytes | None, producer: int | None = None) -> bytes:
    fields = {} if producer is None else {"producer_id": producer, "is_transactional": True}
    return kt.batch([kt.Record(key, value)], base_offset=offset, **fields)  # type: ignore[arg-type]


def marker(offset: int, producer: int, *, commits: bool) -> bytes:
    return kt.control_batch(int(commits), base_offset=offset, producer_id=producer)


# Values of keys that are written in transactions: the producer 1 never ends its own.
BATCHES = [
    record(0, b"waits", b"old"),
    record(1, b"waits", b"new", producer=1),
    record(2, b"plain", b"1"),
    record(3, b"done", b"1", producer=2),
    record(4, b"undone", b"1"),
    record(5, b"undone", b"2", producer=3),
    marker(6, 2, commits=True),
    record(7, b"late", b"1", producer=4),
    record(8, b"late", b"2"),
    marker(9, 3, commits=False),
    marker(10, 4, commits=True),
    record(11, b"plain", b"2"),
    record(12, b"done", b"2", producer=2),
    record(13, b"gone", b"1", producer=5),
    record(14, b"gone", None),
    marker(15, 5, commits=True),
]
EXPECTED = {
    b"waits": b"old",
    b"plain": b"2",
    b"done": b"1",
    b"undone": b"1",
    b"late": b"2",
    b"gone": None,
}


@pytest.mark.parametrize("cut", range(1, len(BATCHES)))
def test_a_value_counts_once_its_own_transaction_is_committed(tmp_path: Path, cut: int) -> None:
    newest = Newest()
    for number, part in enumerate((BATCHES[:cut], BATCHES[cut:])):
        folder = tmp_path / str(number)
        start = 0 if number == 0 else cut
        write_partition(folder, {start: b"".join(part)}, "__consumer_offsets-0")
        tasks, options = plan_newest(OFFSETS_TOPIC, [str(folder)])
        for task in tasks:
            newest.follow(read_newest(task, options))
    assert {key: value for key, (_, value) in newest.decided.items()} == EXPECTED


def test_a_value_that_no_coordinator_loads_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    newest = newest_in(DATA / "internal")
    largest = max(len(value) for _, value in newest.decided.values() if value)
    assert Groups(newest).undecoded == 0
    monkeypatch.setattr(kafkajit.report.newest, "MOST_BYTES", largest - 1)
    assert Groups(newest).undecoded > 0
