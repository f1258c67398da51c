"""`sample:` leads to the sample logs for everything that takes a path, however it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kafkajit
from kafkajit import testing as kt
from kafkajit.cli import main
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.table import plan_tasks
from kafkajit.storage.locations import absolute, find_files, find_segments, shown
from kafkajit.storage.source import SAMPLE_FOLDER, resolve_sample

REPOSITORY = Path(__file__).parent.parent
SEGMENT = "sample:orders-0/00000000000000000000.log"


@pytest.fixture(autouse=True)
def _in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("sample:", SAMPLE_FOLDER),
        ("sample:/", SAMPLE_FOLDER),
        ("sample:orders-0", SAMPLE_FOLDER / "orders-0"),
        ("sample:/orders-0/", SAMPLE_FOLDER / "orders-0"),
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
    assert folders == {SAMPLE_FOLDER / name for name in ("orders-0", "payments-0", "payments-1")}


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
    code = "import kafkajit; print(kafkajit.__file__, kafkajit.Log('sample:payments-0').end_offset)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.stdout.split() == [str(target / "kafkajit/__init__.py"), "27"]
    # Without these sources Spark would read by rows, and only a line at INFO would say so.
    assert (target / "kafkajit/spark/java/KafkaLog.java").exists()
