"""The logs at the sources: one for each partition, out of tiered storage or a backup.

Topic and partition become the name of a folder, and a bucket is not to be trusted with that: a name
that no topic can have is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from kafkajit.errors import CorruptCheckpointError, InvalidOffsetError, KafkaJitError, LeftOutError
from kafkajit.format.amounts import offsets_are, offsets_text
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.log_path import LOG_SUFFIX, SNAPSHOT_SUFFIX, SWAP_SUFFIX, parse_log_path
from kafkajit.format.ranges import Range
from kafkajit.format.tiered_names import PINTEREST_MARKS, object_name
from kafkajit.format.topic import check_topic
from kafkajit.log.leaps import unsure_end
from kafkajit.log.log import checkpointed_offset
from kafkajit.log.missing_segments import has_tiered, missing_around
from kafkajit.log.open_segment import logger
from kafkajit.log.overlap_losses import Lost, lost_offsets
from kafkajit.log.overlaps import ends_of, served
from kafkajit.log.remote_log_metadata import TOPIC as STATES_TOPIC
from kafkajit.log.remote_log_metadata import without_unreadable
from kafkajit.log.segment import Segment
from kafkajit.log.segment_gaps import Gaps, come_text, gaps_between
from kafkajit.log.tiered_copies import differing
from kafkajit.log.tiered_segments import Epochs, epochs_of, partitions_of
from kafkajit.places.left_out import waiting_folders
from kafkajit.places.locations import find_segments
from kafkajit.places.named import Named
from kafkajit.places.tiered_files import TieredFile
from kafkajit.places.wanted import any_partition
from kafkajit.state.checkpoints import START_OFFSETS
from kafkajit.state.partition_metadata import PARTITION_METADATA, parse_partition_metadata
from kafkajit.storage.source import as_bytes
from kafkajit.storage.stored_file import StoredFile, has_grown
from kafkajit.topics import TOPICS
from kafkajit.upkeep.restore.options import RestoreOptions
from kafkajit.upkeep.restore.unread_segments import UnreadSegment, UnreadSegments

# The gaps between segments that a plan lists: compaction makes many.
_MOST_LISTED = 20
_AGAIN = "restore it again into another folder"
_WAITING = "a broker deletes it, moves it or no longer has it; a path that names it restores it"


@dataclass(frozen=True, repr=False)
class SourceLog:
    """A partition's log at a source."""

    topic: str
    partition: int
    segments: list[Segment]
    files: Mapping[str, StoredFile]  # all files at the sources, by their paths
    missing: list[Range]  # offsets between segments
    given: list[Segment]  # all of its segments, some of which may overlap
    unread: list[UnreadSegment] = field(default_factory=list)

    def check(self, asked: Range) -> None:
        """Raise the error of a segment that cannot be read, if it may have offsets of these."""
        for one in self._unread(asked):
            if not one.is_usual and one.is_damage(self.segments):
                offsets = one.offsets(self.segments)
                if offsets.first > max(self.segments[0].base_offset, self.start_offset):
                    end = offsets.first
                    one.error.advice = f"with --ending-offset {end} the log ends before it"
                elif offsets.last < MAX_INT64:
                    start = offsets.last + 1
                    one.error.advice = f"with --starting-offset {start} the log begins after it"
                raise one.error
        for path, offsets in self._lost:
            base = parse_log_path(path).base_offset or 0
            # With a wrong bit an offset may be negative: the name tells where it should be.
            where = offsets if offsets.first >= 0 else Range(base, base)
            if where & asked:
                lost = offsets & asked or offsets
                raise InvalidOffsetError(
                    f"segments overlap, and a broker does not read {offsets_text(*lost)}, which "
                    "only this one has",
                    path=path,
                    advice="`kafkajit repair --salvage` on a copy of the folder keeps them",
                )

    @cached_property
    def _lost(self) -> list[Lost]:
        """The offsets of segments that are hidden, and that no other segment has."""
        return lost_offsets(self.given, self.segments)

    def losses(self, asked: Range) -> Iterator[KafkaJitError]:
        """Errors that name the parts of it with these offsets that the sources lack."""
        between = gaps_between(self.segments) if self.missing else Gaps([], [])
        damaged: list[Exception] = []
        gaps = [*between.missing, *missing_around(self.segments, damaged.append)]
        yield from (one for one in damaged if isinstance(one, KafkaJitError))
        for gap in gaps:
            if Range(gap.first, gap.last) & asked:
                yield LeftOutError(f"{self.place}: {gap.text}")
        for come in between.come:
            if come & asked:
                yield LeftOutError(f"{self.place}: {come_text(come)}: {_AGAIN}")
        # A local segment that tiered storage completes is cut where it is torn.
        for segment in [] if has_tiered(self.segments) else self.segments[:-1]:
            if segment.offsets & asked and has_grown(segment.log):
                yield LeftOutError(f"{segment.log.path} has grown since it was listed: {_AGAIN}")
        unsure = unsure_end(self.segments, check_crcs=True)
        if unsure is not None and unsure.end_offset <= asked.last:
            yield InvalidOffsetError(
                f"{unsure.text}, and it is restored as it is",
                path=self.place,
                advice=f"with --ending-offset {unsure.end_offset} the log ends before it",
            )
        for copy in differing(self.segments, asked):
            yield LeftOutError(f"{copy.read.log.path}: {copy.text}")
        for one in self._unread(asked):
            if not (one.is_usual or one.has_twin(self.segments)):
                yield one.error

    def _unread(self, asked: Range) -> Iterator[UnreadSegment]:
        return (one for one in self.unread if one.offsets(self.segments) & asked)

    @property
    def notes(self) -> Iterator[str]:
        """The parts of it that are not restored, as lines of a plan."""
        for one in self.unread:
            if one.is_usual:
                yield f"left out: {one.error.path}, its state in {STATES_TOPIC} is {one.state}"
            elif not one.is_damage(self.segments):
                yield f"left out: {one.error}"
        if self.segments[0].offsets.last < self.start_offset:
            yield (
                f"left out: segments before {self.start_offset}, the log start offset of the source"
            )
        yield from _hidden(self.given, self.segments)
        for first, last in self.missing[:_MOST_LISTED]:
            yield f"missing: {offsets_are(first, last)} in no source"
        rest = self.missing[_MOST_LISTED:]
        if rest:
            offsets = sum(last - first + 1 for first, last in rest)
            yield f"missing: {offsets:,} offsets in {len(rest):,} more gaps between segments"

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def place(self) -> str:
        """The folder of its first segment."""
        return self.segments[0].log.folder

    @property
    def is_closed(self) -> bool:
        """Whether a plugin has copied its last segment, which a broker had closed before."""
        folder = self.segments[-1].log.folder
        return any(f"{folder}/{mark}" in self.files for mark in PINTEREST_MARKS)

    @cached_property
    def topic_id(self) -> str | None:
        """The topic's id: in the names of tiered objects, or in partition.metadata."""
        for segment in self.segments:
            name = object_name(segment.log.path)
            if name is not None:
                return name.topic_id
        file = self._beside(PARTITION_METADATA)
        if file is None:
            return None
        try:
            (row,) = parse_partition_metadata(as_bytes(file.read()), file.path).to_pylist()
        except CorruptCheckpointError as error:
            logger.warning("%s: the log is restored without the topic's id", error)
            return None
        return str(row["topicId"])

    @cached_property
    def start_offset(self) -> int:
        """The log start offset that a broker's log-start-offset-checkpoint has, or 0."""
        starts = []
        # Segments of tiered storage may hide those of a broker's folder.
        every = [copy for one in self.given for copy in (one, *one.copies)]
        for log in {segment.log.folder: segment.log for segment in every}.values():
            if not isinstance(log, TieredFile):
                file = self.files.get(f"{log.folder.rpartition('/')[0]}/{START_OFFSETS}")
                file = file or log.above(START_OFFSETS)
                starts.append(checkpointed_offset(file, self.topic, self.partition))
        return max(starts, default=0)

    def epochs(self, segment: Segment) -> Epochs:
        """The leader epochs up to the end of a segment, as far as they are known."""
        return epochs_of(segment.log, self.files)

    def snapshot(self, segment: Segment, offset: int) -> StoredFile | None:
        """The producers at an offset, which is the end of this segment or the beginning."""
        log = segment.log
        if not isinstance(log, TieredFile):
            return self.files.get(f"{log.folder}/{offset:020d}{SNAPSHOT_SUFFIX}")
        # A plugin copies the snapshot of the segment's end.
        if offset == segment.base_offset:
            return None
        return self.files.get(log.path.removesuffix(LOG_SUFFIX) + SNAPSHOT_SUFFIX)

    def _beside(self, name: str) -> StoredFile | None:
        log = self.segments[0].log
        known = self.files.get(f"{log.folder}/{name}")
        return known or next((file for file in log.beside() if file.name == name), None)


