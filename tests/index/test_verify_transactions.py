from __future__ import annotations

from pathlib import Path

import pytest
from corpus import DATA

import kafkajit.testing as kt
from kafkajit.index import verify_transaction_index
from kafkajit.index.transaction_index import ENTRY
from kafkajit.records.control_records import ABORT, COMMIT

INDEXES = sorted(DATA.rglob("*.txnindex"))

RECORD = [kt.Record(value=b"v")]


def data(offset: int, producer: int) -> bytes:
    return kt.batch(RECORD, base_offset=offset, producer_id=producer, is_transactional=True)


def marker(offset: int, producer: int, kind: int) -> bytes:
    return kt.control_batch(kind, base_offset=offset, producer_id=producer)


# Producer 1 commits at 2 and aborts 3 to 5; producer 2 aborts 4 to 7.
LOG = b"".join(
    [
        *(data(0, 1), data(1, 9), marker(2, 1, COMMIT), data(3, 1), data(4, 2)),
        *(marker(5, 1, ABORT), data(6, 2), marker(7, 2, ABORT)),
    ]
)
GOOD = [(1, 3, 5, 4), (2, 4, 7, 1)]
NO_MARKER = "the log has no such marker"
ELSEWHERE = "its transaction begins at another offset"


def problems(log: bytes, entries: list[tuple[int, int, int, int]]) -> list[tuple[int, str]]:
    found = verify_transaction_index(log, kt.transaction_index(entries)).to_pylist()
    return [(row["entry"], row["problem"]) for row in found]


@pytest.mark.parametrize("path", INDEXES, ids=lambda path: f"{path.parent.name}/{path.name[17:]}")
def test_the_transaction_index_of_a_broker_fits_its_log(path: Path) -> None:
    assert verify_transaction_index(path.with_suffix(".log"), path).num_rows == 0


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (GOOD, []),
        ([(2, 4, 7, 1)], [(None, "the index lacks this aborted transaction")]),
        ([(3, 3, 5, 4), GOOD[1]], [(0, NO_MARKER)]),
        ([(1, 3, 5, 4), (2, 4, 6, 1)], [(1, NO_MARKER), (None, None)]),
        ([(1, 2, 5, 4), GOOD[1]], [(0, ELSEWHERE)]),
        ([(1, 4, 5, 4), GOOD[1]], [(0, ELSEWHERE)]),
        ([GOOD[1], GOOD[0]], [(1, "entries out of order: it is not behind the one before")]),
        ([GOOD[0], (2, -7, 7, 1)], [(1, ELSEWHERE)]),
        ([(1, 0, 2, 0), *GOOD], [(0, NO_MARKER)]),
    ],
)
def test_an_entry_that_the_markers_contradict_is_listed(
    entries: list[tuple[int, int, int, int]], expected: list[tuple[int | None, str | None]]
) -> None:
    found = problems(LOG, entries)
    lacking = "the index lacks this aborted transaction"
    assert found == [(entry, problem or lacking) for entry, problem in expected]


def test_every_flipped_bit_of_an_entry_but_of_its_last_stable_offset_is_a_problem() -> None:
    sound = kt.transaction_index(GOOD)
    for bit in range(8 * (ENTRY.itemsize - 8)):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 0x80 >> bit % 8
        found = verify_transaction_index(LOG, bytes(damaged))["entry"].to_pylist()
        first_offset_may_be_earlier = 10 * 8 <= bit < 11 * 8 and bit % 8 == 0
        assert found[:1] == [0] or first_offset_may_be_earlier, bit


def test_a_transaction_may_have_begun_in_an_earlier_segment() -> None:
    later = data(10, 1) + marker(11, 2, ABORT) + marker(12, 1, ABORT)
    assert problems(later, [(2, 3, 11, 3), (1, 4, 12, 4)]) == []


def test_markers_that_damage_took_contradict_no_entry() -> None:
    position = LOG.rindex(marker(7, 2, ABORT))
    damaged = bytearray(LOG)
    damaged[position + 70] ^= 1
    assert problems(bytes(damaged), GOOD) == []


def test_an_entry_that_is_cut_and_a_version_that_is_unknown_are_problems() -> None:
    sound = kt.transaction_index(GOOD)
    found = verify_transaction_index(LOG, b"\1" + sound[1:] + b"\0" * 5)["problem"].to_pylist()
    assert found == ["its version is not 0", "the file ends inside this entry"]


def test_compaction_may_leave_a_marker_without_an_entry() -> None:
    emptied = kt.batch([], base_offset=0, producer_id=1, is_transactional=True)
    assert problems(emptied + marker(1, 1, ABORT), []) == []
    assert problems(data(0, 1) + marker(1, 1, ABORT), []) != []
