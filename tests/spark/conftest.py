"""One Spark session for all tests of this folder, and one cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import queries
from cluster import DAMAGED, LOGS, Cluster, standalone_cluster
from corpus import REPOSITORY
from needs import need
from pyspark.sql import SparkSession
from spark_state import BRIDGE, setting

# Other processes run compiled kernels, whatever the mode of the tests: once is enough.
if {"NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"} & os.environ.keys():
    collect_ignore = ["test_cluster.py", "test_connect.py"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    need("java")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Workers import the package from where the tests do, installed or not.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    session = (
        SparkSession.builder.master("local[2]")
        .appName("kafkajit's tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")

    from kafkajit.spark import register

    register(session)
    yield session
    session.stop()


@pytest.fixture(
    params=[
        pytest.param("true", id="bridge"),
        pytest.param("false", id="python", marks=pytest.mark.thorough),
    ]
)
def door(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """A test holds through the bridge, and through Spark's own way to a Python source."""
    with setting(spark, BRIDGE, request.param):
        yield request.param


@pytest.fixture(scope="session")
def local_answers(spark: SparkSession) -> dict[str, Any]:
    asked = queries.Asked(spark, str(LOGS), str(DAMAGED))
    return queries.answers(asked, queries.QUESTIONS.keys() - {"executors"})


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    need("java")
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(autouse=True)
def java() -> None:
    """Every test of this folder may start a JVM."""
    need("java")
