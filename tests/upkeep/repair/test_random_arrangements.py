"""Random damage to the logs of a partition, of which only the batches' offsets count.

What holds for each: no offset stays twice; without salvage nothing stays that salvage does not
keep; and what stays is arranged in the same way again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, pairwise

import numpy as np
import pytest

from kafkajit.upkeep.repair.arrangement import Arrangement, arrange
from kafkajit.upkeep.repair.census import BATCH
from kafkajit.upkeep.repair.log_bodies import Facts, LogRows

SIZE = 100
# The first and the last offset, and the number of the batch; None for damaged bytes.
Batch = tuple[int, int, int] | None
Logs = dict[int, list[Batch]]


@dataclass
class _Log:
    """The logs of a partition, and what is done to them."""

    rng: random.Random
    logs: Logs
    end: int
    numbers: count[int]

    def some(self) -> int:
        return self.rng.choice([base for base, log in self.logs.items() if log])

    def move(self, base: int, place: int, first: int) -> None:
        """Let a batch lie about its base offset."""
        batch = self.logs[base][place]
        if batch is not None:
            self.logs[base][place] = (first, first + batch[1] - batch[0], batch[2])

    def batches(self, offset: int, behind: int) -> list[Batch]:
        found: list[Batch] = []
        while offset < behind:
            last = offset + self.rng.randrange(3)
            found.append((offset, last, next(self.numbers)))
            offset = last + 1
        return found


def _damaged(at: _Log) -> None:
    log = at.logs[at.some()]
    log[at.rng.randrange(len(log))] = None


def _lies(at: _Log) -> None:
    base = at.rng.choice([at.some(), max(base for base, log in at.logs.items() if log)])
    place = at.rng.choice([0, -1, at.rng.randrange(len(at.logs[base]))])
    batch = at.logs[base][place]
    if batch is not None:
        bit = at.rng.choice([0, 1, 2, 3, 4, 5, 12, 31, 40, 61])
        ahead = 2 ** at.rng.randint(6, 50)
        at.move(base, place, at.rng.choice([batch[0] ^ 1 << bit, batch[0] + ahead]))


def _exchanged(at: _Log) -> None:
    one, two = at.rng.choice([*at.logs]), at.rng.choice([*at.logs])
    at.logs[one], at.logs[two] = at.logs[two], at.logs[one]


def _renamed(at: _Log) -> None:
    base = at.some()
    name = at.rng.choice([base + at.rng.randint(1, 9), at.end + 9])
    if name not in at.logs:
        at.logs[name] = at.logs.pop(base)


def _copied(at: _Log) -> None:
    base = at.some()
    name = at.rng.choice([base + at.rng.randint(1, 12), at.end + at.rng.randint(0, 9)])
    at.logs.setdefault(name, [*at.logs[base]])


def _missing(at: _Log) -> None:
    base = at.some()
    at.rng.choice([at.logs.pop, lambda base: at.logs[base].clear()])(base)


def _cut(at: _Log) -> None:
    log = at.logs[at.some()]
    del log[at.rng.randrange(len(log)) :]


def _out_of_order(at: _Log) -> None:
    log = at.logs[at.some()]
    one, two = at.rng.randrange(len(log)), at.rng.randrange(len(log))
    log[one], log[two] = log[two], log[one]


def _elsewhere(at: _Log) -> None:
    """A batch twice, or in another log."""
    log, other = at.logs[at.some()], at.logs[at.some()]
    place = at.rng.randrange(len(log))
    batch = log[place] if at.rng.random() < 0.5 else log.pop(place)
    other.insert(at.rng.randint(0, len(other)), batch)


def _overlapping(at: _Log) -> None:
    """Another history of some offsets."""
    base = at.some() + at.rng.randint(0, 6)
    at.logs.setdefault(base, at.batches(base, base + at.rng.randint(3, 25)))


DAMAGES: list[Callable[[_Log], None]] = [
    _damaged,
    _lies,
    _lies,
    _exchanged,
    _renamed,
    _copied,
    _missing,
    _cut,
    _out_of_order,
    _elsewhere,
    _overlapping,
]


def _some_logs(rng: random.Random, *, was_cleaned: bool) -> tuple[Logs, int]:
    """Damaged logs, and the offset where they ended before."""
    numbers = count(1)
    at = _Log(rng, {}, rng.choice([0, 0, 40]), numbers)
    for _ in range(rng.randint(2, 4)):
        behind = at.end + rng.randint(4, 15)
        log = at.batches(at.end, behind)
        keeps = [place == 0 or not was_cleaned or rng.random() < 0.8 for place in range(len(log))]
        at.logs[at.end] = [batch for batch, stays in zip(log, keeps, strict=True) if stays]
        at.end = max(behind, (log[-1] or (0, 0, 0))[1] + 1)
    for damage in rng.choices(DAMAGES, k=rng.choice([1, 2, 2, 3, 3, 4])):
        if any(at.logs.values()):
            damage(at)
    return at.logs, at.end


def _rows(logs: Logs) -> list[LogRows]:
    found = []
    for base, batches in sorted(logs.items()):
        rows = [
            (SIZE * place, SIZE * (place + 1), batch[0], batch[1], batch[2], 1)
            for place, batch in enumerate(batches)
            if batch is not None
        ]
        bad = [place for place, batch in enumerate(batches) if batch is None]
        gaps = [SIZE * place for place in bad if place - 1 not in bad]
        found.append(LogRows(base, np.array(rows, BATCH), np.array(gaps, dtype=np.int64)))
    return found


def _kept(found: Arrangement, logs: list[LogRows]) -> dict[int, tuple[int, int]]:
    """By offset, the batch that stays and the offset's place in it."""
    kept: dict[int, tuple[int, int]] = {}
    for log, row, first, last, *_ in found.places.tolist():
        batch = logs[log].rows[row]
        for offset in range(first, last + 1):
            assert offset not in kept, "an offset stays twice"
            kept[offset] = (int(batch["crc"]), offset - int(batch["first"]))
    return kept


