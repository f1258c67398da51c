"""The last batches of a segment: the last offset, the newest timestamp, codecs and formats.

Almost every segment ends with a whole batch. A few headers of such a log are read here, one by one:
loading the kernels takes longer than reading the ends of a thousand partitions. All other logs,
and all that looks odd, are left to `Walk`, whose kernels decide about damage.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from crc32c import crc32c

from kafkajit.errors import KafkaJitError
from kafkajit.format.codecs import codec_name
from kafkajit.format.layout import (
    ATTRIBUTES_OFFSET,
    BATCH_HEADER,
    COMPRESSION_CODEC_MASK,
    CONTROL_MASK,
    KNOWN_ATTRIBUTES,
    LOG_OVERHEAD,
    MAGIC_V2,
    RECORD_BATCH_OVERHEAD,
)
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.log_path import LOG_SUFFIX
from kafkajit.log.segment import Segment
from kafkajit.storage.source import open_file
from kafkajit.storage.stored_file import has_grown
from kafkajit.system.positioned import read_at
from kafkajit.walk.damage import PERMISSIVE, Gap

# Up to this size all headers of a segment are read: the index would take longer to open.
_SMALL = 256 << 10
# A kernel reads more headers than these in less time.
_FEW = 256
# A larger batch is left to `Walk`: its header may claim gigabytes, which a sparse file has.
_CHECKED = 8 << 20
# The clock of a file server may be ahead by so much.
_AHEAD_NS = 2 * 10**9
_ENTRY = struct.Struct(">ii")  # of an offset index


class End(NamedTuple):
    """The facts that a segment's last batches show; none without a batch."""

    offset: int | None = None  # of the last record
    timestamp: int | None = None
    codecs: frozenset[str] = frozenset()
    formats: frozenset[str] = frozenset()
    problem: str | None = None


