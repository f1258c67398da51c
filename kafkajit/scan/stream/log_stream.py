"""A stream over folders of logs: the offsets that each micro-batch reads, and its tasks.

    initial_offsets ─▶ latest_offsets(start, limits) ─▶ tasks(start, end) ─▶ tasks.read_stream_task

An offset of the stream is, as Spark's Kafka source prints it, the next offset to read of each
partition. The object lives as long as the query runs, and remembers what it has seen of the logs;
everything that a restart needs is in Spark's checkpoint. Two things therefore enter the checkpoint
before a record is read: where a new query begins, and where a partition that has come since begins.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from kafkajit.errors import KafkaJitError, OffsetOutOfRangeError
from kafkajit.format.log_path import parse_log_path
from kafkajit.format.ranges import Range
from kafkajit.places.named import Place, nothing_of
from kafkajit.scan.options import EARLIEST, LATEST, READ_COMMITTED
from kafkajit.scan.plan import Split, offset_for_timestamp
from kafkajit.scan.stream.behind import behind_from, metrics
from kafkajit.scan.stream.folders import Folders, places_of
from kafkajit.scan.stream.limits import Unread, admitted
from kafkajit.scan.stream.listing import Listing
from kafkajit.scan.stream.options import Limits, StreamOptions
from kafkajit.scan.stream.partition import Partition
from kafkajit.scan.stream.tasks import ON_LOSS, plan_tasks
from kafkajit.scan.stream.transactions import Transactions
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import PERMISSIVE

logger = logging.getLogger("kafkajit")

# Offsets by topic and partition, as in JSON.
StreamOffsets = dict[str, dict[str, int]]

# How often a folder is listed again before offsets count as gone.
_LOOKS = 3
# How often they are listed again because files are gone before they have been read.
_ATTEMPTS = 9

Found = TypeVar("Found")


class LogStream:
    """The records of folders of logs, as they come."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._folders = Folders(options.scan, options.topics)
        self._partitions: dict[Place, Partition] = {}
        self._places: dict[str, Place] = {}  # by folder
        self._busy: set[Place] = set()  # a segment is being swapped, or has not come yet
        self._transactions: dict[Place, Transactions] = {}
        self._initial: StreamOffsets | None = None
        self._newest: StreamOffsets = {}  # the end of the newest micro-batch
        self._is_new = False
        self._target: dict[Place, int] | None = None
        self._warned: set[str] = set()
        self._turn = 0

    def initial_offsets(self) -> StreamOffsets:
        """The offsets at which a new query begins; the same however often it is called."""
        if self._initial is None:
            begins = self._looked(self._begins)
            if not begins:
                logger.info("%s: no partition has a segment yet", places_of(self._options.scan))
            self._initial = to_json(begins)
            self._is_new = True
        return self._initial

    def latest_offsets(self, start: StreamOffsets, limits: Limits | None) -> StreamOffsets:
        """The offsets at which the next micro-batch ends; without limits it reads everything."""
        if self._is_new and limits is not None:
            # The first micro-batch reads nothing: it stores where the query begins. If it failed
            # and was started anew, "latest" would be another place, and records would be lost.
            self._is_new = False
            self._newest = start
            return start
        self._is_new = False
        found = self._looked(lambda: self._ends(from_json(start), limits))
        self._turn += 1
        self._newest = to_json(found)
        return self._newest

    def _ends(self, start: dict[Place, int], limits: Limits | None) -> dict[Place, int]:
        ends = dict(start)
        unread: dict[Place, Unread] = {}
        for place, first in ends.items():
            found = self._unread(place, first)
            if found is not None:
                unread[place] = found
        for place, partition in self._partitions.items():
            if place not in ends and (self._target is None or place in self._target):
                ends[place] = partition.start_offset
                if limits is None:
                    unread[place] = Unread(
                        partition, partition.start_offset, self._end(place, partition.start_offset)
                    )
        places = [place for place, part in unread.items() if part.first < part.end]
        parts = [unread[place] for place in places]
        found_ends = [part.end for part in parts]
        if limits is not None:
            # Both halves of a damaged batch would have a row that reports it.
            scan = self._options.scan
            may_cut = scan.kind == "records" and scan.mode != PERMISSIVE
            found_ends = admitted(parts, limits, self._turn, may_cut=may_cut)
        ends |= {place: part.first for place, part in unread.items()}
        ends |= dict(zip(places, found_ends, strict=True))
        return ends

    def freeze(self) -> None:
        """Let later micro-batches end where the logs end now."""
        self._refresh()
        self._target = {place: it.end_offset for place, it in self._partitions.items()}

    def reported_offsets(self) -> StreamOffsets:
        """The offsets behind all records that were there at the last look."""
        return to_json({place: it.end_offset for place, it in self._partitions.items()})

    def unsound_tails(self) -> Iterator[tuple[str, StoredFile, int]]:
        """The partitions whose last log does not end in a sound batch, and where that begins."""
        for place, partition in sorted(self._partitions.items()):
            tail = partition.unsound_tail
            if tail is not None:
                yield str(place), *tail

    def metrics(self) -> dict[str, str]:
        """Metrics of what lies behind the newest micro-batch, as it was at the last look."""
        ends = from_json(self._newest)
        return metrics(
            [
                behind_from(partition, ends.get(place, partition.start_offset))
                for place, partition in self._partitions.items()
            ]
        )

    def tasks(self, start: StreamOffsets, end: StreamOffsets) -> list[list[Split]]:
        """The tasks that read the records between two offsets of the stream."""
        self._is_new = False
        if start == end:
            return []
        return self._looked(lambda: self._tasks(from_json(start), from_json(end)))

    def _tasks(self, begins: dict[Place, int], ends: dict[Place, int]) -> list[list[Split]]:
        ranges = []
        for place, behind in ends.items():
            first = begins.get(place)
            partition = self._partitions.get(place)
            if first is None and partition is not None:
                first = partition.start_offset
            if first is None or first < behind:
                ranges += self._range(place, first or 0, behind)
        return plan_tasks(ranges, self._options.scan)

    def commit(self, end: StreamOffsets) -> None:
        """Forget what was needed only for records before these offsets."""
        for place, offset in from_json(end).items():
            if place in self._transactions:
                self._transactions[place].forget(offset)

    def _range(
        self, place: Place, first: int, behind: int
    ) -> list[tuple[Partition, int, int, Transactions | None]]:
        """A range of offsets to read of a partition, without what is gone."""
        found = self._unread(place, first, behind)
        if found is None or found.first >= min(found.end, behind):
            return []
        transactions = None
        if self._options.scan.isolation_level == READ_COMMITTED:
            self._end(place, found.first)
            transactions = self._transactions[place]
        return [(found.partition, found.first, min(found.end, behind), transactions)]

    def _looked(self, find: Callable[[], Found]) -> Found:
        """Return what `find` finds after a look at all folders.

        If a broker has deleted or replaced a segment since the look, the next look finds that.
        """
        for _ in range(_ATTEMPTS):
            self._refresh()
            try:
                return find()
            except FileNotFoundError as error:
                logger.info("%s: the folders are listed again", error)
        self._refresh()
        return find()

    def _refresh(self) -> None:
        """Look at all folders."""
        found: dict[Place, Partition] = {}
        self._busy.clear()
        folders: dict[Place, str] = {}
        for listing in self._folders.refresh():
            place = self._place_of(listing)
            if place in folders:
                raise ValueError(
                    f"{folders[place]} and {listing.folder} both hold partition {place}: a stream "
                    "reads one copy of each partition, so narrow the path, or set the option "
                    "topicId if the topic was deleted and made again"
                )
            folders[place] = listing.folder
            partition = self._partitions.get(place)
            if listing.is_swapping or not listing.segments:
                self._busy.add(place)
                if listing.is_swapping:
                    self._warn(
                        f"{listing.folder}: waits until segments are no longer swapped or changed: "
                        "if that was interrupted, a broker or `kafkajit repair --apply` completes "
                        "it"
                    )
            else:
                try:
                    if partition is None or partition.listing.folder != listing.folder:
                        partition = Partition(listing, self._options)
                    else:
                        partition.update(listing)
                except FileNotFoundError:  # deleted since it was listed
                    self._busy.add(place)
                except (OSError, KafkaJitError) as error:
                    if self._options.scan.failed is None:
                        raise
                    self._options.scan.failed(error)
                    self._busy.add(place)
            if partition is not None:
                found[place] = partition
        self._partitions = found

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

    def _begins(self) -> dict[Place, int]:
        """The offsets at which a new query begins; it looks at startingOffsets only once."""
        found = {*self._partitions, *self._busy}
        topics = {place.topic for place in found}
        missing = [
            str(Place(topic, partition))
            for topic, partitions in self._options.starting.offsets.items()
            for partition in partitions
            if Place(topic, partition) not in found
        ]
        missing += (
            self._options.starting.offsets.keys()
            - topics
            - {one.rpartition("-")[0] for one in missing}
        )
        if missing:
            by = ", which startingOffsets names,"
            raise nothing_of(sorted(missing), found, self._options.scan.paths, by)
        return {place: self._begin(place) for place in self._partitions}

    def _begin(self, place: Place) -> int:
        """The offset at which a new query begins to read a partition."""
        partition = self._partitions[place]
        offset = self._options.starting.of(*place)
        timestamp = self._options.scan.starting_timestamp
        if timestamp is not None:
            at = offset_for_timestamp(partition.segments, timestamp, self._options.scan)
            offset = LATEST if at is None else at
        if offset == EARLIEST:
            return partition.start_offset
        if offset == LATEST:
            return self._end(place, partition.end_offset)
        return offset

    def _end(self, place: Place, first: int) -> int:
        """The offset up to which a partition may be read now, from an offset on."""
        partition = self._partitions[place]
        if self._options.scan.isolation_level != READ_COMMITTED:
            return partition.end_offset
        known = self._transactions.get(place)
        if known is None or not known.serves(partition, first):
            known = self._transactions[place] = Transactions(partition, first, self._options)
        stable = known.stable_end()
        if stable < first and partition.end_offset == first:
            # Transactions from the last stable offset on may have been aborted before `first`.
            self._transactions[place] = Transactions(partition, stable, self._options)
            self._transactions[place].stable_end()
        return stable

    def _unread(self, place: Place, first: int, behind: int | None = None) -> Unread | None:
        """The unread offsets of a partition, once those that are gone have been reported."""
        partition = self._partitions.get(place)
        if partition is None:
            if place not in self._busy:
                self._report_loss(
                    f"partition {place} is gone, and with it its offsets from {first} on",
                    places_of(self._options.scan),
                )
            return None
        needed = first if behind is None else behind
        for _ in range(_LOOKS):
            if partition.start_offset <= first and needed <= partition.end_offset:
                break
            listing = self._folders.again(partition.listing.folder)
            if listing is None or not listing.segments:
                break
            partition.update(listing, reached=needed)
        folder = partition.listing.folder
        if first < partition.start_offset:
            self._report_loss(
                f"offsets {first} to {partition.start_offset - 1} of {place} are gone: its log now "
                f"begins at {partition.start_offset}",
                folder,
            )
            first = partition.start_offset
        elif needed > partition.end_offset:
            self._report_loss(
                f"offset {needed} of {place} has been reached, but its log now ends at "
                f"{partition.end_offset}: it was truncated, or made anew",
                folder,
            )
            first = min(first, partition.end_offset)
        end = self._end(place, first)
        if self._target is not None:
            end = min(end, self._target.get(place, first))
        asked = Range(first, (end if behind is None else min(end, behind)) - 1)
        for gap in partition.listing.gaps:
            if gap & asked:
                self._report_loss(
                    f"offsets {gap.first} to {gap.last} of {place} are gone: neither tiered "
                    "storage nor the broker has them",
                    folder,
                )
        return Unread(partition, first, max(first, end))

    def _report_loss(self, what: str, path: str) -> None:
        if self._options.fail_on_data_loss:
            raise OffsetOutOfRangeError(what, path=path, advice=ON_LOSS)
        self._warn(f"{path}: {what}")

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            failed = self._options.scan.failed
            if failed is None:
                logger.warning("%s", text)
            else:
                failed(KafkaJitError(text))


def to_json(offsets: Mapping[Place, int]) -> StreamOffsets:
    """Offsets with sorted keys, because Spark compares their texts.

    >>> to_json({Place("b", 10): 5, Place("b", 2): 0, Place("a", 0): 7})
    {'a': {'0': 7}, 'b': {'2': 0, '10': 5}}
    """
    found: StreamOffsets = {}
    for topic, partition in sorted(offsets):
        found.setdefault(topic, {})[str(partition)] = offsets[Place(topic, partition)]
    return found


def from_json(offsets: StreamOffsets) -> dict[Place, int]:
    """The offsets of each partition.

    >>> from_json({"a": {"0": 7}})
    {Place(topic='a', partition=0): 7}
    """
    return {
        Place(topic, int(partition)): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }
