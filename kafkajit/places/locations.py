"""Finds logs: at local paths and on every file system that pyarrow opens (s3, gs, hdfs, abfs).

A location is a segment file, a partition's folder (orders-0), a broker's log.dirs folder, which
holds such folders, or a glob of any of them; `sample:` is the folder of the sample logs. Folders
are listed no deeper than that: a tree with several brokers' copies of a partition would otherwise
yield every record twice. For the same reason a folder whose name begins with a dot is found only by
a location that spells the dot: such folders hold changes of a log that are being prepared, and the
files that they replaced. Partitions of topics with such a name, .x-0, are found as a broker does.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyarrow.fs import FileType

from kafkajit.errors import Failed, KafkaJitError, LeftOutError, RemoteStorageError
from kafkajit.format.tiered_names import object_name
from kafkajit.places.layouts import AUTO, of_layout
from kafkajit.places.left_out import (
    compressed_in,
    foreign_in,
    left_out,
    listed,
    waiting_folders,
    without_segments,
)
from kafkajit.places.listing import files_in
from kafkajit.places.location import GLOB, PARTITION, READABLE_NAME, Location, absolute, shown
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.places.tiered_files import TieredFile, Unfinished, as_log_files
from kafkajit.places.uri import parts_of, uri_of
from kafkajit.places.wanted import Wanted, any_partition
from kafkajit.storage.globs import glob_to_regex
from kafkajit.storage.source import Source, resolve_sample
from kafkajit.storage.stored_file import StoredFile

logger = logging.getLogger("kafkajit")

# A folder whose newest segment is older has not been rolled since a listing began, even if the
# clocks of this machine and of a file server differ a little.
_LATELY_NS = 60 * 10**9


def stored_file(location: str, keys: PrivateKeys = NO_KEYS) -> StoredFile:
    """The file at a location.

    >>> stored_file("/no/such/file")
    Traceback (most recent call last):
    FileNotFoundError: there is nothing at /no/such/file
    """
    where = Location(location)
    info = where.info(where.path)
    where.check(info)
    if info.type != FileType.File:
        raise IsADirectoryError(
            f"{shown(location)} is a folder, not a segment file: kafkajit.Log reads a partition's, "
            "such as orders-0"
        )
    file = where.stored(info)
    if object_name(file.path) is None:
        return file
    for tiered in as_log_files([file], keys):
        if isinstance(tiered, TieredFile) and tiered.object_path == file.path:
            return tiered
    raise RemoteStorageError("its copy to tiered storage is not finished", path=file.path)


def opened_source(source: Any, *, stays: bool = False, keys: PrivateKeys = NO_KEYS) -> Source:
    """Open a log's bytes: from a path, a URI, or an object that already holds them.

    With `stays` all bytes stay valid as long as an array refers to them, for callers that return
    views of them.

    >>> opened_source("/")
    Traceback (most recent call last):
    IsADirectoryError: / is a folder: kafkajit.Log reads a partition's, such as orders-0
    """
    is_uri = isinstance(source, str) and uri_of(source)
    if is_uri or (isinstance(source, (str, Path)) and object_name(absolute(str(source)))):
        file = stored_file(str(source), keys)
        opened = file.open()
        if stays and file.filesystem is not None:
            opened.keep()
        return opened
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        path = resolve_sample(path) if isinstance(path, str) else path
        if os.path.isdir(path):  # noqa: PTH112  pathlib does not take bytes
            raise IsADirectoryError(
                f"{path} is a folder: kafkajit.Log reads a partition's, such as orders-0"
            )
        if parts_of(path) and not os.path.exists(path):  # noqa: PTH110
            raise FileNotFoundError(
                f"{path} does not exist: a Path drops a slash of a URI, so pass the URI as a str"
            )
    return Source(source)


def find_files(
    location: str,
    keys: PrivateKeys = NO_KEYS,
    wanted: Wanted | None = None,
    layout: str = AUTO,
    failed: Failed = None,
    unfinished: Unfinished = None,
) -> list[StoredFile]:
    """Find all files at a location, in the order of their paths. The keys are those of objects.

    In a root, only the folders of wanted partitions are listed. `failed` is called with the errors
    of folders and files that cannot be read, and `unfinished` with tiered segments that lack
    objects.

    >>> find_files("/no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: there is nothing at /no/such/folder
    """
    stored = stored_files(location, wanted, layout, failed)
    found = as_log_files(stored, keys, failed, unfinished)
    return sorted(found, key=lambda file: file.path)


def stored_files(
    location: str, wanted: Wanted | None = None, layout: str = AUTO, failed: Failed = None
) -> list[StoredFile]:
    """Find all files at a location as they are stored: objects of tiered storage as objects.

    >>> stored_files("/no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: there is nothing at /no/such/folder
    """
    where = Location(location, failed)
    files = {info.path: where.stored(info) for info in files_in(where, wanted, layout)}
    files = of_layout(files, layout, shown(location), is_whole=wanted is None)
    if where.requests is not None:
        logger.info("%s: listed %d files in %s", shown(location), len(files), where.requests)
    return list(files.values())


def local_paths(location: str) -> list[str] | None:
    """The local paths that a location or its glob names; None if it is remote.

    >>> local_paths("s3://bucket/orders-0")
    >>> local_paths("/no/such/folder")
    ['/no/such/folder']
    """
    uri = uri_of(resolve_sample(location))
    if uri is not None and uri["scheme"] != "file":
        return None
    path = shown(location)
    if GLOB.search(path) is None:
        return [path]
    return [info.path for info in Location(location).matches()] or [path]


def is_partition_name(name: str) -> bool:
    """Whether a folder of this name in a log.dirs folder is searched for segments.

    >>> is_partition_name(".x-0"), is_partition_name(".kafkajit-repair-20261122T010203Z-2")
    (True, False)
    """
    return PARTITION.fullmatch(name) is not None


def files_at(
    locations: Iterable[str],
    keys: PrivateKeys = NO_KEYS,
    wanted: Wanted | None = None,
    layout: str = AUTO,
) -> dict[str, StoredFile]:
    """All files at these locations by their paths, each once.

    >>> files_at([])
    {}
    """
    return {
        file.path: file
        for location in locations
        for file in find_files(location, keys, wanted, layout)
    }


# The end of an error message: the kinds of paths.
_PLACES = (
    "a partition's folder such as orders-0, a log.dirs folder with such folders, or a glob; "
    "the option pathGlobFilter allows other names"
)


def find_segments(
    locations: Iterable[str],
    glob: str | None = None,
    keys: PrivateKeys = NO_KEYS,
    wanted: Wanted | None = None,
    layout: str = AUTO,
    failed: Failed = None,
    unfinished: Unfinished = None,
) -> tuple[list[StoredFile], dict[str, StoredFile]]:
    """Find the segments at these locations, and all files there by their paths.

    A glob selects the names of segments. Without a glob, a location that is a file counts as one,
    whatever its name. If there are segments, but of none of the wanted partitions, the list is
    empty. Each location must exist and have segments. `failed` is called with the error of one that
    has none, and with those of folders and files that are left out, if there are segments at all;
    `unfinished` with tiered segments that lack objects.
    """
    began = time.time_ns()
    locations = list(locations)
    name = READABLE_NAME if glob is None else glob_to_regex(glob)
    logs: dict[str, StoredFile] = {}
    files: dict[str, StoredFile] = {}
    problems: list[Exception] = []
    add = None if failed is None else problems.append
    notes: list[KafkaJitError] = []
    empty: list[str] = []
    has_any = False
    for location in locations:
        before = len(problems)
        here = find_files(location, keys, wanted, layout, add, unfinished)
        found = {file.path: file for file in here}
        place = None if glob is not None else shown(location)
        own = {
            path: file for path, file in found.items() if name.fullmatch(file.name) or path == place
        }
        own |= _rolled_meanwhile(own, began)
        files |= found | own
        logs |= own
        # The only segments may be those of others than the wanted partitions.
        if own or (wanted is not None and _has_file([location], layout, name, failed=add)):
            has_any = True
        elif len(problems) == before:
            empty.append(location)
            continue  # its error names these files
        notes += left_out(found, own if glob is None else found)
    if not has_any and not problems:
        raise _nothing_at(locations, keys, layout)
    problems += [_nothing_at([location], keys, layout) for location in empty]
    if problems and (failed is None or not has_any):
        raise problems[0]
    if failed is None:
        for note in notes:
            logger.warning("%s", note)
    else:
        for problem in (*problems, *notes):
            failed(problem)
    return list(logs.values()), files


def _rolled_meanwhile(logs: Mapping[str, StoredFile], began: int) -> dict[str, StoredFile]:
    """The segments that have grown since they were listed, and have a segment after them now.

    A broker has rolled them while the folder was listed. Their records up to the next segment would
    be missing between those that are read. The last segment keeps the size that was listed.
    """
    grown = {}
    folders: dict[str, list[StoredFile]] = {}
    for log in logs.values():
        if log.filesystem is None and not isinstance(log, TieredFile):
            folders.setdefault(log.folder, []).append(log)
    for found in folders.values():
        *rolled, last = sorted(found, key=lambda log: log.name)
        if (last.modified_ns or 0) < began - _LATELY_NS:
            continue
        for log in rolled:
            with suppress(OSError):  # whoever reads it reports it
                size = os.stat(log.key).st_size  # noqa: PTH116
                if size > log.size:
                    grown[log.path] = replace(log, size=size)
    return grown


def _nothing_at(locations: Sequence[str], keys: PrivateKeys, layout: str) -> FileNotFoundError:
    """The error of locations without segments, with what lies there instead."""
    left: list[Exception] = []
    files: dict[str, StoredFile] = {}
    for location in locations:
        here = find_files(location, keys, layout=layout, failed=left.append)
        files |= {file.path: file for file in here}
    places = ", ".join(map(shown, locations))
    text = f"no segments (20 digits and .log) at {places}"
    compressed = compressed_in(files)
    if compressed:
        return FileNotFoundError(f"{text}, but {listed(compressed)}: decompress them first")
    for whose, paths in foreign_in(files, set()).items():
        return FileNotFoundError(f"{text}, but {listed(paths)}: the format is {whose}")
    for error in left:
        if isinstance(error, LeftOutError) and error.is_beside:
            return FileNotFoundError(f"{text}, but {error}")
    bare = without_segments(files, set())
    if bare:
        beside = listed([name for names in bare.values() for name in names])
        return FileNotFoundError(f"{text}, only files that lie beside some: {beside}")
    waiting = [path for location in locations for path in waiting_folders(location)]
    if waiting:
        return FileNotFoundError(
            f"{text}, but {listed(waiting)}: brokers delete, move or no longer have such "
            "partitions (-delete, -future, -stray); name a folder to read it"
        )
    return FileNotFoundError(f"{text}: a path is a segment, {_PLACES}")


def find_named(
    locations: Iterable[str],
    names: Sequence[re.Pattern[str]],
    called: str,
    keys: PrivateKeys = NO_KEYS,
    wanted: Wanted | None = None,
    layout: str = AUTO,
) -> tuple[list[StoredFile], dict[str, StoredFile]]:
    """Find the files of these names at the locations, and all files there by their paths.

    Beside segments the files may be missing: a log without aborted transactions has no .txnindex.
    A location with neither segments nor such files is probably a wrong path, and raises an error.
    """
    files: dict[str, StoredFile] = {}
    for location in locations:
        here = find_files(location, keys, wanted, layout)
        files |= {file.path: file for file in here}
        if not any(
            pattern.fullmatch(file.name) for file in here for pattern in (READABLE_NAME, *names)
        ) and not (wanted is not None and _has_file([location], layout, READABLE_NAME, *names)):
            raise FileNotFoundError(
                f"no files ({called}) and no segments at {shown(location)}: a path is such a file, "
                f"{_PLACES}"
            )
    found = [file for file in files.values() if any(name.fullmatch(file.name) for name in names)]
    return found, files


def _has_file(
    locations: Iterable[str], layout: str, *names: re.Pattern[str], failed: Failed = None
) -> bool:
    """Whether there is a file of such a name, wanted or not."""
    return any(
        name.fullmatch(info.base_name)
        for location in locations
        for info in files_in(Location(location, failed), any_partition, layout)
        for name in names
    )


def has_objects_at(locations: Iterable[str]) -> bool:
    """Whether there are objects of tiered segments, wanted or not.

    >>> has_objects_at([])
    False
    """
    return any(
        object_name(info.path) is not None
        for location in locations
        for info in files_in(Location(location), any_partition)
    )
