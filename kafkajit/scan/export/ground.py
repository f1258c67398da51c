"""The log under an export: whether it is still the one that the exported rows are of.

A broker may truncate a log, or make it again, while it is read. The rows would then be of two logs,
and the next run would go on in the new one. So the last batch of each chunk has to be there still
when the next chunk has been read, and when the rows are committed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from kafkajit.errors import KafkaJitError, OffsetOutOfRangeError
from kafkajit.format.limits import MAX_INT64
from kafkajit.log.footing import Footing, ReadBatch, agreed_up_to, made_again_text, truncated_text
from kafkajit.log.live_segments import listed_again
from kafkajit.log.resumption import batch_at, check_resumed, footing_of
from kafkajit.log.segment import Segment

_AGAIN = "run the export again, into another folder if it has records of this partition"


class Ground:
    """The log under an export; objects in a bucket do not change.

    Args:
        segments: of the log.
        before: what positions in it stood on before it was read.
    """

    def __init__(self, segments: Sequence[Segment], before: Footing) -> None:
        self._segments = segments
        self._before = before
        self._is_local = all(segment.log.is_local for segment in segments)
        self._read = [segment for segment in segments if segment.cut and segment.log.size]
        # Each segment is read up to the next one; a short one may lie within one that is long.
        ends = (max(one.base_offset, one.cut.first) for one in self._read[1:])
        self._ends = list(accumulate(ends, max))
        self._last: ReadBatch | None = None

    def note(self, offset: int, position: int) -> None:
        """Note the batch of the last record that was read, once the one before is there still."""
        if self._is_local:
            self._check_last()
            self._last = self._batch(offset, position)

    def last_batch(self, offset: int, position: int) -> ReadBatch | None:
        """The batch of a record, for the journal, if the log is still the one that was read."""
        found = self._batch(offset, position)
        self.check()
        return found

    def check(self) -> None:
        """Raise an error if the log is not the one any more that was read."""
        self._check_last()
        if self._last is None:
            return
        now, end = footing_of(self._segments), self._last.last_offset + 1
        why = made_again_text(self._before.topic_id, now.topic_id)
        if why is not None:
            raise self._changed(why)
        agreed = agreed_up_to(self._before.epochs, end, now.epochs, MAX_INT64)
        if agreed is not None and agreed < end:
            raise self._changed(truncated_text(agreed, self._before.epochs, now.epochs))

    def _check_last(self) -> None:
        last = self._last
        if last is None:
            return
        there = self._batch(last.last_offset, last.position)
        if there is not None and there.is_same(last):
            return
        segments = listed_again(self._segments[0], 0)
        if segments:  # compaction or retention may have changed or removed it
            try:
                check_resumed(segments, last.last_offset + 1, Footing(last=last), Footing())
            except OffsetOutOfRangeError as error:
                raise self._changed(error.message) from None

    def _changed(self, why: str) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(
            f"the log has changed while it was read: {why}",
            path=self._segments[0].log.folder,
            advice=_AGAIN,
        )

    def _batch(self, offset: int, position: int) -> ReadBatch | None:
        at = bisect_right(self._ends, offset)
        try:
            return batch_at(self._read[at : at + 2], offset, position)
        except (OSError, EOFError, KafkaJitError):
            return None  # the segment is gone meanwhile
