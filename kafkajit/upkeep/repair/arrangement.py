"""Arrange the sound batches of a partition's logs: which stay, in which order, in which segments.

A broker that serves an offset reads the segment with the greatest base offset that is not behind
it, from the first batch that ends there or later (LocalLog.read and LogSegment.read of Kafka
4.1.1). So a consumer that reads from the log's start gets all of a segment, even what overlaps the
next one, and continues in the segment of the offset behind. If two batches have the same offset,
the one that this consumer gets stays. A batch that it does not get stays, too, if its offsets are
free.

Nothing is read here. The rows of `census` come in, and the places of those that stay come out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.limits import MAX_INT32, MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.storage.source import Int64s, Mask
from kafkajit.upkeep.repair.log_bodies import LEAPS, Bodies, Facts, LogRows, early

# A batch that stays, or the part of it with these offsets.
PLACE = np.dtype(
    [
        ("log", np.int64),
        ("row", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("isPart", np.bool_),
        ("begins", np.bool_),  # whether it is the first of its log that stays
    ]
)
Places = npt.NDArray[np.void]

# Why a batch does not stay.
COPY = "an equal batch stays"
BEHIND = "it is behind what is cut away"
HIDDEN = "another batch with its offsets stays: the one that consumers from the log's start read"
CLEANED = "consumers do not read it, and compaction may have removed its records"


class Tail(NamedTuple):
    """The end of a log that goes, whatever it has."""

    position: int
    reason: str | None  # None: that of what is at the position


@dataclass
class Arrangement:
    """The batches that stay, in the order of their offsets."""

    places: Places
    bases: dict[int, int]  # a row of `places` at which a segment begins → its base offset
    empty: dict[int, int]  # a base offset → the log that stays there without a batch
    tails: dict[int, Tail]  # by log
    fates: list[npt.NDArray[np.object_]]  # by log, why each batch goes; "" if it stays
    strays: list[Mask]  # by log, the batches that are out of order
    is_cut: bool  # whether damage ends the log


def arrange(
    logs: Sequence[LogRows], facts: Facts, *, salvage: bool, truncate_to: int | None = None
) -> Arrangement:
    """Arrange the batches of logs, which come in the order of their base offsets."""
    return _Arranging(logs, facts, salvage, truncate_to).arranged()


class _Arranging:
    def __init__(
        self, logs: Sequence[LogRows], facts: Facts, salvage: bool, truncate_to: int | None
    ) -> None:
        self._logs = logs
        self._facts = facts
        self._salvage = salvage
        self._truncate_to = truncate_to
        bodies = Bodies(logs, facts, salvage=salvage)
        self._fates, self._strays, self._bodies = bodies.fates, bodies.strays, bodies.in_order

    def arranged(self) -> Arrangement:
        served = self._served()
        end, cut = (MAX_INT64, None) if self._salvage else self._cut(served)
        served = served[served["first"] < end]
        places = self._with_free(served, end)
        if self._truncate_to is not None:
            goes = places["last"] >= self._truncate_to
            if goes.any():
                places, cut = places[: int(np.argmax(goes))], None
        self._settle_fates(places, end)
        bases = self._bases(places)
        return Arrangement(
            places,
            bases,
            self._empty(places, bases, cut),
            self._tails(places, cut),
            self._fates,
            self._stray_masks(),
            cut is not None,
        )

    def _stray_masks(self) -> list[Mask]:
        masks: list[Mask] = [np.zeros(log.rows.size, dtype=np.bool_) for log in self._logs]
        for log, row in self._strays:
            masks[log][row] = True
        return masks

    # Which of them a consumer gets.

    def _served(self) -> Places:
        """The batches that a consumer from the log's start gets, in this order."""
        begins = [body.begin for body in self._bodies]
        found = [np.empty(0, PLACE)]
        offset = max(self._facts.next_offset, min(begins, default=0))
        while True:
            at = max(bisect_right(begins, offset) - 1, 0)
            while at < len(self._bodies) and self._bodies[at].last[-1] < offset:
                at += 1
            if at >= len(self._bodies):
                return np.concatenate(found)
            body = self._bodies[at]
            begin = int(np.searchsorted(body.last, offset))
            places = np.empty(body.rows.size - begin, PLACE)
            places["log"], places["row"] = body.log, body.rows[begin:]
            places["first"], places["last"] = body.first[begin:], body.last[begin:]
            places["isPart"] = places["first"] < offset
            places["begins"] = np.arange(places.size) == 0
            places["first"] = np.maximum(places["first"], offset)
            found.append(places)
            offset = int(places["last"][-1]) + 1

    def _cut(self, served: Places) -> tuple[int, tuple[int, int] | None]:
        """The offset at which damage ends the log, and the log and position of that damage."""
        end, cut = MAX_INT64, None
        changes = np.flatnonzero(np.diff(served["log"], prepend=-1)).tolist()
        for begin, behind in pairwise([*changes, served.size]):
            log, row = int(served["log"][begin]), int(served["row"][begin])
            rows, fates = self._logs[log].rows, self._fates[log]
            is_bad = (fates != "") & (fates != early(self._logs[log].base_offset))
            good = np.flatnonzero(~is_bad[:row])
            start = int(rows["end"][good[-1]]) if good.size else 0
            bad = np.concatenate([self._logs[log].gaps, rows["position"][is_bad]])
            bad = bad[bad >= start]
            if bad.size:
                position = int(bad.min())
                run = served[begin:behind]
                kept = run[rows["position"][run["row"]] < position]
                last = (
                    kept["last"][-1] if kept.size else (served["last"][begin - 1] if begin else -1)
                )
                end, cut = max(int(last) + 1, self._facts.next_offset), (log, position)
                break
        for log, (base_offset, rows, gaps, _) in enumerate(self._logs):
            fates = self._fates[log]
            has_batches = bool(((fates == "") | (fates == early(base_offset))).any())
            if has_batches or not (gaps.size or rows.size) or base_offset >= end:
                continue
            at = bisect_right(served["first"], base_offset) - 1
            if at >= 0 and served["last"][at] >= base_offset:
                continue  # no consumer reads it
            position = int(np.concatenate([gaps, rows["position"]]).min())
            end = int(served["last"][at]) + 1 if at >= 0 else self._facts.next_offset
            cut = (log, position)
        return end, cut

    # Which others stay.

    def _with_free(self, served: Places, end: int) -> Places:
        """The places with those of batches that no consumer gets, but whose offsets are free."""
        taken = _Taken(served)
        is_served = [np.zeros(log.rows.size, dtype=np.bool_) for log in self._logs]
        for mask, of_log in zip(is_served, self._by_log(served), strict=True):
            mask[served["row"][of_log]] = True
        waiting: list[tuple[int, int, int]] = []
        for body in self._bodies:
            rows = body.rows[~is_served[body.log][body.rows]]
            first = self._logs[body.log].rows["first"][rows]
            hidden = zip(first.tolist(), rows.tolist(), strict=True)
            waiting += [(offset, body.log, row) for offset, row in hidden if offset < end]
        if self._salvage:
            strays = self._strays
            waiting += [(int(self._logs[log].rows["first"][row]), log, row) for log, row in strays]
        found = []
        log_end = int(served["last"][-1]) if served.size else -1
        stray = set(self._strays)
        for offset, log, row in sorted(waiting):
            batch: Any = self._logs[log].rows[row]
            if self._is_copy(taken, batch):
                self._fates[log][row] = COPY
                continue
            whole = Range(offset, int(batch["last"]))
            free = taken.free(whole)
            is_far = offset > log_end + 1 and whole.last > self._facts.known_offset
            if (log, row) in stray and free and is_far:
                self._fates[log][row] = LEAPS
                continue
            if (log, row) not in stray and self._facts.was_cleaned:
                free = [one for one in free if self._is_damaged(one)]
                self._fates[log][row] = CLEANED
            if not free:
                self._fates[log][row] = HIDDEN if self._fates[log][row] != CLEANED else CLEANED
                continue
            self._fates[log][row] = ""
            for one in free:
                place = np.array([(log, row, *one, one != whole, False)], PLACE)
                found.append(place)
                taken.take(one, (log, row) if one == whole else None)
                log_end = max(log_end, one.last)
        if not found:
            return served
        places = np.concatenate([served, *found])
        return places[np.argsort(places["first"], kind="stable")]

    def _is_copy(self, taken: _Taken, batch: Any) -> bool:
        found = taken.batch_at(int(batch["first"]))
        if found is None:
            return False
        log, row = found
        other = self._logs[log].rows[row]
        return bool(
            other["last"] == batch["last"]
            and other["crc"] == batch["crc"]
            and other["end"] - other["position"] == batch["end"] - batch["position"]
        )

    def _is_damaged(self, offsets: Range) -> bool:
        """Whether these offsets may have been those of damaged bytes."""
        for body in self._bodies:
            rows = self._logs[body.log].rows
            for position in self._logs[body.log].gaps.tolist():
                at = int(np.searchsorted(rows["position"][body.rows], position))
                before = body.last[at - 1] if at else body.begin - 1
                behind = body.first[at] if at < body.first.size else MAX_INT64
                if before < offsets.first and offsets.last < behind:
                    return True
        return False

    # What becomes of the logs.

    def _settle_fates(self, places: Places, end: int) -> None:
        truncate_to = self._truncate_to
        for log, of_log in enumerate(self._by_log(places)):
            fates = self._fates[log]
            goes = fates == ""
            goes[places["row"][of_log]] = False
            behind = self._logs[log].rows["first"] >= end
            fates[goes & behind] = BEHIND
            if truncate_to is not None:
                fates[goes & ~behind] = as_asked(truncate_to)

    def _bases(self, places: Places) -> dict[int, int]:
        """Begin segments with the first batches of logs, under the logs' names if these fit."""
        bases: dict[int, int] = {}
        if not places.size:
            return bases
        begins = np.flatnonzero(places["begins"]).tolist()
        for at in sorted({0, *begins}):
            before = int(places["last"][at - 1]) if at else self._facts.next_offset - 1
            name = self._logs[int(places["log"][at])].base_offset
            first = int(places["first"][at])
            bases[at] = name if before < name <= first else first
        sizes = self._sizes(places)
        for at, behind in pairwise([*sorted(bases), places.size]):
            filled = 0
            total = int(sizes[at:behind].sum())
            for row in range(at, behind) if total > MAX_INT32 else ():
                if filled + int(sizes[row]) > MAX_INT32:
                    bases[row], filled = int(places["first"][row]), 0
                filled += int(sizes[row])
        return dict(sorted(bases.items()))

    def _by_log(self, places: Places) -> list[npt.NDArray[np.intp]]:
        """The indexes of the places of each log."""
        order = np.argsort(places["log"], kind="stable")
        bounds = np.searchsorted(places["log"][order], np.arange(1, len(self._logs)))
        return np.split(order, bounds) if self._logs else []

    def _sizes(self, places: Places) -> Int64s:
        sizes = np.zeros(places.size, dtype=np.int64)
        for log, of_log in enumerate(self._by_log(places)):
            chosen = self._logs[log].rows[places["row"][of_log]]
            sizes[of_log] = chosen["end"] - chosen["position"]
        return sizes

    def _tails(self, places: Places, cut: tuple[int, int] | None) -> dict[int, Tail]:
        """The ends of logs that go because the log ends before them."""
        tails: dict[int, Tail] = {}
        truncate_to = self._truncate_to
        if cut is None and truncate_to is None:
            return tails
        why = BEHIND if cut is not None or truncate_to is None else as_asked(truncate_to)
        by_log = self._by_log(places)
        for log, (base_offset, rows, *_) in enumerate(self._logs):
            stays = places["row"][by_log[log]]
            goes = np.flatnonzero(self._fates[log] == why)
            if cut is not None and log == cut[0]:
                tails[log] = Tail(cut[1], None)
            elif not stays.size:
                is_behind = truncate_to is not None and base_offset > truncate_to
                if cut is not None:
                    is_behind = log > cut[0]
                if goes.size or (not rows.size and is_behind):
                    tails[log] = Tail(0, why)
            elif goes.size and goes[0] > stays.max():
                tails[log] = Tail(int(rows["position"][goes[0]]), why)
        return tails

    def _empty(
        self, places: Places, bases: Mapping[int, int], cut: tuple[int, int] | None
    ) -> dict[int, int]:
        """The logs that stay although none of their batches does: where the log ends, or damaged.

        A log of which every batch is in others does not stay.
        """
        found: dict[int, int] = {}
        truncate_to = self._truncate_to
        by_log = self._by_log(places)
        for log, (base_offset, rows, *_) in enumerate(self._logs):
            if by_log[log].size:
                continue
            if cut is not None:
                is_candidate = log == cut[0] or (not rows.size and log < cut[0])
            elif truncate_to is not None:
                is_asked = bool((self._fates[log] == as_asked(truncate_to)).any())
                is_candidate = base_offset <= truncate_to and (is_asked or not rows.size)
            else:
                is_candidate = not rows.size
            behind = int(np.searchsorted(places["first"], base_offset, side="right"))
            is_taken = behind > 0 and places["last"][behind - 1] >= base_offset
            is_inside = behind < places.size and bases.get(behind, -1) <= base_offset
            is_taken |= base_offset < self._facts.next_offset
            if is_candidate and not is_taken and not is_inside:
                found[base_offset] = log
        return found


