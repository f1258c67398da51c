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
    code = (
        "import pyspark_kafkajit, sys;"
        "print([m for m in ('numba', 'numpy', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
