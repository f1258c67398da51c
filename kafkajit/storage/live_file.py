"""A local file of a log that a broker may write, truncate, rename or delete at any moment.

It is read, never mapped: if a file is truncated, its mapped pages are gone, and whoever touches one
ends with SIGBUS. A file that is open stays readable after it has been renamed or deleted, so a
reader opens it first and then compares it with the file that was planned.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field, replace

from pyarrow.fs import LocalFileSystem

from kafkajit.storage.source import RangeReader, Source, Surroundings, open_descriptor
from kafkajit.storage.stored_file import StoredFile
from kafkajit.system import positioned
from kafkajit.system.holes import data_end

# A broker renames a file to this before it deletes it a minute later (file.delete.delay.ms).
_DELETED = ".deleted"
_HERE = LocalFileSystem()


class Handle:
    """An open file, which is closed with the last reference to it."""

    def __init__(self, path: str) -> None:
        self._file = open_descriptor(path)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def status(self) -> os.stat_result:
        """The size and the identity of the file now, whatever its name has become."""
        return os.fstat(self._file)

    def data_end(self, size: int) -> int:
        """A position behind which the first `size` bytes are zeros, or `size`."""
        return data_end(self._file, size)

    def read_at(self, count: int, position: int) -> bytes:
        """Read `count` bytes from a position on, or fewer at the file's end."""
        return positioned.read_at(self._file, count, position)

    def read_into(self, memory: memoryview, position: int) -> int:
        """Fill memory with the bytes from a position on; return how many there are."""
        return positioned.read_into(self._file, memory, position)


@dataclass(frozen=True)
class LiveFile(StoredFile):
    """A local file as it was listed; reading it never touches a mapped page."""

    inode: int = 0
    handle: Handle | None = field(default=None, compare=False, repr=False)

    @property
    def is_local(self) -> bool:
        return True

    @classmethod
    def at(cls, path: str) -> LiveFile:
        """The file at a path as it is now.

        >>> LiveFile.at("/no/such/file")
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'
        """
        found = os.stat(path)  # noqa: PTH116 - a trigger asks for thousands
        return cls(path, found.st_size, found.st_mtime_ns, path, _HERE, inode=found.st_ino)

    def modified_now(self) -> int | None:
        """When it was modified last, whatever its name has become if it is open."""
        return self._handle().status().st_mtime_ns

    def is_unchanged(self) -> bool:
        """Whether the file of this name is as it was listed."""
        now = os.stat(self.key)  # noqa: PTH116
        listed = (self.size, self.modified_ns, self.inode)
        return listed == (now.st_size, now.st_mtime_ns, now.st_ino)

    def opened(self) -> LiveFile | None:
        """The file that has this name now, open; None without one."""
        try:
            return replace(self, handle=Handle(self.key))
        except FileNotFoundError:
            return None

    def kept_open(self) -> LiveFile:
        """The same file, open, for several reads in a row.

        Raises:
            FileNotFoundError: it is gone, or another file has its name.
        """
        return replace(self, handle=self._handle())

    def held(self) -> LiveFile | None:
        """The same file, open, even if it is about to be deleted; None if it is gone or cut."""
        try:
            handle = self._handle()
        except FileNotFoundError:
            return None
        return replace(self, handle=handle) if handle.status().st_size >= self.size else None

    def _handle(self) -> Handle:
        """The same file, open: positions in it mean nothing in another file of its name."""
        if self.handle is not None:
            return self.handle
        for path in (self.key, self.key + _DELETED):
            try:
                handle = Handle(path)
            except FileNotFoundError:
                continue
            if handle.status().st_ino == self.inode:
                return handle
        raise FileNotFoundError(errno.ENOENT, "deleted or replaced since it was listed", self.path)

    def open(self, start: int = 0, end: int | None = None, *, leaps: bool = False) -> Source:  # noqa: ARG002
        """Open a range of the file's bytes, which is read on demand."""
        handle = self._handle()
        folder = self.folder
        surroundings = Surroundings(
            lambda: os.listdir(folder),  # noqa: PTH208
            lambda: handle.status().st_size,
        )
        end = self.size if end is None else end
        return Source(
            RangeReader(handle.read_into, self.size, start, end, handle.data_end(self.size)),
            path=self.path,
            surroundings=surroundings,
        )

    def read(self, position: int = 0, count: int | None = None) -> bytes:
        """Read `count` bytes from `position` on, or fewer if the file has been truncated."""
        handle = self._handle()
        return handle.read_at(self.size if count is None else count, position)
