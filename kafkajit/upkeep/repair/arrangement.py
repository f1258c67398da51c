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

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.limits import MAX_INT32, MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.storage.source import Int64s, Mask
from kafkajit.upkeep.repair.log_bodies import LEAPS, Bodies, Facts, LogRows, early
from kafkajit.upkeep.repair.places import PLACE, Places, Taken

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
class _Damage:
    """The damage that a consumer gets to, and where it ends the log."""

    end: int = MAX_INT64  # the offset
    cut: tuple[int, int] | None = None  # the log and position
    positions: dict[int, int] = field(default_factory=dict)  # by log that ends, but not the others


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
        bodies = Bodies(logs, facts)
        self._fates, self._strays, self._bodies = bodies.fates, bodies.strays, bodies.in_order
        self._is_stray = self._stray_masks()

    def arranged(self) -> Arrangement:
        served = self._served()
        damage = None if self._salvage else self._damage(served)
        why_stray = [self._fates[log][row] for log, row in self._strays]
        places = self._with_free(served)
        cut = None
        if damage is not None:
            for (log, row), why in zip(self._strays, why_stray, strict=True):
                if self._fates[log][row] != COPY:  # a copy costs nothing
                    self._fates[log][row] = why
            places, cut = self._before(damage, places), damage.cut
        if self._truncate_to is not None:
            goes = places["last"] >= self._truncate_to
            if goes.any():
                places, cut = places[: int(np.argmax(goes))], None
            self._settle_fates(places, as_asked(self._truncate_to))
        bases = self._bases(places)
        return Arrangement(
            places,
            bases,
            self._empty(places, bases, cut),
            self._tails(places, cut),
            self._fates,
            self._is_stray,
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

    def _damage(self, served: Places) -> _Damage:
        """The damage that a consumer gets to.

        A log with a wrong name must not end the log in the middle of other segments: it ends only
        itself.
        """
        found = _Damage()
        misnamed = {
            body.log for body in self._bodies if body.first[0] < self._logs[body.log].base_offset
        }
        changes = np.flatnonzero(np.diff(served["log"], prepend=-1)).tolist()
        for begin, behind in pairwise([*changes, served.size]):
            log, row = int(served["log"][begin]), int(served["row"][begin])
            _, rows, gaps, _ = self._logs[log]
            is_bad = self._is_bad(log)
            good = np.flatnonzero(~is_bad[:row])
            start = int(rows["end"][good[-1]]) if good.size else 0
            bad = np.concatenate([gaps, rows["position"][is_bad]])
            bad = bad[bad >= start]
            if not bad.size:
                continue
            position = int(bad.min())
            if log in misnamed:
                found.positions.setdefault(log, position)
                continue
            run = served[begin:behind]
            kept = run[rows["position"][run["row"]] < position]
            last = kept["last"][-1] if kept.size else (served["last"][begin - 1] if begin else -1)
            found.end, found.cut = max(int(last) + 1, self._facts.next_offset), (log, position)
            break
        for log, (base_offset, rows, gaps, _) in enumerate(self._logs):
            has_batches = not self._is_bad(log).all()
            if has_batches or not (gaps.size or rows.size) or base_offset >= found.end:
                continue
            at = bisect_right(served["first"], base_offset) - 1
            if at >= 0 and served["last"][at] >= base_offset:
                continue  # no consumer reads it
            position = int(np.concatenate([gaps, rows["position"]]).min())
            found.end = int(served["last"][at]) + 1 if at >= 0 else self._facts.next_offset
            found.cut = (log, position)
        return found

    def _is_bad(self, log: int) -> Mask:
        """The batches of a log that end it."""
        fates = self._fates[log]
        is_bad: Mask = (fates != "") & (fates != early(self._logs[log].base_offset))
        return is_bad

    def _before(self, damage: _Damage, places: Places) -> Places:
        """The places before damage. What is out of order is damage, too."""
        goes = places["last"] >= damage.end
        for log, of_log in enumerate(self._by_log(places)):
            rows = places["row"][of_log]
            goes[of_log] |= self._is_stray[log][rows]
            if log in damage.positions:
                position = self._logs[log].rows["position"][rows]
                goes[of_log] |= position >= damage.positions[log]
        places = places[~goes]
        self._settle_fates(places, BEHIND)
        taken = Taken(places)
        for log, (_, rows, *_) in enumerate(self._logs):
            fates = self._fates[log]
            for row in np.flatnonzero((fates == COPY) | (fates == HIDDEN)).tolist():
                batch: Any = rows[row]
                is_copy = self._is_copy(taken, batch)
                offsets = Range(int(batch["first"]), int(batch["last"]))
                if not is_copy and (fates[row] == COPY or taken.free(offsets)):
                    fates[row] = BEHIND
        return places

    # Which others stay.

    def _with_free(self, served: Places) -> Places:
        """The places with those of batches that no consumer gets, but whose offsets are free."""
        taken = Taken(served)
        is_served = [np.zeros(log.rows.size, dtype=np.bool_) for log in self._logs]
        for mask, of_log in zip(is_served, self._by_log(served), strict=True):
            mask[served["row"][of_log]] = True
        waiting = [(True, *stray) for stray in self._strays]
        for body in self._bodies:
            rows = body.rows[~is_served[body.log][body.rows]]
            waiting += [(False, body.log, row) for row in rows.tolist()]
        found = []
        served_end = log_end = int(served["last"][-1]) if served.size else -1
        # Those in order come first: it is more likely that their offsets are true.
        waiting.sort(key=lambda one: (one[0], int(self._logs[one[1]].rows["first"][one[2]]), *one))
        for is_stray, log, row in waiting:
            batch: Any = self._logs[log].rows[row]
            offset = int(batch["first"])
            if self._is_copy(taken, batch):
                self._fates[log][row] = COPY
                continue
            whole = Range(offset, int(batch["last"]))
            free = taken.free(whole)
            is_far = offset > log_end + 1 and whole.last > self._facts.known_offset
            if is_stray and free and is_far:
                self._fates[log][row] = LEAPS
                continue
            if not is_stray and self._facts.was_cleaned:
                # A cleaner leaves the log's end as it is.
                free = [one for one in free if one.first > served_end or self._is_damaged(one)]
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

    def _is_copy(self, taken: Taken, batch: Any) -> bool:
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

    def _settle_fates(self, places: Places, why: str) -> None:
        """Give the batches that have no place, and no other reason, this one."""
        for log, of_log in enumerate(self._by_log(places)):
            goes = self._fates[log] == ""
            goes[places["row"][of_log]] = False
            self._fates[log][goes] = why

    def _bases(self, places: Places) -> dict[int, int]:
        """Begin segments with the first batches of logs, under the logs' names if these fit."""
        bases: dict[int, int] = {}
        if not places.size:
            return bases
        own_begins = {body.log: body.begin for body in self._bodies}
        begins = np.flatnonzero(places["begins"]).tolist()
        for at in sorted({0, *begins}):
            before = int(places["last"][at - 1]) if at else self._facts.next_offset - 1
            log = int(places["log"][at])
            name, first = self._logs[log].base_offset, int(places["first"][at])
            fits = max(before + 1, own_begins.get(log, name)) <= name <= first
            bases[at] = name if fits else first
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


def as_asked(truncate_to: int) -> str:
    """Why a batch goes if the log is cut at an offset."""
    return f"as asked, from offset {truncate_to} on"
