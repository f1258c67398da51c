"""The files to import: those at a location, their formats, and the files that are left out.

In a folder, these names are left out, wherever they are:

- names that begin with _ or a dot, as Spark does, unless `export` gives a file such a name, because
  its topic begins so;
- names that end as unfinished files do, such as .tmp;
- everything in _kafkajit, where an export keeps its journals and files that it has not finished.

`skipped` names the files of these that may hold records. A folder whose table has a log of its own,
such as Delta's, is an error: the log decides which files count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pyarrow.fs import FileType, LocalFileSystem

from kafkajit.format.suffixes import AVRO, TEXT, format_in
from kafkajit.places.location import GLOB, Location, filesystem_at, shown
from kafkajit.produce.inputs.listing import Listed, columns_in, listed_in
from kafkajit.storage.remote_store import Storage, info_at
from kafkajit.storage.source import check_regular

FORMATS = ("parquet", "arrow", "csv", "jsonl", "avro")
# What export adds to the name of a partition.
_EXPORTED = re.compile(
    # A long name is cut, and has a hash.
    r"(?P<partition>.+-\d+|.+~[0-9a-f]{16})-(?P<first>\d{20})(?:-d\d{5,}|-damage)?"
    r"\.(?:parquet|arrow|csv|jsonl|avro)(?:\.gz|\.zst)?"
)
_NULL = "__HIVE_DEFAULT_PARTITION__"
_JOURNALS = "_kafkajit"
_UNFINISHED = (".tmp", ".part", ".partial", ".inprogress", ".crdownload", "~")
# Hidden files that never hold records: of Spark, Hadoop, Databricks and macOS, and our journals.
_HOLDS_NOTHING = re.compile(
    r"_SUCCESS|_(?:common_)?metadata|_(?:started|committed)_\d+|\.DS_Store|.*\.crc"
)
_OF_JOURNAL = re.compile(r".*\.json(?:\.tmp)?|\.lock")
_TABLES = {"_delta_log": "Delta", ".hoodie": "Hudi"}
_ICEBERG = re.compile(r".*\.metadata\.json")
_PLACE = ("topic", "partition", "date")


class InputFile(NamedTuple):
    """A file, its format, and the columns that its path has."""

    filesystem: Storage
    path: str
    format: str
    codec: str | None
    folders: dict[str, str]
    state: tuple[int, ...] | None = None  # of a local file, when it was listed

    @property
    def has_changed(self) -> bool:
        """Whether a local file is another one by now, or was written to since it was listed."""
        return self.state is not None and self.state != _state(self.filesystem, self.path)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def series(self) -> tuple[str, int] | None:
        """The partition and the first offset in the name of an exported file."""
        match = _EXPORTED.fullmatch(self.name)
        return (match["partition"], int(match["first"])) if match else None

    @property
    def columns(self) -> dict[str, str]:
        """The columns of a record in the path."""
        return {
            name: value
            for name, value in self.folders.items()
            if name in ("topic", "partition") and value != _NULL
        }

    @property
    def has_no_date(self) -> bool:
        """Whether an export put it into the folder of all that has no date."""
        return self.folders.get("date") == _NULL

    @property
    def ignored(self) -> list[str]:
        """The columns in the path that are not imported: an export's date is in the timestamp."""
        known = _PLACE if self.series else _PLACE[:2]
        return [name for name in self.folders if name not in known]


@dataclass
class Found:
    """The files to import, and the skipped files that may hold records."""

    files: list[InputFile] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    # The columns that a path has with two values, and the words for the first such path.
    twice: dict[str, str] = field(default_factory=dict)


