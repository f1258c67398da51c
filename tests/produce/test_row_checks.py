"""Rows that would be other records than they were are refused, by file and row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafkajit
import kafkajit.testing as kt

PLAIN = ["topic", "partition", "offset", "timestamp", "key", "value"]
COMMIT, ABORT = 1, 0


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two producers, whose transactions overlap: that of 7 is committed, that of 8 aborted."""
    sent: dict[str, Any] = {"is_transactional": True, "producer_epoch": 0, "base_sequence": 0}
    content = b"".join(
        [
            kt.batch([kt.Record(value=b"good")], base_offset=0, producer_id=7, **sent),
            kt.batch([kt.Record(value=b"aborted")], base_offset=1, producer_id=8, **sent),
            kt.control_batch(COMMIT, base_offset=2, producer_id=7, coordinator_epoch=3),
            kt.control_batch(ABORT, base_offset=3, producer_id=8, coordinator_epoch=3),
        ]
    )
    (tmp_path / "logs" / "t-0").mkdir(parents=True)
    (tmp_path / "logs" / "t-0" / f"{0:020}.log").write_bytes(content)
    return tmp_path / "logs"


def moved(log: Path, columns: list[str], to: str, **options: Any) -> list[tuple[int, bytes, bool]]:
    """Each record's offset and value after an export and an import, and whether it is a marker."""
    out, back = log.parent / f"out.{to}", log.parent / "back"
    kafkajit.export(log, out, columns=columns)
    kafkajit.import_files(out, back, **options).apply()
    rows = kafkajit.read_records(back / "t-0" / f"{0:020}.log").to_pylist()
    return [(row["offset"], row["value"], row["controlType"] is not None) for row in rows]


@pytest.mark.parametrize("to", ["parquet", "csv"])
@pytest.mark.parametrize("more", [["isTransactional"], ["controlType"]])
def test_a_transaction_without_its_producer_is_refused(more: list[str], to: str, log: Path) -> None:
    """All would be of producer -1, and the first marker would end every transaction."""
    words = rf"(row|line) \d: column '{more[0]}': the producer of the transaction is unknown"
    with pytest.raises(ValueError, match=words):
        moved(log, [*PLAIN, *more], to)
    assert not (log.parent / "back").exists()


def test_transactions_with_their_producers_come_back(log: Path) -> None:
    more = ["isTransactional", "controlType", "coordinatorEpoch", "producerId", "producerEpoch"]
    assert len(moved(log, [*PLAIN, *more], "parquet")) == 4
    opened = kafkajit.dataset(log.parent / "back", isolation_level="read_committed")
    assert opened.to_table(["value"])["value"].to_pylist() == [b"good"]


@pytest.mark.parametrize("to", ["parquet", "jsonl"])
def test_markers_are_exported_only_if_their_type_is(to: str, log: Path) -> None:
    found = moved(log, [*PLAIN, "coordinatorEpoch"], to)
    assert found == [(0, b"good", False), (1, b"aborted", False)]


def test_a_row_of_a_marker_does_not_become_a_record(log: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("offset,value,coordinatorEpoch\n0,a,\n1,b,3\n")
    plan = kafkajit.import_files(tmp_path / "a.csv", tmp_path / "back", topic="t", partitions=1)
    with pytest.raises(ValueError, match=r"a\.csv, line 3: column 'coordinatorEpoch': only a tran"):
        plan.apply()


@pytest.mark.parametrize("to", ["parquet", "csv", "jsonl", "avro", "arrow"])
def test_markers_are_left_out_if_their_column_is_ignored(to: str, log: Path) -> None:
    columns = [*PLAIN, "isTransactional", "controlType"]
    found = moved(log, columns, to, ignore_columns=["isTransactional", "controlType"])
    assert found == [(0, b"good", False), (1, b"aborted", False)]
    named: dict[str, Any] = {"ignore_columns": ["isTransactional", "control*"]}
    plan = kafkajit.import_files(log.parent / f"out.{to}", log.parent / "again", **named)
    plan.apply()
    (line,) = plan.left_out.lines()
    assert line.startswith("2 rows of control records, in the ignored column controlType, not")


@pytest.mark.parametrize("kind", ["thermostat", "", 7, None])
def test_another_programs_column_of_that_name_is_ignored(kind: Any, tmp_path: Path) -> None:
    rows = [{"value": "a", "controlType": kind}, {"value": "b", "controlType": kind}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    named: dict[str, Any] = {"topic": "t", "partitions": 1, "ignore_columns": "controlType"}
    plan = kafkajit.import_files(tmp_path / "a.parquet", tmp_path / "back", **named)
    assert [part.records for part in plan.apply()] == [2]
    assert not plan.left_out
