"""Local files: where they lie, who owns them, and whether what they say is to be trusted."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from kafkajit.places.location import shown
from kafkajit.places.uri import uri_of
from kafkajit.state.checkpoints import NAMES
from kafkajit.state.meta_properties import META_PROPERTIES
from kafkajit.storage.source import check_regular, resolve_sample
from kafkajit.system import disk
from kafkajit.system.acting import owner_of
from kafkajit.system.durable import sync
from kafkajit.system.full_path import full_path
from kafkajit.system.new_file import NO_LINKS
from kafkajit.system.ownership import others_of

# A broker holds it in log.dirs as long as it runs.
BROKER_LOCK = ".lock"
# Files that the folder of a broker has.
_BROKERS = (META_PROPERTIES, BROKER_LOCK, *NAMES)
_OF_SEGMENT = re.compile(r"\d{20}\.(?:log|index|timeindex|txnindex)", re.ASCII)


class Identity(NamedTuple):
    """Identifies a file among those of its name: a rename keeps it, a write changes it."""

    size: int
    modified_ns: int


def local_folder(location: str | os.PathLike[str]) -> Path:
    """The absolute path of a folder, given as a path or a file: URI. A link is not resolved.

    >>> local_folder("file:///var/kafka/../kafka-logs/")
    PosixPath('/var/kafka-logs')
    """
    text = resolve_sample(os.fspath(location))
    uri_of(text)  # raises for what is neither a URI nor a path
    scheme, authority, *_ = urlsplit(text)
    if scheme == "file" and authority in ("", "localhost"):
        return Path(shown(text))  # the folder that a reader finds under this name
    if scheme and text[len(scheme) :].startswith(":/"):
        raise ValueError(
            f"{scheme}: is not a local file system, and kafkajit changes logs only where files can "
            "be synced and renamed: use a local or shared folder, and copy the log"
        )
    if not text:
        raise ValueError("the folder's path is empty")
    return Path(full_path(text))


def check_files(folder: Path) -> None:
    """Raise if something in a folder is neither a file nor a folder: reading a FIFO would wait.

    A folder with the name of a segment's file is no better: a broker does not load the log.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() and not (path := folder / entry.name).exists():
                target = os.readlink(path)  # noqa: PTH115  a path would drop its trailing parts
                what = f"a link to {target}, which does not exist: remove the link, or bring back"
                raise FileNotFoundError(errno.ENOENT, f"{what} the file", str(path))
            if not entry.is_file() and (not entry.is_dir() or _OF_SEGMENT.fullmatch(entry.name)):
                check_regular(folder / entry.name)


def identity(path: Path) -> Identity | None:
    """The identity of the file at this path; None if there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return Identity(found.st_size, found.st_mtime_ns)


def link(source: Path, target: Path) -> None:
    """Link a file under another name, or copy it if the file system has no hard links."""
    try:
        disk.link(source, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        with disk.open_to_copy(source) as original, disk.create_new(target) as copy:
            shutil.copyfileobj(original, copy)
        found = source.stat()
        disk.set_times(target, ns=(found.st_atime_ns, found.st_mtime_ns))
        resemble(target, source)
        sync(target)


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Create a folder with the owner of the folder around it."""
    disk.make_folder(path, mode)
    own(path, like=path.parent)
    sync(path.parent)


def make_private_folder(path: Path) -> None:
    """Create a folder whose contents only this process's user may see and change."""
    try:
        disk.make_folder(path, 0o700)
    except FileExistsError:
        raise PermissionError(
            errno.EACCES,
            "an interrupted change of another user is in the way: run kafkajit as that user, or "
            "remove it",
            str(path),
        ) from None
    sync(path.parent)


def touch(path: Path) -> None:
    """Create an empty file with the owner of the folder around it; never through a link."""
    os.close(disk.open_to_lock(path, 0o644))
    own(path, like=path.parent)


