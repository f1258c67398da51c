"""The one way to change what is on the disk: as the owner of the folder, and never through a link.

Code that writes files of logs, exports and results calls these functions instead of methods of
Path. Whatever a name leads to by then, root does no more than the owner of the folder may do
(kafkajit/system/acting.py). Each function acts for one system call, so that modules are imported,
and caches read, by the user who runs kafkajit.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

from kafkajit.system.acting import acting_as, actor_in, as_owner_of
from kafkajit.system.full_path import full_path
from kafkajit.system.new_file import NewFile, rename_to_new
from kafkajit.system.open_path import open_path

_Path = str | os.PathLike[str]

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
# A FIFO that has taken the file's place would be waited for.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_WRITE = os.O_RDWR | _NO_LINK | _NO_WAIT | _BINARY
# A folder is opened only for its place.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)


def create(path: _Path, *, buffering: int = -1) -> BinaryIO:
    """Create a file, or empty it; a link of that name is an OSError (ELOOP)."""
    opened = _opened(path, _WRITE | os.O_CREAT | os.O_TRUNC)
    return os.fdopen(opened, "wb", buffering=buffering)


def create_new(path: _Path, mode: int = 0o666) -> IO[bytes]:
    """Create a file; a file or a link of that name is a FileExistsError."""
    return os.fdopen(_opened(path, _WRITE | os.O_CREAT | os.O_EXCL, mode), "wb")


def open_to_lock(path: _Path, mode: int = 0o666) -> int:
    """Open a file that is only there to be locked; its bytes stay as they are.

    Raises:
        OSError: with ELOOP if the name is a link, which another user may have put there.
    """
    return _opened(path, _WRITE | os.O_CREAT, mode)


def extend(path: _Path, *, buffering: int = -1) -> BinaryIO:
    """Open a file to write at its end."""
    opened = _opened(path, _WRITE | os.O_APPEND)
    return os.fdopen(opened, "ab", buffering=buffering)


def open_to_change(path: _Path) -> BinaryIO:
    """Open a file to read and overwrite it."""
    return os.fdopen(_opened(path, _WRITE), "r+b")


def open_to_copy(path: _Path) -> BinaryIO:
    """Open a file whose bytes go into another file of the same owner."""
    opened = _opened(path, os.O_RDONLY | _BINARY | _NO_WAIT)
    return os.fdopen(opened, "rb")


def open_stream(path: _Path) -> BinaryIO:
    """Open a pipe or a device to write to; a link may lead there, as /dev/stdout does."""
    return os.fdopen(as_owner_of(_around(path), open_path, path, os.O_WRONLY | _BINARY), "wb")


def write(path: _Path, content: Any) -> None:
    """Write the whole content of a file, which may exist or not."""
    with create(path) as file:
        file.write(content)


def make_folder(path: _Path, mode: int = 0o777, *, exist_ok: bool = False) -> None:
    """Create a folder."""
    try:
        _at(path, lambda name, folder: os.mkdir(name, mode, dir_fd=folder))
    except FileExistsError:
        if not exist_ok or not os.path.isdir(path):  # noqa: PTH112  str and Path alike
            raise


def make_folders(path: _Path) -> list[Path]:
    """Create a folder and its missing parents; return those made, the innermost first."""
    missing = [Path(path)]
    while not missing[-1].exists():
        missing.append(missing[-1].parent)
    made = missing[:-1]
    for folder in reversed(made):
        make_folder(folder, exist_ok=True)
    return made


def rename(old: _Path, new: _Path) -> None:
    """Rename a file or a folder; a file of the new name is replaced."""
    try:
        _from_one_to_another(os.rename, old, new)
    except PermissionError:
        if not _is_roots_file(old):
            raise
        _copy(old, new, replaces=True)
        remove(old)


def rename_new(old: _Path, new: _Path) -> None:
    """Rename a file to a name that no file has; a file that has it is a FileExistsError."""
    _from_one_to_another(rename_to_new, old, new)


def link(old: _Path, new: _Path) -> None:
    """Give a file another name."""
    try:
        _from_one_to_another(os.link, old, new)
    except PermissionError as error:
        if error.errno != errno.EACCES or not _is_roots_file(old):
            raise
        _copy(old, new, replaces=False)


def remove(path: _Path, *, missing_ok: bool = False) -> None:
    """Remove a file."""
    with suppress(*([FileNotFoundError] if missing_ok else [])):
        _at(path, lambda name, folder: os.unlink(name, dir_fd=folder))


def remove_folder(path: _Path) -> None:
    """Remove an empty folder."""
    _at(path, lambda name, folder: os.rmdir(name, dir_fd=folder))


def remove_tree(path: _Path, *, ignore_errors: bool = False) -> None:
    """Remove a folder and all that is in it."""
    with suppress(*([OSError] if ignore_errors else [])):
        try:
            _at(path, lambda name, folder: shutil.rmtree(name, ignore_errors, dir_fd=folder))
        except RecursionError:
            raise OSError(errno.ELOOP, "its folders are too deep to remove", path) from None


def set_times(path: _Path, *, ns: tuple[int, int]) -> None:
    """Set the times at which a file was read and written."""
    _at(path, lambda name, folder: os.utime(name, ns=ns, dir_fd=folder))


def set_owner(path: _Path, user: int, group: int) -> None:
    """Give a file to a user and a group, as far as the owner of its folder may."""
    _at(
        path,
        lambda name, folder: os.chown(name, user, group, dir_fd=folder, follow_symlinks=False),
    )


def set_mode(path: _Path, mode: int) -> None:
    """Set the permissions of a file."""
    _at(path, lambda name, folder: os.chmod(name, mode, dir_fd=folder))


def check_writable(folder: _Path) -> None:
    """Raise if files cannot be made and removed in a folder."""
    by_file_user = os.access in os.supports_effective_ids
    may = partial(os.access, folder, os.W_OK | os.X_OK, effective_ids=by_file_user)
    actor = actor_in(folder)
    if not acting_as(actor, may):
        who = "" if actor is None else f" for user {actor.user}, as whom root changes the log"
        what = f"no permission to change this folder{who}"
        raise PermissionError(errno.EACCES, what, os.fspath(folder))


def _is_roots_file(path: _Path) -> bool:
    """Whether root has a file at a place that no other user decides about."""
    return actor_in(_around(path)) is None and stat.S_ISREG(os.lstat(path).st_mode)


def _copy(old: _Path, new: _Path, *, replaces: bool) -> None:
    """Copy root's file into another user's folder, who may not take it from root's.

    The copy gets its name when it is on the disk with the file's time, as a rename would leave it.
    """
    status = os.lstat(old)
    with open_to_copy(old) as source, NewFile(new, replaces=replaces) as target:
        shutil.copyfileobj(source, target)
        target.flush()
        os.chmod(target.fileno(), stat.S_IMODE(status.st_mode))  # noqa: PTH101  no path to it
        os.utime(target.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


def _from_one_to_another(function: Callable[..., None], old: _Path, new: _Path) -> None:
    """Act as the owner of the folder to which a file goes or, if that is root's, of the other."""
    owner = actor_in(_around(new))
    owner = actor_in(_around(old)) if owner is None else owner
    if owner is None:
        function(old, new)
        return

    def act() -> None:
        with _folder_of(old) as source, _folder_of(new) as target:
            names = _name(old), _name(new)
            function(*names, src_dir_fd=source, dst_dir_fd=target)

    acting_as(owner, _naming(act, old))


def _at(path: _Path, function: Callable[[_Path, int | None], None]) -> None:
    """Call a function with a path or, as the owner of its folder, with a name in that folder."""
    owner = actor_in(_around(path))
    if owner is None:
        function(path, None)
        return

    def act() -> None:
        with _folder_of(path) as folder:
            function(_name(path), folder)

    acting_as(owner, _naming(act, path))


@contextmanager
def _folder_of(path: _Path) -> Iterator[int]:
    folder = open_path(_around(path), _FOLDER)
    try:
        yield folder
    finally:
        os.close(folder)


def _naming(act: Callable[[], None], path: _Path) -> Callable[[], None]:
    """The same, with the whole path in its errors."""

    def named() -> None:
        try:
            act()
        except OSError as error:
            if error.errno is not None:
                error.filename, error.filename2 = os.fspath(path), None
            raise

    return named


def _opened(path: _Path, flags: int, mode: int = 0o666) -> int:
    opened = as_owner_of(_around(path), open_path, path, flags, mode)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "it is not a file", os.fspath(path))
    return opened


def _name(path: _Path) -> str:
    return os.path.basename(full_path(path))  # noqa: PTH119


def _around(path: _Path) -> str:
    return os.path.dirname(full_path(path))  # noqa: PTH120