def _logs_of(found: Arrangement, logs: list[LogRows]) -> Logs:
    """The logs that an arrangement makes. A part of a batch is a batch of its own."""
    after: Logs = {base: [] for base in found.empty}
    starts = sorted(found.bases)
    for start, behind in pairwise([*starts, found.places.size]):
        after[found.bases[start]] = [
            (first, last, 9999 if is_part else int(logs[log].rows[row]["crc"]))
            for log, row, first, last, is_part, _ in found.places[start:behind].tolist()
        ]
    return after


def _check(seed: int) -> None:
    rng = random.Random(seed)
    was_cleaned = rng.random() < 0.25
    logs, end = _some_logs(rng, was_cleaned=was_cleaned)
    rows = _rows(logs)
    facts = Facts(rng.choice([end - 1, end - 1, end - 1, end - 5, -1]), was_cleaned)
    kept: dict[bool, dict[int, tuple[int, int]]] = {}
    for salvage in (True, False):
        found = arrange(rows, facts, salvage=salvage)
        kept[salvage] = _kept(found, rows)
        known = max([facts.known_offset, *kept[salvage]])  # its new indexes and snapshots know it
        after = _rows(_logs_of(found, rows))
        for salvages in (True, False):
            again = arrange(after, facts._replace(known_offset=known), salvage=salvages)
            assert [*_kept(again, after)] == [*kept[salvage]], f"seed {seed}: a second run"
            assert sorted(again.bases.values()) == sorted(found.bases.values()), f"seed {seed}"
    others = [one for one in kept[False] if kept[False][one] != kept[True].get(one)]
    assert not others, f"seed {seed}: without salvage offsets {others} stay, too"


def test_what_stays_without_salvage_is_a_part_of_what_salvage_keeps() -> None:
    for seed in range(500):
        _check(seed)


@pytest.mark.thorough
def test_what_stays_of_many_logs_without_salvage_is_a_part_of_what_salvage_keeps() -> None:
    for seed in range(500, 30_000):
        _check(seed)
