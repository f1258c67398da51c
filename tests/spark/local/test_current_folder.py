"""Spark that is started in a folder of logs in which somebody else has left files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from corpus import REPOSITORY
from hostile_folder import HostileFolder
from pyspark import find_spark_home
from pyspark.sql import SparkSession

from kafkajit.spark.local import class_archive, jvm
from kafkajit.spark.session import session_at

# All kinds of workers: looking up sources, making one, planning, tasks, functions, results.
STATEMENT = """
    SELECT sum(n) AS n FROM (
        SELECT count(value) AS n FROM records WHERE offset >= 0
        UNION ALL SELECT count(r) FROM (SELECT explode(kafka_records(content)) AS r FROM binaryFile)
    )
"""

# A user's own program, whose function is in a module beside it.
PROGRAM = """
import beside
from kafkajit.spark import local_session
from pyspark.sql.functions import udf

spark = local_session(cores="2")
rows = spark.read.format("kafkaLog").load(".").where("topic = 'orders'").select("offset")
print(rows.select(udf(beside.double, "long")("offset").alias("n")).agg({"n": "max"}).first()[0])
"""


@pytest.fixture
def hostile(tmp_path: Path) -> HostileFolder:
    return HostileFolder(tmp_path)


def test_a_query_runs_nothing_from_the_folder_where_it_is_started(hostile: HostileFolder) -> None:
    assert hostile.run("sql", "--path", ".", STATEMENT) == "n\n100\n"


@pytest.mark.thorough
@pytest.mark.parametrize("safe", ["", "1"])
@pytest.mark.parametrize("quick", ["0", "1"])
def test_no_session_of_a_command_does(
    hostile: HostileFolder, tmp_path: Path, quick: str, safe: str
) -> None:
    switches = {"KAFKAJIT_QUICK_START": quick, "PYTHONSAFEPATH": safe}
    assert hostile.run("sql", "--path", ".", STATEMENT, **switches) == "n\n100\n"
    report = ("report", ".", "--spark", "local[2]", "-o", str(tmp_path / "report.html"))
    hostile.run(*report, **switches)


@pytest.mark.thorough
@pytest.mark.parametrize("quick", ["0", "1"])
def test_functions_beside_a_users_script_reach_workers_from_any_folder(
    hostile: HostileFolder, tmp_path: Path, quick: str
) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "program.py").write_text(PROGRAM)
    (scripts / "beside.py").write_text("def double(n): return 2 * n\n")
    answer = hostile.run_python(str(scripts / "program.py"), KAFKAJIT_QUICK_START=quick)
    assert answer == "52\n"


@pytest.mark.parametrize("given", [None, "", "/opt/spark"])
def test_pyspark_does_not_look_for_itself_above_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    homes = []

    def start(_: object) -> MagicMock:
        homes.append(find_spark_home._find_spark_home())
        return MagicMock()

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", start)
    monkeypatch.setenv("SPARK_HOME", given or "")
    if given is None:
        monkeypatch.delenv("SPARK_HOME")
    session_at("spark://nowhere:7077")
    assert homes == [given or str(Path(find_spark_home.__file__).parent)]


def test_a_child_imports_from_where_this_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    library = str(Path(os.__file__).parent)
    monkeypatch.setattr(sys, "path", ["/scripts", "modules", "/a:b", library, "/installed"])
    environment = jvm.child_environment()
    assert environment["PYTHONPATH"] == f"{REPOSITORY}:/scripts:{tmp_path}/modules"
    assert environment["PYTHONSAFEPATH"] == "1"


def test_the_maker_of_archives_is_such_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    monkeypatch.setattr(
        class_archive.subprocess, "Popen", lambda *_, **options: started.append(options["env"])
    )
    class_archive.start_maker(tmp_path / "spark-0")
    assert started == [jvm.child_environment()]
