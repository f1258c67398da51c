"""A location as text: a path or a URI on a file system that pyarrow opens, perhaps a glob."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem

from kafkajit.errors import Failed, LeftOutError
from kafkajit.format.kafscale import SEGMENT_NAME as KAFSCALE_NAME
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.log_path import UNFINISHED_CHANGE
from kafkajit.format.tiered_names import MAYBE_ID
from kafkajit.places.uri import parts_of, path_in, secrets_in, uri_of, without_secrets
from kafkajit.places.uri_options import taken_out, with_settings
from kafkajit.storage.globs import glob_to_regex
from kafkajit.storage.remote_store import RemoteStore, Requests, Storage, info_at
from kafkajit.storage.source import check_regular, resolve_sample
from kafkajit.storage.stored_file import (
    StoredFile,
    infos_in,
    report_dangling_links,
    report_unread,
    stored_as,
    with_names,
)
from kafkajit.system.full_path import full_path

GLOB = re.compile(r"[*?\[{]")
# Hadoop's names for file systems, and pyarrow's.
_ALIASES = {"s3a": "s3", "s3n": "s3", "wasb": "abfs", "wasbs": "abfs"}
SEGMENT_NAME = re.compile(rf"[0-9]{{20}}{MAYBE_ID}\.log")
# Segments that are read, which a broker need not have written.
READABLE_NAME = re.compile(f"{SEGMENT_NAME.pattern}|{KAFSCALE_NAME.pattern}")


def _number_up_to(most: int) -> str:
    """A pattern of the decimal numbers up to this one, with zeros in front or without.

    >>> [bool(re.fullmatch(_number_up_to(305), text)) for text in ("7", "0305", "299", "306")]
    [True, True, True, False]
    """
    digits = str(most)
    patterns = [f"[0-9]{{1,{len(digits) - 1}}}", digits]
    for at, digit in enumerate(digits):
        if digit != "0":
            rest = len(digits) - at - 1
            patterns.append(f"{digits[:at]}[0-{int(digit) - 1}][0-9]{{{rest}}}")
    return f"0*(?:{'|'.join(patterns)})"


# A partition's folder. Those of our changes are not, whatever their number.
PARTITION = re.compile(rf"(?!\.kafkajit-)[a-zA-Z0-9._-]+-{_number_up_to(MAX_INT32)}")
# Other programs make such folders of it: orders/0, topic=orders/partition=0.
_LIKE_PARTITION = re.compile(rf"{PARTITION.pattern}|(?:\w+=)?[0-9]+")
# A folder that a broker deletes, moves or no longer has: orders-0.<32 hex digits>-delete.
_SUFFIXES = ("-delete", "-future", "-stray")
ON_ITS_WAY = re.compile(rf".+\.[0-9a-f]{{32}}(?:{'|'.join(_SUFFIXES)})")

# The folders of a remote file system that are listed at once, and the most that wait for a thread.
_LISTERS = 32
_WAITING = 4096

_Result = TypeVar("_Result")


def _is_hidden(info: FileInfo) -> bool:
    name = info.base_name
    is_folder = info.type == FileType.Directory
    return is_folder and name.startswith(".") and PARTITION.fullmatch(name) is None


def _has_segments(inside: Iterable[FileInfo]) -> bool:
    return any(
        info.type != FileType.Directory and READABLE_NAME.fullmatch(info.base_name)
        for info in inside
    )


def _leads_beside_itself(folder: str) -> bool:
    """Whether a folder is a link to a partition's folder beside it, which is read anyway."""
    target = os.path.realpath(folder)
    root, name = os.path.split(target)
    return (
        target != folder
        and PARTITION.fullmatch(name) is not None
        and root == os.path.realpath(os.path.dirname(folder))  # noqa: PTH120
    )


def _is_unfinished_change(info: FileInfo) -> bool:
    return bool(info.base_name == UNFINISHED_CHANGE and info.type == FileType.Directory)


def absolute(location: str) -> str:
    """Make a location absolute, for a process that may run in another folder.

    >>> absolute("s3://bucket/orders-0"), absolute("/logs/../k/orders-0")
    ('s3://bucket/orders-0', '/k/orders-0')
    """
    location = resolve_sample(location)
    is_uri = uri_of(location) is not None
    return location if is_uri else full_path(location)


def _check_text(location: str) -> None:
    """Raise an error that names a path which is not text: pyarrow opens only UTF-8."""
    try:
        location.encode()
    except UnicodeEncodeError:
        uri = parts_of(location)
        visible = location if uri is None else without_secrets(uri)
        name = os.fsencode(visible).decode(errors="backslashreplace")
        raise ValueError(
            f"{name}: the path is not UTF-8: rename it, or make a link to it"
        ) from None


def shown(location: str) -> str:
    """The beginning of the paths of a location's files: the location without query and secrets.

    >>> shown("s3://key:secret@bucket/orders-0?region=eu-west-1")
    's3://bucket/orders-0'
    """
    uri = parts_of(location)
    if uri is None:
        return absolute(location)
    if uri["scheme"] == "file":
        return full_path("/" + uri["path"].lstrip("/"))
    return without_secrets(uri)


