from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from partitions import data, log_name, marker, transactional

import kafkajit.testing as kt
from kafkajit.index.transaction_index import ENTRY as ABORTED
from kafkajit.state.producer_snapshot import ENTRY, snapshot_entries
from kafkajit.storage.source import as_bytes
from kafkajit.upkeep.repair.sidecar_checks import (
    problem_with_offset_index,
    problem_with_snapshot,
    problem_with_time_index,
    problem_with_transaction_index,
)

SIZE = len(data(0))
TIME = 1_700_000_000_000


@pytest.fixture
def log(tmp_path: Path) -> str:
    """Forty batches: offsets 0 and 1, 2 and 3, …"""
    path = tmp_path / log_name(0)
    path.write_bytes(b"".join(data(offset) for offset in range(0, 80, 2)))
    return str(path)


def offset_entries(*rows: int) -> list[tuple[int, int]]:
    return [(2 * row + 1, row * SIZE) for row in rows]


ASKED = kt.offset_index(offset_entries(*range(2, 40, 2)))


@pytest.mark.parametrize(
    ("content", "misfit"),
    [
        (ASKED, None),
        (kt.offset_index(offset_entries(*range(3, 40, 3))), None),  # opened in between
        (b"", "it is empty"),
        (ASKED + bytes(80), "it ends in zeros"),
        (bytes(80), "it ends in zeros"),
        (ASKED[:-3], "entry 18: the file ends inside this entry"),
        (kt.offset_index([(5, 2 * SIZE + 1)]), "entry 0: no batch begins at its position"),
        (ASKED[8:16] + ASKED[:8], "entry 1: entries out of order: it is not behind"),
        (ASKED[:48], f"there is no entry for the last {28 * SIZE} bytes of the log"),
    ],
)
def test_an_offset_index_fits_where_it_is_true_and_says_enough(
    log: str, content: bytes, misfit: str | None
) -> None:
    found = problem_with_offset_index(as_bytes(content), ASKED, log, 40 * SIZE, 0, SIZE)
    assert (found or "").startswith(misfit or "")
    assert (found is None) == (misfit is None)


def test_an_offset_index_is_not_asked_for_entries_that_nobody_needs(log: str) -> None:
    assert problem_with_offset_index(as_bytes(b""), b"", log, 40 * SIZE, 0, 4096) is None
    one = as_bytes(kt.offset_index(offset_entries(4)))
    assert problem_with_offset_index(one, b"", log, 40 * SIZE, 0, 4096) is None


def time_entries(*rows: int) -> list[tuple[int, int]]:
    return [(TIME + 2000 * row, 2 * row + 1) for row in rows]


TIMES = kt.time_index(time_entries(*range(2, 40, 2), 39))


@pytest.mark.parametrize(
    ("content", "misfit"),
    [
        (TIMES, None),
        (kt.time_index(time_entries(7, 39)), None),
        (b"", "it is empty"),
        (TIMES + bytes(120), "it ends in zeros"),
        (TIMES[:-12], f"its last timestamp is {TIME + 76_000}, that of the log {TIME + 78_000}"),
        (TIMES[:-2], "entry 19: the file ends inside this entry"),
        (kt.time_index([(TIME, 5)]), "entry 0: its batch's largest timestamp is another"),
    ],
)
def test_a_time_index_fits_where_it_is_true_and_has_the_last_timestamp(
    log: str, content: bytes, misfit: str | None
) -> None:
    assert problem_with_time_index(as_bytes(content), TIMES, log, 0) == misfit


@pytest.fixture
def transactions(tmp_path: Path) -> str:
    """Producer 7 aborts at 6 while 8 has begun at 2; 8 aborts at 9, then 7 begins again."""
    path = tmp_path / log_name(0)
    batches = [transactional(0, 7), transactional(2, 8), data(4), marker(6, 7), data(7)]
    batches += [marker(9, 8), transactional(10, 7), transactional(12, 9), marker(14, 9)]
    path.write_bytes(b"".join(batches))
    return str(path)


ABORTS = [(6, 7), (9, 8), (14, 9)]
RIGHT = [(7, 0, 6, 2), (8, 2, 9, 10), (9, 12, 14, 10)]


