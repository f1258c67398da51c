from __future__ import annotations

import random
from pathlib import Path

import pytest
import reference
from corpus import NO_JIT
from transaction_batches import (
    ABORT,
    COMMIT,
    data,
    ended_of,
    entries_of,
    found_in,
    marker,
    random_batches,
)

import kafkajit.testing as kt
from kafkajit.errors import CorruptIndexError, CorruptRecordError
from kafkajit.log.log import Log
from kafkajit.upkeep.compact.cleaned_transactions import CleanedTransactions
from kafkajit.upkeep.compact.logged_transactions import LoggedTransactions

END = 2**40
Entries = list[tuple[int, int, int]]  # producer, first and last offset


def make_log(folder: Path, log: bytes, entries: Entries | None) -> Log:
    folder.mkdir(exist_ok=True)
    (folder / f"{0:020d}.log").write_bytes(log)
    index = folder / f"{0:020d}.txnindex"
    index.unlink(missing_ok=True)
    if entries is not None:
        index.write_bytes(kt.transaction_index([(*entry, entry[-1] + 1) for entry in entries]))
    return Log(folder)


def check(
    folder: Path, log: bytes, entries: Entries | None, start: int = 0, end: int = END
) -> None:
    segments = make_log(folder / "orders-0", log, entries).segments
    LoggedTransactions(segments).check_indexes(segments, start, end)


@pytest.mark.parametrize("seed", range(10 if NO_JIT else 100))
def test_transactions_are_those_that_the_reference_finds(tmp_path: Path, seed: int) -> None:
    batches, aborted = random_batches(random.Random(seed))
    log = b"".join(batches)
    check(tmp_path, log, [one[:3] for one in aborted])
    # A transaction whose data went begins with its marker here: it need not be listed.
    needed = [one[:3] for one in aborted if one.first_offset < one.last_offset]
    check(tmp_path, log, needed)
    for left_out in range(len(needed)):
        with pytest.raises(CorruptIndexError, match="the transaction index lacks the aborted"):
            check(tmp_path, log, needed[:left_out] + needed[left_out + 1 :])
    segments = make_log(tmp_path / "orders-0", log, None).segments
    end = len(batches)
    _, last_stable = reference.transactions([log])
    opened = LoggedTransactions(segments).first_open_offset
    assert (end if opened is None else opened) == min(last_stable, end)


@pytest.mark.parametrize("seed", range(10 if NO_JIT else 200))
def test_an_index_with_any_wrong_number_is_refused_or_discards_the_same(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    batches, aborted = random_batches(rng)
    log = b"".join(batches)
    right = CleanedTransactions(entries_of(aborted))
    expected, ended = found_in(right, log), ended_of(right)
    for _ in range(10):
        wrong = list(aborted)
        for _ in range(rng.randrange(1, 3)):
            row = rng.randrange(len(wrong) + 1)
            name = rng.choice(["producer_id", "first_offset", "last_offset"])
            if row == len(wrong):
                wrong += rng.sample(wrong, min(1, len(wrong)))
            else:
                number = rng.choice([1, 2, 3, rng.randrange(-2, len(batches) + 2)])
                wrong[row] = wrong[row]._replace(**{name: number})
        try:
            check(tmp_path, log, [one[:3] for one in wrong])
        except CorruptIndexError:
            continue
        found = CleanedTransactions(entries_of(wrong))
        assert found_in(found, log) == expected
        assert [one.last_offset for one in ended_of(found)] == [one.last_offset for one in ended]


LOG = data(7, 0) + marker(7, 1, COMMIT) + data(7, 2) + data(8, 3) + marker(7, 4, ABORT)


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([(7, 2, 4)], None),
        ([(7, 1, 4)], "another transaction ends with offset 1"),
        ([(7, 0, 4)], "another transaction ends with offset 1"),
        ([(7, 3, 4)], "the transaction has a batch at offset 2"),
        ([(7, 2, 5)], "it has no such marker"),
        ([(8, 2, 4)], "it has no such marker"),
        ([(7, 0, 1)], "it has no such marker"),  # a COMMIT
        ([(7, 2, 4), (8, 3, 9)], "it has no such marker"),
    ],
)
def test_an_entry_that_the_log_contradicts_is_refused(
    tmp_path: Path, entries: Entries, problem: str | None
) -> None:
    if problem is None:
        check(tmp_path, LOG, entries)
        return
    match = rf"contradicts the log: {problem}: run `kafkajit repair` .*0\.txnindex"
    with pytest.raises(CorruptIndexError, match=match):
        check(tmp_path, LOG, entries)


