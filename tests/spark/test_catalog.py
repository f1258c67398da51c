"""The catalog: topics as tables, and their kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from scanning import write_partition

import kafkajit.testing as kt

ODD = ["my.topic-1-0", "__consumer_offsets-3", "UPPER_case.x-0", "select-0"]


@pytest.fixture(scope="module")
def catalog(spark: SparkSession) -> SparkSession:
    spark.conf.set("spark.sql.catalog.kafka", "kafkajit.KafkaCatalog")
    spark.conf.set("spark.sql.catalog.kafka.path", kt.SAMPLE)
    return spark


@pytest.fixture(scope="module")
def odd(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    root = tmp_path_factory.mktemp("odd")
    for number, folder in enumerate(ODD):
        write_partition(root, [kt.batch([kt.Record(b"k")] * (number + 1))], folder)
    spark.conf.set("spark.sql.catalog.odd", "kafkajit.KafkaCatalog")
    spark.conf.set("spark.sql.catalog.odd.paths", f'["{root}"]')
    return spark


def rows(spark: SparkSession, query: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, spark.sql(query).collect()), key=str)


def test_topics_are_tables_and_namespaces_of_their_kinds(catalog: SparkSession) -> None:
    tables = rows(catalog, "SHOW TABLES IN kafka")
    assert [row[1] for row in tables] == ["orders", "payments"]
    assert rows(catalog, "SHOW NAMESPACES IN kafka") == [("orders",), ("payments",)]
    kinds = {row[1] for row in rows(catalog, "SHOW TABLES IN kafka.orders")}
    assert {"records", "batches", "corruption", "offset_index", "producers"} <= kinds
    assert "meta_properties" not in kinds


def test_a_topic_has_its_own_rows(catalog: SparkSession) -> None:
    assert rows(catalog, "SELECT topic, count(*) FROM kafka.orders GROUP BY 1") == [("orders", 27)]
    log = catalog.read.format("kafkaLog").option("kind", "batches").load(kt.SAMPLE)
    expected = log.where("topic = 'payments'").count()
    assert rows(catalog, "SELECT count(*) FROM kafka.payments.batches") == [(expected,)]
    for kind in ("offset_index", "producers", "files", "corruption"):
        query = f"SELECT DISTINCT topic FROM kafka.payments.{kind}"
        assert rows(catalog, query) in ([("payments",)], [])


def test_a_table_is_read_through_the_bridge(catalog: SparkSession) -> None:
    plan = catalog.sql("EXPLAIN SELECT sum(offset) FROM kafka.orders").first()[0]
    assert "kafkaLog by columns" in plan
    assert "reads: 1 file, " in plan


def test_describe_lists_the_columns(catalog: SparkSession) -> None:
    log = catalog.read.format("kafkaLog").load(kt.SAMPLE)
    described = [row[0] for row in catalog.sql("DESCRIBE kafka.orders").collect()]
    assert described[: len(log.columns)] == log.columns


@pytest.mark.parametrize(("number", "folder"), list(enumerate(ODD)))
def test_names_are_quoted_as_spark_quotes_them(number: int, folder: str, odd: SparkSession) -> None:
    topic = folder.rpartition("-")[0]
    assert rows(odd, f"SELECT count(*) FROM odd.`{topic}`") == [(number + 1,)]
    assert rows(odd, f"SELECT count(*) FROM odd.`{topic}`.batches") == [(1,)]
    assert topic in [row[1] for row in rows(odd, "SHOW TABLES IN odd")]


def test_a_catalog_sees_new_topics(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.catalog.growing", "kafkajit.KafkaCatalog")
    spark.conf.set("spark.sql.catalog.growing.path", str(tmp_path))
    write_partition(tmp_path, [kt.batch([kt.Record(b"k")])], "first-0")
    assert [row[1] for row in rows(spark, "SHOW TABLES IN growing")] == ["first"]
    write_partition(tmp_path, [kt.batch([kt.Record(b"k")])], "second-0")
    assert rows(spark, "SELECT count(*) FROM growing.second") == [(1,)]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT * FROM odd.nosuch", "has no topic nosuch; there are: select, my.topic-1, "),
        ("SELECT * FROM kafka.ordres", "kafka has no topic ordres; there are: orders, payments$"),
        ("SELECT * FROM kafka.ordres.batches", "kafka has no topic ordres; there are: orders"),
        ("SELECT * FROM kafka.orders.nosuch", "the topic orders has no table nosuch; there are: "),
        ("SELECT * FROM kafka.orders.batch", "has no table batch; there are: batches, .* 4 more$"),
        ("SHOW TABLES IN kafka.nosuch", "SCHEMA_NOT_FOUND"),
        ("SELECT * FROM kafka.orders VERSION AS OF 1", "kafka has no versions of a table"),
        ("SELECT * FROM kafka.orders TIMESTAMP AS OF '2025-11-05'", "has no versions of a table"),
        ("CREATE TABLE kafka.new (n INT)", "is read-only"),
        ("DROP TABLE kafka.orders", "is read-only"),
        ("CREATE NAMESPACE kafka.new", "is read-only"),
        ("INSERT INTO kafka.orders SELECT * FROM kafka.orders", "UNSUPPORTED_FEATURE"),
    ],
)
def test_what_cannot_be_is_an_error_that_says_so(
    statement: str, error: str, catalog: SparkSession, odd: SparkSession
) -> None:
    with pytest.raises(PySparkException, match=error):
        catalog.sql(statement).collect()


def test_a_topic_that_is_not_there_is_no_table(catalog: SparkSession) -> None:
    with pytest.raises(AnalysisException) as raised:
        catalog.table("kafka.nosuch")
    assert raised.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    names = ["kafka.orders", "kafka.orders.batches", "kafka.nosuch", "kafka.orders.nosuch"]
    assert list(map(catalog.catalog.tableExists, names)) == [True, True, False, False]
    catalog.sql("DROP TABLE IF EXISTS kafka.nosuch")


def test_a_catalog_without_a_path_names_the_setting(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.catalog.bare", "kafkajit.KafkaCatalog")
    with pytest.raises(PySparkException, match=r"set spark\.sql\.catalog\.bare\.path"):
        spark.sql("SHOW TABLES IN bare").collect()
