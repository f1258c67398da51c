"""kafka_schema_id and kafka_decode_value: over arrays, and in Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from evaluating import evaluated
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantVal
from typed_logs import (
    ORDER,
    ORDERS,
    SHIPMENTS,
    confluent,
    encoded,
    schema_record,
    write_registry,
    write_shipments,
    write_values,
)

import kafkajit
from kafkajit.cli.sql.query import Engine
from kafkajit.cli.sql.views import Logs
from kafkajit.spark.functions import kafka_decode_value, kafka_schema_id, try_kafka_decode_value
from kafkajit.spark.value_arrays import _of_path

GOOD = confluent(7, encoded(ORDER, *ORDERS))
TEXT = json.dumps(ORDER)
OTHER = {"type": "record", "name": "Payment", "fields": [{"name": "cents", "type": "int"}]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    records = [
        schema_record("orders-value", 1, 7, TEXT),
        schema_record("payments-value", 1, 9, json.dumps(OTHER)),
    ]
    write_registry(tmp_path / "_schemas-0", records)
    write_values(tmp_path / "orders-0", [*GOOD, None])
    return tmp_path


def decoded(values: Any, *schemas: str | None, name: str = "kafka_decode_value") -> list[Any]:
    values = pa.array(values, pa.binary())
    given = pa.array(schemas if len(schemas) > 1 else [*schemas] * len(values), pa.string())
    return [
        None if row is None else VariantVal(row["value"], row["metadata"]).toPython()
        for row in evaluated(name, values, given)
    ]


def test_a_schemas_id_is_that_in_front() -> None:
    apicurio = b"\0" + (2**31 - 1).to_bytes(8, "big")
    far = b"\0" + (2**31).to_bytes(8, "big")
    values = [GOOD[0], None, b"", b"junk", b"\3\0" + bytes(16), apicurio, far, b"\xc3\1" + bytes(8)]
    found = evaluated("kafka_schema_id", pa.array(values, pa.binary()))
    assert found == [7, None, None, None, None, 2**31 - 1, None, None]
    assert evaluated("kafka_schema_id", pa.nulls(2)) == [None, None]
    assert evaluated("kafka_schema_id", pa.array([], pa.binary())) == []


def test_values_are_read_by_a_schema_a_file_or_a_registry(root: Path) -> None:
    file = root / "order.avsc"
    file.write_text(TEXT)
    for schema in (TEXT, f" {TEXT}\n", str(file), str(root), str(root / "_schemas-0")):
        assert decoded([*GOOD, None], schema) == [*ORDERS, None]
    payment = confluent(9, encoded(OTHER, {"cents": 5}))
    assert decoded([GOOD[0], *payment], str(root)) == [ORDERS[0], {"cents": 5}]
    # Each array decides whether there is an id in front.
    assert decoded([*encoded(ORDER, *ORDERS)], TEXT) == ORDERS
    assert decoded([None, *GOOD], TEXT) == [None, *ORDERS]


def test_protobuf_is_read_by_text_file_and_registry(tmp_path: Path) -> None:
    write_shipments(tmp_path)
    ids = [row and row["id"] for row in decoded([*SHIPMENTS, None], str(tmp_path))]
    assert ids == [2**32 - 1, 2, 0, None]
    text = 'syntax = "proto3"; message M { int64 id = 1; }'
    (tmp_path / "m.proto").write_text(text)
    for schema in (text, str(tmp_path / "m.proto")):
        assert decoded([b"\x08\x05"], schema) == [{"id": 5}]


def test_a_null_of_avro_is_null() -> None:
    assert decoded([b"\0", None, b"\2\2x"], '["null", "string"]') == [None, None, "x"]
    assert decoded([b"", None], '"null"') == [None, None]


def test_rows_may_have_schemas_of_their_own() -> None:
    values = [GOOD[1], b"\x54", GOOD[0], b"\x56", GOOD[2]]
    found = decoded(values, TEXT, '"long"', TEXT, None, TEXT)
    assert found == [ORDERS[1], 42, ORDERS[0], None, ORDERS[2]]


def test_a_malformed_value_raises_and_try_gives_null(root: Path) -> None:
    values = [GOOD[0], GOOD[1][:-1], GOOD[2]]
    words = "row 1: the value ends in the middle of a field, field lines, byte 18, schema id 7"
    with pytest.raises(kafkajit.RecordDeserializationError, match=words):
        decoded(values, str(root))
    with pytest.raises(kafkajit.RecordDeserializationError, match=words):
        decoded(values, TEXT, TEXT, TEXT)
    with pytest.raises(kafkajit.RecordDeserializationError, match="row 2: "):
        decoded([b"\x54", None, b"\xff"], '"long"', TEXT, '"long"')
    found = decoded(values, str(root), name="try_kafka_decode_value")
    assert found == [ORDERS[0], None, ORDERS[2]]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("", "the schema is empty: pass a schema, the path"),
        ("/no/such", "it is neither a schema nor a path: there is nothing at /no/such: pass"),
        ("{", "schema"),
    ],
)
def test_a_schema_that_cannot_be_read_is_an_error_of_both(schema: str, words: str) -> None:
    for name in ("kafka_decode_value", "try_kafka_decode_value"):
        with pytest.raises(kafkajit.InvalidSchemaError, match=words):
            decoded([b"\x54"], schema, name=name)


def test_a_file_is_read_once_for_a_task(root: Path) -> None:
    file = root / "long.avsc"
    file.write_text('"long"')
    _of_path.cache_clear()
    assert decoded([b"\x54"], str(file)) == [42]
    file.write_text('"string"')
    assert decoded([b"\x54"], str(file)) == [42]
    assert _of_path.cache_info().hits == 1


def test_fields_are_taken_out_of_a_variant(spark: SparkSession, root: Path) -> None:
    log = spark.read.format("kafkaLog").load(str(root / "orders-0"))
    call = f"kafka_decode_value(value, '{root}')"
    rows = log.orderBy("offset").selectExpr(
        "kafka_schema_id(value) AS schemaId",
        f"{call}:id::bigint AS id",
        f"variant_get({call}, '$.lines[0]', 'int') AS line",
        f"{call} IS NULL AS isNull",
    )
    assert [tuple(row) for row in rows.collect()] == [
        *((7, order["id"], (order["lines"] or [None])[0], False) for order in ORDERS),
        (None, None, None, True),
    ]
    with pytest.raises(PySparkException, match=r"row 0: .*, schema id 7") as raised:
        spark.sql(f"SELECT kafka_decode_value(X'000000000754', '{root}')").collect()
    assert "Traceback" not in str(raised.value)


def test_functions_of_columns_take_a_schema_as_text(spark: SparkSession, root: Path) -> None:
    frame = spark.createDataFrame(
        [(bytearray(GOOD[0]), TEXT), (bytearray(b"x"), TEXT)], "v BINARY, s STRING"
    )
    (first, second) = frame.select(
        kafka_schema_id("v"),
        try_kafka_decode_value("v", TEXT),
        try_kafka_decode_value("v", frame.s),
    ).collect()
    assert (first[0], first[1].toPython(), first[2].toPython()) == (7, ORDERS[0], ORDERS[0])
    assert tuple(second) == (None, None, None)
    with pytest.raises(PySparkException, match="RecordDeserializationError"):
        frame.select(kafka_decode_value("v", TEXT)).collect()


def test_a_task_reads_a_registry_that_has_grown(spark: SparkSession, root: Path) -> None:
    """A worker that is used again reads the file again, if it is another task's."""
    query = f"SELECT try_kafka_decode_value(X'000000000B54', '{root}') AS it"
    assert spark.sql(query).first().it is None
    records = [schema_record("x", 1, 11, '"long"'), schema_record("y", 1, 12, '"int"')]
    for path in (root / "_schemas-0").glob("*.log"):
        path.unlink()
    write_registry(root / "_schemas-0", records)
    assert spark.sql(query).first().it.toPython() == 42


def test_values_of_a_stream_are_decoded(spark: SparkSession, root: Path) -> None:
    files = root / "in"
    spark.createDataFrame([(bytearray(value),) for value in GOOD], "value BINARY").write.parquet(
        str(files)
    )
    stream = spark.readStream.schema("value BINARY").parquet(str(files))
    query = (
        stream.selectExpr(f"kafka_decode_value(value, '{root}'):id::bigint AS id")
        .writeStream.format("memory")
        .queryName("decoded_values")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    found = {row.id for row in spark.table("decoded_values").collect()}
    assert found == {order["id"] for order in ORDERS}


def test_in_the_prompt(spark: SparkSession, root: Path) -> None:
    for view in ("orders", "payments", "notes"):  # other tests' views go before topics
        spark.catalog.dropTempView(view)
    engine = Engine(Logs([str(root)], {}), lambda: spark)
    engine.start()
    call = f"kafka_decode_value(value, '{root}'):sku::string"
    query = f"SELECT {call} FROM records WHERE offset = 1 AND topic = 'orders'"
    assert [tuple(row) for row in engine.run(query)._df.collect()] == [("bé",)]