def test_an_entry_for_data_that_compaction_took_away_begins_before_the_rest(
    tmp_path: Path,
) -> None:
    empty = kt.batch([], base_offset=5, producer_id=7, is_transactional=True, base_sequence=0)
    log = data(7, 0) + marker(7, 1, COMMIT) + empty + marker(7, 6, ABORT)
    check(tmp_path, log, [(7, 2, 6)])
    check(tmp_path, log, [])  # the batch has no record
    check(tmp_path, data(7, 0) + marker(7, 1, COMMIT) + marker(7, 6, ABORT), [(7, 2, 6)])
    check(tmp_path, marker(7, 6, ABORT), [(7, 2, 6)])
    with pytest.raises(CorruptIndexError, match="another transaction ends with offset 1"):
        check(tmp_path, data(7, 0) + marker(7, 1, COMMIT) + marker(7, 6, ABORT), [(7, 0, 6)])


def test_a_transaction_from_before_the_log_is_known_by_its_marker(tmp_path: Path) -> None:
    log = data(7, 10) + marker(7, 11, ABORT) + data(7, 12) + marker(7, 13, COMMIT)
    check(tmp_path, log, [(7, 3, 11)])
    with pytest.raises(CorruptIndexError, match="lacks the aborted transaction of producer 7"):
        check(tmp_path, log, None)
    with pytest.raises(CorruptIndexError, match="it has no such marker"):
        check(tmp_path, log, [(7, 3, 11), (7, 12, 13)])


def test_what_is_not_read_any_more_or_not_compacted_need_not_be_listed(tmp_path: Path) -> None:
    log = data(7, 0) + marker(7, 1, ABORT) + data(7, 2) + marker(7, 3, ABORT)
    check(tmp_path, log, [], start=3)
    check(tmp_path, log, [(7, 2, 3)], start=1)
    check(tmp_path, log, [(7, 0, 1)], end=2)
    with pytest.raises(CorruptIndexError, match="ends with offset 3"):
        check(tmp_path, log, [(7, 0, 1)], end=3)


def test_a_marker_in_a_later_segment_decides(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    make_log(folder, data(7, 0), None)
    (folder / f"{1:020d}.log").write_bytes(data(8, 1) + marker(7, 2, ABORT))
    segments = Log(folder).segments
    transactions = LoggedTransactions(segments)
    assert transactions.first_open_offset == 1
    with pytest.raises(CorruptIndexError, match=r"ends with offset 2: run .*00001\.log"):
        transactions.check_indexes(segments, 0, 1)
    (folder / f"{1:020d}.txnindex").write_bytes(kt.transaction_index([(7, 0, 2, 1)]))
    segments = Log(folder).segments
    LoggedTransactions(segments).check_indexes(segments, 0, 1)


def test_an_index_or_a_segment_that_cannot_be_read_is_to_be_repaired_first(
    tmp_path: Path,
) -> None:
    segments = make_log(tmp_path / "orders-0", LOG, [(7, 2, 4)]).segments
    transactions = LoggedTransactions(segments)
    (tmp_path / "orders-0" / f"{0:020d}.txnindex").write_bytes(b"?" * 33)
    segments = Log(tmp_path / "orders-0").segments
    with pytest.raises(CorruptIndexError, match=r"is not made of entries .*run `kafkajit repair`"):
        transactions.check_indexes(segments, 0, END)
    segments = make_log(tmp_path / "orders-0", b"?" * 100 + LOG, None).segments
    with pytest.raises(CorruptRecordError, match="run `kafkajit repair` on the folder first"):
        LoggedTransactions(segments)