class _Taken:
    """The offsets that batches already have."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._more: list[Range] = []
        self._whole: dict[int, tuple[int, int]] = {}  # of those, by first offset

    def take(self, offsets: Range, whole: tuple[int, int] | None) -> None:
        """Add offsets that are free, and the log and row of the batch if they are all of its."""
        insort(self._more, offsets)
        if whole is not None:
            self._whole[offsets.first] = whole

    def batch_at(self, first: int) -> tuple[int, int] | None:
        """The log and row of the whole batch that begins at this offset."""
        if first in self._whole:
            return self._whole[first]
        at = int(np.searchsorted(self._places["first"], first))
        if at == self._places.size or self._places["first"][at] != first:
            return None
        place = self._places[at]
        return None if place["isPart"] else (int(place["log"]), int(place["row"]))

    def free(self, offsets: Range) -> list[Range]:
        """The ranges of these offsets that no batch has."""
        first, last = self._places["first"], self._places["last"]
        begin = int(np.searchsorted(last, offsets.first))
        behind = int(np.searchsorted(first, offsets.last, side="right"))
        taken = list(
            map(
                Range._make,
                zip(first[begin:behind].tolist(), last[begin:behind].tolist(), strict=True),
            )
        )
        at = max(bisect_left(self._more, offsets) - 1, 0)
        while at < len(self._more) and self._more[at].first <= offsets.last:
            taken.append(self._more[at])
            at += 1
        free = []
        start = offsets.first
        for one in sorted(taken):
            if start < one.first:
                free.append(Range(start, min(one.first - 1, offsets.last)))
            start = max(start, one.last + 1)
        if start <= offsets.last:
            free.append(Range(start, offsets.last))
        return free


def as_asked(truncate_to: int) -> str:
    """Why a batch goes if the log is cut at an offset."""
    return f"as asked, from offset {truncate_to} on"