class _Header(NamedTuple):
    """A header of a batch of v2; the fields are those of the layout, in its order."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def size(self) -> int:
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def is_plausible(self) -> bool:
        """Whether a broker may have written it; `Walk` then takes it without its checksum, too."""
        return (
            self.magic == MAGIC_V2
            and self.size >= RECORD_BATCH_OVERHEAD
            and self.base_offset >= 0
            and 0 <= self.attributes <= KNOWN_ATTRIBUTES
            and 0 <= self.records <= self.last_offset_delta + 1
            and self.leader_epoch >= -1
            and self.max_timestamp >= -1
            and self.producer_id >= -1
            and self.base_sequence >= -1
        )


def end_of(segment: Segment, *, disproves: bool = False) -> End:
    """The facts that a segment's last batches show.

    With `disproves`, a batch that its checksum or the offsets around it disprove is a problem.
    """
    if not segment.log.size:
        return End()
    found = plain_end(segment)
    if found is None or (disproves and (found.offset or 0) > segment.last_possible):
        found = walked_end(segment, disproves=disproves)
    return found


class Unfinished(NamedTuple):
    """A segment to which others may be writing although another one follows, as a copier does."""

    segment: Segment
    behind: int  # the offset behind its last one
    is_torn: bool  # whether it ends in the middle of a batch


def unfinished(segments: Sequence[Segment], since_ns: int) -> Iterator[Unfinished]:
    """The local segments that have changed since then, and end before the next one begins.

    Those that have grown since they were listed have changed, too. A broker has written a segment
    to its end when it begins the next one, and compaction keeps its modification time. A time that
    has not come yet tells nothing.
    """
    now = time.time_ns() + _AHEAD_NS
    for segment, following in pairwise(segments):
        is_new = segment.log.is_local and since_ns < (segment.log.modified_ns or 0) < now
        if is_new or has_grown(segment.log):
            end = end_of(segment)
            behind = segment.base_offset if end.offset is None else end.offset + 1
            if behind < following.first_offset:
                yield Unfinished(segment, behind, end.problem is not None)


def plain_end(segment: Segment) -> End | None:
    """The end of a local log if few headers tell and all are as a broker writes them; else None."""
    log = segment.log
    if log.filesystem is not None or segment.path.suffix != LOG_SUFFIX:
        return None
    try:
        start = 0 if log.size <= _SMALL else _last_entry(segment)
        if start is None:
            return None
        with open_file(Path(log.key)) as file:
            return _read_end(file.fileno(), start, log.size)
    except OSError:
        return None  # the other way reports it


def begins_with_hole(segment: Segment) -> bool:
    """Whether offsets are missing between or in the first batches of a local log of v2.

    Those before the last batch do not count: its base offset may be wrong.
    """
    if segment.log.filesystem is not None or segment.path.suffix != LOG_SUFFIX:
        return False
    position, behind = 0, None
    try:
        with open_file(Path(segment.log.key)) as file:
            for _ in range(_FEW):
                found = read_at(file.fileno(), RECORD_BATCH_OVERHEAD, position)
                if len(found) < RECORD_BATCH_OVERHEAD:
                    return False
                header = _Header(*np.frombuffer(found, BATCH_HEADER).item())
                if not header.is_plausible:
                    return False
                is_behind_hole = behind is not None and header.base_offset > behind
                if header.records <= header.last_offset_delta or is_behind_hole:
                    # A wrong bit must not look like the work of a cleaner. No checksum covers a
                    # base offset: the next batch has to follow it.
                    if header.size > _CHECKED:
                        return False
                    content = read_at(file.fileno(), header.size, position)[ATTRIBUTES_OFFSET:]
                    if crc32c(content) != header.crc:
                        return False
                    if header.records <= header.last_offset_delta:
                        return True
                    following = read_at(file.fileno(), 8, position + header.size)
                    if int.from_bytes(following, "big") > header.last_offset:
                        return True
                position, behind = position + header.size, header.last_offset + 1
    except OSError:
        pass  # the other way reports it
    return False


def _last_entry(segment: Segment) -> int | None:
    """The position in the last entry of the offset index; None if it has none."""
    index = segment.index
    if index is None or index.size % _ENTRY.size:
        return None
    with open_file(Path(index.key)) as file:
        entry = read_at(file.fileno(), _ENTRY.size, index.size - _ENTRY.size)
    if len(entry) < _ENTRY.size:
        return None
    _, position = _ENTRY.unpack(entry)
    return position if position > 0 else None  # 0 may be that of preallocated zeros


def _read_end(file: int, start: int, size: int) -> End | None:
    position, last, latest = start, -1, -1
    codecs = set()
    for _ in range(_FEW):
        found = read_at(file, RECORD_BATCH_OVERHEAD, position)
        if len(found) < RECORD_BATCH_OVERHEAD:
            return None
        header = _Header(*np.frombuffer(found, BATCH_HEADER).item())
        behind = position + header.size
        if not header.is_plausible or header.base_offset <= last or behind > size:
            return None
        # An index may be wrong, and so may an offset without a record: a checksum proves the batch.
        if position == start > 0 or header.records <= header.last_offset_delta:
            if header.size > _CHECKED:
                return None
            content = read_at(file, header.size, position)[ATTRIBUTES_OFFSET:]
            if crc32c(content) != header.crc:
                return None
        position, last = behind, header.last_offset
        if not header.attributes & CONTROL_MASK:  # a marker's time is not that of a record
            latest = max(latest, header.max_timestamp)
        codecs.add(header.attributes & COMPRESSION_CODEC_MASK)
        if position == size:
            names = frozenset(map(codec_name, codecs))
            return End(last, latest if latest >= 0 else None, names, frozenset({"v2"}))
    return None


def walked_end(segment: Segment, *, disproves: bool = False) -> End:
    """The end of any segment, with the first damage that is found there."""
    # numba comes with these.
    from kafkajit.log.open_segment import OpenSegment, order_in
    from kafkajit.records.batches import miscounted
    from kafkajit.walk.walk import Walk

    problem: str | None = None
    found = End()
    try:
        if segment.log.size <= _SMALL:
            source, start = segment.log.open(), 0
        else:
            source, start = OpenSegment(segment).tail(MAX_INT64)
        order, doubtful = None, None
        if disproves:
            order, doubtful = order_in(segment, start), miscounted
        walk = Walk(source, mode=PERMISSIVE, start=start, order=order)
        for part in walk.headers(doubtful):
            if isinstance(part, Gap):
                problem = problem or f"{part.reason} at position {part.position}"
                continue
            if not len(part):
                continue
            if disproves and (part.last_offset > segment.last_possible).any():
                wrong = int(part.last_offset.max())
                problem = problem or f"{segment.log.name} cannot have offset {wrong}, which it has"
                part = part[part.last_offset <= segment.last_possible]
                if not len(part):
                    continue
            latest = int(part.field("maxTimestamp")[~part.is_control].max(initial=-1))
            found = End(
                int(part.last_offset.max()),
                max(latest, found.timestamp or latest) if latest >= 0 else found.timestamp,
                found.codecs | {codec_name(codec) for codec in set(part.codec.tolist())},
                found.formats | {f"v{magic}" for magic in set(part.field("magic").tolist())},
            )
            source.forget(int(part.end[-1]))
    except (FileNotFoundError, EOFError):
        raise  # a running broker has changed the folder: the caller lists it again
    except (OSError, KafkaJitError) as error:
        problem = str(error)
    return found._replace(problem=problem)
