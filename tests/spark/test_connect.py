"""Spark Connect: a client without a JVM, a server whose executors are other processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import ARCHIVES, PYTHON, WORKERS, Cluster, connect_server
from pyspark.sql import SparkSession

from kafkajit.spark.bridge import write_jar

pytestmark = pytest.mark.thorough

QUESTIONS = (
    "unregistered",
    "records",
    "filtered",
    "kafka_records",
    "kafka_log",
    "column_functions",
    "errors",
    "report",
    "planner_log",
)


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[str]:
    """A server with kafkajit installed at the same place on every node."""
    with connect_server(cluster, str(cluster.folder / PYTHON)) as url:
        yield url


def test_a_server_with_the_jar_reads_through_the_bridge(
    cluster: Cluster, spark: SparkSession, local_answers: dict[str, Any], tmp_path: Path
) -> None:
    jar = tmp_path / "bridge.jar"
    with jar.open("wb") as out:
        write_jar(spark, out)
    asked = ["records", "filtered", "errors", "by_columns"]
    with connect_server(cluster, str(cluster.folder / PYTHON), **{"spark.jars": str(jar)}) as url:
        found = cluster.answers([PYTHON], asked, "--remote", url)
    assert found.pop("by_columns")
    assert found == {question: local_answers[question] for question in found}


def test_a_server_without_the_jar_uses_the_python_source(cluster: Cluster, server: str) -> None:
    found = cluster.answers([PYTHON], ["by_columns"], "--remote", server)
    assert found == {"by_columns": False}


@pytest.fixture(scope="module")
def shipped(cluster: Cluster, server: str) -> dict[str, Any]:
    options = ["--remote", server, "--archive", ARCHIVES]
    return cluster.answers([PYTHON], [*QUESTIONS, "executors"], *options)


def test_what_is_installed_on_the_nodes_is_found_without_registration(
    cluster: Cluster, server: str, local_answers: dict[str, Any]
) -> None:
    found = cluster.answers([PYTHON], ["unregistered"], "--remote", server)
    assert found["unregistered"] == local_answers["unregistered"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_client_gets_what_local_mode_answers(
    question: str, shipped: dict[str, Any], local_answers: dict[str, Any]
) -> None:
    assert shipped[question] == local_answers[question]


def test_a_client_can_ship_an_archive_of_its_own(shipped: dict[str, Any]) -> None:
    assert len({folder for folder, _, _ in shipped["executors"]}) == WORKERS
    for folder, python, package in shipped["executors"]:
        assert python == f"{folder}/environment/bin/python"
        assert package.startswith(f"{folder}/environment/lib/")


def test_the_planner_says_what_is_read_and_skipped(shipped: dict[str, Any]) -> None:
    (line,) = shipped["planner_log"]
    assert "1 of 4 segments, 1 splits in 1 tasks: 144 bytes to read, 6,800 skipped" in line
