"""Segments of tiered storage that are not restored: their objects are damaged, or some are missing.

A copy without all of its objects is normal at a log's end, while a broker uploads a segment, and
for segments that a broker deletes: __remote_log_metadata has their states, if it is among the
sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafkajit.errors import KafkaJitError, LeftOutError, RemoteStorageError
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.log_path import parse_log_path
from kafkajit.format.ranges import Range
from kafkajit.format.tiered_names import LOG, ObjectName, object_name
from kafkajit.log.remote_log_metadata import (
    COPY_FINISHED,
    TOPIC,
    is_remote_log_metadata,
    noted_segments,
    segment_id,
)
from kafkajit.log.segment import Segment
from kafkajit.places.named import Named, Place
from kafkajit.storage.stored_file import StoredFile


@dataclass(frozen=True)
class UnreadSegment:
    """A segment of tiered storage that cannot be read."""

    name: ObjectName
    error: KafkaJitError
    is_unfinished: bool = False  # whether it lacks objects
    state: str | None = None  # in __remote_log_metadata

    @property
    def base_offset(self) -> int:
        return self.name.base_offset

    @property
    def is_usual(self) -> bool:
        """Whether a broker does not read it, either."""
        return self.state not in (None, COPY_FINISHED)

    def offsets(self, segments: Iterable[Segment]) -> Range:
        """The offsets that it may have: those up to the segment after it."""
        later = (one.base_offset for one in segments if one.base_offset > self.base_offset)
        return Range(self.base_offset, min(later, default=MAX_INT64 + 1) - 1)

    def is_damage(self, segments: Sequence[Segment]) -> bool:
        """Whether offsets are lost for certain, unlike those of a copy that has just begun.

        Segments that can be read may have the same offsets: another leader copies them again.
        """
        if not self.is_unfinished or self.state is not None or not segments:
            return True
        return self.base_offset < segments[-1].base_offset and not self.has_twin(segments)

    def has_twin(self, segments: Sequence[Segment]) -> bool:
        """Whether one of these segments, which is not the last, has its first offset."""
        return any(self.base_offset in range(*_ends(one)) for one in segments[:-1])


class UnreadSegments:
    """Collects the segments that a listing of the sources cannot read."""

    def __init__(self) -> None:
        self._damaged: list[tuple[ObjectName, KafkaJitError]] = []
        self._unfinished: list[str] = []
        self.beside: list[KafkaJitError] = []  # the errors of folders that no path names
        self._parts: list[Exception] = []  # those of other files and folders

    def fail(self, error: Exception) -> None:
        """Keep the error of a segment, of a folder beside, or of another file or folder."""
        if isinstance(error, LeftOutError) and error.is_beside:
            self.beside.append(error)
            return
        if isinstance(error, KafkaJitError) and not isinstance(error, LeftOutError):
            name = None if error.path is None else object_name(error.path)
            if name is not None:
                self._damaged.append((name, error))
                return
            if not isinstance(error, RemoteStorageError):
                return  # that segments are being swapped: the logs that have them are refused
            raise error
        if isinstance(error, FileNotFoundError):  # a source without segments may be a wrong path
            raise error
        self._parts.append(error)

    def parts(self, named: Named) -> Iterator[tuple[Exception, set[Place]]]:
        """The errors of other files and folders, and the partitions that lack them.

        Those of partitions that nobody asks for are left out.
        """
        for error in self._parts:
            paths = getattr(error, "places", ()) or (getattr(error, "filename", None) or "",)
            found = [_partition_at(path) for path in paths]
            lacking = {place for place in found if place is not None}
            if len(lacking) < len(found) or any(named.has(*place) for place in lacking):
                yield error, lacking

    def add_unfinished(self, stem: str) -> None:
        """Keep a segment without all of its objects."""
        self._unfinished.append(stem)

    def found(self, logs: Sequence[StoredFile]) -> Iterator[UnreadSegment]:
        """The segments, with their states if __remote_log_metadata is among the logs."""
        has_states = any(map(is_remote_log_metadata, logs))
        noted = noted_segments(logs) if has_states and (self._damaged or self._unfinished) else {}
        for name, error in self._damaged:
            one = noted.get(segment_id(error.path or ""))
            yield UnreadSegment(name, error, state=one.state if one else None)
        for stem in self._unfinished:
            unfinished = object_name(stem + LOG)
            assert unfinished is not None
            one = noted.get(segment_id(stem + LOG))
            state = one.state if one else None
            text = "its copy to tiered storage is not finished, objects of it are missing"
            if state == COPY_FINISHED:
                text = f"objects of it are missing, and its state in {TOPIC} is {state}"
            error = RemoteStorageError(text, path=stem)
            yield UnreadSegment(unfinished, error, is_unfinished=True, state=state)


def _partition_at(path: str) -> Place | None:
    """The partition whose folder a path names, or a file in it."""
    for file in (f"{path}/{0:020}.log", path):
        topic, partition, *_ = parse_log_path(file)
        if topic is not None and partition is not None:
            return Place(topic, partition)
    return None


def _ends(segment: Segment) -> tuple[int, int]:
    return segment.base_offset, segment.offsets.last + 1
