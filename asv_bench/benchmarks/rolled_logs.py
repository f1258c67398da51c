"""Logs in folders of their own, for rooms that look at a partition or change it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from kafkajit import LogWriter

from . import segments

_MEMORY = Path("/dev/shm")
SEGMENT_BYTES = 256 << 10


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder in memory if the system has one: a disk's variance would hide ours."""
    return tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None)


def rolled_log(folder: Path) -> Path:
    """16 MiB of records as orders-0, in 82 segments with their indexes; the partition's folder."""
    partition = folder / "orders-0"
    with LogWriter(partition, {"internal.segment.bytes": SEGMENT_BYTES}) as writer:
        writer.append(segments.small().path().read_bytes())
    return partition
