"""The batches of each log that follow each other, and the base offsets that lie.

No checksum covers a base offset, so a batch with a right checksum may be in a wrong place:

- The batches around it leave exactly its number of offsets, but it has others.
- It is behind later ones, and before the beginning of all segments.
- It is its segment's last batch, and leaps over the beginning of the next segment.
- It is its segment's last batch, and leaps beyond all offsets that the other files and the later
  segments know. In a log that was never compacted, the offsets of its batches have no gaps but for
  damage. In any log, an offset is at most 2^31 - 1 behind its segment's base offset: a broker rolls
  the segment before that. If a batch with a known offset follows it, it leaps in any log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.limits import MAX_INT32
from kafkajit.format.ranges import Range
from kafkajit.storage.source import Int64s, Mask
from kafkajit.upkeep.repair.census import BatchRows
from kafkajit.upkeep.repair.longest_chain import longest_chain

# Why a batch does not stay where it is.
MISPLACED = (
    "InvalidOffsetError: its base offset, which no checksum covers, contradicts the batches around "
    "it"
)
LEAPS = (
    "InvalidOffsetError: its base offset, which no checksum covers, leaps beyond all that is known "
    "of the log; a broker would continue the log there"
)
CONTRADICTS = "InvalidOffsetError: its offsets contradict those of other batches"


class LogRows(NamedTuple):
    """The sound batches of a log, and the bytes without one."""

    base_offset: int  # in its name
    rows: BatchRows
    gaps: Int64s  # positions
    rejected: Mapping[int, str] = {}  # by position, why a batch goes in any case


class Facts(NamedTuple):
    """Facts about a log that its batches do not have."""

    known_offset: int = -1  # the greatest offset that another file knows; -1 if none knows one
    was_cleaned: bool = False  # whether a cleaner may have removed records
    next_offset: int = 0  # behind the segments before these


class Body(NamedTuple):
    """The batches of a log that follow each other, and the offset at which the log belongs."""

    log: int
    rows: Int64s
    first: Int64s
    last: Int64s
    begin: int


class Bodies:
    """The bodies of the logs of a partition, which come in the order of their base offsets."""

    def __init__(self, logs: Sequence[LogRows], facts: Facts) -> None:
        self._logs = logs
        self._facts = facts
        self.fates = [_first_fates(log) for log in logs]  # why each batch goes; "" if it stays
        self.strays: list[tuple[int, int]] = []  # log and row of batches that are out of order
        # Of the logs behind the one that is looked at:
        self._next_begin: int | None = None  # the first offset of the next one with a right name
        self._known_end = facts.known_offset  # the greatest offset of all, and that of Facts
        bodies = [self._body(log) for log in reversed(range(len(logs)))]
        self._drop_strays_before(bodies)
        self.in_order = self._in_order(bodies[::-1])

    def _body(self, log: int) -> Body:
        base_offset, rows, *_ = self._logs[log]
        first, last = rows["first"], rows["last"]
        fates = self.fates[log]
        fates[(first < 0) | (last < first)] = CONTRADICTS
        fates[self._misplaced(log) & (fates == "")] = MISPLACED
        fits = np.flatnonzero(fates == "")
        if fits.size > 1 and (first[fits][1:] <= last[fits][:-1]).any():
            chain = fits[longest_chain(first[fits], last[fits])]
            if last[chain[-1]] < base_offset and (first[fits] == base_offset).any():
                # Copies of another segment, beside batches that the name is right for.
                own = fits[first[fits] >= base_offset]
                chain = own[longest_chain(first[own], last[own])]
            chain = self._without_leap(log, fits, chain)
            self._stray(log, np.setdiff1d(fits, chain))
            fits = chain
        begin = int(np.searchsorted(first[fits], base_offset))
        is_hole = 0 < begin < fits.size and last[fits[begin - 1]] + 1 < first[fits[begin]]
        if is_hole and self._leap(log, fits[begin:], first[fits[0]]):
            # Batches before the name, and batches behind it that do not follow them: the first
            # ones lie, unless the others leap. If they follow each other, the name is wrong.
            self._stray(log, fits[:begin], early(base_offset))
            fits = fits[begin:]
        leaps = self._leap(log, fits, base_offset)
        self._stray(log, fits[leaps:])
        fits = fits[:leaps]
        begin = int(first[fits[0]]) if fits.size else base_offset
        if fits.size:
            self._known_end = max(self._known_end, int(last[fits[-1]]))
            self._next_begin = begin if begin >= base_offset else self._next_begin
        return Body(log, fits, first[fits], last[fits], begin)

    def _drop_strays_before(self, bodies: list[Body]) -> None:
        """A batch behind later ones does not lie before the log's start, where offsets are free."""
        # Logs before these have all up to the next offset.
        begins = [self._facts.next_offset] if self._facts.next_offset else []
        begins += [self._logs[body.log].base_offset for body in bodies]
        begins += [int(body.first[0]) for body in bodies if body.rows.size]
        start = min(begins, default=0)
        kept = []
        for log, row in self.strays:
            rows = self._logs[log].rows
            last = rows["last"][row]
            if last < start and (rows["first"][:row] > last).any():
                self.fates[log][row] = MISPLACED
            else:
                kept.append((log, row))
        self.strays = kept

    def _without_leap(self, log: int, fits: Int64s, chain: Int64s) -> Int64s:
        """The chain with another last batch, if its own is beyond all that is known of the log.

        So the chain is as long as before, and only one of the two base offsets can be right.
        """
        base_offset, rows, *_ = self._logs[log]
        known, first, last = self._facts.known_offset, rows["first"], rows["last"]
        end = chain[-1]
        if known < 0 or last[end] <= known:
            return chain
        others = fits[fits > end]
        others = others[last[others] < min(int(first[end]), known + 1)]
        least = int(last[chain[-2]]) + 1 if chain.size > 1 else base_offset
        others = others[first[others] >= least]
        return np.append(chain[:-1], others[:1]) if others.size else chain

    def _stray(self, log: int, rows: Int64s, why: str = CONTRADICTS) -> None:
        self.fates[log][rows] = why
        self.strays += [(log, row) for row in rows.tolist()]

    def _misplaced(self, log: int) -> Mask:
        """The batches that are not at the offsets which the batches around them leave for them."""
        base_offset, rows, *_ = self._logs[log]
        behind = self._logs[log + 1].base_offset if log + 1 < len(self._logs) else -1
        left = np.append(base_offset, rows["last"][:-1] + 1)
        next_first = np.append(rows["first"][1:], behind)
        found: Mask = (rows["first"] != left) & (
            left + (rows["last"] - rows["first"]) + 1 == next_first
        )
        for row in np.flatnonzero(found).tolist():
            hole = Range(int(left[row]), int(next_first[row]) - 1)
            # If another batch has these offsets, the two have changed places. If another is equal,
            # the base offset is right.
            for other in self._logs:
                has_them = (other.rows["first"] <= hole.last) & (other.rows["last"] >= hole.first)
                if other.rows is rows:
                    has_them[row] = False
                elif _has_equal(other.rows, rows[row]):
                    found[row] = False
                found[row] &= not has_them.any()
        return found

    def _leap(self, log: int, rows: Int64s, begin: int) -> int:
        """The number of rows before those that leap to where they cannot belong.

        The log begins at the offset `begin`, or with the first row.
        """
        of_log = self._logs[log].rows
        first, last = of_log["first"][rows], of_log["last"][rows]
        missing = first - np.append(self._logs[log].base_offset, last[:-1] + 1)[: rows.size]
        # Damaged bytes before a batch may have had the offsets, but not any number of them.
        damaged = of_log["position"][rows] - np.append(0, of_log["end"])[rows]
        is_known = self._facts.known_offset >= 0 and not self._facts.was_cleaned
        begin = min([begin, *first[:1].tolist()])
        behind, count = self._next_begin, rows.size
        while count and missing[count - 1] > 0:  # several that agree do not lie
            start, before = int(first[count - 1]), int(last[count - 2]) if count > 1 else -1
            is_over = behind is not None and before < behind < start
            is_odd = is_known and missing[count - 1] > damaged[count - 1]
            is_far = last[count - 1] - begin > MAX_INT32
            if not is_over and not (start > self._known_end and (is_far or is_odd)):
                break
            count -= 1
        return count

    def _in_order(self, bodies: list[Body]) -> list[Body]:
        """The logs with batches, each at the offset from which a broker would look into it."""
        bodies = [body for body in bodies if body.rows.size]
        firsts = np.array([body.first[0] for body in bodies])
        lasts = np.array([body.last[-1] for body in bodies])
        ordered = []
        for body in bodies:
            base_offset = self._logs[body.log].base_offset
            if base_offset < body.begin:
                others = np.flatnonzero((firsts < body.begin) & (lasts >= base_offset)).tolist()
                before = Range(base_offset, body.begin - 1)
                if not any(_has_any(bodies[other], before) for other in others):
                    body = body._replace(begin=base_offset)
            ordered.append(body)

        def order(body: Body) -> tuple[int, bool, int]:
            # Of logs with the same offsets, the one with the best name comes last: it is read.
            base_offset = self._logs[body.log].base_offset
            return body.begin, base_offset <= body.begin, base_offset

        return sorted(ordered, key=order)


def _first_fates(log: LogRows) -> npt.NDArray[np.object_]:
    fates = np.full(log.rows.size, "", dtype=object)
    for position, reason in log.rejected.items():
        fates[log.rows["position"] == position] = reason
    return fates


def early(base_offset: int) -> str:
    """Why the first batches of a log with a wrong name go."""
    return f"its offsets are before {base_offset}, where its segment begins"


def _has_equal(rows: BatchRows, batch: np.void) -> bool:
    same = (rows["first"] == batch["first"]) & (rows["last"] == batch["last"])
    same &= rows["crc"] == batch["crc"]
    return bool((rows["end"] - rows["position"] == batch["end"] - batch["position"])[same].any())


def _has_any(body: Body, offsets: Range) -> bool:
    begin = int(np.searchsorted(body.last, offsets.first))
    return begin < body.last.size and int(body.first[begin]) <= offsets.last
