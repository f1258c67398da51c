"""Build the entries of a segment's .index and .timeindex from its batches.

Answers to LogSegment.append, recover and onBecomeInactiveSegment of Kafka 4.1.1, which write the
same entries. A batch gets entries if more than index.interval.bytes lie between its position and
that of the last batch with an entry, or the segment's beginning. Its .index entry has its last
offset and its position. Its .timeindex entry has the largest timestamp up to this batch and the
last offset of the batch with that timestamp; it is left out unless the timestamp is later than the
last entry's. A closed segment's .timeindex also ends with its largest timestamp. Batches without a
timestamp (-1) get no entry there.

If an index is full, a broker rolls the segment before the next append. If it is too late for that,
as for a log recovered with a smaller segment.index.bytes, the broker gives up. Here the batches
behind get no entries, which only makes looking them up slower.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.errors import (
    INDEX_OFFSET_NOT_LARGER,
    OFFSET_OVERFLOW,
    OK,
    TIME_INDEX_OFFSET_NOT_LARGER,
    CorruptRecordError,
    error_for,
)
from kafkajit.format.layout import LOG_OVERHEAD
from kafkajit.format.limits import MAX_INT32
from kafkajit.index.offset_index import ENTRY as OFFSET_ENTRY
from kafkajit.index.time_index import ENTRY as TIME_ENTRY
from kafkajit.index.time_index import NO_TIMESTAMP, TimestampOffset
from kafkajit.kernel import kernel
from kafkajit.log.config import LogConfig
from kafkajit.records.batches import Batches

# The kernel's status for a batch before which a broker would roll.
_FULL = -1

# The state between two batches: a row of numbers that the kernel writes back.
_STATE = np.dtype(
    [
        ("size", np.int64),  # bytes of the log so far
        ("indexed", np.int64),  # the position of the last batch with an entry
        ("timestamp", np.int64),  # the largest so far
        ("timestampOffset", np.int64),  # the last offset of the batch with that timestamp
        ("offsetEntries", np.int64),
        ("lastOffset", np.int64),  # of the last entry
        ("timeEntries", np.int64),
        ("lastTimestamp", np.int64),
        ("lastTimestampOffset", np.int64),
    ]
)


class SegmentIndexes:
    """The indexes of a segment, built batch by batch.

    >>> import kafkajit.testing as kt
    >>> from kafkajit.records.batches import frame
    >>> from kafkajit.storage.source import as_bytes
    >>> indexes = SegmentIndexes(7, LogConfig(index_interval_bytes=0))
    >>> log = b"".join(kt.batch([kt.Record()], base_offset=7 + i) for i in range(3))
    >>> indexes.add(frame(as_bytes(log)).batches)
    >>> indexes.offset_index.hex(" ", 4)
    '00000001 00000044 00000002 00000088'
    """

    def __init__(self, base_offset: int, config: LogConfig | None = None) -> None:
        config = config or LogConfig()
        self.base_offset = base_offset
        self._interval = config.index_interval_bytes
        self._most_offsets = config.segment_index_bytes // OFFSET_ENTRY.itemsize
        self._most_times = config.segment_index_bytes // TIME_ENTRY.itemsize
        self._state = np.zeros(1, dtype=_STATE)
        for name in ("timestamp", "lastTimestamp"):
            self._state[name] = NO_TIMESTAMP
        for name in ("timestampOffset", "lastTimestampOffset", "lastOffset"):
            self._state[name] = base_offset
        self._offset_entries = bytearray()
        self._time_entries = bytearray()

    @property
    def size(self) -> int:
        """The size of the indexed log in bytes."""
        return int(self._state["size"][0])

    @property
    def largest_timestamp(self) -> TimestampOffset:
        """The largest timestamp and its batch's last offset; (-1, base offset) without one."""
        state = self._state[0]
        return TimestampOffset(int(state["timestamp"]), int(state["timestampOffset"]))

    @property
    def is_full(self) -> bool:
        """Whether a broker would roll. It keeps one .timeindex entry free for that."""
        state = self._state[0]
        return bool(
            state["offsetEntries"] >= self._most_offsets
            or state["timeEntries"] >= self._most_times - 1
        )

    def add(self, batches: Batches, path: str | None = None) -> None:
        """Add the next, consecutive batches of the segment.

        An offset that does not fit the segment, or that does not follow an index's last entry, is
        an InvalidOffsetError. The batches before it have been added then.
        """
        row, status = self._add(batches, path, rolls=False)
        if status == OK:
            return
        state = self._state[0]
        offset, last = int(batches.last_offset[row]), int(state["lastOffset"])
        if status == OFFSET_OVERFLOW:
            last = self.base_offset
        elif status == TIME_INDEX_OFFSET_NOT_LARGER:
            last = int(state["lastTimestampOffset"])
            if batches.header["maxTimestamp"][row] <= state["timestamp"]:
                offset = int(state["timestampOffset"])
        raise error_for(
            status,
            offset,
            last,
            path=path,
            position=int(batches.position[row]),
            base_offset=int(batches.header["baseOffset"][row]),
        )

    def add_until_roll(self, batches: Batches, path: str | None = None) -> int:
        """Add batches up to the first before which a broker rolls, and return their number.

        A broker rolls if an index is full, or if a batch's last offset is too far from the base
        offset.
        """
        row, _ = self._add(batches, path, rolls=True)
        return row

    def close(self) -> None:
        """Add the entry that a broker adds when it rolls, recovers or closes the segment."""
        state = self._state[0]
        if state["timestamp"] > state["lastTimestamp"]:
            entry = (state["timestamp"], state["timestampOffset"] - self.base_offset)
            self._time_entries += np.array([entry], TIME_ENTRY).tobytes()
            state["timeEntries"] += 1
            state["lastTimestamp"] = state["timestamp"]
            state["lastTimestampOffset"] = state["timestampOffset"]

    @property
    def offset_index(self) -> bytes:
        """The content of the .index."""
        return bytes(self._offset_entries)

    @property
    def time_index(self) -> bytes:
        """The content of the .timeindex."""
        return bytes(self._time_entries)

    def _add(self, batches: Batches, path: str | None, *, rolls: bool) -> tuple[int, int]:
        """Add batches; return their number, and the status, which is the reason to stop."""
        added = int(batches.size_in_bytes.sum())
        if self.size + added > MAX_INT32:
            raise CorruptRecordError(
                f"a segment has at most {MAX_INT32} bytes, not {self.size + added}", path=path
            )
        waiting = self.size - int(self._state["indexed"][0]) + added
        room = min(len(batches), waiting // (self._interval + 1) + 1)
        offset_entries = np.empty((room, 2), dtype=np.int64)
        time_entries = np.empty((room, 2), dtype=np.int64)
        limits = (self._interval, self._most_offsets, self._most_times)
        row, status, offsets, times = _add(
            batches.header,
            self.base_offset,
            *limits,
            rolls,
            self._state,
            offset_entries,
            time_entries,
        )
        self._offset_entries += _encoded(offset_entries[:offsets], OFFSET_ENTRY)
        self._time_entries += _encoded(time_entries[:times], TIME_ENTRY)
        return int(row), int(status)


def _encoded(rows: npt.NDArray[np.int64], kind: np.dtype[np.void]) -> bytes:
    encoded = np.empty(len(rows), dtype=kind)
    for column, name in enumerate(kind.names or ()):
        encoded[name] = rows[:, column]
    return encoded.tobytes()


@kernel
def _add(
    headers,
    base_offset,
    interval,
    most_offsets,
    most_times,
    rolls,
    states,
    offset_entries,
    time_entries,
):
    """Return the number of batches added, the status, and the new entries of either index."""
    state = states[0]
    size, indexed = state["size"], state["indexed"]
    timestamp, timestamp_offset = state["timestamp"], state["timestampOffset"]
    had_offsets, had_times = state["offsetEntries"], state["timeEntries"]
    last_offset = state["lastOffset"]
    last_timestamp, last_timestamp_offset = state["lastTimestamp"], state["lastTimestampOffset"]
    offsets, times = np.int64(0), np.int64(0)
    row, status = np.int64(0), OK
    while row < headers.size:
        header = headers[row]
        offset = np.int64(header["baseOffset"]) + np.int64(header["lastOffsetDelta"])
        is_full = had_offsets + offsets >= most_offsets or had_times + times >= most_times - 1
        if rolls and is_full:
            status = _FULL
            break
        # The difference wraps if it does not fit an int64, as Java's does.
        if not 0 <= offset - base_offset <= MAX_INT32:
            status = OFFSET_OVERFLOW
            break
        latest, latest_offset = timestamp, timestamp_offset
        if header["maxTimestamp"] > timestamp:
            latest, latest_offset = np.int64(header["maxTimestamp"]), offset
        if size - indexed > interval and not is_full:
            if had_offsets + offsets > 0 and offset <= last_offset:
                status = INDEX_OFFSET_NOT_LARGER
                break
            if had_times + times > 0 and latest_offset < last_timestamp_offset:
                status = TIME_INDEX_OFFSET_NOT_LARGER
                break
            offset_entries[offsets, 0], offset_entries[offsets, 1] = offset - base_offset, size
            offsets += 1
            last_offset = offset
            if latest > last_timestamp:
                time_entries[times, 0] = latest
                time_entries[times, 1] = latest_offset - base_offset
                times += 1
                last_timestamp, last_timestamp_offset = latest, latest_offset
            indexed = size
        timestamp, timestamp_offset = latest, latest_offset
        size += np.int64(header["batchLength"]) + LOG_OVERHEAD
        row += 1
    state["size"], state["indexed"] = size, indexed
    state["timestamp"], state["timestampOffset"] = timestamp, timestamp_offset
    state["offsetEntries"], state["timeEntries"] = had_offsets + offsets, had_times + times
    state["lastOffset"] = last_offset
    state["lastTimestamp"], state["lastTimestampOffset"] = last_timestamp, last_timestamp_offset
    return row, status, offsets, times
