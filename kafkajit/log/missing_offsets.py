"""Offsets that a log should have: missing segments at its start, inside and at its end.

A broker begins each segment with the offset behind the last one, and names it by its first batch's
offset, so segments of a log that was never compacted have no gaps between them, and none before
their first batches. Compaction leaves gaps. Retention and DeleteRecords
delete segments from the log's start on, and keep the files beside the log in step: the leader
epochs begin at the log's start, and a segment's producer snapshot goes with it. No offset in a
checkpoint, a snapshot's name or a leader epoch is behind the log's end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from kafkajit.format.amounts import number_of, offsets_are
from kafkajit.state.checkpoints import START_OFFSETS

# These topics are compacted, whatever the defaults of a broker are.
COMPACTED_TOPICS = ("__consumer_offsets", "__transaction_state")


class Extent(NamedTuple):
    """The offsets of a segment, which are empty if `behind` is the base offset."""

    base_offset: int
    first: int  # of the first batch, or the base offset if damaged bytes are before that
    behind: int  # behind the last one
    ends_in_damage: bool = False  # damaged bytes may have had offsets behind these

    @property
    def name(self) -> str:
        """The name of its log."""
        return f"{self.base_offset:020d}.log"


@dataclass
class Evidence:
    """The facts about a log that other files have."""

    why_cleaned: str | None = None  # why records may have been compacted away
    tiered: str | None = None  # why its first segments may be in tiered storage
    is_being_deleted: bool = False  # whether segments before the first one wait to be deleted
    log_start_offset: int = 0  # in log-start-offset-checkpoint
    # Offsets that are or were in the log, and the file that knows each.
    starts: list[tuple[int, str]] = field(default_factory=list)
    ends: list[tuple[int, str]] = field(default_factory=list)  # the log ended there, or later
    # The first and last offsets in indexes of logs that are empty or do not exist.
    indexed: list[tuple[int, int, str]] = field(default_factory=list)


class Missing(NamedTuple):
    """Offsets that no segment has."""

    first: int
    last: int
    is_trouble: bool  # False: it may be as it should
    text: str
    is_before_start: bool = False  # the log ends before its start in the checkpoint

    def document(self) -> dict[str, Any]:
        """The entry in a JSON document."""
        return {
            "firstMissingOffset": self.first,
            "lastMissingOffset": self.last,
            "isTrouble": self.is_trouble,
            "problem": self.text,
        }


def find_missing(
    segments: Sequence[Extent], evidence: Evidence, *, has_holes: bool
) -> list[Missing]:
    """Find the offsets that are missing.

    Args:
        segments: in any order.
        evidence: what the files beside the log tell.
        has_holes: whether offsets are missing between or in the batches of a segment, as after
            compaction. Those before its first batch do not count: its name may be wrong.

    >>> segments = [Extent(0, 0, 10), Extent(30, 30, 40)]
    >>> [(one.first, one.last) for one in find_missing(segments, Evidence(), has_holes=False)]
    [(10, 29)]
    """
    if not segments:
        return []
    names = sorted([one.base_offset for one in segments] + [base for base, *_ in evidence.indexed])
    segments = sorted(_named(one, names) for one in segments)
    found = [*missing_before(segments, evidence)]
    why = evidence.why_cleaned
    if why is None and has_holes:
        why = "segments have gaps inside, as after compaction or salvage"
    found += _between(segments, why, evidence)
    if not segments[-1].ends_in_damage:
        found += missing_behind(max(segment.behind for segment in segments), evidence)
    return found


def _named(segment: Extent, names: Sequence[int]) -> Extent:
    """The segment under a name that it can have: a segment ends before the next one's name."""
    behind = bisect_right(names, segment.base_offset)
    is_wrong = behind < len(names) and names[behind] <= segment.first
    if is_wrong or segment.first < segment.base_offset:
        return segment._replace(base_offset=segment.first)
    return segment


def missing_before(segments: Sequence[Extent], evidence: Evidence) -> Iterator[Missing]:
    """The offsets that a log lacks at its start, if there are any."""
    begin = segments[0].base_offset
    starts = [*evidence.starts, *((first, name) for first, _, name in evidence.indexed)]
    earlier = [(max(offset, 0), name) for offset, name in starts if offset < begin]
    earlier = [(offset, name) for offset, name in earlier if offset >= evidence.log_start_offset]
    if not earlier or evidence.is_being_deleted or evidence.log_start_offset >= begin:
        return
    first = min(offset for offset, _ in earlier)
    names = " and ".join(dict.fromkeys(name for _, name in earlier))
    text = f"{_offsets(first, begin - 1)} before {segments[0].name}, the first segment: {names}"
    text += " know of them" if " and " in names else " knows of them"
    if evidence.tiered is not None:
        yield Missing(first, begin - 1, False, f"{text}; {evidence.tiered}")
        return
    text += ", and a broker forgets them when it deletes segments, unless it is killed right then"
    yield Missing(first, begin - 1, True, text)


def _between(
    segments: Sequence[Extent], why_cleaned: str | None, evidence: Evidence
) -> Iterator[Missing]:
    usual = []
    behind = max(segments[0].base_offset, evidence.log_start_offset)
    for before, segment in pairwise([None, *segments]):
        assert segment is not None
        first, last = behind, segment.first - 1
        behind = max(behind, segment.behind)
        if first > last or (before is not None and before.ends_in_damage):
            continue
        indexes = [name for base, _, name in evidence.indexed if first <= base <= last]
        text = f"{_offsets(first, last)} before {segment.name}"
        if before is not None:
            text = f"{_offsets(first, last)} between {before.name} and {segment.name}"
        if segment.base_offset < segment.first:
            text = f"{_offsets(first, last)} before the first batch of {segment.name}"
        if indexes:
            verb = "has" if len(indexes) == 1 else "have"
            *others, final = indexes
            listed = f"{', '.join(others)} and {final}" if others else final
            text += f", but {listed} {verb} entries"
            yield Missing(first, last, True, text)
        elif why_cleaned is None:
            text += ", and nothing tells that the log was compacted"
            yield Missing(first, last, True, text)
        elif first < segment.base_offset:
            usual.append((first, segment.base_offset - 1))
    if usual:
        text = f"{_offsets(*usual[0])} between segments"
        if len(usual) > 1:
            text += f", and others at {number_of(len(usual) - 1, 'more place')}"
        yield Missing(*usual[0], False, f"{text}: {why_cleaned}")


def missing_behind(end: int, evidence: Evidence) -> Iterator[Missing]:
    """The offsets that a log lacks at its end, if there are any."""
    starts = [(evidence.log_start_offset, START_OFFSETS)]
    ends = [*starts, *evidence.ends, *((last + 1, name) for _, last, name in evidence.indexed)]
    later = [(offset, name) for offset, name in ends if offset > end]
    if later:
        offset, name = max(later)
        text = f"{_offsets(end, offset - 1)} at the log's end: "
        is_before_start = evidence.log_start_offset > end
        if is_before_start:
            text += (
                f"the log starts at {evidence.log_start_offset} by {START_OFFSETS}, and a broker "
                "deletes all of its segments when it loads them"
            )
        else:
            text += f"{name} has offsets up to {offset - 1}"
        yield Missing(end, offset - 1, True, text, is_before_start)


def _offsets(first: int, last: int) -> str:
    return f"{offsets_are(first, last)} missing"
