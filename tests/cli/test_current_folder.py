"""Commands that are started in a folder of logs in which somebody else has left files.

tests/spark/local/test_current_folder.py has those that start Spark.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hostile_folder import HostileFolder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> HostileFolder:
    return HostileFolder(tmp_path_factory.mktemp("hostile"))


def test_a_command_runs_nothing_from_the_folder_where_it_is_started(
    hostile: HostileFolder, tmp_path: Path
) -> None:
    found = hostile.run("grep", "amount", ".").splitlines()
    assert Counter(line.partition("\t")[0] for line in found) == {
        "payments-0": 11,
        "payments-1": 10,
    }
    exported, logs = str(tmp_path / "orders.parquet"), str(tmp_path / "logs")
    assert "25 records" in hostile.run("export", ".", "-o", exported, "--topic", "orders")
    assert "25 records" in hostile.run("import", exported, logs, "--apply")
    log = f"{logs}/orders-0/{0:020}.log"
    dump = hostile.run("dump-log", "--files", log, "--print-data-log")
    assert dump.count("\n| offset: ") == 25
    assert "1 segment" in hostile.run("repair", f"{logs}/orders-0")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "arguments",
    [
        ["tail", "."],
        ["report", ".", "-o", "{}/report.html"],
        ["retain", ".", "--config", "retention.ms=-1"],
        ["compact", "."],
        ["warm-up"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_command_does(hostile: HostileFolder, tmp_path: Path, arguments: list[str]) -> None:
    hostile.run(*(argument.format(tmp_path) for argument in arguments))


def test_python_runs_the_command_as_safely_with_its_own_switch(hostile: HostileFolder) -> None:
    assert "3 partitions" in hostile.run_python("-P", "-m", "kafkajit.cli", "info", ".")
