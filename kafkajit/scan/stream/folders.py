"""Finds the partitions of a stream and their segments, again and again, at little cost.

A folder of this machine is listed anew only if its modification time has changed: names come and go
as a broker rolls, deletes and compacts segments, and only the last segment grows. An idle folder
costs two calls of the system.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Collection, Iterator
from dataclasses import replace

from kafkajit.errors import LeftOutError
from kafkajit.format.tiered_names import is_topic_folder, object_name
from kafkajit.log.overlaps import served
from kafkajit.log.segment import segments_of
from kafkajit.places.listing import report_beside
from kafkajit.places.location import SEGMENT_NAME, shown
from kafkajit.places.locations import find_segments, is_partition_name, local_paths, stored_files
from kafkajit.places.wanted import may_hold, of_topics
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.stream.listing import (
    Listing,
    list_folder,
    list_settled,
    refuse_kafscale,
    topic_id_in,
)
from kafkajit.scan.stream.tier import Tier, holds_objects
from kafkajit.state.partition_metadata import PARTITION_METADATA
from kafkajit.state.producer_snapshot import SNAPSHOT_NAME
from kafkajit.storage.live_file import LiveFile
from kafkajit.storage.stored_file import StoredFile, report_dangling_links

logger = logging.getLogger("kafkajit")

# How often folders are listed again because objects are gone that have just been listed.
_LOOKS = 3


class Folders:
    """The folders of the partitions that a stream reads.

    A path that does not exist is an error, unless it `may_lack_paths`.
    """

    def __init__(
        self, options: ScanOptions, topics: Collection[str] = (), *, may_lack_paths: bool = False
    ) -> None:
        self._options = options
        self._may_lack_paths = may_lack_paths
        self._wanted = of_topics(topics) if topics else None
        self._known: dict[str, Listing] = {}  # folders of this machine
        self._tier = Tier(options)
        self._now: dict[str, Listing] = {}
        self._had_files: set[str] = set()
        self._is_explored = False
        # By remote folder: the topic's id, and the state of the file that has it.
        self._ids: dict[str, tuple[str | None, object]] = {}
        self._searched: set[str] = set()  # for folders of other names

    def refresh(self) -> list[Listing]:
        """The partitions as they are now."""
        for _ in range(_LOOKS):
            try:
                return self._look()
            except FileNotFoundError as error:
                if not self._now:  # a wrong path
                    raise
                logger.info("%s: deleted meanwhile, so the folders are listed again", error)
        return self._look()

    def _look(self) -> list[Listing]:
        found: dict[str, Listing] = {}
        tiered, remote = [], []
        for location in self._options.paths:
            paths = local_paths(location)
            if paths is None:
                remote.append(location)
                continue
            for path in paths:
                for folder in self._folders_at(path):
                    if folder not in found and (listing := self._listed(folder)) is not None:
                        found[folder] = listing
            if any(holds_objects(path, found) for path in paths):
                tiered.append(location)
        self._known = dict(found)
        # Objects last: what a broker has deleted since is there.
        files = self._stored([*tiered, *remote])
        refuse_kafscale(files)
        if remote:
            is_there = any(SEGMENT_NAME.fullmatch(file.name) for file in files.values())
            if not (is_there or found or self._now):
                find_segments(remote, wanted=self._wanted)  # raises an error with the reason
            found |= self._remote(files)
        objects = [file for path, file in files.items() if object_name(path)]
        listings = self._tier.joined_with(found, objects)
        if not (listings or self._is_explored):
            self._is_explored = True
            # KafScale has its segments deeper than a broker.
            refuse_kafscale(self._stored([*self._options.paths]))
        self._now = {listing.folder: listing for listing in listings}
        return listings

    def _stored(self, locations: list[str]) -> dict[str, StoredFile]:
        """The files at locations, as they are stored."""
        found: dict[str, StoredFile] = {}
        for location in locations:
            try:
                files = stored_files(location, self._wanted, failed=self._options.failed)
            except FileNotFoundError:
                if location not in self._had_files:
                    raise
                continue  # a prefix without objects does not exist
            self._had_files.add(location)
            found |= {file.path: file for file in files}
        return found

    def again(self, folder: str) -> Listing | None:
        """A partition listed once more, whatever its modification time is; None if it is gone."""
        known = self._now.get(folder)
        if known is not None and known.is_tiered:
            self._known.pop(folder, None)
            self.refresh()
        elif folder in self._known:
            try:
                self._now[folder] = self._known[folder] = list_settled(folder)
            except FileNotFoundError:
                del self._known[folder], self._now[folder]
        return self._now.get(folder)

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
                "log.dirs folder that holds such folders"
            ) from None
        except FileNotFoundError:
            if self._may_lack_paths:
                return
            raise FileNotFoundError(f"there is nothing at {path}") from None
        except PermissionError as error:
            if self._options.failed is None:
                raise
            self._options.failed(error)
            return
        if self._options.failed is not None:
            report_dangling_links(path, self._report)
        refuse_kafscale(f"{path}/{name}" for name in names)
        if self._wanted is None and path not in self._searched:
            self._searched.add(path)
            if any(is_partition_name(name) or SEGMENT_NAME.fullmatch(name) for name in names):
                report_beside(path, self._options.failed)
        if any(SEGMENT_NAME.fullmatch(n) and not object_name(f"{path}/{n}") for n in names):
            yield path
            return
        for name in names:
            if not (is_partition_name(name) and may_hold(name, self._wanted)):
                continue
            folder = f"{path}/{name}"
            # The id at the end of a name in tiered storage may look like a partition's number.
            if folder in self._known or not (is_topic_folder(name) and holds_objects(folder)):
                yield folder

    def _listed(self, folder: str) -> Listing | None:
        known = self._known.get(folder)
        try:
            if known is not None and not known.may_be_old:
                try:
                    if known.is_of(os.stat(folder)):  # noqa: PTH116
                        return _grown(known)
                except FileNotFoundError:
                    pass  # the last segment has been renamed since, or the folder is gone
            if self._options.failed is not None:
                report_dangling_links(folder, self._report)
            return list_folder(folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if self._options.failed is None:
                raise
            if error.errno != errno.ELOOP:  # it has been reported as a link to nothing
                self._options.failed(error)
            return None

    def _report(self, name: str, why: str) -> None:
        assert self._options.failed is not None
        self._options.failed(LeftOutError(f"{name}: {why}"))

    def _remote(self, files: dict[str, StoredFile]) -> dict[str, Listing]:
        """Remote folders of brokers, with their files; there may be no segment yet."""
        folders: dict[str, list[StoredFile]] = {}
        snapshots: dict[str, list[StoredFile]] = {}
        for path in sorted(files):
            file = files[path]
            if file.is_local or object_name(path) is not None:
                continue
            if SEGMENT_NAME.fullmatch(file.name):
                folders.setdefault(file.folder, []).append(file)
            elif SNAPSHOT_NAME.fullmatch(file.name):
                snapshots.setdefault(file.folder, []).append(file)
        found = served(segments_of(logs, files) for logs in folders.values())
        return {
            folder: Listing(
                folder,
                segments,
                snapshots.get(folder, []),
                topic_id=self._remote_id(folder, files),
            )
            for folder, segments in zip(folders, found, strict=True)
        }

    def _remote_id(self, folder: str, files: dict[str, StoredFile]) -> str | None:
        """The topic's id in a remote folder, read again once the file has changed."""
        file = files.get(f"{folder}/{PARTITION_METADATA}")
        if file is None:
            return None
        state = (file.size, file.modified_ns)
        if self._ids.get(folder, ("", ()))[1] != state:
            self._ids[folder] = (topic_id_in(folder, files), state)
        return self._ids[folder][0]


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
