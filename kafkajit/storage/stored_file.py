"""A file of a log folder, local or on another file system, and how to open it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pyarrow.fs import FileInfo, FileSelector, FileType, LocalFileSystem

from kafkajit.storage.remote_store import PAGE, Requests, Storage
from kafkajit.storage.source import (
    RangeReader,
    Source,
    Surroundings,
    into_memory,
    open_file,
    read_small,
)
from kafkajit.system.holes import SMALL, bytes_on_disk, data_end
from kafkajit.system.whole_listing import whole_listing, whole_pages

logger = logging.getLogger("kafkajit")


@dataclass(frozen=True)
class StoredFile:
    """A file of a log folder, and how to open it."""

    path: str  # as users write it: a plain path for a local file, otherwise a URI
    size: int
    modified_ns: int | None  # None if the file system does not report it
    key: str  # its path on the file system
    filesystem: Storage | None  # None if it is local and holds the bytes as they are

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def is_local(self) -> bool:
        """Whether opening it takes no round trip."""
        return self.filesystem is None

    @property
    def bytes_on_disk(self) -> int:
        """The bytes that take space: fewer than the file's size if it has holes."""
        if self.filesystem is None or isinstance(self.filesystem, LocalFileSystem):
            return bytes_on_disk(self.key, self.size)
        return self.size

    @property
    def requests(self) -> Requests | None:
        """The requests of this process to its file system; None if nothing counts them."""
        return getattr(self.filesystem, "requests", None)

    def open(self, start: int = 0, end: int | None = None, *, leaps: bool = False) -> Source:
        """Open the file's bytes: memory-mapped, or a range of them that is loaded on demand.

        The size is the one that was listed, even if a broker has appended to the file since.
        """
        if self.filesystem is None:
            return Source(self.key, size=self.size, leaps=leaps)
        file = self.filesystem.open_input_file(self.key)
        end = self.size if end is None else end
        # pyarrow's files do not read into memory; those of tiered segments do.
        read_into = getattr(file, "read_into", None) or into_memory(file.read_at)
        ranges = RangeReader(read_into, self.size, start, end, self._data_end())
        surroundings = Surroundings(lambda: (beside.name for beside in self.beside()), file.size)
        return Source(ranges, path=self.path, surroundings=surroundings)

    def _data_end(self) -> int | None:
        """A position behind which a file on a disk has only zeros."""
        if self.size <= SMALL or not isinstance(self.filesystem, LocalFileSystem):
            return None
        with open_file(self.key) as file:
            return data_end(file.fileno(), self.size)

    def read(self, position: int = 0, count: int | None = None) -> bytes:
        """Read `count` bytes from `position` on; by default, the whole file."""
        count = self.size if count is None else count
        if self.filesystem is None:
            with open_file(self.key) as local:
                local.seek(position)
                return local.read(count)
        with self.filesystem.open_input_file(self.key) as file:
            # An object may have been replaced by a shorter one.
            content: bytes = file.read_at(count, position) if position < file.size() else b""
        return content

    def read_now(self) -> bytes:
        """Read a small file as it is now, because a broker replaces its checkpoints."""
        if self.filesystem is None:
            return read_small(self.key)  # never waits for a FIFO
        with self.filesystem.open_input_file(self.key) as file:
            content: bytes = file.read()
        return content

    def modified_now(self) -> int | None:
        """When it was modified last; None if it is gone, or the file system does not report it."""
        (info,) = self._opened.get_file_info([self.key])
        modified: int | None = info.mtime_ns
        return modified

    def beside(self) -> list[StoredFile]:
        """The files in its folder."""
        prefix = self.path.removesuffix(self.key)
        folder = self.key.rpartition("/")[0]
        infos = infos_in(folder, self._opened, is_local=self.is_local)
        return [
            stored_as(info, prefix, self.filesystem) for info in infos if info.type == FileType.File
        ]

    def above(self, name: str) -> StoredFile | None:
        """The file of that name beside its folder, such as a broker's checkpoint, or None."""
        parent = self.key.rpartition("/")[0].rpartition("/")[0]
        if not parent:
            return None
        (info,) = self._opened.get_file_info([f"{parent}/{name}"])
        prefix = self.path.removesuffix(self.key)
        return stored_as(info, prefix, self.filesystem) if info.type == FileType.File else None

    @property
    def _opened(self) -> Storage:
        return self.filesystem or LocalFileSystem()


def report_unread(name: str, why: str) -> None:
    """Warn once of a file or folder that is not read: a stream lists its folders repeatedly."""
    _warn_once(f"{name}: {why}")


@cache
def _warn_once(text: str) -> None:
    logger.warning("%s", text)


def infos_in(
    folder: str,
    filesystem: Storage,
    report: Callable[[str, str], None] = report_unread,
    *,
    is_local: bool,
) -> list[FileInfo]:
    """The files and folders in a folder as they are at one moment, if their names are UTF-8."""
    unread: dict[str, str] = {}

    def look() -> list[FileInfo]:
        unread.clear()
        listed = filesystem.get_file_info(FileSelector(folder))
        return list(with_names(listed, unread.__setitem__))

    found = whole_listing(folder, look) if is_local else whole_pages(look, PAGE)
    for name, why in unread.items():
        report(name, why)
    return found


def with_names(
    listed: Iterable[FileInfo], report: Callable[[str, str], None]
) -> Iterator[FileInfo]:
    """The files and folders whose names are UTF-8: all that Kafka writes are."""
    for info in listed:
        try:
            _ = info.path
        except UnicodeDecodeError as error:
            name = bytes(error.object).decode(errors="backslashreplace")
            report(name, "not read, its name is not UTF-8")
            continue
        yield info


def report_dangling_links(folder: str, report: Callable[[str, str], None] = report_unread) -> None:
    """Report links to nothing in a local folder: pyarrow does not list them."""
    with os.scandir(folder) as entries:
        for entry in entries:
            is_link = entry.is_symlink() and not entry.name.startswith(".")
            if is_link and not os.path.exists(entry.path):  # noqa: PTH110  a name of any bytes
                name = os.fsencode(entry.path).decode(errors="backslashreplace")
                report(name, "not read, it is a link to a file or folder that does not exist")


def file_at(path: str) -> StoredFile:
    """The local file at a path as it is now.

    >>> file_at("/no/such/file")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'
    """
    found = os.stat(path)  # noqa: PTH116  plans ask for thousands
    return StoredFile(path, found.st_size, found.st_mtime_ns, path, None)


def stored_as(info: FileInfo, prefix: str, filesystem: Storage | None) -> StoredFile:
    """A listed file; `prefix` is the text before its path, up to the host of a URI."""
    return StoredFile(
        path=prefix + info.path,
        size=info.size,
        modified_ns=info.mtime_ns,
        key=info.path,
        filesystem=filesystem,
    )


def has_grown(file: StoredFile) -> bool:
    """Whether somebody has written to a local file since it was listed."""
    try:
        return file.is_local and Path(file.key).stat().st_size > file.size
    except OSError:
        return False  # it is gone
