"""Lists the folders at a location that may hold segments, by their names and their files.

A root of partitions is listed no deeper than these. A root without any is explored: KafScale has
folders of namespaces and topics, Pinterest's plugin those of clusters and of entropy bits, and a
bucket may have tiered segments under a prefix, whose names tell nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyarrow.fs import FileInfo, FileType

from kafkajit.errors import Failed
from kafkajit.format.foreign_names import foreign_format
from kafkajit.format.kafscale import kafscale_name
from kafkajit.format.tiered_names import (
    LOCAL_TIERED_STORAGE,
    PINTEREST_MARKS,
    is_topic_folder,
    object_name,
)
from kafkajit.places.layouts import AUTO, EXPLORED
from kafkajit.places.layouts import LOCAL_TIERED_STORAGE as LOCAL_TIERED
from kafkajit.places.left_out import listed
from kafkajit.places.location import ON_ITS_WAY, PARTITION, READABLE_NAME, Location
from kafkajit.places.wanted import Wanted, may_hold

logger = logging.getLogger("kafkajit")

# Why a folder of segments is not read.
_UNNAMED = (
    "partitions are looked for only in the folder that a path names, by names such as orders-0: "
    "name it as a path, or a copy with such a name"
)
_UNDER_SEGMENTS = (
    "the folder around it has segments itself, as a partition's folder has: name it as a path"
)
_TIERED_BESIDE = (
    "it leads to partitions of tiered storage, which are looked for only if no partition is beside "
    "it: name it as a path"
)
_IN_PARTITION = "it is in a partition's folder, as a second copy makes it: name it as a path"
# Pinterest's folders of entropy bits.
_BITS = re.compile(r"[01]+")
# The folders above those of segments: base, bits, cluster, partition.
_LEVELS = 4
# The root of a file system has it, and only the system's administrator can list it.
_LOST_AND_FOUND = "lost+found"
# A bucket of other things is not explored to its end.
_MOST_EXPLORED = 10_000
_MOST_BESIDE = 1_000  # folders of a level, beside partitions


def files_in(
    where: Location, wanted: Wanted | None = None, layout: str = AUTO
) -> Iterator[FileInfo]:
    """The files at a location, by its folders; those of some locations twice."""
    found = where.matches() or [where.info(where.path)]
    for top in found:
        where.check(top)
    yield from (top for top in found if top.type == FileType.File)
    folders = [top for top in found if top.type == FileType.Directory]
    yield from _files_under(where, folders, wanted, layout)


def _files_under(
    where: Location, folders: list[FileInfo], wanted: Wanted | None, layout: str
) -> Iterator[FileInfo]:
    """The files of each folder and, unless it is a partition's own, of the partitions in it.

    The folder's name does not decide, because a broker's root may be called kafka-logs-1.
    """
    for folder, inside in zip(folders, where.each_listed(folders), strict=True):
        files = where.files(inside)
        yield from files
        is_whole = layout == AUTO and wanted is None  # otherwise others are left out on request
        if any(READABLE_NAME.fullmatch(file.base_name) for file in files):
            if is_whole:
                _report_beside(where, _folders(inside), _UNDER_SEGMENTS)
            continue
        if layout in EXPLORED:
            yield from _explored(where, folder, _folders(inside), wanted, layout)
            continue
        sorted_ = _Folders.sorted(folder, _folders(inside))
        found = False
        for file in _in_partitions(where, sorted_, wanted, is_whole=is_whole):
            found = True
            yield file
        if not found and wanted is not None:
            found = _has_partitions(where, folder, _folders(inside))
        if found and is_whole:
            _report_beside(where, sorted_.others, _UNNAMED)
        if not found and layout == AUTO:
            yield from _explored(where, folder, _folders(inside), wanted, layout)


def _folders(inside: list[FileInfo]) -> list[FileInfo]:
    return [info for info in inside if info.type == FileType.Directory]


class _Folders(NamedTuple):
    """The folders in a root, by their names."""

    partitions: list[FileInfo]
    topics: list[FileInfo]  # or of the partitions of a topic, which is the root
    roots: list[FileInfo]
    others: list[FileInfo]

    @classmethod
    def sorted(cls, root: FileInfo, folders: Iterable[FileInfo]) -> _Folders:
        found = cls([], [], [], [])
        is_topic = is_topic_folder(root.base_name)
        for info in folders:
            name = info.base_name
            if name == LOCAL_TIERED_STORAGE:
                found.roots.append(info)
            elif PARTITION.fullmatch(name):
                found.partitions.append(info)
            elif is_topic_folder(name) or (is_topic and name.isdecimal()):
                found.topics.append(info)
            else:
                found.others.append(info)
        return found


def _in_partitions(
    where: Location, folders: _Folders, wanted: Wanted | None, *, is_whole: bool = False
) -> Iterator[FileInfo]:
    """The files of the partitions whose folders, or those of their topics, are in a root.

    If all of it `is_whole`, folders of segments in partitions' folders are reported.
    """
    partitions = [info for info in folders.partitions if may_hold(info.base_name, wanted)]
    topics = [info for info in folders.topics if may_hold(info.base_name, wanted)]
    for inside in where.each_listed(partitions):
        yield from where.files(inside)
        if is_whole:
            _report_beside(where, _folders(inside), _IN_PARTITION)
    if topics:
        yield from _objects_under(where, topics, wanted)
    if folders.roots:
        yield from _files_under(where, folders.roots, wanted, LOCAL_TIERED)


def _has_partitions(where: Location, root: FileInfo, folders: list[FileInfo]) -> bool:
    """Whether a root has partitions that are not wanted; an empty one does not tell."""
    each = (_Folders.sorted(root, [info]) for info in folders)
    return any(True for one in each for _ in _in_partitions(where, one, None))


def report_beside(location: str, failed: Failed = None) -> None:
    """Report the folders of segments in a root of partitions, or in a partition's folder, as above.

    >>> report_beside("sample:")
    """
    where = Location(location, failed)
    root = where.info(where.path)
    for inside in where.each_listed([root]):
        if any(READABLE_NAME.fullmatch(file.base_name) for file in where.files(inside)):
            _report_beside(where, _folders(inside), _UNDER_SEGMENTS)
        else:
            _report_beside(where, _Folders.sorted(root, _folders(inside)).others, _UNNAMED)


def _report_beside(where: Location, folders: Iterable[FileInfo], why: str) -> None:
    """Report those of these folders, beside what is read, that have segments."""
    others = [
        info
        for info in folders
        if not ON_ITS_WAY.fullmatch(info.base_name) and info.base_name != _LOST_AND_FOUND
    ]
    holding: list[str] = []
    below: dict[str, str] = {}
    for folder, (holds, inside) in zip(others, where.each_holding(others), strict=True):
        if holds:
            holding.append(folder.path)
        elif not where.is_link(folder.path):  # which may lead around
            below |= {info.path: folder.path for info in _folders(inside)}
    _report_unread(where, holding, why)
    _report_unread(where, _leading_to_tiered(where, below), _TIERED_BESIDE)


def _leading_to_tiered(where: Location, below: dict[str, str]) -> list[str]:
    """The folders, beside partitions, below which tiered storage has partitions.

    `below` has the folders in them, each with the one that it is in.
    """
    found: set[str] = set()
    for _ in range(1, _LEVELS):
        if len(below) > _MOST_BESIDE:
            break
        tops, below = below, {}
        for (path, top), inside in zip(tops.items(), where.inside_quietly(tops), strict=True):
            files = [info for info in inside if info.type == FileType.File]
            if top not in found and _is_known(path.rpartition("/")[2], files):
                found.add(top)
            below |= {info.path: top for info in _folders(inside)}
        below = {path: top for path, top in below.items() if top not in found}
    return sorted(found)


def _report_unread(where: Location, folders: list[str], why: str) -> None:
    if folders:
        names = listed([where.shown(path) for path in folders])
        where.report(names, f"not read, {why}", is_beside=True)


def _explored(
    where: Location, root: FileInfo, folders: list[FileInfo], wanted: Wanted | None, layout: str
) -> Iterator[FileInfo]:
    """The files of tiered storage's partitions, somewhere below a root.

    `folders` are in the root. Other folders of segments are left out: they may be copies.
    """
    above = {info.path: root.base_name for info in folders}  # the folder that each one is in
    found = False
    others: list[str] = []
    for level in range(_LEVELS):
        if layout == AUTO and not found and len(folders) > _MOST_EXPLORED:
            where.report(
                where.shown(root.path),
                "the folders below are not searched, because there are more than "
                f"{_MOST_EXPLORED:,}: name one further down",
            )
            return
        below: dict[str, str] = {}
        following: list[FileInfo] = []
        for folder, inside in zip(folders, where.each_listed(folders), strict=True):
            files = where.files(inside)
            if any(READABLE_NAME.fullmatch(file.base_name) for file in files):
                if _is_known(folder.base_name, files):
                    found = True
                    yield from files
                elif not ON_ITS_WAY.fullmatch(folder.base_name):
                    others.append(folder.path)
                continue
            # An error, or a warning, names them.
            yield from (file for file in files if foreign_format(file.path))
            for info in _folders(inside):
                if _may_lead(info.base_name, folder.base_name, above[folder.path], wanted):
                    following.append(info)
                    below[info.path] = folder.base_name
        folders, above = following, below
        if level == 0:
            logger.info("%s: the folders below are searched", root.path)
    if layout != AUTO or wanted is not None:  # others are left out on request
        return
    _report_unread(where, sorted(others), _UNNAMED)
    if folders and not found:
        where.report(
            where.shown(root.path),
            f"tiered storage is looked for in {_LEVELS} levels of folders, and there are more: "
            "name a folder further down",
        )


def _is_known(name: str, files: list[FileInfo]) -> bool:
    """Whether a folder of segments, of that name, is one of tiered storage."""
    return any(
        kafscale_name(file.path) is not None or object_name(file.path) is not None for file in files
    ) or (
        PARTITION.fullmatch(name) is not None
        and any(file.base_name in PINTEREST_MARKS for file in files)
    )


def _may_lead(name: str, parent: str, above: str, wanted: Wanted | None) -> bool:
    """Whether a folder may lead to a wanted partition; `parent` is the folder that it is in."""
    if wanted is None:
        return True
    if _BITS.fullmatch(above) and PARTITION.fullmatch(name):  # bits, cluster, partition
        return may_hold(name, wanted) or wanted({"topic": name})
    if is_topic_folder(name) or (name.isdecimal() and is_topic_folder(parent)):
        return may_hold(name, wanted)
    if name.isdecimal() and not _BITS.fullmatch(name):  # namespace, topic, partition
        return wanted({"topic": parent, "partition": int(name)})
    return True


def _objects_under(
    where: Location, folders: list[FileInfo], wanted: Wanted | None
) -> Iterator[FileInfo]:
    """The objects of tiered segments in these folders, and in the folders of partitions in them.

    The names of such folders are those of many others: the files' decide.
    """
    partitions: list[FileInfo] = []
    for inside in where.each_listed(folders):
        yield from (info for info in where.files(inside) if object_name(info.path))
        partitions.extend(
            info
            for info in inside
            if info.base_name.isdecimal()
            and info.type == FileType.Directory
            and may_hold(info.base_name, wanted)
        )
    for inside in where.each_listed(partitions):
        yield from (info for info in where.files(inside) if object_name(info.path))