def input_files(location: str, format_: str | None = None) -> Found:
    """The files at a location: a file, a folder with everything in it, or a glob."""
    filesystem, path = filesystem_at(location)
    info = info_at(filesystem, path)
    found = Found()
    infos = [info]
    if info.type == FileType.NotFound:
        if GLOB.search(path) is None:
            raise FileNotFoundError(f"there is nothing at {shown(location)}")
        infos = Location(location).matches()
    is_glob = info.type == FileType.NotFound
    asks_for_hidden = path.rpartition("/")[2][:1] in ("_", ".")
    for info in infos:
        place = Listed(info.path, info.size if info.type == FileType.File else None)
        left_out = None
        if _JOURNALS in info.path.split("/"):
            left_out = _JOURNALS
        elif is_glob and not asks_for_hidden and _is_left_out(place.name):
            left_out = place.name
        if info.type == FileType.Directory:
            _add_folder(filesystem, info.path, format_, found, left_out)
        elif left_out is not None:
            _skip(place, left_out, found)
        elif place.size is not None:
            found.files.append(_input(filesystem, info.path, format_))
        else:
            check_regular(Path(info.path))
            raise FileNotFoundError(f"{info.path} is neither a file nor a folder")
    if not found.files:
        names = f": {', '.join(found.skipped[:3])} are left out" if found.skipped else ""
        raise FileNotFoundError(f"there are no files in {shown(location)}{names}")
    return found


def repeated(files: Iterable[InputFile]) -> Iterator[list[str]]:
    """The paths of each file that is named several times, perhaps through a link."""
    found: dict[str, list[str]] = {}
    for file in files:
        is_local = isinstance(file.filesystem, LocalFileSystem)
        where = os.path.realpath(file.path) if is_local else file.path
        found.setdefault(where, []).append(file.path)
    return (paths for paths in found.values() if len(paths) > 1)


def _add_folder(
    filesystem: Storage, folder: str, format_: str | None, found: Found, left_out: str | None
) -> None:
    """Add the files in a folder, or note them if it is left out as a whole."""
    for place in listed_in(filesystem, folder):
        parts = place.path[len(folder) :].strip("/").split("/")
        _check_table(folder, parts)
        hidden = left_out or next(filter(_is_left_out, parts), None)
        if hidden is not None or place.size is None:
            _skip(place, hidden or place.name, found)
        else:
            found.files.append(_input(filesystem, place.path, format_))
            for name, value in columns_in("/".join(parts)):
                own = found.files[-1].folders[name]
                if own != value:
                    words = f"{place.path} is in {name}={value} and in {own}"
                    found.twice.setdefault(name, words)


def _check_table(folder: str, parts: list[str]) -> None:
    table = next((_TABLES[part] for part in parts if part in _TABLES), None)
    if table is None and _ICEBERG.fullmatch(parts[-1]):
        table = "Iceberg"
    if table is not None:
        raise ValueError(
            f"{folder} has a table of {table}, whose log decides which of its files count: write "
            "its rows to files of Parquet, and import these"
        )


def _is_left_out(name: str) -> bool:
    if _EXPORTED.fullmatch(name) or name.partition("=")[0] in _PLACE:  # a topic's name follows
        return False
    return name[:1] in ("_", ".") or name.endswith(_UNFINISHED)


def _skip(place: Listed, left_out: str, found: Found) -> None:
    """Note a skipped file if it may hold records; `left_out` is why."""
    if place.size == 0 or (left_out == _JOURNALS and _OF_JOURNAL.fullmatch(place.name)):
        return
    if not _HOLDS_NOTHING.fullmatch(place.name):
        found.skipped.append(place.path)


def _input(filesystem: Storage, path: str, format_: str | None) -> InputFile:
    named, codec = format_in(path.rpartition("/")[2], (*TEXT, AVRO))
    known = format_ or named
    if known is None:
        raise ValueError(
            f"the format of {path} is not known by its name: pass --from {'|'.join(FORMATS)}"
        )
    folders = dict(columns_in(path))
    return InputFile(filesystem, path, known, codec, folders, _state(filesystem, path))


def _state(filesystem: Storage, path: str) -> tuple[int, ...] | None:
    if not isinstance(filesystem, LocalFileSystem):
        return None  # an object is replaced as a whole
    try:
        found = Path(path).stat()
    except OSError:
        return ()  # an error will come of opening it
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
