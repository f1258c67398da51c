"""`sample:` leads to the sample logs for everything that takes a path, however it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from typed_logs import fastavros

import kafkajit
from kafkajit import testing as kt
from kafkajit.cli import main
from kafkajit.places.location import absolute, shown
from kafkajit.places.locations import find_files, find_segments
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.table import plan_tasks
from kafkajit.storage.source import SAMPLE_FOLDER, SAMPLE_LOGS, resolve_sample

REPOSITORY = Path(__file__).parent.parent
SEGMENT = "sample:orders-0/00000000000000000000.log"
SHIPMENTS = "sample:typed/shipments-0/00000000000000000000.log"


@pytest.fixture(autouse=True)
def _in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("sample:", SAMPLE_LOGS),
        ("sample:/", SAMPLE_LOGS),
        ("sample:orders-0", SAMPLE_LOGS / "orders-0"),
        ("sample:/orders-0/", SAMPLE_LOGS / "orders-0"),
        ("sample:typed", SAMPLE_FOLDER / "typed"),
        ("sample:typed/shipments-0/", SAMPLE_FOLDER / "typed" / "shipments-0"),
        ("sample:typed-0", SAMPLE_LOGS / "typed-0"),
        ("sample", Path("sample")),
        ("./sample:orders-0", Path("./sample:orders-0")),
    ],
)
def test_only_a_leading_sample_and_colon_is_the_sample(path: str, folder: Path) -> None:
    assert Path(resolve_sample(path)) == folder


def test_python_reads_the_sample() -> None:
    assert kafkajit.read_records(SEGMENT).num_rows == 27
    assert kafkajit.read_record_batches(Path(SEGMENT)).num_rows == 10
    assert sum(batch.num_rows for batch in kafkajit.iter_records(SEGMENT)) == 27
    assert kafkajit.find_corruption(SEGMENT).num_rows == 0
    index = "sample:payments-0/00000000000000000000.index"
    assert kafkajit.index.read_offset_index(index).num_rows > 0


def test_values_of_the_sample_are_typed_by_the_newest_of_two_schemas() -> None:
    first, second = (
        json.loads(row["schema"]) for row in kafkajit.read_schemas("sample:typed").to_pylist()
    )
    assert (first["fields"][0]["type"], second["fields"][0]["type"]) == ("int", "long")
    table = kafkajit.read_records(SHIPMENTS, schemas="auto")
    values = table["value"].to_pylist()
    raw = kafkajit.read_records(SHIPMENTS)["value"].to_pylist()
    ids = [None if value is None else int.from_bytes(value[1:5], "big") for value in raw]
    assert ids == [1, 1, 1, 1, 2, 2, 1, None, 2, 2]
    insured = [None if value is None else value["insured"] for value in values]
    assert insured == [False, False, False, False, False, False, False, None, True, True]
    assert values[0] == {
        "id": 1,
        "orderId": "order-0",
        "carrier": "TRUCK",
        "weight": 12.5,
        "note": None,
        "created": datetime(2025, 11, 5, 0, 10, tzinfo=UTC),
        "parcels": [
            {"sku": "A-1", "price": Decimal("19.90")},
            {"sku": "B-7", "price": Decimal("129.00")},
        ],
        "insured": False,
    }
    assert (values[4]["id"], values[4]["note"]) == (3_000_000_005, "über Zürich")
    assert table["key"].to_pylist() == [b"order-%d" % n for n in (*range(7), 3, 7, 8)]


def test_each_value_of_the_sample_is_what_fastavro_reads() -> None:
    registered = kafkajit.read_schemas("sample:typed").to_pylist()
    schemas = {row["id"]: json.loads(row["schema"]) for row in registered}
    table = kafkajit.read_records(SHIPMENTS, schemas="auto", columns=["value", "rawValue"])
    for row in table.to_pylist():
        value, raw = row["value"], row["rawValue"]
        if raw is None:
            assert value is None
        else:
            written = schemas[int.from_bytes(raw[1:5], "big")]
            assert value == fastavros(written, raw[5:], schemas[2])


def test_dump_log_prints_the_samples_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump-log", "--print-data-log", "--files", "sample:typed/_schemas-0"]) == 0
    keys = [
        json.loads(line.partition(" key: ")[2].partition(" payload: ")[0])
        for line in capsys.readouterr().out.splitlines()
        if " key: " in line
    ]
    types = ["NOOP", "CONFIG", "SCHEMA", "CONFIG", "CONFIG", "NOOP", "SCHEMA"]
    assert [key["keytype"] for key in keys] == types


def test_dump_log_prints_the_samples_avro(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump-log", "--print-data-log", "--files", "sample:typed/shipments-0"]) == 0
    out = capsys.readouterr().out
    assert out.count("baseOffset: ") == 4
    assert "key: order-1 payload: \0\0\0\0\1" in out
    assert "über Zürich" in out


def test_topic_and_partition_are_those_of_the_samples_folder() -> None:
    columns = ["topic", "partition"]
    (row, *_) = kafkajit.read_records(SEGMENT, columns=columns).to_pylist()
    assert row == {"topic": "orders", "partition": 0}


def test_a_log_of_the_sample_opens() -> None:
    assert kafkajit.Log("sample:orders-0").end_offset == 27


def test_folders_and_globs_of_the_sample_are_listed() -> None:
    assert absolute("sample:orders-0") == shown("sample:orders-0") == f"{kt.SAMPLE}/orders-0"
    logs, _ = find_segments(["sample:"])
    assert len(logs) == 5
    assert {file.folder for file in find_files("sample:payments-*")} == {
        f"{kt.SAMPLE}/payments-0",
        f"{kt.SAMPLE}/payments-1",
    }


def test_the_data_source_plans_the_sample_by_absolute_paths() -> None:
    tasks = plan_tasks(ScanOptions.parse({"path": "sample:"}), [])
    folders = {Path(split.file.folder) for task in tasks for split in task}
    assert folders == {SAMPLE_LOGS / name for name in ("orders-0", "payments-0", "payments-1")}


@pytest.mark.parametrize("file", [SEGMENT, "sample:orders-0"])
def test_dump_log_prints_the_sample(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump-log", "--files", file]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Dumping {kt.SAMPLE}/orders-0/00000000000000000000.log\n")
    assert out.count("baseOffset: ") == 10


def test_what_would_be_repaired_in_the_sample_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repair", "sample:"]) == 2
    assert "payments-1:" in capsys.readouterr().out


@pytest.mark.parametrize("path", ["sample:", kt.SAMPLE])
def test_the_sample_is_never_changed(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repair", "--apply", "--force", path]) == 1
    with pytest.raises(ValueError, match="the sample logs are part of the installation"):
        kafkajit.LogWriter(f"{path}/orders-0")
    assert "copy" in capsys.readouterr().err


@pytest.mark.thorough
def test_an_installed_package_has_the_sample_and_the_bridge(tmp_path: Path) -> None:
    target = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*command, "--target", str(target), str(REPOSITORY)], check=True)
    code = (
        "import kafkajit; print(kafkajit.__file__, kafkajit.Log('sample:payments-0').end_offset, "
        "kafkajit.read_schemas('sample:typed').num_rows)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.stdout.split() == [str(target / "kafkajit/__init__.py"), "27", "2"]
    # Without these sources Spark would read by rows, and only a line at INFO would say so.
    assert (target / "kafkajit/spark/java/KafkaLog.java").exists()
