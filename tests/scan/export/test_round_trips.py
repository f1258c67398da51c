"""What is exported and imported again is the same log."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from corpus import NO_JIT
from round_trips import travel

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main


@pytest.mark.parametrize("seed", range(20 if NO_JIT else 120))
def test_a_random_log_comes_back_or_an_error_names_the_record(seed: int, tmp_path: Path) -> None:
    outcome = travel(seed, tmp_path)
    assert outcome.is_right, outcome.refusal


def transaction(*, marker: bool) -> bytes:
    fields = {"producer_id": 7, "producer_epoch": 0}
    rows = kt.batch([kt.Record(b"k", b"v")], is_transactional=True, base_sequence=0, **fields)
    rows += kt.batch([kt.Record(b"k", b"plain")], base_offset=1)
    if marker:
        rows += kt.control_batch(1, base_offset=2, **fields)
    return rows


def write(folder: Path, content: bytes) -> Path:
    folder = folder / "orders-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(content)
    return folder


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_markers_come_back_if_the_column_that_tells_them_is_exported(
    isolation: str, tmp_path: Path
) -> None:
    log = write(tmp_path / "logs", transaction(marker=True))
    kafkajit.export(log, tmp_path / "out", to="arrow", columns="all", isolation_level=isolation)
    (part,) = kafkajit.import_files(tmp_path / "out", tmp_path / "back").apply()
    assert (part.records, part.open_transactions, part.notes) == (3, {}, [])
    back = kafkajit.read_records(
        tmp_path / "back" / "orders-0" / f"{0:020}.log", columns=["offset", "controlType"]
    )
    assert back.to_pylist()[2] == {"offset": 2, "controlType": "COMMIT"}


@pytest.mark.parametrize("columns", ["all", "topic,partition,offset,value,isTransactional"])
def test_a_transaction_without_its_marker_is_named(
    columns: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write(tmp_path / "logs", transaction(marker=columns != "all"))
    if columns != "all":
        columns += ",producerId,producerEpoch,sequence"
    kafkajit.export(log, tmp_path / "out", to="jsonl", columns=columns)
    plan = kafkajit.import_files(tmp_path / "out", tmp_path / "back")
    (note,) = plan.partitions[0].notes
    assert note.startswith(
        "orders-0: the transaction of producer 7 that begins at offset 0 has no marker"
    )
    assert note in str(plan)
    assert main(["import", "--apply", str(tmp_path / "out"), str(tmp_path / "back")]) == 0
    assert note in capsys.readouterr().err


def test_markers_in_another_file_end_a_transaction(tmp_path: Path) -> None:
    log = write(tmp_path / "logs", transaction(marker=True))
    out = tmp_path / "out"
    out.mkdir()
    for first, end in ((0, 1), (1, 3)):
        kafkajit.export(
            log,
            out / f"{first}.parquet",  # a file of its own is a series of its own
            columns="all",
            starting_offsets={"orders": {"0": first}},
            ending_offsets={"orders": {"0": end}},
        )
    (part,) = kafkajit.import_files(out, tmp_path / "back").apply()
    assert (part.records, part.open_transactions) == (3, {})


def test_a_segment_rolled_before_a_removed_record_begins_with_its_batch(tmp_path: Path) -> None:
    content = b"".join(
        kt.batch(
            [kt.Record(b"k", bytes(700_000), offset_delta=1)],
            base_offset=offset,
            last_offset_delta=1,
        )
        for offset in (4, 6, 8)
    )
    log = write(tmp_path / "logs", content)
    kafkajit.export(log, tmp_path / "out", to="arrow", columns="all", file_size="1k")
    kafkajit.import_files(
        tmp_path / "out", tmp_path / "back", segment_bytes=1 << 20, max_message_bytes=1 << 30
    ).apply()
    names = sorted(path.name for path in (tmp_path / "back" / "orders-0").glob("*.log"))
    assert names == [f"{offset:020}.log" for offset in (4, 6, 8)]
    table = kafkajit.dataset(tmp_path / "back", columns=["offset", "baseOffset"]).to_table()
    assert table.to_pylist() == [
        {"offset": offset + 1, "baseOffset": offset} for offset in (4, 6, 8)
    ]


def test_the_first_and_the_last_time_of_64_bits_come_back(tmp_path: Path) -> None:
    times = [-(2**63), 2**63 - 1]
    rows = {
        "topic": ["orders", "orders"],
        "partition": [0, 0],
        "key": ["k", "k"],
        "value": ["v", "v"],
        "timestamp": pa.array(times, pa.int64()).cast(pa.timestamp("ms")),
    }
    with pa.ipc.new_file(tmp_path / "rows.arrow", (table := pa.table(rows)).schema) as writer:
        writer.write(table)
    kafkajit.import_files(tmp_path / "rows.arrow", tmp_path / "back").apply()
    log = tmp_path / "back" / "orders-0" / f"{0:020}.log"
    found = kafkajit.read_records(log, columns=["timestamp"])
    assert found["timestamp"].cast("int64").to_pylist() == times
