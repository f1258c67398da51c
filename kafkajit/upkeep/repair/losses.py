"""The losses of a log: the bytes that do not stay, why, and the offsets that are missing then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.amounts import number_of
from kafkajit.format.ranges import Range
from kafkajit.storage.source import Mask
from kafkajit.upkeep.repair.arrangement import COPY, Tail
from kafkajit.upkeep.repair.census import ZEROS, Census
from kafkajit.upkeep.repair.damaged_batches import DamagedBatch, damaged_batches
from kafkajit.upkeep.repair.left_offsets import LeftOffsets
from kafkajit.upkeep.repair.log_bodies import CONTRADICTS, LEAPS, MISPLACED
from kafkajit.upkeep.repair.pieces import Extent, are_in

_FAR = 2**63
_MOST_CLAIMED = 2
_PUT_RIGHT = "its offset, which no checksum covers, is not that of its last message: written anew"
_PARTLY = "some of its offsets are those of other batches; the rest is written anew"


class Loss(NamedTuple):
    """Bytes of a log that do not stay; offsets are None if they are unknown or do not exist.

    The missing offsets are those that no batch has afterwards.
    """

    path: str
    position: int
    length: int
    reason: str
    first_missing_offset: int | None
    last_missing_offset: int | None
    first_offset: int | None = None  # of the sound batches among the bytes
    last_offset: int | None = None
    records: int = 0  # that are lost, as far as anything tells
    uncounted_bytes: int = 0  # with records whose number nothing tells

    def text(self, size: int) -> str:
        """A line about it in a log of this size."""
        end = self.position + self.length
        place = f"cut out {self.position} to {end}"
        if end == size:
            place = f"cut off at {self.position}"
        return f"{place}, {self.length} bytes{self.offsets_text}: {self.reason_text}"

    @property
    def offsets_text(self) -> str:
        """The offsets of sound batches, behind the number of bytes."""
        if self.first_offset is None:
            return ""
        return f", {_offsets(self.first_offset, self.last_offset)}"

    @property
    def reason_text(self) -> str:
        """The reason, and the missing offsets."""
        first, last = self.first_missing_offset, self.last_missing_offset
        if first is None or (first, last) == (self.first_offset, self.last_offset):
            return self.reason
        if first == last:
            return f"{self.reason}; offset {first} is missing"
        to = "on" if last is None else f"to {last}"
        return f"{self.reason}; offsets from {first} {to} are missing"

    def document(self) -> dict[str, Any]:
        """The loss as a JSON object."""
        return {
            "path": self.path,
            "position": self.position,
            "length": self.length,
            "reason": self.reason,
            "firstMissingOffset": self.first_missing_offset,
            "lastMissingOffset": self.last_missing_offset,
            "firstOffset": self.first_offset,
            "lastOffset": self.last_offset,
            "records": self.records,
            "uncountedBytes": self.uncounted_bytes,
        }


class RecordCounts(NamedTuple):
    """The records that stay and those that are lost, without markers."""

    kept: int = 0
    lost: int = 0
    uncounted_bytes: int = 0  # of damaged bytes with records whose number nothing tells

    def __add__(self, other: tuple[Any, ...]) -> RecordCounts:
        return RecordCounts(*(one + more for one, more in zip(self, other, strict=True)))

    @property
    def text(self) -> str:
        """The counts as a line."""
        lost = number_of(self.lost, "record")
        if self.uncounted_bytes:
            lost += f", and those of {number_of(self.uncounted_bytes, 'damaged byte')},"
        return f"{lost} lost, {self.kept:,} kept"

    def document(self) -> dict[str, int]:
        """The counts as a JSON object."""
        return {
            "there": self.kept + self.lost,
            "kept": self.kept,
            "lost": self.lost,
            "uncountedBytes": self.uncounted_bytes,
        }


def counts_of(kept: int, losses: Iterable[Loss]) -> RecordCounts:
    """The counts of a log that loses this."""
    lost = [(loss.records, loss.uncounted_bytes) for loss in losses]
    return RecordCounts(kept, sum(one for one, _ in lost), sum(unknown for _, unknown in lost))


def without_markers(losses: Sequence[Loss], offsets: Iterable[int]) -> list[Loss]:
    """The losses, if these missing offsets were those of markers and not of records."""
    found = list(losses)
    for offset in offsets:
        for place, loss in enumerate(found):
            first, last = loss.first_missing_offset, loss.last_missing_offset
            is_inside = first is not None and last is not None and first <= offset <= last
            if is_inside and loss.records and loss.first_offset is None:
                found[place] = loss._replace(records=loss.records - 1)
                break
    return found


class Kept:
    """The offsets that stay, of all logs.

    Args:
        runs: the first and the last offset of each run.
        damaged: where logs begin that begin with damage, in order: the offsets are theirs.
    """

    def __init__(self, runs: npt.NDArray[np.int64], damaged: Sequence[int] = ()) -> None:
        self._ranges = [Range(first, last) for first, last in runs.tolist()]
        self._damaged = damaged

    def missing(self, offsets: Range) -> Range | None:
        """The part of these offsets, from its first to its last, that does not stay."""
        first, last = offsets
        at = max(bisect_right(self._ranges, (first, _FAR)) - 1, 0)
        while at < len(self._ranges) and self._ranges[at].first <= first:
            first = max(first, self._ranges[at].last + 1)
            at += 1
        at = bisect_right(self._ranges, (last, _FAR)) - 1
        while at >= 0 and self._ranges[at].last >= last:
            last = min(last, self._ranges[at].first - 1)
            at -= 1
        return Range(first, last) if first <= last else None

    def behind(self, offset: int) -> int | None:
        """The first offset from this one on that stays, or is lost by another log's damage."""
        at = bisect_right(self._ranges, (offset, _FAR))
        if at and self._ranges[at - 1].last >= offset:
            return offset
        behind = self._damaged[bisect_right(self._damaged, offset) :][:1]
        stays = self._ranges[at : at + 1]
        return min([*behind, *(run.first for run in stays)], default=None)

    def between(self) -> list[Range]:
        """The offsets that are missing between those that stay."""
        gaps = (Range(one.last + 1, two.first - 1) for one, two in pairwise(self._ranges))
        return [gap for gap in gaps if gap]

    def end_before(self, offset: int) -> int:
        """The offset behind the last one that stays before this offset."""
        at = bisect_right(self._ranges, (offset - 1, _FAR))
        return min(self._ranges[at - 1].last + 1, offset) if at else 0

    @property
    def end(self) -> int:
        """The offset behind the last one."""
        return self._ranges[-1].last + 1 if self._ranges else 0


