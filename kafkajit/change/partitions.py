"""Which partitions a place has, and what their folders look like at a moment.

Answers to LogManager's loadLogs, which takes each folder of a log.dirs for a partition's.
"""

from __future__ import annotations

import os
from pathlib import Path

from kafkajit.change.files import check_files, local_folder
from kafkajit.change.journal import DONE, READY, STAGED
from kafkajit.change.lock import log_dirs_of
from kafkajit.change.partition_offsets import PartitionOffsets
from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import parse_log_path
from kafkajit.state.checkpoints import NAMES as CHECKPOINTS

_ON_ITS_WAY = ("-delete", "-stray")
_INTERRUPTED = {
    READY: "finish: a change was interrupted; what follows is before that",
    STAGED: "remove: a change was interrupted before it was all there",
    DONE: "remove: a change was interrupted when all was done",
}


def partitions_at(location: str | os.PathLike[str]) -> list[Path]:
    """The partition's folder itself, or those in a log.dirs folder."""
    path = local_folder(location)
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{path} is no folder: name the one that it is in, {path.parent}")
    if not path.exists():
        raise FileNotFoundError(
            f"there is no folder {path}: name a partition's, such as orders-0, or a log.dirs folder"
        )
    if log_dirs_of(path) != path:
        return [path]
    folders = [
        folder
        for folder in sorted(path.iterdir())
        if folder.is_dir()
        and parse_log_path(folder / "any").topic is not None
        and not folder.name.endswith(_ON_ITS_WAY)
        and not folder.name.startswith(".")  # which nobody has written who did not mean it
    ]
    if not folders:
        raise FileNotFoundError(
            f"{path} is no partition's folder such as orders-0, and has none in it"
        )
    return folders


def interrupted_in(folder: Path) -> list[tuple[str, str]]:
    """What is left of a change that was interrupted, and what becomes of it."""
    return [(name, what) for name, what in _INTERRUPTED.items() if (folder / name).exists()]


def check_finished(folder: Path) -> None:
    """Raise where what was interrupted is still there, although the lock was taken since."""
    for name, _ in interrupted_in(folder):
        raise KafkaJitError(
            "a change was interrupted, and cannot be finished here: was the folder renamed since?",
            path=str(folder / name),
        )


def seen_in(folder: Path) -> dict[str, tuple[int | None, ...]]:
    """What tells whether something in a partition's folder has been written since."""
    seen: dict[str, tuple[int | None, ...]] = {
        name: (PartitionOffsets(folder, name).offset,) for name in CHECKPOINTS
    }
    check_files(folder)
    for path in folder.iterdir():
        if path.is_file():
            status = path.stat()
            seen[path.name] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return seen