@dataclass(frozen=True)
class Found:
    """The logs to restore, and the partitions that are left out."""

    logs: list[SourceLog]
    left_out: list[tuple[str, str]]  # the partition, and why
    unread: list[Exception]  # of partitions that lack files, or of which no segment can be read
    unsearched: list[KafkaJitError]  # those of folders of segments that no path names


def find_logs(sources: Iterable[str], options: RestoreOptions) -> Found:
    """Find the logs at the sources that the options choose.

    Brokers' own topics are left out unless they are named. A partition that is there twice is an
    error.
    """
    sources = list(sources)
    unread = UnreadSegments()
    logs, files = find_segments(
        sources,
        keys=options.keys,
        wanted=any_partition if options.named else None,
        failed=unread.fail,
        unfinished=unread.add_unfinished,
    )
    every = list(_source_logs(partitions_of(without_unreadable(logs), files), files))
    alone = _add_unread(every, unread.found(logs))
    named = Named(options.named.topics | options.topic_ids.keys(), options.named.partitions)
    names = [(log.topic, log.partition) for log in every]
    names += [(one.name.topic, one.name.partition) for one in alone]
    named.check(names, sources)
    parts = list(unread.parts(options.named))
    lacking = {place for _, places in parts for place in places}
    chosen, left_out = [], []
    for log in every:
        if (log.topic, log.partition) in lacking:
            continue
        reason = _why_left_out(log.topic, log.partition, options)
        if reason is None:
            check_topic(log.topic)
            chosen.append(log)
        elif reason:
            left_out.append((log.name, reason))
    counts = Counter(log.name for log in chosen)
    for log in chosen:
        if counts[log.name] > 1:
            places = [f"{one.place}" for one in chosen if one.name == log.name]
            raise KafkaJitError(
                f"{log.name} is in several places, as logs of their own: name the one to restore",
                path=", ".join(sorted(places)),
            )
    if (options.starting_offset, options.ending_offset) != (None, None) and len(chosen) > 1:
        raise ValueError(
            f"a starting or ending offset is for one partition, and {len(chosen)} are chosen: "
            "name it with --partition TOPIC-PARTITION"
        )
    _check_swapped(chosen)
    chosen.sort(key=lambda log: (log.topic, log.partition))
    lost: list[Exception] = [error for error, _ in parts]
    lost += [
        one.error
        for one in alone
        if not one.is_usual and _why_left_out(one.name.topic, one.name.partition, options) is None
    ]
    if not options.named:
        waiting = {folder for source in sources for folder in waiting_folders(source)}
        left_out += [(folder, _WAITING) for folder in waiting]
    return Found(chosen, sorted(left_out), lost, unread.beside)


