"""Files that appear under their names when they are complete, and not before.

A file is written under a name that nobody can guess, in the folder where it will be. So a process
that is killed leaves no half of a file under the real name, two processes never share one, and a
link that another user has put there is not followed.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from kafkajit.system.acting import as_owner_of
from kafkajit.system.durable import sync_opened
from kafkajit.system.open_path import open_path

PREFIX = ".kafkajit-"  # of the names until then
# What a file system without hard links answers.
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
# Never through a link, not even the one that appears between a look and the open.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_BINARY", 0)
# Windows can neither open a folder nor name a file from an open one.
_HAS_HANDLES = hasattr(os, "O_DIRECTORY") and os.open in os.supports_dir_fd


class NewFile:
    """Write a file that appears when the block ends without an error.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> with NewFile(path, replaces=False) as file:
    ...     _ = file.write(b"whole")
    ...     path.exists()
    False
    >>> path.read_bytes()
    b'whole'

    Args:
        path: the file's name.
        replaces: whether a file of that name is replaced; if not, it is a FileExistsError.
        mode: the permissions, from which the process's umask is taken.
    """

    def __init__(self, path: str | os.PathLike[str], *, replaces: bool, mode: int = 0o666) -> None:
        self.path = Path(path)
        self._replaces = replaces
        self._mode = mode
        self._folder: int | None = None
        self._begun = f"{PREFIX}{secrets.token_hex(8)}.part"

    def __enter__(self) -> IO[bytes]:
        try:
            as_owner_of(self.path.parent, self._open)
        except OSError as error:
            self._close_folder()
            raise self._named(error) from None
        self._file = os.fdopen(self._opened, "wb", closefd=False)  # whoever writes may close it
        return self._file

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._file.close()
                sync_opened(self._opened)
                as_owner_of(self.path.parent, self._publish)
        except OSError as failed:
            raise self._named(failed) from None
        finally:
            with suppress(OSError):  # such as a full disk, again
                self._file.close()
            os.close(self._opened)
            with suppress(FileNotFoundError):
                as_owner_of(self.path.parent, self._remove_begun)
            self._close_folder()

    def _open(self) -> None:
        if _HAS_HANDLES:
            self._folder = open_path(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        self._opened = open_path(self._at(self._begun), _NEW, self._mode, folder=self._folder)

    def _remove_begun(self) -> None:
        os.unlink(self._at(self._begun), dir_fd=self._folder)

    def _publish(self) -> None:
        begun, final = self._at(self._begun), self._at(self.path.name)
        if self._replaces:
            os.replace(begun, final, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        else:
            rename_to_new(begun, final, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        if self._folder is not None:
            sync_opened(self._folder)

    def _at(self, name: str) -> str:
        """A name in the folder, as calls with its handle take it, or without a handle."""
        return name if self._folder is not None else str(self.path.with_name(name))

    def _named(self, error: OSError) -> OSError:
        """The same error with the name that the caller knows."""
        return type(error)(error.errno, error.strerror, str(self.path))

    def _close_folder(self) -> None:
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None


def rename_to_new(
    old: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    src_dir_fd: int | None = None,
    dst_dir_fd: int | None = None,
) -> None:
    """Rename a file to a name that no file has; a file that has it is a FileExistsError.

    Args:
        old: the present name.
        new: the new name.
        src_dir_fd: the open folder that has the old name, if that is not a whole path.
        dst_dir_fd: the one that has the new name.
    """
    try:
        os.link(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        with suppress(FileNotFoundError):
            os.lstat(new, dir_fd=dst_dir_fd)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new)) from None
        os.rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        return
    os.unlink(old, dir_fd=src_dir_fd)
