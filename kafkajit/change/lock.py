"""Lock a log.dirs folder, so that no log changes while a running broker has it open.

A broker holds an exclusive lock of the file .lock in its log.dirs as long as it runs. Java's
FileChannel.tryLock and `system/file_lock` take the same kind of lock: each keeps the other out.
Answers to LogManager.lockLogDirs and FileLock of Kafka 4.1.1.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kafkajit.change.files import BROKER_LOCK, own
from kafkajit.change.journal import is_log
from kafkajit.change.steps import resume
from kafkajit.errors import KafkaJitError, LockedError
from kafkajit.state.meta_properties import META_PROPERTIES
from kafkajit.storage.source import SAMPLE_FOLDER
from kafkajit.system import disk
from kafkajit.system.durable import check_folders_are_durable
from kafkajit.system.file_lock import try_lock_as_java
from kafkajit.system.full_path import full_path

logger = logging.getLogger("kafkajit")

_PARTITION = re.compile(r".+-\d+")
# Java's lock belongs to a process, which could take it twice. So the process remembers its
# locks: the open file of each log.dirs, and the folders for which it is held.
_held: dict[Path, _Held] = {}
_guard = threading.Lock()


def log_dirs_of(folder: str | os.PathLike[str]) -> Path:
    """The log.dirs folder around a partition's folder, or the folder itself if it is log.dirs.

    The name does not decide this: a log.dirs folder may be called kafka-logs-1.

    >>> log_dirs_of("/var/kafka/orders-0")
    PosixPath('/var/kafka')
    """
    path = Path(full_path(folder))  # links are not resolved
    names = os.listdir(path) if path.is_dir() else []  # noqa: PTH208  names are enough
    is_partition = any(map(is_log, names)) or (
        _PARTITION.fullmatch(path.name) is not None
        and not {META_PROPERTIES, BROKER_LOCK} & set(names)
        and not any(_PARTITION.fullmatch(name) and (path / name).is_dir() for name in names)
    )
    return path.parent if is_partition else path


def broker_folder_of(path: Path) -> Path | None:
    """The broker's folder that a path is or lies in, if it has one around it.

    All folders in a broker's folder must be partitions': with another one it does not start.
    """
    real = Path(os.path.realpath(path))  # Path.resolve has an error of its own for loops of links
    around = (real, *real.parents)
    return next((folder for folder in around if (folder / META_PROPERTIES).exists()), None)


def check_is_no_part_of_a_broker(root: Path) -> None:
    """Raise if a folder for new partitions lies in a broker's folder, instead of being one."""
    folder = broker_folder_of(root)
    if folder is not None and folder != Path(os.path.realpath(root)):
        raise ValueError(
            f"{root} is in {folder}, a broker's folder (it has {META_PROPERTIES}): name that one, "
            "in which the command makes the partitions' folders"
        )


class FolderLock:
    """The lock of a log.dirs folder, held while logs in it are changed.

    The first to take it finishes interrupted changes. A process may change several partitions at a
    time, but each of them only once.

    Args:
        folder: a partition's folder or a log.dirs folder.
        force: go on without the lock if another process holds it.
    """

    def __init__(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        self.folder = Path(full_path(folder))
        check_folders_are_durable(self.folder)
        if self.folder.is_relative_to(SAMPLE_FOLDER):
            raise ValueError(
                "the sample logs are part of the installation and stay as they are: copy "
                f"{SAMPLE_FOLDER} to a folder of your own"
            )
        self.root = log_dirs_of(folder)
        self._force = force

    def __enter__(self) -> FolderLock:
        with _guard:
            held = _held.get(self.root)
            if held is None:
                held = self._take()
                try:
                    for finished in resume(self.root, self._refused):
                        logger.warning("finished an interrupted change: %s", finished)
                except BaseException:
                    held.release(self.root)
                    raise
                _held[self.root] = held
            elif self.folder in held.folders:
                raise LockedError("this process is changing the log already", path=str(self.folder))
            held.folders.add(self.folder)
        return self

    def __exit__(self, *_: object) -> None:
        with _guard:
            held = _held[self.root]
            held.folders.remove(self.folder)
            if not held.folders:
                del _held[self.root]
                held.release(self.root)

    def _refused(self, folder: Path, error: KafkaJitError | OSError) -> None:
        """A change that cannot be finished stops only what is done to its own partition."""
        if folder == self.folder:
            raise error
        logger.warning("%s: left alone: %s", folder, error)

    def _take(self) -> _Held:
        path = self.root / BROKER_LOCK
        try:
            while True:
                held = _Held.open(path)
                if held.lock(path):
                    return held
        except (LockedError, OSError) as error:
            if not self._force or not self.root.is_dir():
                raise
            is_held = isinstance(error, LockedError)
            reason = f"another process holds it in {self.root}" if is_held else str(error)
            logger.warning("going on without the lock: %s", reason)
            return _Held(None, was_made=False)


@dataclass
class _Held:
    """A lock of this process."""

    opened: int | None  # None: the process goes on without the lock
    was_made: bool
    folders: set[Path] = field(default_factory=set)

    @classmethod
    def open(cls, path: Path) -> _Held:
        was_made = not path.is_symlink() and not path.exists()
        try:
            opened = disk.open_to_lock(path, 0o644)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise OSError(
                errno.ELOOP, "a broker's lock is never a link: remove it", str(path)
            ) from None
        if was_made:
            own(path, like=path.parent)  # a broker must be able to open it
        return cls(opened, was_made=was_made)

    def lock(self, path: Path) -> bool:
        """Take the lock; False if another process of kafkajit has removed the file meanwhile."""
        assert self.opened is not None
        try:
            is_ours = try_lock_as_java(self.opened)
        except OSError as error:
            os.close(self.opened)
            raise OSError(error.errno, error.strerror, str(path)) from None
        if not is_ours:
            os.close(self.opened)
            raise LockedError(
                "stop the broker first: it, or another process of kafkajit, holds the lock",
                path=str(path.parent),
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(self.opened)):
                return True
        os.close(self.opened)
        return False

    def release(self, root: Path) -> None:
        if self.opened is None:
            return
        # A broker leaves its .lock where it is, and may open it at any moment. In a folder without
        # a broker, the file would be left over.
        if self.was_made and not (root / META_PROPERTIES).exists():
            disk.remove(root / BROKER_LOCK, missing_ok=True)
        os.close(self.opened)
