"""kafkaLog over tiered storage, through the bridge and without it."""

from __future__ import annotations

import data
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("door")

OBJECTS = data.objects()
MIXED = OBJECTS / "aiven-mixed"
KEYS = {
    f"encryption.key.pairs.{path.name.partition('.')[0]}.private.key.file": str(path)
    for path in (OBJECTS / "keys").rglob("*.private.pem")
}


def test_a_bucket_and_the_brokers_folder_are_one_table(spark: SparkSession) -> None:
    reader = spark.read.format("kafkaLog").options(**KEYS)
    whole = spark.read.format("kafkaLog").load(str(MIXED / "logs" / "orders-0"))
    log = reader.load([str(MIXED / "remote" / "tier"), str(MIXED / "logs" / "orders-0")])
    columns = ("topic", "partition", "offset", "key", "value", "timestamp")
    rows = log.select(*columns).orderBy("offset").collect()
    assert rows == whole.select(*columns).orderBy("offset").collect()
    assert len(rows) == 470
    assert log.where("offset BETWEEN 100 AND 120").count() == 21
    counts = log.groupBy("topic", "partition").agg({"offset": "max", "*": "count"}).collect()
    assert [tuple(row) for row in counts] == [("orders", 0, 469, 470)]


def test_a_key_that_is_missing_is_named(spark: SparkSession) -> None:
    log = spark.read.format("kafkaLog").load(str(MIXED / "remote" / "tier"))
    with pytest.raises(PySparkException, match="key 'first', which was not passed"):
        log.select("value").collect()


def test_states_of_segments_are_a_table(spark: SparkSession) -> None:
    reader = spark.read.format("kafkaLog").option("kind", "remoteSegments")
    table = reader.load([str(MIXED / "remote" / "tier"), str(MIXED / "logs")])
    rows = table.where("keyId IS NOT NULL").select("state", "problem").distinct().collect()
    assert [tuple(row) for row in rows] == [("COPY_SEGMENT_FINISHED", None)]
    assert table.count() == 15
