"""The lock of a log.dirs folder: nobody changes a log that a running broker has open.

A broker holds an exclusive lock of its log.dirs' file .lock for as long as it runs. Java's
FileChannel.tryLock is fcntl's, which is what is taken here: each keeps the other out. Answers to
Kafka's LogManager.lockLogDirs and FileLock.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from kafkajit.change.files import own
from kafkajit.change.journal import is_log, resume
from kafkajit.errors import LockedError
from kafkajit.state.meta_properties import META_PROPERTIES
from kafkajit.storage.source import SAMPLE_FOLDER

logger = logging.getLogger("kafkajit")

_LOCK = ".lock"
_PARTITION = re.compile(r".+-\d+")
# fcntl's locks are a process's: one that has the lock would get it again. So what is held here is
# remembered: the open file of each log.dirs, and the folders for which it is held.
_held: dict[Path, _Held] = {}
_guard = threading.Lock()


def log_dirs_of(folder: str | os.PathLike[str]) -> Path:
    """The log.dirs folder of a partition's folder, or this one if it is one itself.

    A name does not tell: a broker's root may be called kafka-logs-1.

    >>> log_dirs_of("/var/kafka/orders-0")
    PosixPath('/var/kafka')
    """
    path = Path(os.path.abspath(folder))  # noqa: PTH100  of a link it is what the link is in
    names = os.listdir(path) if path.is_dir() else []  # noqa: PTH208  names are enough
    is_partition = any(map(is_log, names)) or (
        _PARTITION.fullmatch(path.name) is not None
        and not {META_PROPERTIES, _LOCK} & set(names)
        and not any(_PARTITION.fullmatch(name) and (path / name).is_dir() for name in names)
    )
    return path.parent if is_partition else path


class FolderLock:
    """Held while logs of a log.dirs folder are changed, of which the folder may be a partition.

    Who is the first to enter finds changes finished that were interrupted there. In one process
    several partitions may be changed at a time, each of them once.

    Args:
        folder: a partition's folder or a log.dirs folder.
        force: go on without the lock where somebody else has it.
    """

    def __init__(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100
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
                    for finished in resume(self.root):
                        logger.warning("finished what was interrupted: %s", finished)
                except BaseException:
                    held.release(self.root)
                    raise
                _held[self.root] = held
            elif self.folder in held.folders:
                raise LockedError("this process is changing the log already", path=str(self.folder))
            held.folders.add(self.folder)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _guard:
            held = _held[self.root]
            held.folders.remove(self.folder)
            if not held.folders:
                del _held[self.root]
                held.release(self.root)

    def _take(self) -> _Held:
        path = self.root / _LOCK
        try:
            while True:
                held = _Held.open(path)
                if held.lock(path):
                    return held
        except (LockedError, OSError) as error:
            if not self._force or not self.root.is_dir():
                raise
            is_held = isinstance(error, LockedError)
            reason = f"somebody else holds it in {self.root}" if is_held else str(error)
            logger.warning("going on without the lock: %s", reason)
            return _Held(None, was_made=False)


@dataclass
class _Held:
    """A lock of this process."""

    opened: int | None  # None: it is done without
    was_made: bool
    folders: set[Path] = field(default_factory=set)

    @classmethod
    def open(cls, path: Path) -> _Held:
        flags = os.O_RDWR | os.O_CLOEXEC
        try:
            opened = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return cls(os.open(path, flags | os.O_CREAT, 0o644), was_made=False)
        own(path, like=path.parent)  # a broker must be able to open it
        return cls(opened, was_made=True)

    def lock(self, path: Path) -> bool:
        """Takes it, unless another one of us has removed the file since it was opened."""
        assert self.opened is not None
        try:
            fcntl.lockf(self.opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self.opened)
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise OSError(error.errno, error.strerror, str(path)) from None
            raise LockedError(
                "stop the broker first: it, or another process of kafkajit, holds the lock",
                path=str(path.parent),
            ) from None
        with suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(self.opened)):
                return True
        os.close(self.opened)
        return False

    def release(self, root: Path) -> None:
        if self.opened is None:
            return
        # A broker leaves its .lock where it is, and may open it at any moment; in a folder that is
        # no broker's, the file would be a riddle.
        if self.was_made and not (root / META_PROPERTIES).exists():
            (root / _LOCK).unlink(missing_ok=True)
        os.close(self.opened)
