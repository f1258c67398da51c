"""kafkaLog with typed keys and values, through the bridge and without it, and in kafkajit sql."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from spark_state import plan_of
from typed_logs import (
    ORDER,
    ORDERS,
    confluent,
    encoded,
    schema_record,
    write_clicks,
    write_registry,
    write_shipments,
    write_values,
)

from kafkajit.cli.sql.query import Engine
from kafkajit.cli.sql.views import Logs

GOOD = confluent(7, encoded(ORDER, *ORDERS))
OTHER = {"type": "record", "name": "Payment", "fields": [{"name": "cents", "type": "int"}]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    records = [
        schema_record("orders-value", 1, 7, json.dumps(ORDER)),
        schema_record("payments-value", 1, 9, json.dumps(OTHER)),
        schema_record("payments-value", 2, 9, json.dumps(OTHER), deleted=True),
    ]
    write_registry(tmp_path / "_schemas-0", records)
    write_values(tmp_path / "orders-0", [*GOOD, None])
    write_values(tmp_path / "orders-1", GOOD[:1])
    write_values(tmp_path / "payments-0", confluent(9, encoded(OTHER, {"cents": 5})))
    write_values(tmp_path / "notes-0", [b"plain"])
    return tmp_path


def load(spark: SparkSession, *paths: Path, **options: str) -> DataFrame:
    return spark.read.format("kafkaLog").options(**options).load([*map(str, paths)])


def values(df: DataFrame) -> list[Any]:
    return [
        None if row.value is None else row.value.asDict()
        for row in df.orderBy("partition", "offset").select("value").collect()
    ]


def test_values_have_the_types_of_their_schema(spark: SparkSession, root: Path) -> None:
    log = load(spark, root / "orders-0", root / "orders-1", schemas="auto")
    type_ = log.schema["value"].dataType.simpleString()
    assert type_ == "struct<id:bigint,sku:string,note:string,lines:array<int>>"
    assert log.schema["key"].dataType.simpleString() == "binary"
    assert "rawKey" not in log.columns
    assert values(log) == [*ORDERS, None, ORDERS[0]]
    raw = log.orderBy("partition", "offset").select("rawValue").collect()
    assert [row[0] for row in raw] == [*GOOD, None, GOOD[0]]
    assert log.count() == 5
    by_note = log.where("value IS NOT NULL").groupBy("value.note").count()
    assert {tuple(row) for row in by_note.collect()} == {(None, 2), ("n", 1), ("", 1)}
    lines = log.selectExpr("explode(value.lines) AS line").collect()
    assert sorted(row.line for row in lines) == [1, 1, 2, 2, 7]


def test_only_fields_that_a_query_uses_are_decoded(
    spark: SparkSession, root: Path, door: str
) -> None:
    """A field that nobody uses may be malformed text: it is skipped."""
    spoilt = GOOD[0].replace(b"\x02a", b"\x02\xff")
    write_values(root / "orders-0", [spoilt])
    log = load(spark, root / "orders-0", schemas="auto")
    with pytest.raises(PySparkException, match="not valid UTF-8, field sku"):
        log.select("value.sku").collect()
    if door == "true":
        assert log.select("value.id").collect() == [(1,)]
        assert log.selectExpr("size(value.lines)").collect() == [(2,)]


def test_a_schema_may_be_named(spark: SparkSession, root: Path, tmp_path: Path) -> None:
    reader = {**ORDER, "fields": [ORDER["fields"][0], {"name": "x", "type": "int", "default": 5}]}
    schema = tmp_path / "reader.avsc"
    schema.write_text(json.dumps(reader))
    expected = [{"id": order["id"], "x": 5} for order in ORDERS]
    for named in (str(schema), json.dumps(reader)):
        log = load(spark, root / "orders-0", valueSchema=named, schemas=str(root))
        assert values(log) == [*expected, None]
    alone = load(spark, root / "orders-0", valueSchema=json.dumps(ORDER))
    assert values(alone) == [*ORDERS, None]
    keys = load(spark, root / "orders-0", keySchema='"string"')
    assert keys.schema["key"].dataType.simpleString() == "string"
    assert keys.schema["value"].dataType.simpleString() == "binary"


def test_a_protobuf_message_may_be_named(spark: SparkSession, tmp_path: Path) -> None:
    proto = 'syntax = "proto3"; message A { int32 a = 1; } message B { int32 b = 1; }'
    write_values(tmp_path / "t-0", [b"\x08\x05"])
    named = load(spark, tmp_path / "t-0", valueSchema=proto, valueMessage="B")
    assert named.select("value.b").collect() == [(5,)]
    with pytest.raises(PySparkException, match="no messages 'C'; there are: A, B"):
        load(spark, tmp_path / "t-0", valueSchema=proto, valueMessage="C")


def test_a_malformed_value_fails_or_is_null_or_dropped(spark: SparkSession, root: Path) -> None:
    write_values(root / "orders-0", [GOOD[0], GOOD[1][:-2], GOOD[2]])
    path = root / "orders-0"
    with pytest.raises(PySparkException) as raised:
        load(spark, path, schemas="auto").select("value.id").collect()
    words = "Error deserializing VALUE for partition orders-0 at offset 1: a size reaches past"
    assert words in str(raised.value)
    assert "Traceback" not in str(raised.value)
    lenient = load(spark, path, schemas="auto", mode="PERMISSIVE")
    assert values(lenient) == [ORDERS[0], None, ORDERS[2]]
    assert lenient.where("valueError LIKE '%field note%'").select("offset").collect() == [(1,)]
    dropped = load(spark, path, schemas="auto", mode="DROPMALFORMED")
    assert values(dropped) == [ORDERS[0], ORDERS[2]]
    assert dropped.count() == dropped.select("offset").distinct().count() == 2


def test_topics_with_types_of_their_own_are_read_one_at_a_time(
    spark: SparkSession, root: Path
) -> None:
    with pytest.raises(PySparkException) as raised:
        load(spark, root, schemas="auto")
    words = "the values of the topics orders, payments have different schemas: read one topic"
    assert words in str(raised.value)
    with pytest.raises(PySparkException, match="no schema is known for the topic notes; there"):
        load(spark, root / "notes-0", schemas=str(root))
    assert load(spark, root / "notes-0", schemas="auto").first().value == b"plain"


def test_timestamps_decimals_and_times_are_those_of_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    fields = [
        ("millis", {"type": "long", "logicalType": "timestamp-millis"}, 1_700_000_000_123),
        ("micros", {"type": "long", "logicalType": "timestamp-micros"}, 1_700_000_000_123_456),
        ("nanos", {"type": "long", "logicalType": "timestamp-nanos"}, -1),
        ("local", {"type": "long", "logicalType": "local-timestamp-millis"}, 1_700_000_000_123),
        ("far", {"type": "long", "logicalType": "timestamp-millis"}, 2**62),
        ("day", {"type": "int", "logicalType": "date"}, 19_000),
        ("time", {"type": "int", "logicalType": "time-millis"}, 61_001),
        ("money", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, b"\x7b"),
        ("much", {"type": "bytes", "logicalType": "decimal", "precision": 50}, b"\x7b"),
    ]
    plain = [
        {"name": name, "type": type_["type"]}
        for name, type_, _ in fields
        if isinstance(type_, dict)
    ]
    record = {"type": "record", "name": "R"}
    (content,) = encoded(record | {"fields": plain}, {name: value for name, _, value in fields})
    typed = [{"name": name, "type": type_} for name, type_, _ in fields]
    write_values(tmp_path / "orders-0", [content])
    log = load(
        spark,
        tmp_path / "orders-0",
        valueSchema=json.dumps(record | {"fields": typed}),
        framing="bare",
    )
    row = log.selectExpr("value.*").selectExpr("*", "string(millis) AS text").first().asDict()
    assert row["millis"].replace(tzinfo=None).microsecond == 123_000
    assert row["micros"].microsecond == 123_456
    assert row["nanos"].microsecond == 999_999
    assert row["local"] == datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000)
    assert row["far"] is None
    assert row["day"] == datetime.date(2022, 1, 8)
    assert row["time"] == 61_001
    assert str(row["money"]) == "1.23"
    assert row["much"] == "123"


def test_a_registrys_schemas_are_a_kind(spark: SparkSession, root: Path) -> None:
    for path in (root, root / "_schemas-0"):
        rows = load(spark, path, kind="schemas").orderBy("offset")
        found = rows.select("subject", "version", "id", "deletion").collect()
        assert [tuple(row) for row in found] == [
            ("orders-value", 1, 7, None),
            ("payments-value", 1, 9, None),
            ("payments-value", 2, 9, "soft"),
        ]
    with pytest.raises(PySparkException, match="comes from a schema registry"):
        load(spark, root / "orders-0", root / "notes-0", kind="schemas").collect()


def test_the_prompt_types_the_sample_with_nothing_said(spark: SparkSession) -> None:
    for view in ("shipments", "schemas"):  # other tests' views go before topics
        spark.catalog.dropTempView(view)
    engine = Engine(Logs(["sample:typed"], {}), lambda: spark)
    engine.start()

    def rows(statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in engine.run(statement)._df.collect()]

    query = "SELECT value.carrier, count(*) FROM shipments GROUP BY ALL ORDER BY ALL"
    assert rows(query) == [(None, 1), ("BIKE", 4), ("TRAIN", 2), ("TRUCK", 3)]
    query = "SELECT max(value.id), count_if(value.insured), count(rawValue) FROM shipments"
    assert rows(query) == [(3_000_000_009, 2, 9)]
    query = "SELECT sum(parcel.price) FROM shipments LATERAL VIEW explode(value.parcels) AS parcel"
    assert rows(query) == [(Decimal("2577.53"),)]
    assert rows("SELECT version, id FROM schemas ORDER BY ALL") == [(1, 1), (2, 2)]


def test_in_the_prompt_values_have_types_with_nothing_said(
    spark: SparkSession, root: Path, door: str
) -> None:
    for view in ("orders", "payments", "notes"):  # other tests' views go before topics
        spark.catalog.dropTempView(view)
    engine = Engine(Logs([str(root)], {}), lambda: spark)
    engine.start()

    def rows(statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in engine.run(statement)._df.collect()]

    query = "SELECT value.sku, count(*) FROM orders WHERE value IS NOT NULL GROUP BY ALL ORDER BY 1"
    assert rows(query) == [("", 1), ("a", 2), ("bé", 1)]
    assert rows("SELECT sum(value.cents) FROM payments") == [(5,)]
    assert rows("SELECT value FROM notes") == [(b"plain",)]
    assert rows("SELECT count(DISTINCT subject) FROM schemas") == [(2,)]
    # The view of all topics has bytes.
    assert rows("SELECT count(*) FROM records WHERE value = X'706C61696E'") == [(1,)]
    if door == "true":
        plan = plan_of(engine.run("SELECT value.id FROM orders")._df)
        assert "topic = 'orders'" in plan


def test_protobuf_values_have_sparks_types(spark: SparkSession, tmp_path: Path) -> None:
    write_shipments(tmp_path)
    rows = load(spark, tmp_path / "shipments-0", schemas="auto")
    types = dict(rows.select("value.*").dtypes)
    assert types == {
        "id": "bigint",
        "code": "decimal(20,0)",
        "carrier": "string",
        "weight": "struct<kilos:double,notes:array<string>>",
        "parcels": "map<string,bigint>",
        "created": "timestamp",
        "took": "interval day to second",
    }
    whole = [row.value and row.value.asDict(recursive=True) for row in rows.collect()]
    assert whole[1]["code"] == 2**64 - 1
    assert whole[2]["parcels"] == {"a": 5}
    assert whole[2]["took"] == datetime.timedelta(seconds=2)
    totals = rows.groupBy("value.carrier").agg({"value.id": "max", "value.took": "max"})
    found = {row[0]: (row[1], row[2]) for row in totals.collect()}
    assert found["SHIP"] == (2**32 - 1, None)
    assert found["TRUCK"] == (2, datetime.timedelta(seconds=2))


def test_json_values_have_the_types_of_their_schema(spark: SparkSession, tmp_path: Path) -> None:
    write_clicks(tmp_path)
    rows = load(spark, tmp_path / "clicks-0", schemas="auto")
    assert dict(rows.select("value.*").dtypes) == {
        "page": "string",
        "user": "struct<id:bigint>",
        "at": "timestamp",
    }
    assert [row.id for row in rows.select("value.user.id").collect()] == [5, None, None]


def test_headers_name_the_schemas_of_values(spark: SparkSession, root: Path) -> None:
    name = {"key": "__value_schema_id", "value": b"\0\0\0\0\7"}
    values = encoded(ORDER, *ORDERS)
    write_values(root / "orders-0", values, headers=[[name]] * len(values))
    rows = load(spark, root / "orders-0", schemas="auto", framing="headers")
    ids = [row.id for row in rows.select("value.id").collect()]
    assert ids == [order["id"] for order in ORDERS]
    assert [len(row.headers) for row in rows.select("headers").collect()] == [1] * len(values)