def as_location(path: str, locations: Iterable[str]) -> str:
    """Add credentials to a path: those of the location where it was found.

    >>> as_location("s3://bucket/orders-0", ["s3://key:secret@bucket?region=eu-west-1"])
    's3://key:secret@bucket/orders-0?region=eu-west-1'
    """
    there = parts_of(path)
    for location in locations:
        uri = parts_of(location)
        if there and uri and (there["scheme"], there["host"]) == (uri["scheme"], uri["host"]):
            user, query = uri["user"] or "", uri["query"] or ""
            return f"{uri['scheme']}://{user}{uri['host'] or ''}{there['path']}{query}"
    return path


def _opened(uri: re.Match[str]) -> tuple[FileSystem, str, str | None, tuple[str, ...]]:
    """The file system of a URI, the path of its host there, and the URI if tasks have to open it.

    The last are the secrets that no error may show.

    pyarrow pickles Azure's file systems without the kind of credentials that was in a URI.
    """
    user, host = quote((uri["user"] or "")[:-1], safe=":%"), uri["host"] or ""
    user += "@" if uri["user"] else ""
    scheme = _ALIASES.get(uri["scheme"], uri["scheme"])
    if pa.io_thread_count() < _LISTERS and "ARROW_IO_THREADS" not in os.environ:
        # Arrow sends as many requests at once as it has threads for them: 8.
        pa.set_io_thread_count(_LISTERS)
    root = f"{scheme}://{user}{host}/"
    try:
        query, settings = taken_out(scheme, user, uri["query"] or "")
        root += query
        filesystem, top = FileSystem.from_uri(root)
        opened = with_settings(filesystem, settings) if settings else filesystem
        is_lost = scheme.startswith("abfs") and not settings
        return opened, top, root if is_lost else None, secrets_in(uri, settings)
    except (ValueError, ImportError, OSError) as error:
        # The error's text repeats the URI.
        reason = str(error).partition("\n")[0].replace(root, f"{scheme}://{host}/")
        raise ValueError(f"cannot open {shown(uri[0])}: {reason}") from None


