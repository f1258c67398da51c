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
from pathlib import Path
from types import TracebackType

from kafkajit.errors import LockedError
from kafkajit.segment.journal import is_log, resume

logger = logging.getLogger("kafkajit")

_PARTITION = re.compile(r".+-\d+")
# fcntl's locks are a process's, which may take them twice: who has one here is remembered.
_held: set[Path] = set()
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
        and not {"meta.properties", ".lock"} & set(names)
        and not any(_PARTITION.fullmatch(name) and (path / name).is_dir() for name in names)
    )
    return path.parent if is_partition else path


class FolderLock:
    """Held while logs of a log.dirs folder are changed, of which the folder may be a partition.

    Whoever enters finds changes finished that were interrupted there.

    Args:
        folder: a partition's folder or a log.dirs folder.
        force: go on without the lock where somebody else has it.
    """

    def __init__(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        self.root = log_dirs_of(folder)
        self._path = self.root / ".lock"
        self._force = force
        self._opened: int | None = None
        self._made = False

    def __enter__(self) -> FolderLock:
        try:
            self._take()
        except (LockedError, OSError) as error:
            if not self._force or not self.root.is_dir():
                raise
            logger.warning("%s: going on without the lock", error)
        try:
            for finished in resume(self.root):
                logger.warning("finished what was interrupted: %s", finished)
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()

    def _take(self) -> None:
        with _guard:
            if self._path in _held:
                raise LockedError("this process already changes logs", path=str(self.root))
            while self._opened is None:
                self._open()
            _held.add(self._path)

    def _open(self) -> None:
        """Takes the lock, unless another of us removes the file before we have it."""
        flags = os.O_RDWR | os.O_CLOEXEC
        try:
            opened, self._made = os.open(self._path, flags | os.O_CREAT | os.O_EXCL, 0o644), True
        except FileExistsError:
            try:
                opened, self._made = os.open(self._path, flags), False
            except FileNotFoundError:
                return
        try:
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(self._path, opened):
                self._opened = opened
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise OSError(error.errno, error.strerror, str(self._path)) from None
            raise LockedError(
                "a running broker, or another process of kafkajit, holds the lock of this folder: "
                "stop it, or pass --force to go on without the lock",
                path=str(self.root),
            ) from None
        finally:
            if self._opened is None:
                os.close(opened)

    def _release(self) -> None:
        if self._opened is None:
            return
        with _guard:
            # A broker leaves its .lock where it is, and may open it at any moment; in a folder that
            # is no broker's, the file would be a riddle.
            if self._made and not (self.root / "meta.properties").exists():
                self._path.unlink(missing_ok=True)
            os.close(self._opened)
            self._opened = None
            _held.discard(self._path)


def _is_still(path: Path, opened: int) -> bool:
    """Whether an open file is the one that has this name now."""
    try:
        return os.path.samestat(path.stat(), os.fstat(opened))
    except FileNotFoundError:
        return False
