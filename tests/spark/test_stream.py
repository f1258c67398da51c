"""readStream: micro-batches of Spark, through the bridge's table and without it."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
from partitions import data, log_name
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from streaming import append
from typed_logs import (
    ORDER,
    ORDERS,
    confluent,
    encoded,
    schema_record,
    write_registry,
    write_values,
)

import kafkajit.testing as kt


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A log.dirs folder with two partitions: 20 records and 3."""
    append(tmp_path / "logs" / "orders-0", data(0, 10) + data(10, 10))
    append(tmp_path / "logs" / "orders-1", data(0, 3))
    return tmp_path / "logs"


class Sink:
    """Queries that write to one Parquet folder from one checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.rows = folder / "rows"
        self.checkpoint = folder / "checkpoint"
        self.progress: list[Any] = []
        self.metrics: list[dict[str, str]] = []
        self.latest = ""

    def read(self, stream: DataFrame) -> None:
        """Run a query until everything that is there has been written."""
        query = (
            stream.select("topic", "partition", "offset")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start(str(self.rows))
        )
        try:
            assert query.awaitTermination(120)
        finally:
            query.stop()
        self.progress = [progress.numInputRows for progress in query.recentProgress]
        self.metrics = [dict(progress.sources[0].metrics) for progress in query.recentProgress]
        self.latest = query.recentProgress[-1].sources[0].latestOffset

    def offsets(self, partition: int) -> list[int]:
        rows = self.spark.read.parquet(str(self.rows)).where(f"partition = {partition}").collect()
        return sorted(row.offset for row in rows)


@pytest.fixture
def sink(spark: SparkSession, tmp_path: Path) -> Sink:
    return Sink(spark, tmp_path)


def stream_of(spark: SparkSession, root: Path, **options: object) -> DataFrame:
    return spark.readStream.format("kafkaLog").options(**options).load(str(root))


def error_of(stream: DataFrame, checkpoint: Path) -> str:
    query = stream.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    with pytest.raises(PySparkException) as raised:
        query.awaitTermination(60)
    assert "Traceback" not in str(raised.value)
    return str(raised.value)


def test_a_query_goes_on_from_its_checkpoint(
    spark: SparkSession, root: Path, sink: Sink, door: str
) -> None:
    sink.read(stream_of(spark, root, maxRecordsPerTrigger=8))
    assert sink.offsets(0) == list(range(20))
    assert sink.offsets(1) == [0, 1, 2]
    assert max(sink.progress) <= 8
    append(root / "orders-0", data(20, 2) + data(22, 2)[:70])
    append(root / "orders-2", data(0))
    sink.read(stream_of(spark, root, maxBytesPerTrigger="1m"))
    assert sink.offsets(0) == list(range(22))
    assert sink.offsets(2) == [0, 1]
    offsets = (sink.checkpoint / "offsets").glob("[0-9]*")
    last = max(offsets, key=lambda path: int(path.name))
    assert '{"orders": {"0": 22, "1": 3, "2": 2}, "@read": ' in last.read_text()


def test_progress_has_how_far_the_query_is_behind(
    spark: SparkSession, root: Path, sink: Sink, door: str
) -> None:
    sink.read(stream_of(spark, root, maxRecordsPerTrigger=13))
    assert sink.latest.replace(" ", "") == '{"orders":{"0":20,"1":3}}'
    if door == "false":  # Spark asks no Python source for metrics
        assert not any(sink.metrics)
        return
    found = [
        (metrics["maxOffsetsBehindLatest"], metrics["totalBytesBehindLatest"])
        for metrics in sink.metrics
    ]
    size = sum(log.stat().st_size for log in root.glob("*/*.log"))
    assert found == [("20", str(size)), ("10", str(len(data(10, 10)))), ("0", "0")]
    assert sink.metrics[1]["avgOffsetsBehindLatest"] == "5.0"


def test_a_micro_batch_that_was_not_committed_is_read_again(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    """The process may end at any moment after a micro-batch's end has been stored."""
    checkpoint = tmp_path / "checkpoint"
    found: list[tuple[int, list[tuple[int, int]]]] = []

    def keep(rows: DataFrame, number: int) -> None:
        places = [
            (row.partition, row.offset) for row in rows.select("partition", "offset").collect()
        ]
        found.append((number, sorted(places)))

    def run() -> None:
        query = (
            stream_of(spark, root, maxRecordsPerTrigger=9)
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    run()
    first = dict(found)
    last = max(first)
    assert sorted(place for places in first.values() for place in places) == [
        *((0, offset) for offset in range(20)),
        *((1, offset) for offset in range(3)),
    ]
    for commit in (checkpoint / "commits").glob(f"*{last}*"):
        commit.unlink()
    append(root / "orders-0", data(20, 2))
    found.clear()
    run()
    assert found[0] == (last, first[last])
    assert found[-1][1] == [(0, 20), (0, 21)]


def test_lost_offsets_are_reported_in_one_line(
    spark: SparkSession, root: Path, sink: Sink, tmp_path: Path
) -> None:
    sink.read(stream_of(spark, root))
    append(root / "orders-0", data(30, 2), base_offset=30)
    (root / "orders-0" / log_name(0)).unlink()
    checkpoint = tmp_path / "copy"
    shutil.copytree(sink.checkpoint, checkpoint)
    query = stream_of(spark, root).select("topic", "partition", "offset")
    message = error_of(query, checkpoint)
    assert "offsets 20 to 29 of orders-0 are gone: its log now begins at 30" in message
    sink.read(stream_of(spark, root, failOnDataLoss="false"))
    assert sink.offsets(0) == [*range(20), 30, 31]


def test_typed_values_stream(spark: SparkSession, tmp_path: Path, door: str) -> None:
    root = tmp_path / "typed"
    write_registry(root / "_schemas-0", [schema_record("orders-value", 1, 7, json.dumps(ORDER))])
    write_values(root / "orders-0", confluent(7, encoded(ORDER, *ORDERS)))
    stream = stream_of(spark, root / "orders-0", schemas=str(root / "_schemas-0"))
    query = (
        stream.select("value.id")
        .writeStream.format("memory")
        .queryName(f"typed_{door}")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    rows = spark.table(f"typed_{door}").collect()
    assert [row.id for row in rows] == [order["id"] for order in ORDERS]


def rows_of(stream: DataFrame, mode: str = "append") -> list[tuple[object, ...]]:
    """The rows that a query has once it has read everything."""
    name = f"rows_{uuid.uuid4().hex}"
    query = (
        stream.writeStream.format("memory")
        .queryName(name)
        .outputMode(mode)
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    return sorted((tuple(row) for row in stream.sparkSession.table(name).collect()), key=repr)


def test_only_columns_that_a_query_uses_are_read(
    spark: SparkSession, tmp_path: Path, door: str
) -> None:
    """A value that nobody uses may be malformed."""
    root = tmp_path / "typed"
    write_registry(root / "_schemas-0", [schema_record("orders-value", 1, 7, json.dumps(ORDER))])
    spoilt = [value.replace(b"\x02a", b"\x02\xff") for value in encoded(ORDER, *ORDERS)]
    write_values(root / "orders-0", confluent(7, spoilt))
    stream = stream_of(spark, root / "orders-0", schemas=str(root / "_schemas-0"))
    with pytest.raises(PySparkException, match="not valid UTF-8, field sku"):
        rows_of(stream.select("value.sku"))
    if door == "true":
        expected = list(enumerate(["orders"] * len(ORDERS)))
        assert rows_of(stream.select("offset", "topic")) == expected
        assert rows_of(stream.where("offset > 0").select("topic")) == [("orders",)] * 2
        assert rows_of(stream.groupBy().count(), "complete") == [(len(ORDERS),)]


def test_each_scan_of_a_stream_has_its_own_columns(
    spark: SparkSession, root: Path, door: str
) -> None:
    stream = stream_of(spark, root)
    keys = stream.selectExpr("partition", "string(key) AS text")
    values = stream.selectExpr("partition", "string(value)")
    counts = keys.union(values).groupBy("partition", "text").count()
    found = rows_of(counts, "complete")
    assert found[-2:] == [(1, "00000002", 1), (1, "k", 3)]
    assert sum(row[2] for row in found if row[1] == "k") == 23  # type: ignore[misc]
    assert len(found) == 20 + 3 + 2


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_a_stream_counts_rows_as_it_lists_them(
    spark: SparkSession, root: Path, mode: str, door: str
) -> None:
    damaged = bytearray(data(3, 2))
    damaged[40] ^= 1
    append(root / "orders-1", bytes(damaged) + data(5, 2))
    append(root / "orders-1", data(7, 1), base_offset=7)
    stream = stream_of(spark, root, mode=mode)
    listed = rows_of(stream.select("partition", "key"))
    assert len(listed) == 20 + 3 + 2 + 1 + (mode == "PERMISSIVE")
    assert rows_of(stream.groupBy().count(), "complete") == [(len(listed),)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "files"}, "option kind: a stream reads records or batches, not files"),
        ({"endingOffsets": "latest"}, "option endingOffsets: a stream has no end"),
        ({"maxFilesPerTrigger": "0"}, "option maxFilesPerTrigger: expected a number of files"),
    ],
)
def test_a_stream_is_refused_in_one_line(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    assert message in error_of(stream_of(spark, Path(kt.SAMPLE), **options), tmp_path)


def test_a_batch_names_the_options_that_only_streams_have(spark: SparkSession) -> None:
    frame = spark.read.format("kafkaLog").option("maxFilesPerTrigger", "5").load(kt.SAMPLE)
    with pytest.raises(PySparkException, match="maxFilesPerTrigger: only spark"):
        frame.count()
