"""What a user gets from `pip install` alone, and a bare session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kafkajit.testing as kt

BARE = f"""
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.read.format("kafkaLog").load({kt.SAMPLE!r})
print("records", frame.where("topic = 'orders' AND offset < 5").count())
"""


@pytest.mark.thorough
def test_the_data_source_is_found_without_registration_or_settings(tmp_path: Path) -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    environment.pop("PYTHONPATH", None)  # what is installed, not what is checked out
    done = subprocess.run(
        [sys.executable, "-c", BARE],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "records 5" in done.stdout, done.stderr


def test_discovery_imports_nothing_heavy() -> None:
    imports = imported("import pyspark_kafkajit")
    assert not imports & {"numba", "numpy", "pandas", "pyarrow"}


def test_planning_a_scan_imports_nothing_that_compiles_the_bridge() -> None:
    """Spark plans each query in a process that has just been forked."""
    imports = imported(
        "from kafkajit.spark.datasource import KafkaLogDataSource\n"
        "from kafkajit.spark.java_sources import sources_digest\n"
        "asked = {'kafkajit.conditions': '[]', 'kafkajit.sources': sources_digest()}\n"
        f"source = KafkaLogDataSource({{'path': {kt.SAMPLE!r}, **asked}})\n"
        "source.reader(source.schema()).partitions()"
    )
    assert "kafkajit.scan.plan" in imports
    assert not imports & {"kafkajit.spark.bridge", "kafkajit.spark.local"}


def imported(program: str) -> set[str]:
    """The modules that a program imports."""
    code = f"{program}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
