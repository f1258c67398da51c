"""Choose the segments that expire: those before the log's start, then by size, then by time.

Answers to UnifiedLog.deleteOldSegments and deletableSegments of Kafka 4.1.1. Each step takes the
first segments, as many as have a reason to go. A segment stays if the high watermark has not passed
all of it, and so does an empty last segment. If the last segment goes, an empty one takes its
place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kafkajit.errors import KafkaJitError, OffsetOutOfRangeError
from kafkajit.format.limits import MIN_INT64
from kafkajit.log.segment import Segment
from kafkajit.log.timestamps import LargestTimestamp, largest_timestamp, modified_ms

# Whether a segment has a reason to go, given the next segment, or None behind the last. It is asked
# of the first segments only, until one of them stays.
_Breach = Callable[[Segment, Segment | None], bool]


@dataclass(frozen=True)
class ExpiredSegment:
    """A segment that goes."""

    base_offset: int
    size: int  # of its log, in bytes
    largest_timestamp: int  # in milliseconds
    is_of_record: bool  # False: the timestamp is the time when the log was last modified
    reason: str  # in Kafka's words


@dataclass
class Expiry:
    """The segments of a log that go: apply one reason after the other."""

    segments: Sequence[Segment]
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_timestamp: int  # a timestamp that is known to be in the last segment
    expired: list[ExpiredSegment] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @cached_property
    def _left(self) -> list[Segment]:
        return list(self.segments)

    @property
    def first_offset(self) -> int:
        """The base offset of the first segment that stays, or of the new empty one."""
        return self._left[0].base_offset if self._left else self.log_end_offset

    @property
    def size(self) -> int:
        """The size of the segments that stay, in bytes."""
        return sum(segment.log.size for segment in self._left)

    def raise_start(self, offset: int) -> None:
        """Raise the log start offset to this offset; -1 is the high watermark."""
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(
                f"Cannot increment the log start offset to {offset} since it is larger than the "
                f"high watermark {self.high_watermark}",
                path=self.segments[0].log.folder,
            )
        offset = self.high_watermark if offset == -1 else offset
        self.log_start_offset = max(self.log_start_offset, offset)

    def before_start(self) -> None:
        """Expire segments before the log start offset."""

        def breaches(_: Segment, following: Segment | None) -> bool:
            return following is not None and following.base_offset <= self.log_start_offset

        self._expire(breaches, f"log start offset {self.log_start_offset} breach")

    def beyond_size(self, retention_bytes: int) -> None:
        """Expire segments while the others have at least this number of bytes."""
        beyond = self.size - retention_bytes
        if retention_bytes < 0 or beyond < 0:
            return

        def breaches(segment: Segment, _: Segment | None) -> bool:
            nonlocal beyond
            if beyond < segment.log.size:
                return False
            beyond -= segment.log.size
            return True

        self._expire(breaches, f"log retention size {retention_bytes} breach")

    def beyond_time(self, retention_ms: int, now: int) -> None:
        """Expire segments whose records are all older than this number of milliseconds."""
        if retention_ms < 0:
            return

        def breaches(segment: Segment, _: Segment | None) -> bool:
            # The headers of all batches prove the age of a segment that goes.
            largest = self._largest_timestamp(segment, now - retention_ms).timestamp
            if now < largest:
                self.notes.append(
                    f"{segment.log.name} contains future timestamp(s), making it ineligible to be "
                    "deleted"
                )
            return now - largest > retention_ms

        self._expire(breaches, f"log retention time {retention_ms}ms breach")

    def _expire(self, breaches: _Breach, reason: str) -> None:
        count = 0
        for segment, following in zip(self._left, [*self._left[1:], None], strict=False):
            is_last_and_empty = following is None and segment.log.size == 0
            if is_last_and_empty or not breaches(segment, following):
                break
            end = self.log_end_offset if following is None else following.base_offset
            if self.high_watermark < end:
                self.notes.append(
                    f"{segment.log.name} reaches beyond the high watermark {self.high_watermark}"
                )
                break
            count += 1
        if not count:
            return
        self.expired += [self._expired(segment, reason) for segment in self._left[:count]]
        del self._left[:count]
        self.log_start_offset = max(self.log_start_offset, self.first_offset)

    def _expired(self, segment: Segment, reason: str) -> ExpiredSegment:
        largest = self._timestamps.get(segment.base_offset)
        try:
            largest = largest or self._largest_timestamp(segment)
        except KafkaJitError:  # the segment goes for another reason than its age
            largest = LargestTimestamp(modified_ms(segment.log), is_of_record=False)
        return ExpiredSegment(
            segment.base_offset, segment.log.size, largest.timestamp, largest.is_of_record, reason
        )

    def _largest_timestamp(
        self, segment: Segment, proven_before: int = MIN_INT64
    ) -> LargestTimestamp:
        at_least = self.last_timestamp if segment is self.segments[-1] else -1
        found = largest_timestamp(segment, at_least, proven_before=proven_before)
        if found.problem is not None:
            note = f"{segment.log.name}: {found.problem}; the log was read instead"
            if note not in self.notes:
                self.notes.append(note)
        self._timestamps[segment.base_offset] = found
        return found

    @cached_property
    def _timestamps(self) -> dict[int, LargestTimestamp]:
        return {}
