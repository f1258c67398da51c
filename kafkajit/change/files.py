"""Local files: where they lie, and who owns them."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from kafkajit.places.location import shown
from kafkajit.storage.source import check_regular, resolve_sample
from kafkajit.system.durable import sync

# What file systems without hard links answer.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


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
    return Path(os.path.abspath(text))  # noqa: PTH100


def check_files(folder: Path) -> None:
    """Raise if something in a folder is neither a file nor a folder: reading a FIFO would wait."""
    for path in folder.iterdir():
        if not path.is_file() and not path.is_dir():
            check_regular(path)


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
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(source, target)
        own(target, like=source)
        sync(target)


def make_folder(path: Path) -> None:
    """Create a folder with the owner of the folder around it."""
    path.mkdir()
    own(path, like=path.parent)
    sync(path.parent)


def say_where(error: BaseException, path: Path) -> None:
    """Name a path in a system error without one: errors of a write have none."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = str(path)


def own(path: Path, like: Path) -> None:
    """Give a file the owner of another one: a broker must open what root has repaired."""
    model, found = like.stat(), path.stat()
    if (found.st_uid, found.st_gid) != (model.st_uid, model.st_gid):
        with suppress(PermissionError):
            os.chown(path, model.st_uid, model.st_gid)
