"""Partitions whose segments have the number and the ages that a test needs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import kafkajit
import kafkajit.testing as kt

TIME = 1_700_000_000_000
SIZE = 177  # of each segment's log
RECORDS = 2  # of each segment


def make_log(
    folder: Path, timestamps: Sequence[int], *, first: int = 0, producer: int = -1
) -> Path:
    """A log with a segment of RECORDS records for each timestamp, as a broker leaves it.

    The first segment begins at 0, the next ones at 2, 4 and so on behind it.
    """
    records = [kt.Record(b"k", b"v" * 50)] * RECORDS
    batches = [
        kt.batch(
            records,
            base_offset=first + RECORDS * place,
            base_timestamp=timestamp,
            max_timestamp=timestamp,
            partition_leader_epoch=place // 2,
            producer_id=producer,
            producer_epoch=-1 if producer < 0 else 0,
            base_sequence=-1 if producer < 0 else RECORDS * place,
        )
        for place, timestamp in enumerate(timestamps)
    ]
    assert all(len(batch) == SIZE for batch in batches)
    config = {"segment.bytes": SIZE}
    with kafkajit.LogWriter(folder, config, start_offset=first) as log:
        for batch in batches:
            log.append(batch)
    return folder


def log_name(offset: int, suffix: str = ".log") -> str:
    return f"{offset:020d}{suffix}"


def files_in(folder: Path) -> dict[str, bytes]:
    """The files of a partition that are not hidden."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def bases_in(folder: Path) -> list[int]:
    """The base offsets of a partition's segments."""
    return sorted(int(path.stem) for path in folder.glob("*.log"))


def checkpoint(root: Path, name: str, partition: str, offset: int) -> None:
    """Write a checkpoint of log.dirs with entries for this partition and another one."""
    topic, _, number = partition.rpartition("-")
    (root / name).write_text(f"0\n2\nother 7 99\n{topic} {number} {offset}\n")


_BROKER = """
import fcntl, sys
with open(sys.argv[1], "w") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    input()
"""


@contextmanager
def broker_of(root: Path) -> Iterator[None]:
    """Let another process hold the lock of a log.dirs folder."""
    broker = subprocess.Popen(
        [sys.executable, "-c", _BROKER, str(root / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert broker.stdout is not None
        assert broker.stdout.readline() == "held\n"
        yield
    finally:
        broker.communicate("\n")