def say_where(error: BaseException, path: Path) -> None:
    """Name a path in a system error without one: errors of a write have none."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = str(path)


def own(path: Path, like: Path) -> None:
    """Give a file the owner of another one: a broker must open what root has repaired."""
    model, found = like.stat(), path.lstat()
    if (found.st_uid, found.st_gid) != (model.st_uid, model.st_gid):
        with suppress(PermissionError):
            disk.set_owner(path, model.st_uid, model.st_gid)


def resemble(path: Path, model: Path) -> None:
    """Give a new file the owner and the permissions of the file that it replaces."""
    if model.is_symlink():  # its own count, and not those of a file elsewhere
        own(path, like=model.parent)
        return
    disk.set_mode(path, model.stat().st_mode & 0o777)
    own(path, like=model)


def mode_within(models: Iterable[Path], mode: int = 0o777) -> int:
    """A mode with which others can do no more than with these files and folders."""
    for model in models:
        most = model.stat().st_mode
        if stat.S_ISREG(most):  # who may read a file may enter the folder of its copy
            most |= (most & 0o444) >> 2
        mode &= most | 0o700
    return mode


def check_trusted(path: Path, found: os.stat_result, around: Path) -> None:
    """Raise if another user may have written what kafkajit is about to act upon.

    Args:
        path: the file or folder, for the error.
        found: its status, without following a link.
        around: the folder of which it is a part; root acts as its owner there.
    """
    owner = owner_of(around)
    others = others_of(found, () if owner is None else (owner.user,))
    if others is not None:
        raise PermissionError(
            errno.EACCES, f"kafkajit does not trust it, because it {others}", str(path)
        )


def check_trusted_folder(path: Path, around: Path) -> None:
    """Raise if another user may have put something into a folder, which is part of another one."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        kind = "a link" if stat.S_ISLNK(found.st_mode) else "not a folder"
        raise NotADirectoryError(
            errno.ENOTDIR, f"kafkajit does not trust it, because it is {kind}", str(path)
        )
    check_trusted(path, found, around)


def read_trusted(path: Path, most: int, around: Path) -> bytes:
    """Read a file that only this process's user, root or the owner of a folder can have written.

    Raises:
        OSError: it is missing, or not to be trusted, or has more than `most` bytes.
    """
    return read_regular(path, most, lambda at, found: check_trusted(at, found, around))


def read_regular(
    path: Path, most: int, check: Callable[[Path, os.stat_result], None] = lambda *_: None
) -> bytes:
    """Read a small file. A FIFO does not make this wait, and a link does not lead elsewhere.

    Args:
        path: the file.
        most: a larger one is an OSError.
        check: called with the path and the file's status; raises if the file is not to be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        opened = os.open(path, flags)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "it is not read, because it is a link", str(path)) from None
    with os.fdopen(opened, "rb") as file:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not read, because it is not a file", str(path))
        check(path, found)
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"the file has more than {most:,} bytes", str(path))
    return content


def check_link(folder: Path) -> None:
    """Raise if a partition's folder is a link that leads out of its owner's files.

    A partition may be on another disk. But whoever owns a log.dirs folder must not lead root
    through a link to files of others. And a broker may have the log open to which a link leads: its
    lock and its checkpoints are in the folder around that log.
    """
    if not folder.is_symlink():
        return
    real = Path(os.path.realpath(folder))
    is_brokers = any((real.parent / name).exists() for name in _BROKERS)
    if is_brokers and not real.parent.samefile(folder.parent):
        raise PermissionError(
            errno.EACCES,
            f"the link leads into {real.parent}, the folder of a broker: name {real}",
            str(folder),
        )
    there, here = folder.stat().st_uid, folder.parent.stat().st_uid
    if there != here:
        raise PermissionError(
            errno.EACCES,
            f"the link leads to a folder of user {there}, and user {here} owns {folder.parent}: "
            "give both the same owner",
            str(folder),
        )
