"""The log.dirs folders of one broker, which must not have the same partition twice.

Answers to LogManager.loadLogs of Kafka 4.1.1, which ends the broker with "Duplicate log
directories".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from kafkajit.change.lock import log_dirs_of
from kafkajit.errors import CorruptCheckpointError
from kafkajit.format.amounts import number_of
from kafkajit.format.log_path import partition_of
from kafkajit.state.meta_properties import META_PROPERTIES, read_meta_properties

_MOST_NAMES = 3


class _Owner(NamedTuple):
    """The broker that a log.dirs folder belongs to, as its meta.properties has it."""

    cluster_id: str | None
    node_id: str | None
    directory_id: str | None


class Duplicates(NamedTuple):
    """Partitions that are in two log.dirs folders."""

    one: Path
    other: Path
    names: list[str]
    is_certain: bool  # whether both folders are one broker's

    @property
    def text(self) -> str:
        """A line about them."""
        names = ", ".join(self.names[:_MOST_NAMES])
        if len(self.names) > _MOST_NAMES:
            names += f" and {number_of(len(self.names) - _MOST_NAMES, 'more partition')}"
        both = f"{names}: in {self.one} and in {self.other}"
        if self.is_certain:
            return f"{both}, log.dirs folders of one broker, which does not start: move one away"
        return f"{both}: if both are log.dirs folders of one broker, it does not start"


def duplicates_in(places: Iterable[Path]) -> list[Duplicates]:
    """The partitions that are twice in these folders, and in others of the same brokers beside."""
    given = list(dict.fromkeys(log_dirs_of(place) for place in places))
    owners = {folder: _owner_of(folder) for folder in given}
    for folder in given:
        for sibling in _siblings(folder, owners[folder]):
            owners.setdefault(sibling, _owner_of(sibling))
    found = []
    for one, other in combinations(owners, 2):
        first, second = owners[one], owners[other]
        is_certain = first is not None and second is not None
        if is_certain and not _are_of_one_broker(first, second):
            continue
        if not is_certain and (first is not None or second is not None):
            continue  # one of them is a copy
        names = sorted(_partitions(one) & _partitions(other))
        if names:
            found.append(Duplicates(one, other, names, is_certain))
    return found


def _owner_of(log_dirs: Path) -> _Owner | None:
    path = log_dirs / META_PROPERTIES
    try:
        rows = read_meta_properties(str(path)).to_pylist() if path.is_file() else []
    except (OSError, CorruptCheckpointError):
        return None
    properties = {row["key"]: row["value"] for row in rows}
    node = properties.get("node.id", properties.get("broker.id"))
    if node is None:
        return None
    return _Owner(properties.get("cluster.id"), node, properties.get("directory.id"))


def _are_of_one_broker(one: _Owner | None, other: _Owner | None) -> bool:
    if one is None or other is None or one[:2] != other[:2]:
        return False
    # Folders with the same id are copies of each other.
    return one.directory_id is None or one.directory_id != other.directory_id


def _siblings(log_dirs: Path, owner: _Owner | None) -> Iterator[Path]:
    """Other log.dirs folders of a broker in the same folder."""
    if owner is None:
        return
    try:
        beside = sorted(log_dirs.parent.iterdir())
    except OSError:
        return
    for folder in beside:
        if folder != log_dirs and (folder / META_PROPERTIES).is_file():
            other = _owner_of(folder)
            if owner.directory_id is not None and _are_of_one_broker(owner, other):
                yield folder


def _partitions(log_dirs: Path) -> set[str]:
    try:
        folders = list(log_dirs.iterdir())
    except OSError:
        return set()
    return {
        folder.name
        for folder in folders
        if folder.is_dir()
        and partition_of(folder)[:2] != (None, None)
        and folder.name.rpartition("-")[2].isdecimal()
    }
