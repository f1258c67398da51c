"""Spark's standalone mode: executors in other processes, kafkajit shipped to them in an archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cluster import ARCHIVES, PYTHON, WARM_UP, WORKERS, Cluster
from corpus import REPOSITORY

pytestmark = pytest.mark.thorough

QUESTIONS = (
    "unregistered",
    "records",
    "batches",
    "files",
    "corruption",
    "filtered",
    "kafka_records",
    "kafka_log",
    "column_functions",
    "errors",
    "report",
)


@pytest.fixture(scope="module")
def found(cluster: Cluster) -> dict[str, Any]:
    return cluster.answers(cluster.submit("--archives", ARCHIVES), [*QUESTIONS, "executors"])


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_cluster_answers_as_local_mode(
    question: str, found: dict[str, Any], local_answers: dict[str, Any]
) -> None:
    assert found[question] == local_answers[question]


def test_every_executor_runs_what_the_archive_brings(found: dict[str, Any]) -> None:
    assert len({folder for folder, _, _ in found["executors"]}) == WORKERS
    for folder, python, package in found["executors"]:
        assert python == f"{folder}/environment/bin/python"
        assert package.startswith(f"{folder}/environment/lib/")


def test_executors_do_not_compile_what_the_archive_brings(
    found: dict[str, Any], cluster: Cluster
) -> None:
    def machine_code(environment: Path) -> dict[str, int]:
        files = environment.glob("lib/*/site-packages/kafkajit/records/**/default_records.*.nbc")
        return {path.name: int(path.stat().st_mtime) for path in files}

    packed = machine_code(cluster.folder / "environment")
    assert packed
    for folder, _, _ in found["executors"]:
        assert machine_code(Path(folder, "environment")) == packed


def test_errors_show_no_traceback(found: dict[str, Any]) -> None:
    assert [shown for _, shown in found["errors"]] == [False] * 4


@pytest.mark.parametrize(
    "words",
    [
        f"--archives {ARCHIVES}",
        f"PYSPARK_PYTHON={PYTHON}",
        " ".join(WARM_UP),
        f'spark.addArtifacts("{ARCHIVES}", archive=True)',
        'spark.conf.set("spark.sql.execution.pyspark.python", "environment/bin/python")',
    ],
)
def test_what_is_tested_here_is_what_the_docs_say(words: str) -> None:
    assert words in (REPOSITORY / "docs" / "deploy.md").read_text()
