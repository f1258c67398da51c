"""Finds the partitions of a stream and their segments, again and again, at little cost.

A folder of this machine is listed anew only if its modification time has changed: names come and go
as a broker rolls, deletes and compacts segments, and only the last segment grows. An idle folder
costs two calls of the system.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from kafkajit.format.log_path import INDEX_SUFFIXES, LOG_SUFFIX
from kafkajit.format.tiered_names import object_name
from kafkajit.log.segment import Segment, segments_of
from kafkajit.places.location import SEGMENT_NAME, shown
from kafkajit.places.locations import find_segments, is_partition_name, local_paths
from kafkajit.places.wanted import may_hold, of_topics
from kafkajit.scan.options import ScanOptions
from kafkajit.state.producer_snapshot import SNAPSHOT_NAME
from kafkajit.storage.live_file import LiveFile
from kafkajit.storage.stored_file import StoredFile

# File systems count time in steps: what has just been changed may change again unnoticed.
STEP_NS = 2_000_000_000
# A broker swaps a compacted segment in within milliseconds.
_SWAP_SECONDS = 10.0
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True)
class Listing:
    """A partition's folder at one moment."""

    folder: str
    segments: list[Segment]
    snapshots: list[StoredFile]  # of producers, the oldest first
    # The names of old segments are gone, and those of compacted ones have not come yet.
    is_swapping: bool = False
    modified_ns: int = 0
    listed_ns: int = 0

    @property
    def may_be_old(self) -> bool:
        """Whether the folder may have changed since without a new modification time."""
        return self.listed_ns - self.modified_ns < STEP_NS


def list_folder(folder: str) -> Listing:
    """List a partition's folder of this machine."""
    listed_ns = time.time_ns()
    modified_ns = os.stat(folder).st_mtime_ns  # noqa: PTH116
    names = sorted(os.listdir(folder))  # noqa: PTH208
    files = {
        file.path: file
        for name in names
        if name.endswith((LOG_SUFFIX, *INDEX_SUFFIXES))
        for file in _file_at(f"{folder}/{name}")
    }
    logs = [file for file in files.values() if SEGMENT_NAME.fullmatch(file.name)]
    _refuse_tiered(logs)
    snapshots = [f"{folder}/{name}" for name in names if SNAPSHOT_NAME.fullmatch(name)]
    return Listing(
        folder,
        segments_of(logs, files),
        [file for path in snapshots for file in _file_at(path)],
        # With a .cleaned file all old files are still there.
        any(name.endswith(".log.swap") for name in names)
        and not any(name.endswith(".cleaned") for name in names),
        modified_ns,
        listed_ns,
    )


def _refuse_tiered(logs: Iterable[StoredFile]) -> None:
    tiered = next((log for log in logs if object_name(log.path)), None)
    if tiered is not None:
        raise ValueError(
            f"{tiered.folder} is in tiered storage, which a stream does not read: read it with "
            "spark.read, and stream the broker's own folder"
        )


def list_settled(folder: str) -> Listing:
    """List a partition's folder once no segment is being swapped."""
    until = time.monotonic() + _SWAP_SECONDS
    while True:
        listing = list_folder(folder)
        if not listing.is_swapping or time.monotonic() > until:
            return listing
        time.sleep(_PAUSE_SECONDS)


def _file_at(path: str) -> Iterator[LiveFile]:
    try:
        yield LiveFile.at(path)
    except FileNotFoundError:
        return  # it is gone already, or has another name


class Folders:
    """The folders of the partitions that a stream reads."""

    def __init__(self, options: ScanOptions, topics: Collection[str] = ()) -> None:
        self._options = options
        self._wanted = of_topics(topics) if topics else None
        self._known: dict[str, Listing] = {}

    def refresh(self) -> list[Listing]:
        """The folders as they are now."""
        found: dict[str, Listing] = {}
        remote = []
        for location in self._options.paths:
            paths = local_paths(location)
            if paths is None:
                remote.append(location)
                continue
            for path in paths:
                for folder in self._folders_at(path):
                    if folder not in found and (listing := self._listed(folder)) is not None:
                        found[folder] = listing
        if remote:
            found |= self._remote(remote)
        self._known = found
        return list(found.values())

    def again(self, folder: str) -> Listing | None:
        """A folder listed once more, whatever its modification time is; None if it is gone."""
        if folder not in self._known or "://" in folder:
            return self._known.get(folder)
        try:
            self._known[folder] = list_settled(folder)
        except FileNotFoundError:
            del self._known[folder]
        return self._known.get(folder)

    def _folders_at(self, path: str) -> Iterator[str]:
        """The partitions' folders at a path, which is one itself, or holds some."""
        if path in self._known:
            yield path
            return
        try:
            names = os.listdir(path)  # noqa: PTH208
        except NotADirectoryError:
            raise NotADirectoryError(
                f"{path} is a file: a stream reads a partition's folder such as orders-0, or a "
                "log.dirs root that holds such folders"
            ) from None
        except FileNotFoundError:
            raise FileNotFoundError(f"there is nothing at {path}") from None
        if any(SEGMENT_NAME.fullmatch(name) for name in names):
            yield path
            return
        for name in names:
            if is_partition_name(name) and may_hold(name, self._wanted):
                yield f"{path}/{name}"

    def _listed(self, folder: str) -> Listing | None:
        known = self._known.get(folder)
        try:
            if known is not None and not known.may_be_old:
                try:
                    if os.stat(folder).st_mtime_ns == known.modified_ns:  # noqa: PTH116
                        return _grown(known)
                except FileNotFoundError:
                    pass  # the last segment has been renamed since, or the folder is gone
            return list_folder(folder)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _remote(self, locations: list[str]) -> dict[str, Listing]:
        """Remote folders, listed as a batch lists them; there may be no segment yet."""
        logs, files = find_segments(locations, wanted=self._wanted)
        _refuse_tiered(logs)
        folders: dict[str, list[StoredFile]] = {}
        for log in logs:
            folders.setdefault(log.folder, []).append(log)
        snapshots: dict[str, list[StoredFile]] = {}
        for path in sorted(files):
            if SNAPSHOT_NAME.fullmatch(files[path].name):
                snapshots.setdefault(files[path].folder, []).append(files[path])
        return {
            folder: Listing(folder, segments_of(logs, files), snapshots.get(folder, []))
            for folder, logs in folders.items()
        }


def _grown(listing: Listing) -> Listing:
    """The same listing with the present size of the last segment."""
    if not listing.segments:
        return listing
    *rolled, last = listing.segments
    assert isinstance(last.log, LiveFile)
    if last.log.is_unchanged():
        return listing
    now = LiveFile.at(last.log.path)
    return replace(listing, segments=[*rolled, replace(last, log=now)])


def places_of(options: ScanOptions) -> str:
    """The paths of a stream, for an error message."""
    return ", ".join(map(shown, options.paths))
