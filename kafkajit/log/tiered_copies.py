"""The same offsets in two segments of one log, of which tiered storage has one or both.

A broker's folder and tiered storage are one log if they have the same topic id, and each offset is
read once, of the folder if it has it. A copy of a folder may be older than the bucket, torn, or
that of a replica whose log went another way: what is read must not depend on chance, and what is
left out is named.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np

from kafkajit.errors import KafkaJitError
from kafkajit.format.amounts import offsets_text
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.log.open_segment import OpenSegment
from kafkajit.log.segment import Segment
from kafkajit.log.segment_end import plain_end
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import DROPMALFORMED, PERMISSIVE
from kafkajit.walk.walk import Walk

logger = logging.getLogger("kafkajit")

_READERS = 64
# Whether two copies differ is remembered: a prompt plans its queries over the same ones.
_MOST_KNOWN = 100_000
_known: dict[tuple[object, ...], bool] = {}
_known_ends: dict[tuple[object, ...], bool] = {}


_Batch = tuple[int, int, int]  # base offset, checksum, size


class Differing(NamedTuple):
    """A segment that is read, and another with the same offsets, but other batches."""

    read: Segment
    copy: Segment

    @property
    def offsets(self) -> Range:
        return self.read.offsets & self.copy.offsets

    @property
    def key(self) -> tuple[object, ...]:
        return *_identity(self.read.log), *_identity(self.copy.log), *self.offsets

    @property
    def text(self) -> str:
        place = "places" if self.read.log.folder != self.copy.log.folder else "files"
        return (
            f"{self.copy.log.path} has other batches at {offsets_text(*self.offsets)}, and is not "
            f"read: name only one of the two {place}"
        )


def _identity(log: StoredFile) -> tuple[object, ...]:
    return log.path, log.size, log.modified_ns


def differing(segments: Iterable[Segment], asked: Range | None = None) -> list[Differing]:
    """The segments of a log whose copies have other batches.

    Two brokers' logs with the same batch at an offset have the same batches before it. So of each
    copy the first and the last batch are compared.
    """
    pairs = [
        Differing(segment, copy)
        for segment in segments
        for copy in segment.copies
        if asked is None or segment.offsets & copy.offsets & asked
    ]
    new = {pair.key: pair for pair in pairs if pair.key not in _known}
    if len(_known) > _MOST_KNOWN:
        _known.clear()
    with ThreadPoolExecutor(_READERS) as pool:
        _known.update(zip(new, pool.map(_differ, new.values()), strict=True))
    return [pair for pair in pairs if _known[pair.key]]


def last_batch_of(segment: Segment) -> tuple[int, int]:
    """The last offset of a segment's last sound batch, and the position of that batch's end.

    Without such a batch, the offset before the segment's own, and 0.
    """
    log = segment.log
    found = segment.base_offset - 1, 0
    if not log.size:
        return found
    end = plain_end(segment)
    if end is not None and end.offset is not None:
        return end.offset, log.size
    try:
        source, start = OpenSegment(segment).tail(MAX_INT64)
        for batches in Walk(source, mode=PERMISSIVE, start=start).framed():
            rows = np.flatnonzero(batches.is_valid(source.content))
            if rows.size:
                row = int(rows[-1])
                found = int(batches.last_offset[row]), int(batches.end[row])
            source.forget(int(batches.end[-1]))
    except FileNotFoundError:  # a broker has deleted it since it was listed
        return segment.offsets.last, log.size
    except KafkaJitError as error:
        logger.info("%s: its last batch is not known: %s", log.path, error)
    return found


def ends_before(segment: Segment, other: Segment) -> bool:
    """Whether a segment ends before another one of its log, against what is known of its end.

    Its last batch, or its manifest, has a later offset. But it lacks the first batch of the other
    one, and all behind it but for one batch, whose base offset is wrong then.
    """
    key = *_identity(segment.log), *_identity(other.log)
    if key not in _known_ends:
        if len(_known_ends) > _MOST_KNOWN:
            _known_ends.clear()
        _known_ends[key] = _ends_before(segment, other)
    return _known_ends[key]


def _ends_before(segment: Segment, other: Segment) -> bool:
    begin = other.base_offset
    try:
        behind = list(islice(_batches_from(segment, begin), 2))
        first = next(_batches_from(other, begin), None)
    except (OSError, EOFError, KafkaJitError) as error:
        logger.info("%s: not compared with another one: %s", segment.log.path, error)
        return False
    if first is None or not behind:
        return first is not None
    return len(behind) == 1 and behind[0] != first and behind[0][0] > begin


def advise_copy(error: KafkaJitError, segments: Sequence[Segment]) -> None:
    """Name the copy of a segment that has the offset of a damaged batch, if there is one."""
    for segment in segments:
        if error.path != segment.log.path or error.base_offset is None:
            continue
        for copy in segment.copies:
            if copy.offsets.first <= error.base_offset <= copy.offsets.last:
                error.advice = f"{copy.log.path} has the offset, too, and is read without this file"


def _differ(pair: Differing) -> bool:
    first, last = pair.offsets
    for offset in dict.fromkeys((first, last)):
        found = [_batch_with(segment, offset) for segment in (pair.read, pair.copy)]
        if None not in found and found[0] != found[1]:
            return True
    return False


def _batch_with(segment: Segment, offset: int) -> _Batch | None:
    """The batch of a segment that has an offset, or the next one; None if it cannot be read."""
    try:
        return next(_batches_from(segment, offset), None)
    except (OSError, EOFError, KafkaJitError) as error:
        logger.info("%s: not compared with its copy: %s", segment.log.path, error)
        return None


def _batches_from(segment: Segment, offset: int) -> Iterator[_Batch]:
    source, start = OpenSegment(segment).tail(offset)
    for batches in Walk(source, mode=DROPMALFORMED, start=start).framed():
        late = batches[batches.last_offset >= offset]
        fields = late.field("baseOffset"), late.field("crc"), late.end - late.position
        yield from zip(*(column.tolist() for column in fields), strict=True)
        source.forget(int(batches.end[-1]))
