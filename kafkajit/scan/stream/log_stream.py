"""A stream over folders of logs: the offsets that each micro-batch reads, and its tasks.

    initial_offsets ─▶ latest_offsets(start, limits) ─▶ tasks(start, end) ─▶ tasks.read_stream_task

An offset of the stream is, as Spark's Kafka source prints it, the next offset to read of each
partition. The object lives as long as the query runs, and remembers what it has seen of the logs;
everything that a restart needs is in Spark's checkpoint. Two things therefore enter the checkpoint
before a record is read: where a new query begins, and where a partition that has come since begins.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kafkajit.errors import LeftOutError
from kafkajit.format.ranges import ALL, Range
from kafkajit.log.beginnings import damage_at
from kafkajit.log.footing import Footing
from kafkajit.log.missing_segments import missing_around
from kafkajit.log.overlap_losses import lost_offsets
from kafkajit.places.named import Place, nothing_of
from kafkajit.scan.options import EARLIEST, LATEST
from kafkajit.scan.plan import Split, times_in
from kafkajit.scan.stream.behind import behind_from, metrics
from kafkajit.scan.stream.folders import places_of
from kafkajit.scan.stream.followed import Followed
from kafkajit.scan.stream.gaps import Gaps
from kafkajit.scan.stream.histories import Histories, Parting
from kafkajit.scan.stream.limits import Unread, admitted
from kafkajit.scan.stream.offsets import OffsetsParser, StreamOffsets, planned_first, to_json
from kafkajit.scan.stream.options import Limits, StreamOptions
from kafkajit.scan.stream.partition import Partition
from kafkajit.scan.stream.reports import Reports
from kafkajit.scan.stream.stable_ends import StableEnds
from kafkajit.scan.stream.tasks import OffsetRange, plan_tasks
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import PERMISSIVE

logger = logging.getLogger("kafkajit")

# How often a folder is listed again before offsets count as gone, and how long that takes: a copy
# that is made anew lacks its newest offsets for a moment.
_LOOKS = 3
_LOOK_SECONDS = 0.3


class LogStream:
    """The records of folders of logs, as they come."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._reports = Reports(options)
        self._followed = Followed(options, self._reports)
        self._parted: set[Place] = set()  # go on in another log, or at another place of one
        self._short: set[Place] = set()  # end before what was read of them
        self._histories = Histories()
        self._offsets = OffsetsParser()
        self._gaps = Gaps(options, self._reports)
        self._stable_ends = StableEnds(options, self._gaps, self._reports)
        self._initial: StreamOffsets | None = None
        self._newest: StreamOffsets = {}  # the end of the newest micro-batch
        self._is_new = False
        self._target: dict[Place, int] | None = None
        self._turn = 0

    def initial_offsets(self) -> StreamOffsets:
        """The offsets at which a new query begins; the same however often it is called."""
        if self._initial is None:
            self._followed.settle()
            self._initial = self._followed.looked(lambda: self._json_of(self._begins(), {}, {}))
            if not self._initial:
                logger.info("%s: no partition has a segment yet", places_of(self._options.scan))
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
        begins, footings = self._offsets.parsed(start)
        self._newest = self._followed.looked(
            lambda: self._json_of(self._ends(begins, footings, limits), begins, footings)
        )
        self._turn += 1
        return self._newest

    def _json_of(
        self,
        ends: Mapping[Place, int],
        begins: Mapping[Place, int],
        footings: Mapping[Place, Footing],
    ) -> StreamOffsets:
        """Offsets, and what they stand on: another text than before means records to Spark."""
        found = {}
        for place, end in ends.items():
            partition = self._followed.now.get(place)
            is_new = place not in footings or end != begins.get(place) or place in self._parted
            if is_new and partition is not None:
                before = None if place in self._parted else footings.get(place)
                found[place] = self._histories.footing(place, partition, end, before)
            elif place in footings:
                found[place] = footings[place]
        return self._offsets.written(ends, found)

    def _ends(
        self,
        start: Mapping[Place, int],
        footings: Mapping[Place, Footing],
        limits: Limits | None,
    ) -> dict[Place, int]:
        self._parted.clear()
        ends = dict(start)
        unread: dict[Place, Unread] = {}
        for place, first in ends.items():
            found = self._unread(place, first, footings.get(place))
            if found is not None:
                unread[place] = found
        for place, partition in self._followed.now.items():
            if place not in ends and (self._target is None or place in self._target):
                first = ends[place] = partition.start_offset
                found = None if limits is not None else self._unread(place, first, None)
                if found is not None:
                    unread[place] = found
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
        self._followed.settle()
        self._gaps.is_last_look = True
        self._target = {place: it.end_offset for place, it in self._followed.now.items()}

    def reported_offsets(self) -> StreamOffsets:
        """The offsets behind all records that were there at the last look."""
        return to_json({place: it.end_offset for place, it in self._followed.now.items()})

    def newest_offsets(self) -> StreamOffsets:
        """The offsets up to which all partitions may be read now."""
        now, newest = self._followed.now, self._stable_ends.newest
        return self._followed.looked(lambda: to_json({at: newest(at, now[at]) for at in now}))

    def unsound_tails(self) -> Iterator[tuple[str, StoredFile, int]]:
        """The partitions whose last log does not end in a sound batch, and where that begins."""
        for place, partition in sorted(self._followed.now.items()):
            tail = partition.unsound_tail
            if tail is not None:
                yield str(place), *tail

    def losses(self, start: StreamOffsets) -> Iterator[tuple[Place, str]]:
        """Lines about offsets from a start on that no micro-batch can have, or not for certain."""
        begins = self._offsets.parsed(start).ends
        for place, partition in sorted(self._followed.now.items()):
            read = partition.listing.segments
            given = [replace(segment, cut=ALL) for segment in read]
            begin = begins.get(place, partition.start_offset)
            asked = Range() if begin <= partition.start_offset else Range(begin)
            for lost in lost_offsets(given, read):
                if lost.offsets & asked:
                    yield place, f"{lost.path}: {lost.text}"
            for gap in missing_around(read):
                if Range(gap.first, gap.last) & asked:
                    yield place, f"{partition.listing.folder}: {gap.text}"
            for text in self._stable_ends.undecided(place, partition, begin):
                yield place, f"{partition.listing.folder}: {text}"

    def metrics(self) -> dict[str, str]:
        """Metrics of what lies behind the newest micro-batch, as it was at the last look."""
        ends = self._offsets.parsed(self._newest).ends
        return metrics(
            [
                behind_from(partition, ends.get(place, partition.start_offset))
                for place, partition in self._followed.now.items()
            ]
        )

    def tasks(self, start: StreamOffsets, end: StreamOffsets) -> list[list[Split]]:
        """The tasks that read the records between two offsets of the stream."""
        self._is_new = False
        if start == end:
            return []
        return self._followed.looked(lambda: self._tasks(start, end))

    def _tasks(self, start: StreamOffsets, end: StreamOffsets) -> list[list[Split]]:
        begins, stood_on = self._offsets.parsed(start)
        ends, stands_on = self._offsets.parsed(end)
        ranges = []
        for place, behind in ends.items():
            first, footing = begins.get(place), stands_on.get(place)
            partition = self._followed.now.get(place)
            is_anew = start == self._initial and self._options.begins_early(place)
            if partition is not None and (first is None or is_anew):
                first = partition.start_offset if first is None else first
                first = planned_first(first, stood_on.get(place), footing)
            if first is None or first < behind or stood_on.get(place) != footing:
                ranges += self._range(place, first or 0, behind, stood_on.get(place), footing)
        return plan_tasks(ranges, self._options.scan)

    def commit(self, end: StreamOffsets) -> None:
        """Forget what was needed only for records before these offsets."""
        for place, offset in self._offsets.parsed(end).ends.items():
            self._stable_ends.forget(place, offset)

    def _range(
        self,
        place: Place,
        first: int,
        behind: int,
        stood_on: Footing | None,
        stands_on: Footing | None,
    ) -> list[OffsetRange]:
        """A range of offsets to read of a partition, without what is gone."""
        found = self._unread(place, first, stood_on, behind, stands_on)
        if found is None or found.first >= min(found.end, behind):
            return []
        transactions = self._stable_ends.transactions(place, found.partition, found.first, behind)
        end = min(found.end, behind)
        footing = (stands_on if end == behind else None) or found.partition.footing(end)
        return [OffsetRange(found.partition, found.first, end, transactions, footing)]

    def _begins(self) -> dict[Place, int]:
        """The offsets at which a new query begins; it looks at startingOffsets only once."""
        found = {*self._followed.now, *self._followed.busy}
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
        known = self._options.starting.offsets
        later = {
            place: known[place.topic][place.partition]
            for place in self._followed.unsettled
            if known.get(place.topic, {}).get(place.partition, EARLIEST) >= 0
        }
        for place, why in self._followed.unsettled.items():
            if place not in later and self._options.begins_late(place):
                raise LeftOutError(f"{why}; until then {place} has no latest offset to begin at")
        return later | {place: self._begin(place) for place in self._followed.now}

    def _begin(self, place: Place) -> int:
        """The offset at which a new query begins to read a partition."""
        partition = self._followed.now[place]
        offset = self._options.starting.of(*place)
        timestamp = self._options.scan.starting_timestamp
        if timestamp is not None:
            at = times_in(partition.segments, self._options.scan).start(timestamp)
            missing = self._gaps.right_before(partition, partition.end_offset if at is None else at)
            if missing is not None:  # they may have the timestamp, too
                return missing
            offset = LATEST if at is None else at
        if offset == EARLIEST:
            return partition.start_offset
        if offset == LATEST:
            return self._stable_ends.newest(place, partition)
        if offset > partition.end_offset:
            end = partition.end_offset
            what = f"startingOffsets has offset {offset} of {place}, but its log ends at {end}"
            advice = f"with failOnDataLoss=false the query begins at offset {end}"
            self._reports.loss(what, partition.listing.folder, advice)
            return end
        damaged = damage_at(partition.segments, offset)
        return offset if damaged is None else max(damaged, partition.start_offset)

    def _unread(
        self,
        place: Place,
        first: int,
        stood_on: Footing | None,
        behind: int | None = None,
        stands_on: Footing | None = None,
    ) -> Unread | None:
        """The unread offsets of a partition, once those that are gone have been reported.

        Args:
            place: of the partition.
            first: the first unread offset.
            stood_on: what that stands on.
            behind: the end of the offsets, if they have been planned.
            stands_on: what that stands on.
        """
        self._followed.report_lack(place)
        partition = self._followed.now.get(place)
        may_come = behind is None and place in self._followed.busy
        if partition is None and not may_come:
            partition = self._followed.settled(place)
        if partition is None:
            if not may_come and not self._followed.was_read_to_its_end(place, first):
                self._reports.gone(place, first)
            return None
        positions = [(first, stood_on)] + ([] if behind is None else [(behind, stands_on)])
        parting, *planned = self._partings(place, partition, positions)
        folder = partition.listing.folder
        if parting is not None:
            self._reports.parting(place, first, parting, partition)
            if parting.is_short and behind is None:
                return Unread(partition, first, first)  # until it has other records, or these again
            first = partition.start_offset if parting.offset is None else parting.offset
            self._parted.add(place)
        if planned and planned[0] is not None:
            assert behind is not None
            self._reports.parting(place, behind, planned[0], partition)
            behind = planned[0].offset or first
        if first < partition.start_offset:
            self._reports.expired(place, first, partition)
            first = partition.start_offset
        end = self._stable_ends.of(place, partition, first, behind)
        if behind is None and self._is_listed_anew(place, partition, first):
            end = self._stable_ends.of(place, partition, first)
        if self._target is not None and behind is None:
            end = min(end, self._target.get(place, first))
        asked = Range(first, (end if behind is None else min(end, behind)) - 1)
        for gap in partition.listing.gaps:
            if gap & asked:
                self._reports.loss(
                    f"offsets {gap.first} to {gap.last} of {place} are gone: neither tiered "
                    "storage nor the broker has them",
                    folder,
                )
        if parting is None and stood_on is not None:
            self._reports.early(place, first, stood_on, partition)
        if behind is None:
            leap = partition.leap if first >= partition.end_offset else None
            if leap is not None:  # what is before it has been read
                self._reports.loss(leap, folder)
            end = self._end_before_gaps(place, partition, first, end)
        elif first < behind:
            end = min(end, behind)
            self._gaps.report(place, partition, first, end)
            if end < behind:
                self._reports.hidden(place, max(first, end), behind - 1, folder)
        return Unread(partition, first, max(first, end))

    def _end_before_gaps(self, place: Place, partition: Partition, first: int, end: int) -> int:
        found = self._gaps.end_before(place, partition, first, end)
        if not self._is_listed_anew(place, partition, first):
            return found
        return self._gaps.end_before(place, partition, first, end)

    def _is_listed_anew(self, place: Place, partition: Partition, first: int) -> bool:
        """List a partition again if its folder has segments that its listing lacks."""
        has_come = place in self._gaps.have_come
        return has_come and self._followed.again(partition, reached=first)

    def _partings(
        self,
        place: Place,
        partition: Partition,
        positions: Sequence[tuple[int, Footing | None]],
    ) -> list[Parting | None]:
        """Find where a log parts from what was read up to each position, after several looks."""
        (first, _), (needed, _) = positions[0], positions[-1]
        for look in range(_LOOKS + 1):
            found = [self._histories.parting(place, partition, *one) for one in positions]
            if look == _LOOKS or (partition.start_offset <= first and not any(found)):
                break
            if needed > partition.end_offset and place not in self._short:
                time.sleep(_LOOK_SECONDS / _LOOKS)
            if not self._followed.again(partition, reached=needed):
                break
        if any(found) and needed > partition.end_offset:
            self._short.add(place)
        else:
            self._short.discard(place)
        return found