@pytest.mark.parametrize(
    ("entries", "misfit"),
    [
        (RIGHT, None),
        # In one append: 7 has begun again when the broker sees the marker of 8.
        ([RIGHT[0], (8, 2, 9, 10), RIGHT[2]], None),
        ([RIGHT[0], (8, 2, 9, 12), RIGHT[2]], None),
        ([RIGHT[0], (8, 2, 9, 11), RIGHT[2]], "entry 1: its last stable offset is wrong"),
        ([RIGHT[0], (8, 2, 9, 14), RIGHT[2]], "entry 1: its last stable offset is wrong"),
        ([(7, 1, 6, 2), *RIGHT[1:]], "entry 0: the transaction begins elsewhere"),
        ([(7, -1, 6, 2), *RIGHT[1:]], None),  # before the log's start
        ([(3, 0, 6, 2), *RIGHT[1:]], "entry 0: the log has no such marker"),
        ([(7, 0, 5, 2), *RIGHT[1:]], "entry 0: the log has no such marker"),
        (RIGHT[1:], "it lacks the transaction that was aborted at offset 6"),
        ([], "it lacks the transaction that was aborted at offset 6"),
        ([RIGHT[1], RIGHT[0], RIGHT[2]], "its entries are out of order"),
    ],
)
def test_a_transaction_index_fits_where_it_has_all_that_were_aborted(
    transactions: str, entries: list[tuple[int, int, int, int]], misfit: str | None
) -> None:
    asked = np.array([(0, *entry) for entry in RIGHT], ABORTED)
    aborts = np.array(ABORTS, [("offset", np.int64), ("producerId", np.int64)])
    content = as_bytes(kt.transaction_index(entries))
    assert (
        problem_with_transaction_index(
            content, asked, aborts, [transactions], known_since=0, has_holes=False
        )
        == misfit
    )


def test_a_transaction_index_may_have_what_compaction_took_away(transactions: str) -> None:
    asked = np.array([(0, *entry) for entry in RIGHT[1:]], ABORTED)
    aborts = np.array(ABORTS, [("offset", np.int64), ("producerId", np.int64)])
    content = as_bytes(kt.transaction_index(RIGHT))
    log = Path(transactions).read_bytes()
    Path(transactions).write_bytes(log.removeprefix(transactional(0, 7)))
    assert (
        problem_with_transaction_index(
            content, asked, aborts, [transactions], known_since=0, has_holes=False
        )
        is None
    )
    Path(transactions).write_bytes(marker(6, 7) + marker(9, 8) + marker(14, 9))
    nothing = as_bytes(b"")
    assert (
        problem_with_transaction_index(
            nothing, asked, aborts, [transactions], known_since=0, has_holes=False
        )
        is None
    )
    torn = as_bytes(kt.transaction_index(RIGHT)[:-1])
    found = problem_with_transaction_index(
        torn, asked, aborts, [transactions], known_since=0, has_holes=False
    )
    assert found is not None
    assert "is not made of entries" in found


