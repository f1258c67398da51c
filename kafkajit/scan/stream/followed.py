"""The partitions that a stream follows, as they were at the last look."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from kafkajit.errors import KafkaJitError, LeftOutError
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.log_path import parse_log_path
from kafkajit.places.named import Place
from kafkajit.scan.stream.folders import Folders
from kafkajit.scan.stream.listing import Listing
from kafkajit.scan.stream.options import StreamOptions
from kafkajit.scan.stream.partition import Partition
from kafkajit.scan.stream.reports import Reports

logger = logging.getLogger("kafkajit")

# How often folders are listed again because files are gone before they have been read.
_ATTEMPTS = 9
# A broker swaps segments, and moves a log to another folder, within milliseconds.
SETTLE_SECONDS = 2.0
_PAUSE_SECONDS = 0.02

Found = TypeVar("Found")


class Followed:
    """The partitions of a stream, each with what has been seen of it."""

    def __init__(self, options: StreamOptions, reports: Reports) -> None:
        self._options = options
        self._reports = reports
        self._folders = Folders(options.scan, options.topics)
        self._places: dict[str, Place] = {}  # by folder
        self.now: dict[Place, Partition] = {}
        self.busy: set[Place] = set()  # a segment is being swapped, or has not come yet
        self.unsettled: dict[Place, str] = {}  # of these, what keeps a partition from being read
        self._lacking: dict[Place, float] = {}  # since when partitions have had no log
        self._missed: set[Place] = set()  # that were looked for a second time
        self._ends: dict[Place, int] = {}  # of partitions that are gone, when they were seen last

    def again(self, partition: Partition, reached: int) -> bool:
        """Look at a partition again, which has been read up to an offset; False if it is gone."""
        listing = self._folders.again(partition.listing.folder)
        if listing is None or not listing.segments:
            return False
        partition.update(listing, reached=reached)
        return True

    def looked(self, find: Callable[[], Found]) -> Found:
        """Return what `find` finds after a look at all folders.

        If a broker has deleted or replaced a segment since the look, the next look finds that.
        """
        for _ in range(_ATTEMPTS):
            self.refresh()
            try:
                return find()
            except FileNotFoundError as error:
                logger.info("%s: the folders are listed again", error)
        self.refresh()
        return find()

    def settle(self) -> None:
        """Look at all folders until no segment is being swapped, as long as a broker takes.

        Raises:
            LeftOutError: a partition is still not to be read, and the query is to fail on a loss.
        """
        until = time.monotonic() + SETTLE_SECONDS
        self.refresh()
        while self.unsettled and time.monotonic() < until:
            time.sleep(_PAUSE_SECONDS)
            self.refresh()
        for why in self.unsettled.values():
            self._reports.wait(why)

    def settled(self, place: Place) -> Partition | None:
        """A partition that the last look did not find, by later ones; None if it is gone.

        A broker may have moved it from a folder that was not yet listed to one that was.

        Raises:
            LeftOutError: a segment is being swapped, and Spark would not plan the records again.
        """
        until = time.monotonic() + SETTLE_SECONDS
        while place not in self.now:
            if place not in self.busy:
                if place in self._missed:
                    break
                self._missed.add(place)
            elif time.monotonic() > until:
                if place in self.unsettled and place not in self._lacking:
                    raise LeftOutError(self.unsettled[place])
                break
            time.sleep(_PAUSE_SECONDS)
            self.refresh()
        return self.now.get(place)

    def refresh(self) -> None:
        """Look at all folders, until each partition has one."""
        until = time.monotonic() + SETTLE_SECONDS
        while True:
            listings = self._folders.refresh()
            both = self._in_two_folders(listings)
            if both is None:
                break
            if time.monotonic() > until:
                raise ValueError(
                    f"{both}: a stream reads one copy of each partition, so narrow the path, or "
                    "set the option topicId if the topic was deleted and made again"
                )
            time.sleep(_PAUSE_SECONDS)  # a broker moves a log to another disk
        self._take_over(listings)

    def _in_two_folders(self, listings: Sequence[Listing]) -> str | None:
        """The folders of a partition that has two, or None."""
        folders: dict[Place, str] = {}
        for listing in listings:
            place = self._place_of(listing)
            other = folders.setdefault(place, listing.folder)
            if other != listing.folder:
                return f"{other} and {listing.folder} both hold partition {place}"
        return None

    def _take_over(self, listings: Sequence[Listing]) -> None:
        found: dict[Place, Partition] = {}
        self.busy.clear()
        self.unsettled.clear()
        lacking: set[Place] = set()
        for listing in listings:
            place = self._place_of(listing)
            partition = self.now.get(place)
            if listing.is_swapping or not listing.segments:
                self.busy.add(place)
                if listing.is_swapping:
                    self.unsettled[place] = (
                        f"{listing.folder}: segments are being swapped or changed: if that was "
                        "interrupted, a broker or `kafkajit repair --apply` completes it"
                    )
                elif listing.lacks_log:
                    lacking.add(place)
                    self.unsettled[place] = (
                        f"{listing.folder} has files of a log, and no log: if a copy is being "
                        "made, wait for it; else restore the log, or leave its topic out"
                    )
            else:
                try:
                    if partition is None or partition.listing.folder != listing.folder:
                        partition = Partition(listing, self._options)
                    else:
                        partition.update(listing)
                except FileNotFoundError:  # deleted since it was listed
                    self.busy.add(place)
                except (OSError, KafkaJitError) as error:
                    if self._options.scan.failed is None:
                        raise
                    self._options.scan.failed(error)
                    self.busy.add(place)
            if partition is not None:
                found[place] = partition
        now = time.monotonic()
        self._lacking = {place: self._lacking.get(place, now) for place in lacking}
        self._missed -= found.keys()
        gone = self.now.keys() - found.keys()
        self._ends |= {place: self.now[place].end_offset for place in gone}
        self.now = found

    def report_lack(self, place: Place) -> None:
        """Report a partition without a log, once a broker would have made one.

        Raises:
            LeftOutError: the query is to fail on a loss.
        """
        since = self._lacking.get(place)
        if since is not None and time.monotonic() - since > SETTLE_SECONDS:
            self._reports.wait(self.unsettled[place])

    def was_read_to_its_end(self, place: Place, offset: int) -> bool:
        """Whether a partition that is gone had no record from an offset on at the last look."""
        return self._ends.get(place, MAX_INT64) <= offset

    def _place_of(self, listing: Listing) -> Place:
        """The topic and the partition in the names of a partition's files."""
        folder = listing.folder
        if folder not in self._places:
            file = listing.segments[0].log.path if listing.segments else f"{folder}/any"
            path = parse_log_path(file)
            if path.topic is None or path.partition is None:
                raise ValueError(
                    f"{folder} is not a partition's folder, whose name is TOPIC-PARTITION, such as "
                    "orders-0: a stream needs both"
                )
            self._places[folder] = Place(path.topic, path.partition)
        return self._places[folder]
