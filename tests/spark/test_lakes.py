"""The recipes for Iceberg and Delta on docs/export.md run as they stand there."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from lakes import older_spark
from needs import give_up

import kafkajit.testing as kt
from docs.generate import DOCS
from kafkajit import LogWriter

_SECTION = (DOCS / "export.md").read_text().partition("## Iceberg and Delta")[2]
_PYSPARK, ICEBERG, DELTA, EXPORT = (
    line
    for block in re.findall(r"```sh\n(.*?)```", _SECTION, re.DOTALL)
    for line in block.replace("\\\n", "").splitlines()
)
CREATE_ICEBERG, MERGE, CREATE_DELTA, CONVERT = re.findall(r"```sql\n(.*?)```", _SECTION, re.DOTALL)


class Reader:
    """Types the recipes with a folder of their own for /var/kafka, and one for /data."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "kafka" / "orders-0"
        self.places = {"/var/kafka": str(folder / "kafka"), "/data": str(folder / "data")}
        requirement = shlex.split(_PYSPARK)[-1]
        self.environment = older_spark(requirement)
        self.append(0, 3)

    def append(self, first: int, count: int) -> None:
        with LogWriter(self.log) as log:
            log.append(kt.batch([kt.Record(b"k", b"v")] * count, base_offset=first))

    def runs(self, command: str, *more: str) -> list[list[str]]:
        _, *words = shlex.split(self.here(command))
        done = subprocess.run(
            [sys.executable, "-m", "kafkajit.cli", *words, *map(self.here, more)],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if "Server access error" in done.stderr or "unresolved dependency" in done.stderr:
            give_up("mvn", "needs jars from Maven Central, which Spark could not fetch")
        assert done.returncode == 0, done.stderr
        return list(csv.reader(done.stdout.splitlines()))

    def here(self, text: str) -> str:
        for place, folder in self.places.items():
            text = text.replace(place, folder)
        return text


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("command", "create", "table"),
    [
        pytest.param(ICEBERG, CREATE_ICEBERG, "lake.kafka.orders", id="iceberg"),
        pytest.param(DELTA, CREATE_DELTA, "delta.`/data/orders`", id="delta"),
    ],
)
def test_a_table_takes_the_records_of_a_topic_and_later_those_that_are_new(
    reader: Reader, command: str, create: str, table: str
) -> None:
    merge = MERGE.replace("lake.kafka.orders", table)
    figures = f"SELECT count(*) AS n, min(offset), max(offset) FROM {table};"
    assert reader.runs(command, create + figures)[-1] == ["3", "0", "2"]
    reader.append(3, 4)
    assert reader.runs(command, merge + merge + figures)[-1] == ["7", "0", "6"]


@pytest.mark.thorough
def test_exported_files_become_a_table_of_delta(reader: Reader) -> None:
    reader.runs(EXPORT)
    figures = "SELECT topic, count(*), max(offset) FROM delta.`/data/exported` GROUP BY ALL"
    assert reader.runs(DELTA, CONVERT + figures)[-1] == ["orders", "3", "2"]
