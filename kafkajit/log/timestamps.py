"""The age of a segment: the largest timestamp of its records, or when it was last written.

Answers to LogSegment.largestTimestamp of Kafka 4.1.1 for a log that was loaded. A broker trusts the
last entry of the .timeindex. Without an entry, or without that file, it takes the modification time
of the log, and without an .index it rebuilds all indexes from the log. A damaged index would make
a segment older or younger than it is. So this module checks the entry against the log, and reads
the log instead if they differ, with all checksums: a damaged header would do the same. An index
that has lost its last entries still ends with an entry of the log: a caller that deletes asks for a
proof by the headers of all batches.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from kafkajit.errors import CorruptIndexError, CorruptRecordError
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.index.time_index import NO_TIMESTAMP
from kafkajit.log.open_segment import OpenSegment
from kafkajit.log.repair_advice import advise_repair
from kafkajit.log.segment import Segment
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Source
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.frames import frames


class LargestTimestamp(NamedTuple):
    """The largest timestamp of a segment."""

    timestamp: int  # in milliseconds
    is_of_record: bool  # False: it is the time when the log was last modified
    problem: str | None = None  # why the log was read instead of the index


def largest_timestamp(
    segment: Segment, at_least: int = NO_TIMESTAMP, *, proven_before: int = MIN_INT64
) -> LargestTimestamp:
    """The largest timestamp of a local segment.

    Args:
        segment: its .index, its .timeindex and one batch are read.
        at_least: a timestamp that is known to be in the segment.
        proven_before: all headers of the log are read, too, if the timestamp is before this.
    """
    problem = None
    try:
        timestamp = _of_index(segment)
        if timestamp < at_least:
            problem = f"the time index ends with timestamp {timestamp}, the log has {at_least}"
    except CorruptIndexError as error:
        problem = error.message
    if problem is not None:
        timestamp = _of_log(segment, check_crcs=True)  # the log may be wrong, not the index
    elif (timestamp if timestamp >= 0 else modified_ms(segment.log)) < proven_before:
        indexed, timestamp = timestamp, _of_log(segment)
        if timestamp > indexed:
            ends = f"ends with timestamp {indexed}" if indexed >= 0 else "has no timestamp"
            problem = f"the time index {ends}, the log has {timestamp}"
    if timestamp >= 0:
        return LargestTimestamp(timestamp, is_of_record=True, problem=problem)
    return LargestTimestamp(modified_ms(segment.log), is_of_record=False, problem=problem)


def modified_ms(file: StoredFile) -> int:
    """The modification time of a local file in milliseconds, rounded as Java rounds it."""
    assert file.modified_ns is not None, "a local file has a time"
    return file.modified_ns // 1_000_000


def _of_index(segment: Segment) -> int:
    """The last entry's timestamp, -1 without an entry; raise an error if the log has another."""
    if segment.index is None and segment.log.size:
        path = Path(segment.log.key.removesuffix(".log") + ".index")
        if not path.exists():
            raise CorruptIndexError("there is no .index")
    if segment.time_index is None:
        return NO_TIMESTAMP
    opened = OpenSegment(segment)
    index = opened.time_index
    if index is None or len(index) * index.ENTRY.itemsize != index.length:
        raise CorruptIndexError("the time index ends in zeros")
    opened.first_offset_at(MAX_INT64)
    return index.last_entry.timestamp


def _of_log(segment: Segment, *, check_crcs: bool = False) -> int:
    source = Source(segment.log.key, size=segment.log.size)
    decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
    timestamp, position = NO_TIMESTAMP, 0
    try:
        for framing in frames(source):
            sound = decoder.sound(framing.batches, check_crcs=check_crcs)
            if not sound.all():
                raise decoder.unsound(framing.batches, int(np.argmin(sound)))
            timestamp = max(timestamp, int(framing.batches.header["maxTimestamp"].max()))
            position = framing.position
            source.forget(position)
    except CorruptRecordError as error:
        advise_repair(error)
        raise
    if position != source.content.size:
        raise advise_repair(
            CorruptRecordError(
                "the segment does not end in a whole batch", path=source.path, position=position
            )
        )
    return timestamp
