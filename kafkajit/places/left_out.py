"""Files and folders at a location that are not read, although they may have records."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from pyarrow.fs import FileType

from kafkajit.errors import KafkaJitError, LeftOutError
from kafkajit.format.foreign_names import foreign_format
from kafkajit.format.log_path import parse_log_path
from kafkajit.format.tiered_names import object_name
from kafkajit.places.location import ON_ITS_WAY, PARTITION, SEGMENT_NAME, Location
from kafkajit.storage.stored_file import StoredFile

# Compressed backups of segments. kafkajit does not read them.
_PACKERS = "gz|zst|lz4|bz2|xz|sz|snappy|br|Z|zip"
_COMPRESSED = re.compile(rf"\d{{20}}\.log\.(?:{_PACKERS})")
# Copies that people and programs make of segments, or are making: `00000000000000000004 (1).log`,
# `4.LOG`, `4.log.bak`, `.4.log.Zk3a0Q`.
_PACKED = rf"(?:tar\.)?(?:{_PACKERS}|7z|lzo)|tar|tgz"
_COPY = re.compile(
    r"(?i:.*\d.*\.log(?:\.(?:bak|copy|old|orig|save|\d+|te?mp|part|partial|filepart|enc|gpg|pgp|age"
    rf"|{_PACKED})|~|-copy)?|.*copy.*\.log|\..*\d.*\.log\.[a-z0-9]{{6}})"
)
_OFFSET = re.compile(r"\d{20}")
# The files that a broker keeps beside segments.
_BESIDE = re.compile(
    r"\d{20}\.(?:index|timeindex|txnindex|snapshot)|leader-epoch-checkpoint|partition\.metadata"
)
_SWAP = re.compile(r"\d{20}\.log\.swap")


def compressed_in(files: Iterable[str]) -> list[str]:
    """The compressed backups of segments among some paths."""
    return sorted(path for path in files if _COMPRESSED.fullmatch(path.rpartition("/")[2]))


def left_out(files: Mapping[str, StoredFile], read: Collection[str]) -> Iterator[KafkaJitError]:
    """Errors about files that may have records, and are not among those that are read."""
    compressed = [path for path in compressed_in(files) if path not in read]
    if compressed:
        yield _left_out(compressed, "not read, decompress it first")
    for whose, paths in foreign_in(files, read).items():
        yield _left_out(paths, f"left out, the format is {whose}")
    places = {path.rpartition("/")[0] for path in read}
    copies = sorted(
        path
        for path, file in files.items()
        if path not in read and _is_copy(file) and (file.folder in places or _is_all_of(file))
    )
    if copies:
        yield _left_out(copies, "not read, the name of a segment is 20 digits and .log")
    for folder, beside in without_segments(files, read).items():
        yield _left_out(
            [folder], f"no segment is left, only files that lie beside some: {listed(beside)}"
        )
    # If segments are being swapped, or a swap was interrupted, old files may be gone.
    swapped = {file.folder for file in files.values() if _SWAP.fullmatch(file.name)}
    # A folder with a .cleaned file still has all of its old files.
    cleaned = {file.folder for file in files.values() if file.name.endswith(".cleaned")}
    for folder in sorted(swapped - cleaned):
        yield KafkaJitError(
            f"{folder}: segments are being swapped (.swap), or a swap was interrupted: records may "
            "be missing or duplicated until a broker or `kafkajit repair` completes it"
        )


def without_segments(
    files: Mapping[str, StoredFile], read: Collection[str]
) -> dict[str, list[str]]:
    """The files that lie beside segments in folders of partitions of which no segment is read."""
    places = {path.rpartition("/")[0] for path in read}
    found: dict[str, list[str]] = {}
    for path, file in sorted(files.items()):
        folder = path.rpartition("/")[0]
        if folder not in places and _is_partition(file) and _BESIDE.fullmatch(file.name):
            found.setdefault(folder, []).append(file.name)
    return found


def _is_partition(file: StoredFile) -> bool:
    """Whether the folder of a file is a partition's by its name."""
    return PARTITION.fullmatch(file.folder.rpartition("/")[2]) is not None


def _is_all_of(file: StoredFile) -> bool:
    """Whether a copy of a segment may be all that is left of a partition.

    A log.dirs folder, such as kafka-logs-1, has programs' logs, such as broker1.log.
    """
    return _is_partition(file) and _OFFSET.search(file.name) is not None


def _is_copy(file: StoredFile) -> bool:
    if not file.size or not _COPY.fullmatch(file.name):
        return False
    if SEGMENT_NAME.fullmatch(file.name) or _COMPRESSED.fullmatch(file.name):
        return False
    return foreign_format(file.path) is None and object_name(file.path) is None


def _left_out(paths: Sequence[str], why: str) -> LeftOutError:
    error = LeftOutError(f"{listed(paths)}: {why}")
    error.places = tuple(paths)
    return error


def foreign_in(files: Iterable[str], read: Collection[str]) -> dict[str, list[str]]:
    """The files in formats that are not read, by the words for these formats."""
    found: dict[str, list[str]] = {}
    for path in sorted(files):
        whose = None if path in read else foreign_format(path)
        if whose is not None:
            found.setdefault(whose, []).append(path)
    return found


def listed(names: Sequence[str]) -> str:
    """A few of these names, and the number of the others.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def waiting_text(
    locations: Iterable[str], is_wanted: Callable[[str | None, int | None], bool]
) -> str | None:
    """A line about the wanted partitions that a broker deletes, moves or no longer has, or None.

    >>> waiting_text(["sample:"], lambda topic, partition: True)
    """
    waiting = [
        path
        for location in locations
        for path in waiting_folders(location)
        if is_wanted(*parse_log_path(f"{path}/{0:020}.log")[:2])
    ]
    if not waiting:
        return None
    return (
        f"left out: {listed(waiting)}: brokers delete, move or no longer have such partitions "
        "(-delete, -future, -stray); a path that names one reads it"
    )


def waiting_folders(location: str) -> list[str]:
    """The folders at a location of partitions that a broker deletes, moves or no longer has."""
    where = Location(location, lambda _: None)  # a listing for records reports what is unreadable
    try:
        tops = where.matches() or [where.info(where.path)]
    except FileNotFoundError:
        return []
    folders = [top for top in tops if top.type == FileType.Directory]
    return [
        where.stored(info).path
        for inside in where.each_listed(folders)
        for info in inside
        if info.type == FileType.Directory and ON_ITS_WAY.fullmatch(info.base_name)
    ]
