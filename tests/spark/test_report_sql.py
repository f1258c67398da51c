"""The SQL of a report gives its figures."""

from __future__ import annotations

from typing import Any

import pytest
from corpus import DATA
from pyspark.sql import SparkSession
from sample_views import copy_of_sample, create_view

from kafkajit.cli.sql.views import Logs
from kafkajit.report.sql import QUERIES
from kafkajit.report.take import ALL, ReportOptions, take
from kafkajit.spark import register

Rows = list[dict[str, Any]]


def session_of(spark: SparkSession, root: str) -> SparkSession:
    session = spark.newSession()
    register(session)
    for kind in ("records", "batches", "corruption", "indexes"):
        create_view(session, kind, root)
    return session


@pytest.fixture(scope="module", params=["sample", "corpus"])
def both(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Rows]]:
    """A document, and the rows of its queries."""
    root = str(DATA / "v2")
    if request.param == "sample":
        root = copy_of_sample(tmp_path_factory.mktemp("sample") / "dirs")
    document = take(ReportOptions((root,), depth=ALL))
    session = session_of(spark, root)
    names = [name for name in QUERIES if name != "groups"]
    return document, {
        name: [row.asDict() for row in session.sql(document["sql"][name]).collect()]
        for name in names
    }


Both = tuple[dict[str, Any], dict[str, Rows]]


def of_topics(rows: Rows, *names: str) -> dict[str, tuple[Any, ...]]:
    return {row["topic"]: tuple(row[name] for name in names) for row in rows}


def test_topics(both: Both) -> None:
    document, rows = both
    names = ("partitions", "records", "batches")
    topics = [topic for topic in document["topics"] if topic["batches"]]
    assert of_topics(rows["topics"], *names) == of_topics(topics, *names)
    held = {
        topic["topic"]: sum(codec["bytes"] for codec in topic["codecs"].values())
        for topic in topics
    }
    assert {row["topic"]: row["bytes"] for row in rows["topics"]} == held


def test_partitions(both: Both) -> None:
    document, rows = both
    found = {
        (topic["topic"], one["partition"]): (one["startOffset"], one["endOffset"])
        for topic in document["topics"]
        for one in topic["eachPartition"]
        if one["batches"]
    }
    assert {
        (row["topic"], row["partition"]): (row["startOffset"], row["endOffset"])
        for row in rows["partitions"]
    } == found


def test_codecs(both: Both) -> None:
    document, rows = both
    found = {
        (topic["topic"], name): (codec["batches"], codec["bytes"])
        for topic in document["topics"]
        for name, codec in topic["codecs"].items()
    }
    assert {
        (row["topic"], row["compressionType"]): (row["batches"], row["bytes"])
        for row in rows["codecs"]
    } == found


def test_lives(both: Both) -> None:
    document, rows = both
    for topic in document["topics"]:
        life = topic["life"]
        own = [row for row in rows["life"] if row["topic"] == topic["topic"] and row["hour"]]
        outside = [life[side]["bytes"] for side in ("before", "after") if life and life[side]]
        assert sum(row["bytes"] for row in own) == sum(outside) + sum(life["bytes"] if life else [])


def test_keys(both: Both) -> None:
    document, rows = both
    found = {
        topic["topic"]: (sample["records"], sample["nullKeys"], sample["tombstones"])
        for topic in document["topics"]
        if (sample := topic["sample"]) is not None
    }
    assert of_topics(rows["keys"], "records", "nullKeys", "tombstones") == found


def test_producers(both: Both) -> None:
    document, rows = both
    names = ("producers", "transactionalBatches", "controlBatches")
    topics = [topic for topic in document["topics"] if topic["batches"]]
    assert of_topics(rows["producers"], *names) == of_topics(topics, *names)


def test_timestamps(both: Both) -> None:
    document, rows = both
    names = ("batchesBack", "batchesAhead")
    # The order of batches that overlap is that of the log, and in SQL that of their offsets.
    overlap = {one["topic"] for one in document["trouble"] if one["kind"] == "overlap"}
    topics = [topic for topic in document["topics"] if topic["batches"]]
    found, by_sql = of_topics(topics, *names), of_topics(rows["timestamps"], *names)
    assert all(by_sql[name] == found[name] for name in by_sql.keys() - overlap)


def test_compaction(both: Both) -> None:
    document, rows = both
    found = {
        topic["topic"]: topic["savings"]["compaction"]["records"]
        for topic in document["topics"]
        if topic["savings"]["compaction"] and topic["partitions"] == 1
    }
    by_sql = {row["topic"]: row["records"] for row in rows["compaction"]}
    assert {name: by_sql[name] for name in found} == found


def test_indexes(both: Both) -> None:
    document, rows = both
    told = {one["path"] for one in document["trouble"] if one["kind"] == "index"}
    assert {row["path"].removeprefix("file:") for row in rows["indexes"]} == told


def test_every_figure_s_query_runs(both: Both) -> None:
    _, rows = both
    assert set(rows) == set(QUERIES) - {"groups"}


def test_groups(spark: SparkSession) -> None:
    root = str(DATA / "internal")
    document = take(ReportOptions((root,)))
    session = spark.newSession()
    register(session)
    Logs([root], {"isolationLevel": "read_committed"}).load(
        session, "consumer_offsets"
    ).createOrReplaceTempView("consumer_offsets")
    rows = session.sql(document["sql"]["groups"]).collect()
    assert {(row.groupId, row.topic, row.partition, row.offset) for row in rows} == {
        (one["group"], one["topic"], one["partition"], one["offset"])
        for one in document["groups"]
        if one["kind"] == "consumers"
    }
