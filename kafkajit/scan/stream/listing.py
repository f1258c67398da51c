"""A partition's folder, listed while a broker rolls, compacts and deletes segments in it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kafkajit.errors import CorruptCheckpointError
from kafkajit.format.kafscale import SUFFIX as KAFSCALE_SUFFIX
from kafkajit.format.log_path import INDEX_SUFFIXES, LOG_SUFFIX, UNFINISHED_CHANGE
from kafkajit.format.ranges import Range
from kafkajit.format.tiered_names import object_name
from kafkajit.log.footing import Epochs
from kafkajit.log.overlaps import served
from kafkajit.log.segment import Segment, segments_of
from kafkajit.places.location import SEGMENT_NAME
from kafkajit.state.leader_epochs import LEADER_EPOCHS, epochs_in
from kafkajit.state.partition_metadata import PARTITION_METADATA, parse_partition_metadata
from kafkajit.state.producer_snapshot import SNAPSHOT_NAME
from kafkajit.storage.live_file import LiveFile
from kafkajit.storage.source import as_bytes, check_regular
from kafkajit.storage.stored_file import StoredFile
from kafkajit.system.whole_listing import whole_listing

_OF_SEGMENT = (LOG_SUFFIX, *INDEX_SUFFIXES)
# File systems count time in steps: what has just been changed may change again unnoticed.
STEP_NS = 2_000_000_000
# A broker swaps a compacted segment in within milliseconds.
_SWAP_SECONDS = 10.0
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True)
class Listing:
    """A partition at one moment: its folder, and what tiered storage has of it."""

    folder: str
    segments: list[Segment]
    snapshots: list[StoredFile]  # of producers, the oldest first
    # The names of old segments may be gone, and those of new ones have not come yet.
    is_swapping: bool = False
    modified_ns: int = 0
    changed_ns: int = 0  # a copier may set the other time back
    listed_ns: int = 0
    is_tiered: bool = False
    gaps: tuple[Range, ...] = ()  # offsets between segments that are gone
    topic_id: str | None = None  # by partition.metadata: None without it, empty if it is damaged
    lacks_log: bool = False  # although files of one are there

    def is_of(self, folder: os.stat_result) -> bool:
        """Whether it is of a folder with these times."""
        return (self.modified_ns, self.changed_ns) == (folder.st_mtime_ns, folder.st_ctime_ns)

    @property
    def may_be_old(self) -> bool:
        """Whether the folder may have changed since without a new modification time."""
        return self.listed_ns - self.modified_ns < STEP_NS


def list_folder(folder: str) -> Listing:
    """List a partition's folder of this machine."""

    def look() -> tuple[int, os.stat_result, list[str], dict[str, LiveFile]]:
        now, status = time.time_ns(), os.stat(folder)  # noqa: PTH116
        names = sorted(os.listdir(folder))  # noqa: PTH208
        paths = (f"{folder}/{name}" for name in names if name.endswith(_OF_SEGMENT))
        return now, status, names, {file.path: file for file in live_files(paths)}

    listed_ns, status, names, files = whole_listing(folder, look)
    refuse_kafscale(f"{folder}/{name}" for name in names)
    logs = [
        file
        for file in files.values()
        if SEGMENT_NAME.fullmatch(file.name) and object_name(file.path) is None
    ]
    for file in logs:
        if not file.size:  # as that of a FIFO, which would seem to be empty for ever
            with suppress(FileNotFoundError):
                check_regular(Path(file.path))
    snapshots = [f"{folder}/{name}" for name in names if SNAPSHOT_NAME.fullmatch(name)]
    (segments,) = served([segments_of(logs, files)])
    return Listing(
        folder,
        segments,
        list(live_files(snapshots)),
        _is_swapping(names) or _has_lost_log(folder, names, files),
        status.st_mtime_ns,
        status.st_ctime_ns,
        listed_ns,
        topic_id=topic_id_in(folder) if PARTITION_METADATA in names else None,
        lacks_log=bool(names) and not segments,
    )


def topic_id_in(folder: str, remote: Mapping[str, StoredFile] | None = None) -> str | None:
    """The topic's id in a folder's partition.metadata; None without one, and "" if it is damaged.

    `remote` has the files of folders that are not on this machine.
    """
    path = f"{folder}/{PARTITION_METADATA}"
    for file in [remote[path]] if remote and path in remote else live_files([path]):
        try:
            table = parse_partition_metadata(as_bytes(file.read_now()), file.path)
        except (CorruptCheckpointError, FileNotFoundError):
            return ""
        id_: str = table["topicId"][0].as_py()
        return id_
    return None


class EpochFile:
    """The leader-epoch-checkpoint of a folder of this machine, read again once it has changed."""

    def __init__(self, folder: str) -> None:
        self._path = f"{folder}/{LEADER_EPOCHS}"
        self._read: LiveFile | None = None
        self._epochs: Epochs = ()

    def now(self) -> Epochs:
        """The leader epochs; none if the file is missing or damaged."""
        try:
            file = LiveFile.at(self._path)
            if file != self._read or time.time_ns() - (file.modified_ns or 0) < STEP_NS:
                epochs = epochs_in(file.read_now(), self._path)
                self._read, self._epochs = file, tuple(epochs)
        except (FileNotFoundError, CorruptCheckpointError):
            self._read, self._epochs = None, ()
        return self._epochs


def _is_swapping(names: list[str]) -> bool:
    if UNFINISHED_CHANGE in names:
        return True
    # With a .cleaned file all old files are still there.
    is_swapped = any(name.endswith(".log.swap") for name in names)
    return is_swapped and not any(name.endswith(".cleaned") for name in names)


def _has_lost_log(folder: str, names: list[str], files: Mapping[str, LiveFile]) -> bool:
    """Whether a log was renamed behind the list: what takes its place may not be listed."""
    logs = (f"{folder}/{name}" for name in names if SEGMENT_NAME.fullmatch(name))
    return any(path not in files for path in logs)


def list_settled(folder: str) -> Listing:
    """List a partition's folder once no segment is being swapped."""
    until = time.monotonic() + _SWAP_SECONDS
    while True:
        listing = list_folder(folder)
        if not listing.is_swapping or time.monotonic() > until:
            return listing
        time.sleep(_PAUSE_SECONDS)


def refuse_kafscale(paths: Iterable[str]) -> None:
    """Raise an error for a segment of KafScale's: its records would be missing.

    >>> refuse_kafscale(["/orders/0/segment-00000000000000000042.kfs"])
    Traceback (most recent call last):
    ValueError: /orders/0/segment-00000000000000000042.kfs: streams and kafkajit tail do not read \
KafScale's segments; spark.read and kafkajit grep do
    """
    for path in paths:
        if path.endswith(KAFSCALE_SUFFIX):
            raise ValueError(
                f"{path}: streams and kafkajit tail do not read KafScale's segments; spark.read "
                "and kafkajit grep do"
            )


def live_files(paths: Iterable[str]) -> Iterator[LiveFile]:
    """The files at these paths; those that are gone already, or have another name, are left out."""
    for path in paths:
        with suppress(FileNotFoundError):
            yield LiveFile.at(path)