@dataclass
class LogFate:
    """The batches of a log that stay, and the reasons why others go."""

    extents: list[Extent] = field(default_factory=list)  # what stays, in order
    fates: npt.NDArray[np.object_] | None = None  # of each batch, why it goes
    tail: Tail | None = None
    rejected: dict[int, str] = field(default_factory=dict)  # by position, why a batch goes
    written: dict[int, int] = field(default_factory=dict)  # by position, records written instead
    strays: Mask | None = None  # the batches that are out of order


class Hole(NamedTuple):
    """Damaged bytes between batches, and the offsets that are missing for them."""

    loss: Loss
    batches: list[DamagedBatch]  # that the bytes had, if their headers can be believed
    before: int  # the last offset of the batch before them


def losses_of(
    census: Census, fate: LogFate, kept: Kept
) -> Iterator[tuple[Loss, list[DamagedBatch]]]:
    """Yield what a log loses, by position, each with the batches that damaged bytes had."""
    if fate.extents == [Extent(census.log, 0, census.size)]:
        return
    parts = _parts(census, fate, kept)
    at = 0
    while at < len(parts):
        behind = at + 1
        is_tail = fate.tail is not None and parts[at].position >= fate.tail.position
        while behind < len(parts) and (is_tail or _belong(parts[behind - 1], parts[behind], fate)):
            behind += 1
        yield _loss(census, parts[at:behind], fate.tail if is_tail else None, kept)
        at = behind


class _Part(NamedTuple):
    """A batch or damaged bytes that do not stay."""

    position: int
    end: int
    reason: str
    is_damage: bool  # its offsets are those that the batches around it leave
    offsets: Range | None  # of a sound batch
    records: int
    left: Range  # the offsets that the batches around it leave
    claimed: Range | None  # the offsets in the header of a sound batch


def _parts(census: Census, fate: LogFate, kept: Kept) -> list[_Part]:
    rows = census.rows
    stays = are_in(rows, fate.extents)
    reasons = np.full(rows.size, "", dtype=object) if fate.fates is None else fate.fates
    is_misplaced = np.isin(reasons.astype(str), (MISPLACED, LEAPS))
    is_ordered = ~is_misplaced & (reasons != CONTRADICTS)
    if fate.strays is not None:
        is_ordered &= ~fate.strays
    offsets_left = LeftOffsets(census, is_ordered, stays)

    def left_at(position: int) -> Range:
        begin, behind = offsets_left.around(position)
        if begin is None:
            begin = census.base_offset
            if offsets_left.rows.size:  # the log may have a wrong name
                end = kept.end_before(behind)
                begin = max(begin, end) if begin < behind else end
        return Range(begin, behind - 1)

    parts = []
    for gap in census.gaps:
        end = gap.position + gap.length
        left = left_at(gap.position)
        parts.append(_Part(gap.position, end, gap.reason, True, None, 0, left, None))
    for row in np.flatnonzero(~stays).tolist():
        batch = rows[row]
        position = int(batch["position"])
        offsets = Range(int(batch["first"]), int(batch["last"]))
        is_damage = bool(is_misplaced[row])
        parts.append(
            _Part(
                position,
                int(batch["end"]),
                fate.rejected.get(position)
                or str(reasons[row])
                or (_PUT_RIGHT if census.lies[row] else _PARTLY),
                is_damage,
                None if is_damage else offsets,
                int(batch["records"]) - fate.written.get(position, 0),
                left_at(position) if is_damage else offsets,
                offsets,
            )
        )
    return sorted(parts)


