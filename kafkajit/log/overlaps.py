"""Segments that overlap: which offsets of each one a broker serves.

A broker looks an offset up in the last segment that does not begin after it, and returns batches up
to that segment's end. So a consumer that reads from the start gets all of the first segment, also
offsets that the next one has too, and then looks up the offset after its last one. Segments
overlap after a copy over an older one, or of files of several replicas. kafkajit returns each
offset once, as such a consumer gets it.

A consumer that fetches little at a time may change to the next segment earlier. If both have the
same records, nobody can tell.

Answers to LocalLog.read and LogSegment.translateOffset of Kafka 4.4.0.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise, repeat
from struct import Struct

import numpy as np

from kafkajit.errors import KafkaJitError
from kafkajit.format.layout import (
    BATCH_LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_V2,
    RECORD_BATCH_OVERHEAD,
)
from kafkajit.format.limits import MAX_INT32, MAX_INT64, MIN_INT64
from kafkajit.format.log_path import SEGMENT_SUFFIXES
from kafkajit.format.ranges import ALL, NOTHING, Range
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import read_int32
from kafkajit.log.open_segment import OpenSegment
from kafkajit.log.positions import IndexEntries
from kafkajit.log.segment import Segment
from kafkajit.places.tiered_files import TieredFile
from kafkajit.records.batches import frame
from kafkajit.storage.source import as_bytes
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import PERMISSIVE, Gap
from kafkajit.walk.walk import Walk

logger = logging.getLogger("kafkajit")

# The bytes at a segment's end in which its last batch is looked for: more if it is larger.
_WINDOWS = (16 << 10, 256 << 10, 4 << 20)
# Remote segments that are looked at, 64 at a time: these take half a minute.
_MOST_REMOTE = 10_000
_READERS = 64
# Segments whose ends are remembered: a prompt plans its queries over the same ones.
_MOST_KNOWN = 100_000
# Offsets that compaction hardly removes between two batches of a segment, which has 2^31 at most.
_ABSURD_LEAP = 1 << 30
# Few such gaps are a power of two.
_RARE_LEAP = 1 << 10
_BITS = tuple(1 << bit for bit in range(63))
_HEAD = Struct(">qi")  # a batch's base offset and length
_known: OrderedDict[tuple[str, int, int | None], int | None] = OrderedDict()
_known_heads: OrderedDict[tuple[str, int, int | None, int], tuple[int, int] | None] = OrderedDict()


def served(partitions: Iterable[Sequence[Segment]], *, warns: bool = True) -> list[list[Segment]]:
    """The segments of partitions with the offsets that a broker serves of each.

    A segment of which it serves none has an empty range. Unless `warns` is false, a warning names
    the offsets that are not served.
    """
    given = [list(segments) for segments in partitions]
    ends = ends_of([_live(segments) for segments in given])
    return [_served(segments, known, warns) for segments, known in zip(given, ends, strict=True)]


def _live(segments: Sequence[Segment]) -> list[Segment]:
    """The segments that may overlap; those of tiered storage are joined by their epochs."""
    live = [one for one in segments if one.path.suffix in SEGMENT_SUFFIXES]
    is_tiered = any(isinstance(one.log, TieredFile) for one in live)
    return [] if is_tiered or len(live) < 2 else live


def _served(segments: list[Segment], ends: Sequence[int], warns: bool) -> list[Segment]:
    live = _live(segments)
    firsts = [MIN_INT64, *(last + 1 for last in accumulate(ends[:-1], max))]
    found = {
        one.log.path: replace(one, between=Range(first, one.offsets.last))
        for one, first in zip(live, firsts, strict=False)
    }
    if any(map(_begins_before, live, firsts, ends)):
        for segment, (offsets, is_whole) in zip(live, _visible(live, ends), strict=True):
            found[segment.log.path] = replace(
                segment,
                offsets=offsets,
                cut=ALL if is_whole else offsets,
                between=offsets if is_whole else ALL,
            )
            if warns and not is_whole and segment.log.size:
                report_once(
                    segment.log.path, f"{_reason(offsets)}. The option overlaps=all reads all of it"
                )
    return [found.get(one.log.path, one) for one in segments]


def unserved(log: StoredFile, cut: Range) -> Gap | None:
    """The bytes at the beginning of a log that no consumer gets; None if it gets all.

    Args:
        log: the log of a segment.
        cut: the offsets that are read of it, if another segment has the others.
    """
    if cut.is_everything:
        return None
    if not cut:
        return Gap(log.path, 0, log.size, _reason(cut))
    source, end = log.open(), 0
    for batches in Walk(source, mode=PERMISSIVE).framed():
        early = batches.last_offset < cut.first
        end = int(batches.end[-1] if early.all() else batches.position[int(np.argmin(early))])
        if not early.all():
            break
        source.forget(end)
    return Gap(log.path, 0, end, _reason(cut))


def _reason(offsets: Range) -> str:
    """Why a segment is read from the first of these offsets on, or not at all."""
    if not offsets:
        return "it is not read, because a broker serves segments before it"
    return (
        f"it is read from offset {offsets.first} on, because a broker serves segments before it up "
        "to there"
    )


def all_unserved(segments: Sequence[Segment]) -> Iterator[Gap]:
    """The bytes that no consumer gets, of segments that `served` has returned."""
    for segment in _live(segments):
        gap = unserved(segment.log, segment.cut)
        if gap is not None:
            yield gap


def _visible(segments: Sequence[Segment], ends: Sequence[int]) -> list[tuple[Range, bool]]:
    """The offsets that a consumer gets of each segment if it reads from the start.

    With each: whether it gets the whole segment, which may begin with offsets before its own.
    The first segment's offsets are not bounded, and neither is the last of the last one, because a
    broker may append to it.
    """
    bases = [one.base_offset for one in segments]
    found = [(NOTHING, False)] * len(bases)
    at, position = 0, Range().first
    while at < len(bases):
        is_last, end = at == len(bases) - 1, ends[at]
        is_early = _begins_before(segments[at], position, end)
        if end < position and not is_early:
            # The base offset of its last batch is wrong, since it begins where it should.
            found[at] = Range(position, bases[at + 1] - 1), True
        elif end >= position or is_last:
            is_whole = position <= bases[at] and not is_early
            found[at] = Range(position, MAX_INT64 if is_last else end), is_whole
        position = max(position, end + 1)
        at = max(at + 1, bisect_right(bases, position) - 1)
    return found


def _begins_before(segment: Segment, position: int, end: int) -> bool:
    """Whether a segment has batches at its beginning that end before a position.

    It has them if it overlaps the segments before it, or has the name of another one. A base offset
    may be damaged, so its first two batches have to agree, and a single one must not have the
    offset in the segment's name but for one bit.

    Args:
        segment: one of a partition's.
        position: the offset after the segments before it.
        end: its last offset. A remote segment that ends after its name is taken to begin there.
    """
    base = segment.base_offset
    if base < position or position == MIN_INT64 or not segment.log.size:
        return base < position
    if _is_remote(segment) and base <= end < MAX_INT64:
        return False
    start = 0
    for _ in range(2):
        head = _head(segment.log, start)
        if head is None:
            break
        offset, length = head
        is_alone = start == 0 and LOG_OVERHEAD + length >= segment.log.size
        if offset >= position or (is_alone and (offset ^ base).bit_count() == 1):
            return False
        start += LOG_OVERHEAD + length
    return start > 0


def _head(log: StoredFile, position: int) -> tuple[int, int] | None:
    """The offset and the length of a batch, or a message; None if the log ends there."""
    key = log.path, log.size, log.modified_ns, position
    if key not in _known_heads:
        try:
            content = log.read(position, max(min(_HEAD.size, log.size - position), 0))
        except (KafkaJitError, OSError) as error:
            logger.info("%s: its first offset is not known: %s", log.path, error)
            return None
        offset, length = _HEAD.unpack(content) if len(content) == _HEAD.size else (0, 0)
        _known_heads[key] = (offset, length) if length > 0 else None
        if len(_known_heads) > _MOST_KNOWN:
            _known_heads.popitem(last=False)
    return _known_heads[key]


def ends_of(partitions: Sequence[Sequence[Segment]]) -> list[list[int]]:
    """The last offset of each segment; the last one of a partition may be growing."""
    pairs = [pair for live in partitions for pair in pairwise(live)]
    remote = [(one, other) for one, other in pairs if _is_remote(one)]
    if len(remote) > _MOST_REMOTE:
        folder = remote[0][0].log.folder
        report_once(folder, f"{len(remote):,} remote segments are not examined for overlaps")
    elif remote:
        with ThreadPoolExecutor(_READERS) as pool:  # they are known then
            list(pool.map(end_of, *zip(*remote, strict=True)))
            growing = [live[-1].log for live in partitions if live and _is_remote(live[-1])]
            list(pool.map(_head, growing, repeat(0)))
    are_too_many = len(remote) > _MOST_REMOTE
    return [
        [
            one.offsets.last if are_too_many and not one.log.is_local else end_of(one, other)
            for one, other in pairwise(live)
        ]
        + [MAX_INT64]
        for live in partitions
    ]


def _is_remote(segment: Segment) -> bool:
    return not (segment.log.is_local or isinstance(segment.log, TieredFile))


def end_of(segment: Segment, following: Segment) -> int:
    """The last offset of a segment, before the first one of the following unless they overlap.

    It is remembered: looking it up takes some 50 µs, or a round trip. Tiered storage tells it.
    """
    log = segment.log
    if isinstance(log, TieredFile):
        return segment.offsets.last
    key = log.path, log.size, log.modified_ns
    if key in _known:
        _known.move_to_end(key)
        last = _known[key]
    else:
        last = _known[key] = _last_offset(segment, following.base_offset)
        if len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)
    return segment.base_offset - 1 if last is None else last


def _last_offset(segment: Segment, bound: int) -> int | None:
    """The last offset of a segment; if it is at a bound or after it, several batches agree."""
    if not segment.log.size:
        return None
    try:
        last = _offset_in_last_batch(segment.log)
        if last is not None and last < bound:
            return last
        return _confirmed(segment, bound)
    except (KafkaJitError, OSError, EOFError) as error:  # EOFError: a cleaner has replaced it
        logger.info("%s: its last offset is not known: %s", segment.log.path, error)
        return None


def _offset_in_last_batch(log: StoredFile) -> int | None:
    """The last offset of the batch that ends a log; None if no batch of v2 does."""
    size = log.size
    for window in _WINDOWS:
        count = min(window, size)
        content = as_bytes(log.read(size - count, count))
        start = _last_batch(content)
        if start >= 0:
            batch = frame(content, start).batches[:1]
            if len(batch) and batch.is_valid(content)[0]:
                return int(batch.last_offset[0])
        if count == size:
            break
    return None


def _confirmed(segment: Segment, bound: int) -> int | None:
    """The last offset of a segment by the headers of its last batches.

    No checksum covers a batch's base offset. If the last batch leaps over the beginning of the next
    segment, but would fit before it with another bit, its offset is wrong: offsets of the segments
    after it would be hidden. The same if it leaps farther than compaction leaves gaps. Small gaps
    may happen to differ by a bit: then it has to fit exactly.
    """
    source, start = OpenSegment(segment).tail(bound - 1)
    if start:  # an index has the last batch by its wrong offset
        start = IndexEntries(segment).position_before(start - 1)
        source = segment.log.open(start)
    last = segment.base_offset - 1 if start == 0 else None
    for batches in Walk(source, mode=PERMISSIVE, start=start).framed():
        firsts, lasts = batches.header["baseOffset"].astype(np.int64), batches.last_offset
        late = lasts >= bound
        late[late] = batches[late].is_valid(source.content)
        for row in np.flatnonzero(late | (lasts < bound)).tolist():
            following = int(firsts[row]) if last is None else last + 1
            is_wrong = bool(late[row]) and _leaps(
                int(firsts[row]), int(lasts[row]), following, bound
            )
            if is_wrong or lasts[row] - segment.base_offset > MAX_INT32:
                report_once(
                    segment.log.path,
                    f"the batch at position {batches.position[row]} begins at offset "
                    f"{firsts[row]}, and should begin at {following}, since the next segment "
                    f"begins at {bound}: it is not taken for an overlap",
                )
                continue
            last = max(following - 1, int(lasts[row]))
        source.forget(int(batches.end[-1]))
    return last


def _leaps(first: int, last: int, following: int, bound: int) -> bool:
    """Whether a wrong base offset lets a batch reach over the beginning of the next segment.

    Args:
        first: its base offset.
        last: its last offset.
        following: the offset behind the batch before it.
        bound: the offset at which the next segment begins.

    >>> _leaps(14, 18, 10, 15), _leaps(14, 18, 10, 16), _leaps(13, 17, 10, 15)
    (True, False, False)
    >>> _leaps((1 << 20) + 11, (1 << 20) + 12, 10, 15)
    True
    """
    room = Range(following, bound - 1 - (last - first))
    if first <= following or not room:
        return False
    if first - following >= _ABSURD_LEAP:
        return True
    if first - following < _RARE_LEAP:
        return room.first == room.last and (first ^ following).bit_count() == 1
    return any(first & bit and first - bit in range(room.first, room.last + 1) for bit in _BITS)


@cache
def report_once(path: str, what: str) -> None:
    """Warn once: a prompt plans many queries over the same segments."""
    logger.warning("%s: %s", path, what)


@kernel
def _last_batch(content):
    """The position of a batch of v2 that ends with the content; -1 without one."""
    p = content.size - RECORD_BATCH_OVERHEAD
    while p >= 0:
        length = content.size - p - LOG_OVERHEAD
        size = read_int32(content, p + BATCH_LENGTH_OFFSET)
        if content[p + MAGIC_OFFSET] == MAGIC_V2 and size == length:
            return p
        p -= 1
    return np.int64(-1)