class Location:
    """A location, split into a file system and a path on it.

    A folder that cannot be listed is left out, and `failed` is called with the error.
    """

    def __init__(self, location: str, failed: Failed = None) -> None:
        self._failed = failed
        self._filesystem: RemoteStore | None = None
        self._prefix = ""
        location = resolve_sample(location)
        _check_text(location)
        uri = uri_of(location)
        if uri is None or uri["scheme"] == "file":
            if uri is not None and uri["host"] not in (None, "", "localhost"):
                raise ValueError(f"{location} names a host; a local path is file:///path")
            self.path = shown(location)
        else:
            filesystem, top, again, secrets = _opened(uri)
            host = uri["host"] or ""
            self.path = f"{top.rstrip('/')}/{path_in(uri)}".rstrip("/")
            # The text before the path on the file system.
            self._prefix = f"{uri['scheme']}://{host if self.path.startswith('/') else ''}"
            self._filesystem = RemoteStore(filesystem, self._prefix, again, secrets)

    @property
    def requests(self) -> Requests | None:
        """The requests to a remote file system so far; None if the location is local."""
        return None if self._filesystem is None else self._filesystem.requests

    @property
    def _opened(self) -> Storage:
        return self._filesystem or LocalFileSystem()

    def stored(self, info: FileInfo) -> StoredFile:
        return stored_as(info, self._prefix, self._filesystem)

    def shown(self, path: str) -> str:
        """A path on the file system as users write it."""
        return f"{self._prefix}{path}"

    def info(self, path: str) -> FileInfo:
        info = info_at(self._opened, path)
        if info.type == FileType.NotFound:
            raise FileNotFoundError(f"there is nothing at {self._prefix}{path}")
        return info

    def check(self, info: FileInfo) -> None:
        """Raise unless this is a file or a folder: reading a FIFO would wait for its writer."""
        if info.type not in (FileType.File, FileType.Directory):
            check_regular(Path(info.path))

    def listed(self, folder: str, *, hidden: bool = False) -> list[FileInfo]:
        """Files and folders in a folder.

        A folder whose name begins with a dot is there if a broker would load it, as a partition of
        such a topic, or if `hidden`.
        """
        if self._filesystem is None:
            report_dangling_links(folder, self.report)
        is_local = self._filesystem is None
        found = infos_in(folder, self._opened, self.report, is_local=is_local)
        if any(map(_is_unfinished_change, found)):
            # Its new files are not read, and old ones may be gone.
            self.report(
                self.shown(folder),
                f"a change of the log is not finished ({UNFINISHED_CHANGE}): "
                "records of this partition, and of others in the change, may be missing, old or "
                "duplicated until `kafkajit repair --apply` finishes it",
            )
        listed = [info for info in found if hidden or not _is_hidden(info)]
        return sorted(listed, key=lambda info: info.path)

    def each_listed(
        self, folders: Iterable[FileInfo], *, hidden: bool = False
    ) -> Iterator[list[FileInfo]]:
        """The files and folders in each of these folders; remote ones are listed in parallel."""
        paths = (folder.path for folder in folders)
        yield from self._each(partial(self._tried, hidden=hidden), paths)

    def _each(self, function: Callable[[str], _Result], paths: Iterator[str]) -> Iterator[_Result]:
        """A function's result for each of these paths; those of remote ones come in parallel."""
        if self._filesystem is None:
            yield from map(function, paths)
            return
        with ThreadPoolExecutor(_LISTERS) as pool:
            while some := list(islice(paths, _WAITING)):
                yield from pool.map(function, some)

    def each_holding(self, folders: Iterable[FileInfo]) -> Iterator[tuple[bool, list[FileInfo]]]:
        """Whether each folder has segments, or partitions' folders with some; and what is in it.

        Nothing else in them is reported.
        """
        return self._each(self._holds_segments, (folder.path for folder in folders))

    def _holds_segments(self, folder: str) -> tuple[bool, list[FileInfo]]:
        try:
            if self._filesystem is None and _leads_beside_itself(folder):
                return False, []
            inside = self._with_names(folder)
            if _has_segments(inside):
                return True, inside
            partitions = (
                info.path
                for info in inside
                if info.type == FileType.Directory and _LIKE_PARTITION.fullmatch(info.base_name)
            )
            return any(_has_segments(self._with_names(path)) for path in partitions), inside
        except OSError as error:
            if not isinstance(error, FileNotFoundError):  # deleted since it was found
                reason = error.strerror or str(error)
                self.report(self.shown(folder), f"not searched: {reason}", is_beside=True)
            return False, []

    def is_link(self, folder: str) -> bool:
        """Whether a folder is a link to one."""
        return self._filesystem is None and Path(folder).is_symlink()

    def inside_quietly(self, folders: Iterable[str]) -> Iterator[list[FileInfo]]:
        """As each_listed, and nothing is reported: a folder that cannot be listed has nothing."""

        def listed(folder: str) -> list[FileInfo]:
            if self.is_link(folder):
                return []  # it may lead around
            try:
                return self._with_names(folder)
            except OSError:
                return []

        return self._each(listed, iter(folders))

    def _with_names(self, folder: str) -> list[FileInfo]:
        return list(with_names(self._opened.get_file_info(FileSelector(folder)), lambda *_: None))

    def _tried(self, folder: str, *, hidden: bool) -> list[FileInfo]:
        """As `listed`; empty if the folder cannot be listed."""
        try:
            return self.listed(folder, hidden=hidden)
        except OSError as error:
            if self._failed is None:
                raise
            is_gone = isinstance(error, FileNotFoundError) and not os.path.lexists(folder)
            if not (is_gone and self._filesystem is None):  # deleted since it was found
                self._failed(error)
            return []

    def report(self, name: str, why: str, *, is_beside: bool = False) -> None:
        """Name a file or folder that is left out, or several."""
        if self._failed is None:
            report_unread(name, why)
        else:
            error = LeftOutError(f"{name}: {why}")
            error.is_beside, error.places = is_beside, (name,)
            self._failed(error)

    def files(self, listed: list[FileInfo]) -> list[FileInfo]:
        """The regular files among these. A segment that is not a regular file is an error."""
        found = []
        for info in listed:
            kind = info.type
            if kind == FileType.File:
                found.append(info)
            elif kind != FileType.Directory and READABLE_NAME.fullmatch(info.base_name):
                try:
                    self.check(info)
                except OSError as error:
                    if self._failed is None:
                        raise
                    self._failed(error)
        return found

    def matches(self) -> list[FileInfo]:
        """Find what matches a glob, level by level; empty if the path is not a glob."""
        glob = GLOB.search(self.path)
        (literally,) = self._opened.get_file_info([self.path])
        if glob is None or literally.type != FileType.NotFound:
            return []
        fixed = self.path[: glob.start()].rpartition("/")[0]
        found = [self.info(fixed or "/")]
        for part in self.path[len(fixed) :].strip("/").split("/"):
            named = glob_to_regex(part)
            folders = [info for info in found if info.type == FileType.Directory]
            found = [
                info
                for inside in self.each_listed(folders, hidden=part.startswith("."))
                for info in inside
                if named.fullmatch(info.base_name)
                # As in a shell, a star does not stand for a dot at the beginning.
                and (part.startswith(".") or not info.base_name.startswith("."))
                # A copy that is being deleted or moved is found only by its suffix.
                and (part.endswith(_SUFFIXES) or not ON_ITS_WAY.fullmatch(info.base_name))
            ]
        if not found:
            raise FileNotFoundError(f"nothing matches {self._prefix}{self.path}")
        return found


def filesystem_at(location: str) -> tuple[Storage, str]:
    """The file system of a location and its path there.

    >>> filesystem_at("/backup/orders")[1]
    '/backup/orders'
    """
    place = Location(location)
    return place._opened, place.path