def _belong(one: _Part, other: _Part, fate: LogFate) -> bool:
    """Whether two parts are listed as one."""
    if one.end != other.position or one.is_damage != other.is_damage:
        return False
    if fate.tail is not None and other.position >= fate.tail.position:
        return False
    return one.is_damage or one.reason == other.reason


def _loss(
    census: Census, group: Sequence[_Part], tail: Tail | None, kept: Kept
) -> tuple[Loss, list[DamagedBatch]]:
    position, length = group[0].position, group[-1].end - group[0].position
    reason = group[0].reason
    if tail is not None and tail.reason is not None:
        reason = tail.reason
    elif tail is None and group[0].is_damage and len(group) > 1:
        reason += f" (and {len(group) - 1} more{_claimed(group)})"
    sound = [part.offsets for part in group if part.offsets is not None]
    if group[0].is_damage:  # sound batches may follow, but the line is about the damage
        sound = []
    first = min((one.first for one in sound), default=None)
    last = max((one.last for one in sound), default=None)
    records = sum(part.records for part in group if part.reason != COPY)
    uncounted, damaged = 0, []
    done: Range | None = None
    runs: dict[Range, list[_Part]] = {}
    for part in group:
        if part.is_damage:
            runs.setdefault(part.left, []).append(part)
    for part in group:
        if part.is_damage and part.left != done:  # damage side by side has the same offsets left
            done = part.left
            run = runs[done]
            lost, unknown, batches = _damage(census, run, kept)
            records += max(lost - sum(other.records for other in run), 0)
            uncounted += unknown
            damaged += batches
    missing: Range | None
    if tail is not None:
        missing = Range(kept.end if position else first or census.base_offset, _FAR)
        if tail.position == 0 and first is not None and last is not None:
            missing = kept.missing(Range(first, last))
        if reason == ZEROS:
            missing = None
    elif group[0].is_damage:
        missing = _missing(group[0].left, kept)
        if reason == ZEROS:
            missing = None
    else:
        assert first is not None
        assert last is not None
        missing = kept.missing(Range(first, last))
    loss = Loss(
        str(census.log),
        position,
        length,
        reason,
        None if missing is None else missing.first,
        None if missing is None or missing.last >= _FAR - 1 else missing.last,
        first,
        last,
        records,
        uncounted,
    )
    return loss, damaged


def _claimed(group: Sequence[_Part]) -> str:
    """The offsets in the headers of sound batches beside damaged bytes: they may be right."""
    claimed = [part.claimed for part in group if part.claimed is not None]
    if not claimed:
        return ""
    shown = " and ".join(_offsets(*one) for one in claimed[:_MOST_CLAIMED])
    if len(claimed) == 1:
        return f", among them a sound batch with {shown} in its header"
    ending = " and others" if len(claimed) > _MOST_CLAIMED else ""
    return f", among them {len(claimed)} sound batches with {shown}{ending} in their headers"


def _missing(left: Range, kept: Kept) -> Range | None:
    """The offsets that are missing of those that batches leave, which other logs may have."""
    if left.last < _FAR - 1:
        return kept.missing(left) if left else None
    behind = kept.behind(left.first)
    if behind is None:
        return left
    return kept.missing(Range(left.first, behind - 1)) if behind > left.first else None


def _damage(
    census: Census, run: Sequence[_Part], kept: Kept
) -> tuple[int, int, list[DamagedBatch]]:
    """The number of records that damage costs, the bytes of unknown ones, and what they had."""
    missing = _missing(run[0].left, kept)
    unsound = [part for part in run if part.claimed is None and part.reason != ZEROS]
    if missing is None or not unsound:
        return 0, 0, []
    start = run[0].position
    length = run[-1].end - start
    is_open = missing.last >= _FAR - 1
    batches = damaged_batches(
        census.log, start, length, missing.first, None if is_open else missing.last
    )
    if batches:
        return sum(batch.records for batch in batches), 0, batches
    if is_open:
        return 0, sum(part.end - part.position for part in unsound), []
    sound = sum(part.claimed.last - part.claimed.first + 1 for part in run if part.claimed)
    # Sound batches may leave no offset for the bytes without one.
    if sound > missing.last - missing.first:
        return 0, sum(part.end - part.position for part in unsound), []
    return missing.last - missing.first + 1, 0, []


def _offsets(first: int, last: int | None) -> str:
    return f"offset {first}" if first == last else f"offsets {first} to {last}"