def _add_unread(every: list[SourceLog], unread: Iterable[UnreadSegment]) -> list[UnreadSegment]:
    """Add the segments that cannot be read to their logs; return those of other partitions."""
    alone = []
    for one in unread:
        id_ = one.name.topic_id
        home = next(
            (log for log in every if (log.topic_id, log.partition) == (id_, one.name.partition)),
            None,
        )
        if home is None:
            alone.append(one)
        else:
            home.unread.append(one)
    return alone


def _source_logs(
    partitions: list[list[Segment]], files: Mapping[str, StoredFile]
) -> Iterator[SourceLog]:
    """The log of each partition: what a broker serves of segments that overlap."""
    visible = [
        segments if segments == given else [*_from_their_first(segments)]
        for given, segments in zip(partitions, served(partitions, warns=False), strict=True)
    ]
    # They are looked up at once, because that takes two requests for a remote segment.
    for given, segments, ends in zip(partitions, visible, ends_of(visible), strict=True):
        path = given[0].path
        if path.topic is None or path.partition is None:
            raise KafkaJitError(
                "the folder's name is not TOPIC-PARTITION, such as orders-0: rename a copy of it",
                path=given[0].log.folder,
            )
        missing = [*_missing(segments, ends)]
        yield SourceLog(path.topic, path.partition, segments, files, missing, given)


def _from_their_first(segments: list[Segment]) -> Iterator[Segment]:
    """The segments that a broker serves: each from an offset on, and all of it up to its end."""
    for segment in segments:
        if segment.cut:
            yield replace(segment, cut=Range(segment.cut.first))


def _missing(segments: list[Segment], ends: list[int]) -> Iterator[Range]:
    """The offsets between segments that no source has, as far as the ends are known."""
    for (one, other), end in zip(pairwise(segments), ends, strict=False):
        first, last = max(other.base_offset, other.cut.first), min(end, one.cut.last)
        is_known = last >= one.base_offset or not one.log.size
        if is_known and last + 1 < first:
            yield Range(last + 1, first - 1)


def _hidden(given: list[Segment], visible: list[Segment]) -> Iterator[str]:
    """The parts of segments that no consumer gets."""
    served_of = {segment.log.path: segment.cut for segment in visible}
    for segment in given:
        cut, path, base = served_of.get(segment.log.path), segment.log.path, segment.base_offset
        why = "because a broker serves segments before it"
        if cut is None and segment.log.size:
            yield f"left out: {path}, {why}"
        elif cut is not None and cut.first > max(base, segment.cut.first):
            yield f"left out: {path} before offset {cut.first}, {why} up to there"


def _why_left_out(topic: str, partition: int, options: RestoreOptions) -> str | None:
    """Why a log is not restored; None if it is, empty if nobody asked for it."""
    if options.named:
        return None if options.named.has(topic, partition) else ""
    if topic == TOPICS["cluster_metadata"]:
        return "the metadata of the cluster that it comes from"
    if topic.startswith("__"):
        return f"a topic of the brokers' own; --topic {topic} restores it"
    return None


def _check_swapped(logs: list[SourceLog]) -> None:
    """Raise an error if a broker was stopped while it swapped segments: some may be gone."""
    folders = {segment.log.folder for log in logs for segment in log.segments}
    for path, file in sorted(logs[0].files.items()) if logs else ():
        if file.folder in folders and file.name.endswith(SWAP_SUFFIX):
            raise KafkaJitError(
                "a broker was stopped while it swapped segments: run `kafkajit repair` on a copy "
                "of the folder first",
                path=path,
            )
