"""Commands killed at any change of a file: what a broker then finds, and how they are finished.

tests/disk does the same to each step of a change, whatever it is for.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
import reference
from corpus import NO_JIT
from killing import killed_at
from producing import rows
from producing import write as produce

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.upkeep.repair.temp_files import live_files

TIME = 1_700_000_000_000
CONFIG = {"segment.bytes": 300, "index.interval.bytes": 100}
RECORDS = 36
# One call in this many is tested, of several hundred; KAFKAJIT_KILLS=1 tests all of them.
EVERY = int(os.environ.get("KAFKAJIT_KILLS", "13"))

Rows = list[tuple[int, bytes, bytes]]


def batch(offset: int) -> bytes:
    """Three records with five possible keys, of a producer that continues."""
    return kt.batch(
        [kt.Record(b"k%d" % (n % 5), b"v%d" % n * 10) for n in range(offset, offset + 3)],
        base_offset=offset,
        base_timestamp=TIME + offset,
        producer_id=7,
        producer_epoch=0,
        base_sequence=offset,
        partition_leader_epoch=offset // 12,
    )


def append(root: Path, end: int = RECORDS + 12) -> None:
    with kafkajit.LogWriter(root / "orders-0", CONFIG) as log:
        for offset in range(log.log_end_offset, end, 3):
            log.append(batch(offset))


def write(root: Path) -> None:
    keys = [b"k%d" % n for n in range(20)]
    task = [rows(key=keys, value=keys, topic=["orders"] * 20, partition=[n % 2 for n in range(20)])]
    produce(root, [task, task], "overwrite", **{"batch.size": 100, "segment.bytes": 500})


def command(*words: str) -> Callable[[Path], None]:
    def run(root: Path) -> None:
        assert main([*words, "--apply", f"{root}/orders-0"]) == 0

    return run


def make_log(root: Path) -> None:
    root.mkdir()
    append(root, RECORDS)
    (root / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 0\n")
    (root / ".kafka_cleanshutdown").touch()


def make_damaged(root: Path) -> None:
    make_log(root)
    path = sorted((root / "orders-0").glob("*.log"))[5]
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def make_source(root: Path) -> None:
    """A backup beside the folder, in which orders-0 is not or is empty."""
    if not (backup := root.with_name("backup")).exists():
        make_log(backup)
        shutil.copytree(backup / "orders-0", backup / "orders-1")
    root.mkdir()


def make_empty(root: Path) -> None:
    make_source(root)
    for name in ("orders-0", "orders-1"):
        (root / name).mkdir()
        (root / name / f"{0:020d}.log").touch()
        (root / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {'x' * 21}A")


def restore(*words: str) -> Callable[[Path], None]:
    def run(root: Path) -> None:
        words_ = ["restore", *words, "--skip-existing", "--apply", f"{root.with_name('backup')}"]
        assert main([*words_, str(root)]) == 0

    return run


class Command(NamedTuple):
    make: Callable[[Path], None]
    run: Callable[[Path], Any]
    cuts: bool = False  # segments go one by one from one end


INDEXED = ("--config", "index.interval.bytes=100")
KEEPS = ("--config", "retention.bytes=500", "--config", "cleanup.policy=compact,delete")
COMMANDS = {
    "repair": Command(make_damaged, command("repair", *INDEXED), cuts=True),
    "compact": Command(make_log, command("compact", "--now", str(TIME + 10**9))),
    "retain": Command(make_log, command("retain", *KEEPS), cuts=True),
    "append": Command(make_log, append),
    "write": Command(make_log, write, cuts=True),
    "restore": Command(make_source, restore()),
    "restore into empty logs": Command(make_empty, restore("--into-existing-topics")),
}


@pytest.fixture
def root() -> Iterator[Path]:
    """A log.dirs folder, in memory if possible."""
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with TemporaryDirectory(dir=shared) as folder:
        yield Path(folder) / "kafka"


def loaded(folder: Path) -> Rows:
    """The sound records that a broker has after it loads the folder."""
    names = live_files(folder).files.items() if folder.exists() else ()
    logs = [path.read_bytes() for name, path in sorted(names) if name.endswith(".log")]
    return [(row["offset"], row["key"], row["value"]) for log in logs for row in _rows(log)]


def _rows(log: bytes) -> list[dict[str, Any]]:
    batches = reference.read_batches(log)[0]
    sound = [log[b.position : b.position + b.size] for b in batches if b.is_valid]
    return reference.rows(b"".join(sound))


def live(root: Path) -> dict[str, bytes]:
    """All files that are not hidden."""
    paths = {path.relative_to(root): path for path in root.rglob("*") if path.is_file()}
    return {
        str(name): path.read_bytes()
        for name, path in paths.items()
        if not any(part.startswith(".") for part in name.parts)
    }


@pytest.mark.thorough
@pytest.mark.skipif(NO_JIT, reason="the same files are changed")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_killed_anywhere_leaves_the_old_log_or_the_new(
    name: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setattr("time.time", lambda: TIME / 1000)
    make, run, cuts = COMMANDS[name]
    before = root.with_name("before")
    make(before)
    shutil.copytree(before, root)
    run(root)
    expected, folders = live(root), [root / "orders-0", root / "orders-1"]
    new = [loaded(folder) for folder in folders]
    old = [loaded(before / folder.name) for folder in folders]
    outcomes = set()
    for call in count(0, EVERY):
        shutil.rmtree(root)
        shutil.copytree(before, root)
        if not killed_at(call, lambda: run(root)):
            break
        found = [loaded(folder) for folder in folders]
        outcomes |= {"old"} if found == old else {"new"} if found == new else set()
        for rows_, was, is_ in zip(found, old, new, strict=True):
            is_part = cuts and rows_ in (was[: len(rows_)], was[-len(rows_) :])
            assert rows_ in (was, is_) or (is_part and rows_), call
        run(root)
        assert live(root) == expected
    assert outcomes == {"old", "new"}