@pytest.mark.parametrize(
    ("first", "is_right"), [(5, True), (3, True), (2, False), (0, False), (6, False)]
)
@pytest.mark.parametrize("left", [True, False], ids=["an empty batch is left", "no batch is left"])
def test_a_cleaned_transaction_begins_behind_the_marker_before_it(
    tmp_path: Path, first: int, is_right: bool, left: bool
) -> None:
    path = tmp_path / log_name(0)
    empty = kt.batch(
        [], base_offset=5, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    log = transactional(0, 7) + marker(2, 7) + transactional(4, 8) + empty * left + marker(6, 7)
    path.write_bytes(log)
    earlier = (7, 0, 2, 3)
    asked = [earlier, (7, 5, 6, 4)] if left else [earlier]
    aborts = np.array([(2, 7), (6, 7)], [("offset", np.int64), ("producerId", np.int64)])
    problem = problem_with_transaction_index(
        as_bytes(kt.transaction_index([earlier, (7, first, 6, 4)])),
        np.array([(0, *entry) for entry in asked], ABORTED),
        aborts,
        [str(path)],
        known_since=0,
        has_holes=True,
    )
    if first == 6 and not left:
        is_right = True  # it has no batches
    assert problem == (None if is_right else "entry 1: the transaction begins elsewhere")


def test_a_transaction_from_before_the_log_begins_behind_the_marker_before_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / log_name(10)
    path.write_bytes(transactional(10, 7) + marker(12, 7) + transactional(13, 7) + marker(15, 7))
    aborts = np.array([(12, 7), (15, 7)], [("offset", np.int64), ("producerId", np.int64)])
    asked = np.array([(0, 7, 10, 12, 13), (0, 7, 13, 15, 16)], ABORTED)

    def problem(first: int) -> str | None:
        content = as_bytes(kt.transaction_index([(7, 3, 12, 13), (7, first, 15, 16)]))
        return problem_with_transaction_index(
            content, asked, aborts, [str(path)], known_since=10, has_holes=False
        )

    assert problem(13) is None
    assert problem(4) == "entry 1: the transaction begins elsewhere"


@pytest.mark.parametrize(
    ("markers", "is_right"),
    [([], True), ([(8, 7)], False), ([(8, 9)], True), ([(10, 7)], True), ([(3, 7)], True)],
)
def test_a_transaction_begins_behind_a_new_marker_of_its_producer(
    tmp_path: Path, markers: list[tuple[int, int]], is_right: bool
) -> None:
    """Its first batches are lost; the marker is not in the log yet."""
    path = tmp_path / log_name(0)
    path.write_bytes(data(0) + transactional(10, 7) + marker(12, 7))
    problem = problem_with_transaction_index(
        as_bytes(kt.transaction_index([(7, 5, 12, 13)])),
        np.array([(0, 7, 10, 12, 13)], ABORTED),
        np.array([(12, 7)], [("offset", np.int64), ("producerId", np.int64)]),
        [str(path)],
        known_since=0,
        has_holes=True,
        new_markers=markers,
    )
    assert problem == (None if is_right else "entry 0: the transaction begins elsewhere")


def producers(*rows: dict[str, int]) -> np.ndarray:
    entries = np.zeros(len(rows), ENTRY)
    for entry, row in zip(entries, rows, strict=True):
        entry["coordinatorEpoch"] = entry["currentTxnFirstOffset"] = -1
        entry["timestamp"] = TIME
        for name, value in row.items():
            entry[name] = value
    return entries


ONE = {"producerId": 1, "lastSequence": 3, "lastOffset": 10, "offsetDelta": 1}
TWO = {"producerId": 2, "lastSequence": 5, "lastOffset": 14, "currentTxnFirstOffset": 12}
DAY = 24 * 60 * 60 * 1000


@pytest.mark.parametrize(
    ("stored", "misfit", "if_compacted"),
    [
        ([ONE, TWO], None, None),
        ([TWO, ONE], None, None),
        ([ONE | {"lastOffset": 20}, TWO], *["it has producers from behind its offset"] * 2),
        ([ONE, ONE, TWO], *["it has a producer twice"] * 2),
        (
            [ONE | {"lastOffset": 8}, TWO],
            *["its entry of producer 1 differs from the log"] * 2,
        ),
        (
            [ONE | {"lastSequence": 4}, TWO],
            *["its entry of producer 1 differs from the log"] * 2,
        ),
        ([ONE | {"lastOffset": 11}, TWO], "its entry of producer 1 differs", None),
        ([ONE | {"timestamp": 5}, TWO], "its entry of producer 1 differs", None),
        ([ONE | {"coordinatorEpoch": 5}, TWO], None, None),
        (
            [ONE, TWO | {"currentTxnFirstOffset": -1}],
            "its entry of producer 2 differs",
            None,
        ),
        ([ONE, TWO | {"currentTxnFirstOffset": 3}], None, None),  # it began before the log
        ([ONE, TWO, {"producerId": 3, "lastOffset": 6}], "the log has no such batch of", None),
        ([ONE, TWO, {"producerId": 3, "lastOffset": 4}], None, None),
        ([TWO], *["it lacks producer 1"] * 2),
    ],
)
def test_a_snapshot_fits_where_the_log_does_not_know_better(
    stored: list[dict[str, int]], misfit: str | None, if_compacted: str | None
) -> None:
    for has_holes, expected in ((False, misfit), (True, if_compacted)):
        found = problem_with_snapshot(
            producers(*stored),
            producers(ONE, TWO),
            20,
            known_since=5,
            has_holes=has_holes,
            taken_ms=TIME + 1000,
        )
        assert (found is None) == (expected is None), found
        assert (found or "").startswith(expected or "")


def test_a_broker_forgets_producers_after_a_day_but_for_those_of_an_open_transaction() -> None:
    for stored, taken_ms, misfit in (
        ([TWO], TIME + DAY, None),
        ([TWO], TIME + DAY - 1, "it lacks producer 1"),
        ([ONE], TIME + DAY, "it lacks producer 2"),
    ):
        found = problem_with_snapshot(
            producers(*stored),
            producers(ONE, TWO),
            20,
            known_since=0,
            has_holes=False,
            taken_ms=taken_ms,
        )
        assert found == misfit


def test_entries_of_a_file_are_taken_as_they_are() -> None:
    content = kt.producer_snapshot([kt.Producer(1, last_offset=10)])
    entries = snapshot_entries(as_bytes(content))
    found = problem_with_snapshot(
        entries, entries, 20, known_since=0, has_holes=False, taken_ms=TIME
    )
    assert found is None
