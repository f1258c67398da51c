"""Rows with offsets, with and without the markers of their transactions, as consumers get them."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import reference
from changing_log import ChangingLog
from producing import write

import kafkajit
from kafkajit.produce.checks import check_columns
from kafkajit.produce.options import ProduceOptions

Records = list[tuple[int, int]]


@pytest.fixture
def log(tmp_path: Path) -> ChangingLog:
    """A log with a committed, an aborted and an open transaction, and a plain batch."""
    found = ChangingLog(tmp_path / "source" / "orders-0", random.Random(1))
    found.grow(2)
    for producer, ends in ((1, 1), (2, 0), (1, 1), (3, None)):
        found.grow(3, producer)
        if ends is not None:
            found.finish(producer, ends)
    found.grow(1)
    return found


def rows(log: ChangingLog, isolation: str, *, markers: bool = False) -> pa.Table:
    """The rows of a log, as a query gets them."""
    found = kafkajit.dataset(log.folder, isolation_level=isolation).to_table()
    return found if markers else found.filter(pc.is_null(found["controlType"]))


def written(tmp_path: Path, table: pa.Table, tasks: int = 1, **options: object) -> Path:
    """The folder of the partition that a job writes, whose tasks have equal parts of the rows."""
    bases = pc.unique(table["baseOffset"]).to_pylist()
    size = -(-len(bases) // tasks)
    chunks = [pa.array(bases[start : start + size]) for start in range(0, len(bases), size)]
    parts = [table.filter(pc.is_in(table["baseOffset"], chunk)) for chunk in chunks]
    given = {"keepOffsets": "true", "segment.ms": 2**62} | options
    write(tmp_path / "new", [part.to_batches() for part in parts], **given)
    return tmp_path / "new" / "orders-0"


def consumed(folder: Path) -> Records:
    """The records that a consumer of committed data gets, by the markers in the log alone."""
    logs = [path.read_bytes() for path in sorted(folder.glob("*.log"))]
    found = reference.committed_rows(logs)
    return [(row["offset"], int(row["value"])) for row in found if row["controlType"] is None]


@pytest.mark.parametrize("tasks", [1, 3])
def test_rows_of_read_committed_are_written_as_plain_records(
    log: ChangingLog, tmp_path: Path, tasks: int
) -> None:
    table = rows(log, "read_committed")
    folder = written(tmp_path, table, tasks, transactions="plain")
    found = kafkajit.dataset(folder).to_table()
    assert not pc.any(found["isTransactional"]).as_py()
    for name in ("offset", "producerId", "producerEpoch", "value"):
        assert found[name].to_pylist() == table[name].to_pylist()
    assert consumed(folder) == log.records(committed=True)
    assert not kafkajit.repair(folder).is_needed


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("tasks", [1, 3])
def test_rows_without_their_markers_are_refused_before_a_file_is_written(
    log: ChangingLog, tmp_path: Path, isolation: str, tasks: int
) -> None:
    with pytest.raises(ValueError, match="the rows of orders-0 lack the marker of producer 1, who"):
        written(tmp_path, rows(log, isolation), tasks)
    assert not [path for path in (tmp_path / "new").rglob("*") if path.is_file()]


@pytest.mark.parametrize("tasks", [1, 3])
def test_rows_with_their_markers_are_the_log(log: ChangingLog, tmp_path: Path, tasks: int) -> None:
    folder = written(
        tmp_path, rows(log, "read_uncommitted", markers=True), tasks, transactions="open"
    )
    assert consumed(folder) == log.records(committed=True)
    assert kafkajit.dataset(folder).to_table()["offset"].to_pylist() == list(range(log.end))


def test_a_transaction_that_is_open_in_the_log_is_written_with_a_warning(
    log: ChangingLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log.grow(1, 1)  # of a producer that has ended others
    whole = rows(log, "read_uncommitted", markers=True)
    without = whole.filter(pc.not_equal(whole["producerId"], 3))
    with caplog.at_level(logging.WARNING, "kafkajit"):
        folder = written(tmp_path, without)
    first = log.end - 1
    assert f"{folder}: the transaction that begins at offset {first} has no marker" in caplog.text
    assert consumed(folder)[-1][0] == first - 1


def test_a_transaction_may_stay_open(log: ChangingLog, tmp_path: Path) -> None:
    folder = written(tmp_path, rows(log, "read_committed"), transactions="open")
    assert consumed(folder) == [(0, 0), (1, 1)]


def test_a_producer_with_both_kinds_of_batches_is_written(tmp_path: Path) -> None:
    log = ChangingLog(tmp_path / "source" / "orders-0", random.Random(1))
    log.grow(2, 1)
    log.finish(1, 1)
    table = rows(log, "read_committed")
    plain = table.set_column(
        table.schema.get_field_index("isTransactional"), "isTransactional", pa.array([True, False])
    )
    assert len(consumed(written(tmp_path, plain, transactions="plain"))) == 2


def test_the_option_is_one_for_rows_that_keep_their_offsets() -> None:
    given = ProduceOptions.parse({"path": "/k", "transactions": "plain"})
    with pytest.raises(ValueError, match="option transactions: rows that get new offsets are not"):
        check_columns(
            pa.schema({"topic": "string", "partition": "int32", "value": "binary"}), given
        )


@pytest.mark.parametrize("seed", range(60))
def test_consumers_of_committed_data_get_the_same_records(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    log = ChangingLog(tmp_path / "source" / "orders-0", rng)
    for _ in range(rng.randint(1, 12)):
        log.append()
    tasks = rng.randint(1, 3)
    committed = log.records(committed=True)
    table = rows(log, "read_committed")
    if committed:
        assert consumed(written(tmp_path / "a", table, tasks, transactions="plain")) == committed
        one = written(tmp_path / "b", table, tasks, keepOffsets="false")
        assert [value for _, value in consumed(one)] == [value for _, value in committed]
    whole = rows(log, "read_uncommitted", markers=True)
    assert consumed(written(tmp_path / "c", whole, tasks, transactions="open")) == committed
