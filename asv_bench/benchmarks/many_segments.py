"""Folders with many partitions, or a partition with many segments, all of them tiny."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import kafkajit.testing as kt

from .segments import cache_folder

_TIME = 1_700_000_000_000  # of the records
_CHECKPOINTS = (
    "cleaner-offset-checkpoint",  # of compacted logs
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)


def folder_of(axis: str, size: int, *, is_compacted: bool = True) -> Path:
    """A log.dirs folder of many partitions of two segments, or of one partition of many."""
    kind = "" if is_compacted else "-deleted"
    folder = cache_folder() / f"commands-{axis}-{size}{kind}"
    if folder.exists():
        return folder
    unfinished = folder.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    partitions, segments = (size, 2) if axis == "partitions" else (1, size)
    for partition in range(partitions):
        path = unfinished / f"orders-{partition}"
        path.mkdir(parents=True)
        for base in range(0, 2 * segments, 2):
            _write_segment(path, base)
        (path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    for name in _CHECKPOINTS if is_compacted else _CHECKPOINTS[1:]:
        end = 2 * segments if name.startswith("re") else 0
        # A broker notes only the starts of logs of which records were deleted.
        entries = [] if name == "log-start-offset-checkpoint" else range(partitions)
        lines = "".join(f"orders {partition} {end}\n" for partition in entries)
        (unfinished / name).write_text(f"0\n{len(entries)}\n{lines}")
    unfinished.rename(folder)
    return folder


def _write_segment(folder: Path, base: int) -> None:
    records = [kt.Record(b"k%d" % ((base + at) % 97), bytes(20)) for at in range(2)]
    log = kt.batch(records, base_offset=base, base_timestamp=_TIME + base)
    (folder / f"{base:020}.log").write_bytes(log)
    (folder / f"{base:020}.index").write_bytes(b"")
    (folder / f"{base:020}.timeindex").write_bytes(struct.pack(">qi", _TIME + base, 1))
