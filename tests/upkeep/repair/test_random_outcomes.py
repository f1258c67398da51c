"""The statements of a plan about transactions, against what the undamaged log had."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from corpus import NO_JIT
from partitions import CONFIG, data, log_name, make_partition, marker, transactional
from repair_differential import outcomes

import kafkajit
from kafkajit.errors import NotALogError
from kafkajit.upkeep.repair.lost_ends import CERTAIN, WORDS, LostEnd

PRODUCERS = (7, 8, 9)


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


class Truth(NamedTuple):
    """A transaction of the undamaged log."""

    producer_id: int
    offsets: frozenset[int]
    was: str
    marker_offset: int | None  # None if it is open


class RandomLog:
    """Transactions of several producers, one among the other, and batches without one."""

    def __init__(self, dice: random.Random) -> None:
        self.batches: list[bytes] = []
        self.truths: list[Truth] = []
        self.markers: dict[int, bytes] = {}
        self.firsts: list[int] = []  # the offset of each batch, and of the end
        open_now: dict[int, set[int]] = {}
        sequences = dict.fromkeys(PRODUCERS, 0)
        offset = 0
        for _ in range(dice.randint(4, 14)):
            producer = dice.choice(PRODUCERS)
            self.firsts.append(offset)
            kind = dice.choice(["data", "data", "end", "end", "other"])
            if kind == "other":
                count = dice.choice([1, 1, 2])
                self.batches.append(data(offset, count))
                offset += count
            elif kind == "end" and producer in open_now:
                control_type = dice.randrange(2)
                self._end(producer, open_now.pop(producer), WORDS[control_type], offset)
                self.markers[offset] = marker(offset, producer, control_type)
                self.batches.append(self.markers[offset])
                offset += 1
            else:
                batch = transactional(offset, producer, sequences[producer])
                self.batches.append(batch)
                sequences[producer] += 2
                open_now.setdefault(producer, set()).update((offset, offset + 1))
                offset += 2
        for producer, offsets in open_now.items():
            self._end(producer, offsets, "open", None)
        self.end = offset
        self.firsts.append(offset)

    def _end(self, producer: int, offsets: set[int], was: str, at: int | None) -> None:
        self.truths.append(Truth(producer, frozenset(offsets), was, at))

    def truth_of(self, end: LostEnd) -> Truth:
        """The transaction of the last record that a statement is about."""
        one = end.transaction
        return next(
            truth
            for truth in self.truths
            if truth.producer_id == one.producer_id and one.last_offset in truth.offsets
        )


def damaged(batch: bytes, dice: random.Random) -> bytes:
    """The batch with one or more wrong bits, without its contents, or without its end."""
    kind = dice.choice(["bit", "bit", "bits", "zeros", "noise", "cut"])
    content = bytearray(batch)
    if kind in ("bit", "bits"):
        for _ in range(1 if kind == "bit" else dice.randint(2, 4)):
            bit = dice.randrange(8 * 17, 8 * len(content))
            content[bit // 8] ^= 1 << bit % 8
        return bytes(content)
    if kind == "zeros":
        return bytes(len(batch))
    if kind == "noise":
        return dice.randbytes(len(batch))
    return batch[: dice.randrange(1, len(batch))]


def check(seed: int, work: Path) -> Iterator[str]:
    """Damage a log and repair it; yield what its plan states."""
    dice = random.Random(seed)
    log = RandomLog(dice)
    folder = make_partition(work / str(seed) / "orders-0", {0: log.batches})
    places = range(len(log.batches))
    if dice.random() < 0.5:  # side by side
        first = dice.randrange(len(log.batches))
        places = range(first, min(first + dice.randint(1, 4), len(log.batches)))
    chance = 1.0 if len(places) < len(log.batches) else 0.25
    content = [
        damaged(batch, dice) if place in places and dice.random() < chance else batch
        for place, batch in enumerate(log.batches)
    ]
    if dice.random() < 0.2:  # the log's end is lost
        del content[-dice.randint(1, 3) :]
    (folder / log_name(0)).write_bytes(b"".join(content))
    for pattern in ("*.txnindex", "*.snapshot", "*.*index"):
        if dice.random() < 0.3:
            for path in folder.glob(pattern):
                path.unlink()
    sound = [place for place, one in enumerate(content) if one in log.batches]
    end_of_sound = max(sound, default=-1)
    is_end_unknown = (
        not b"".join(content[end_of_sound + 1 :]).strip(b"\0")  # as if it were preallocated
        and not [*folder.glob("*.snapshot"), *folder.glob("*.txnindex")]
    )
    options = dice.choice(
        [
            {"salvage": True},
            {"salvage": False},
            {"salvage": True, "abort_open": True},
            {"salvage": True, "truncate_to": dice.randrange(log.end + 1)},
        ]
    )
    try:
        (plan,) = kafkajit.repair(folder, config=CONFIG, **options).partitions  # type: ignore[arg-type]
    except NotALogError:
        return  # its first bytes are noise: nothing is done
    plan.apply(keep=False)
    after = outcomes(folder)
    kept = (folder / log_name(0)).read_bytes()
    for end in plan.transactions:
        truth = log.truth_of(end)
        own = None if truth.marker_offset is None else log.markers[truth.marker_offset]
        is_lost = own is None or own not in kept
        where = f"seed {seed}, {options}: {end.text}; it was {truth}"
        if end.certainty == CERTAIN:
            assert own is not None, f"it was open: {where}"
            assert is_lost, f"its marker stays: {where}"
            if end.marker_offset is not None and end.written is None:
                assert end.marker_offset == truth.marker_offset, where
            assert end.since <= truth.marker_offset, where
        if end.was is not None and is_lost:
            assert WORDS[end.was] == truth.was, where
        becomes = end.document()["becomes"]
        last = end.transaction.producer_id, end.transaction.last_offset
        assert after[last] == becomes, f"it is {after[last]}: {where}"
        yield end.certainty
        if end.was is not None:
            yield "outcome"
    listed = {
        (end.transaction.producer_id, offset)
        for end in plan.transactions
        for offset in range(end.transaction.first_offset, end.transaction.last_offset + 1)
    }
    for truth in log.truths:
        if is_end_unknown and (truth.marker_offset or 0) >= log.firsts[end_of_sound + 1]:
            continue  # nothing proves that the log had more
        for offset in truth.offsets:
            record = truth.producer_id, offset
            if after.get(record, truth.was) != truth.was:
                yield "changed"
                assert record in listed, (
                    f"seed {seed}, {options}: {record} was {truth.was}, is {after[record]}"
                )


@pytest.mark.whole
def test_no_certain_statement_about_a_transaction_is_wrong(tmp_path: Path) -> None:
    stated = [word for seed in range(60) for word in check(seed, tmp_path)]
    assert {CERTAIN, "outcome", "changed"} <= set(stated)


@pytest.mark.thorough
@pytest.mark.skipif(NO_JIT, reason="thousands of logs, with kernels that are interpreted")
def test_no_certain_statement_about_thousands_of_transactions_is_wrong(tmp_path: Path) -> None:
    stated = [word for seed in range(60, 4000) for word in check(seed, tmp_path)]
    assert stated.count(CERTAIN) > 1000
