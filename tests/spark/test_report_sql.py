"""The SQL of a report gives its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from corpus import DATA
from pyspark.sql import SparkSession
from report_sql import Rows, differences, document_of, rows_of
from report_twin import write_folder
from sample_views import copy_of_sample

import kafkajit.testing as kt
from kafkajit.cli.sql.views import Logs
from kafkajit.spark import register

Both = tuple[dict[str, Any], dict[str, Rows]]


def session_of(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    register(session)
    return session


@pytest.fixture(scope="module", params=["sample", "v2", "internal", "old", "damaged"])
def both(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Both:
    """A document, and the rows of its queries."""
    root = str(DATA / request.param)
    if request.param == "sample":
        root = copy_of_sample(tmp_path_factory.mktemp("sample") / "dirs")
    document = document_of(root)
    return document, rows_of(session_of(spark), root, document)


def test_sql_gives_the_figures_of_a_report(both: Both) -> None:
    assert differences(*both) == []


def test_a_figure_that_differs_is_seen(both: Both) -> None:
    document, rows = both
    for name in rows.keys() - {"trouble", "indexes", "retention"}:
        assert rows[name], name
        assert differences(document, rows | {name: []}), name


def test_sql_gives_the_figures_of_random_folders(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    session = session_of(spark)
    for seed in range(20 if request.config.getoption("--thorough") else 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        write_folder(folder, seed + 3)
        document = document_of(str(folder))
        found = differences(document, rows_of(session, str(folder), document))
        assert found == [], f"seed {seed}"


def commit(group: str, offset: int) -> kt.Record:
    key = b"\0\1" + b"".join(len(name).to_bytes(2, "big") + name.encode() for name in (group, "t"))
    value = b"\0\3" + offset.to_bytes(8, "big") + b"\xff\xff\xff\xff\0\0" + (9).to_bytes(8, "big")
    return kt.Record(key + b"\0\0\0\0", value)


def test_commits_count_behind_an_open_transaction_and_aborted_ones_do_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    def transactional(group: str, base: int, producer: int) -> bytes:
        return kt.batch(
            [commit(group, base)], base_offset=base, producer_id=producer, is_transactional=True
        )

    log = [
        transactional("aborted", 0, 1),
        kt.control_batch(0, base_offset=1, producer_id=1),
        transactional("committed", 2, 1),
        transactional("open", 3, 2),
        kt.control_batch(1, base_offset=4, producer_id=1),
        kt.batch([commit("plain", 5)], base_offset=5),
    ]
    path = tmp_path / "__consumer_offsets-0" / f"{0:020}.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(log))
    document = document_of(str(tmp_path))
    rows = rows_of(session_of(spark), str(tmp_path), document)
    assert {row["groupId"]: row["offset"] for row in rows["groups"]} == {
        "committed": 2,
        "plain": 5,
    }
    assert differences(document, rows) == []
    logs = Logs([str(tmp_path)], {"isolationLevel": "READ_committed"})
    committed = logs.load(session_of(spark), "consumer_offsets").collect()
    assert {(row.groupId, row.isCommitted) for row in committed} == {("committed", True)}
