"""The partitions of a location, and the state of their folders.

Answers to LogManager.loadLogs of Kafka 4.1.1, which takes each folder in log.dirs for a
partition's.
"""

from __future__ import annotations

import os
from pathlib import Path

from kafkajit.change.files import check_files
from kafkajit.change.journal import DONE, READY, STAGED
from kafkajit.change.lock import log_dirs_of
from kafkajit.change.partition_offsets import PartitionOffsets
from kafkajit.change.steps import finish
from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import partition_of
from kafkajit.state.checkpoints import NAMES as CHECKPOINTS
from kafkajit.system.new_file import PREFIX

_TO_BE_DELETED = ("-delete", "-stray")
_INTERRUPTED = {
    READY: "finish: a change was interrupted; what follows describes the folder before that",
    STAGED: "remove: a change was interrupted before it was complete",
    DONE: "remove: a change was interrupted after its last step",
}


def partitions_at(path: Path) -> list[Path]:
    """The folders of the partitions at a local path (`local_folder`).

    That is the path itself if it is a partition's folder, or the folders in a log.dirs folder.
    """
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(
            f"{path} is not a folder: name the folder around it, {path.parent}"
        )
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
        and partition_of(folder).topic is not None
        and not folder.name.endswith(_TO_BE_DELETED)
        and not folder.name.startswith(PREFIX)
    ]
    if not folders:
        raise FileNotFoundError(
            f"{path} is not a partition's folder, such as orders-0, and does not contain one"
        )
    return folders


def interrupted_in(folder: Path) -> list[tuple[str, str]]:
    """The folders that an interrupted change has left, and what becomes of each."""
    return [(name, what) for name, what in _INTERRUPTED.items() if (folder / name).exists()]


def check_finished(folder: Path) -> None:
    """Raise the error of an interrupted change that the lock's taker could not finish."""
    for name, _ in interrupted_in(folder):
        finish(folder)
        raise KafkaJitError(
            "what an interrupted change has left cannot be removed", path=str(folder / name)
        )


def seen_in(folder: Path) -> dict[str, tuple[int | None, ...]]:
    """The sizes and times of a partition's files, and its offsets in the checkpoints.

    A second look differs if anything has been written in the meantime.
    """
    seen: dict[str, tuple[int | None, ...]] = {
        name: (PartitionOffsets(folder, name).offset,) for name in CHECKPOINTS
    }
    if not folder.exists():  # it is to be made
        return seen
    check_files(folder)
    with os.scandir(folder) as files:
        for file in files:
            if file.is_file():
                status = file.stat()
                seen[file.name] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return seen
