from __future__ import annotations

import inspect
import re
from pathlib import Path

import pyarrow as pa
import pytest
from corpus import DATA, log_of, rows_of, run_python
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from sparks_kafka import schema_with_headers

import kafkajit
import kafkajit.testing as kt
from kafkajit.schema import BATCH_COLUMNS, RECORD_COLUMNS
from kafkajit.spark import functions, record_arrays
from kafkajit.spark.arrow_types import arrow_schema
from kafkajit.spark.catalogue import FUNCTIONS, plain
from kafkajit.spark.descriptions import FIXED_FIELDS, header

TELLING = ("headers-0", "transactions-0", "nulls-0", "append-time-zstd-0", "compacted-0")
WITHOUT_PATH = [name for name in RECORD_COLUMNS if name not in ("topic", "partition")]


def contents(spark: SparkSession, *logs: bytes | None) -> DataFrame:
    rows = [(None if log is None else bytearray(log),) for log in logs]
    return spark.createDataFrame(rows, "content BINARY")


def in_spark(table: pa.Table) -> list[dict]:
    """Our rows as Spark gives them: TIMESTAMP in microseconds."""
    milliseconds = ("timestamp", "baseTimestamp", "maxTimestamp")
    rows = rows_of(table)
    for row in rows:
        row.update({name: row[name] * 1000 for name in milliseconds if name in row})
    return rows


@pytest.mark.parametrize("name", TELLING)
def test_kafka_records_gives_what_read_records_gives(name: str, spark: SparkSession) -> None:
    log = log_of(name)
    found = contents(spark, log).selectExpr("inline(kafka_records(content))").toArrow()
    assert found.column_names == WITHOUT_PATH
    assert rows_of(found) == in_spark(kafkajit.read_records(log))


@pytest.mark.parametrize("name", TELLING)
def test_kafka_record_batches_gives_what_read_record_batches_gives(
    name: str, spark: SparkSession
) -> None:
    log = log_of(name)
    found = contents(spark, log).selectExpr("inline(kafka_record_batches(content))").toArrow()
    assert found.column_names == list(BATCH_COLUMNS)
    assert rows_of(found) == in_spark(kafkajit.read_record_batches(log))


def test_the_literal_query_works(spark: SparkSession) -> None:
    glob = f"{DATA}/v2/headers-0/*.log"
    rows = spark.sql(f"SELECT explode(kafka_records(content)) FROM binaryFile.`{glob}`").collect()
    (path,) = Path(DATA, "v2/headers-0").glob("*.log")
    assert [row.col.offset for row in rows] == kafkajit.read_records(path)["offset"].to_pylist()


def test_the_first_eight_columns_are_those_of_sparks_kafka_source(spark: SparkSession) -> None:
    ours = spark.read.format("kafkaLog").load(kt.SAMPLE).schema
    assert list(ours)[:8] == list(schema_with_headers(spark))


def test_named_columns_are_decoded_and_the_others_are_null(spark: SparkSession) -> None:
    query = "inline(kafka_records(content, 'offset, value'))"
    found = contents(spark, log_of("headers-0")).selectExpr(query).toArrow().to_pylist()
    whole = kafkajit.read_records(log_of("headers-0")).to_pylist()
    for row, expected in zip(found, whole, strict=True):
        named = {name: expected[name] for name in ("offset", "value")}
        assert row == dict.fromkeys(WITHOUT_PATH) | named


def test_rows_may_ask_for_different_columns(spark: SparkSession) -> None:
    log = bytearray(log_of("single-record-0"))
    frame = spark.createDataFrame([(log, "offset"), (log, None)], "content BINARY, names STRING")
    first, second = frame.selectExpr("kafka_records(content, names)[0] AS record").collect()
    assert first.record.value is None
    assert second.record.value is not None


def arguments_of(name: str, content: str) -> str:
    """The required arguments of a call: `content` for bytes, and zeros for numbers."""
    if name.endswith("kafka_encode_batch"):
        return content.replace("BINARY", "ARRAY<STRUCT<key: BINARY>>")
    if name.endswith("kafka_decode_value"):
        return f"{content}, CAST({content} AS STRING)"
    if name == "kafka_log_path":
        return f"CAST({content} AS STRING)"
    parameters = inspect.signature(getattr(functions, name)).parameters.values()
    return ", ".join(
        ("12" if parameter.name == "partitions" else "0")
        if "int" in str(parameter.annotation)
        else content
        for parameter in parameters
        if parameter.default is parameter.empty
    )


def test_null_in_null_out(spark: SparkSession) -> None:
    calls = [
        f"{name}({arguments_of(name, content)})"
        for name in FUNCTIONS
        for content in ("CAST(NULL AS BINARY)", "NULL")
    ]
    assert set(spark.sql(f"SELECT {', '.join(calls)}").first()) == {None}


def test_an_empty_content_has_no_records(spark: SparkSession) -> None:
    row = spark.sql(
        "SELECT kafka_records(X''), kafka_record_batches(X''), kafka_valid_bytes(X'')"
    ).first()
    assert list(row) == [[], [], 0]


def test_contents_of_all_sizes_share_a_batch(spark: SparkSession) -> None:
    logs = [log_of("headers-0"), None, b"", log_of("nulls-0"), kt.batch([kt.Record(value=b"v")])]
    counts = [None if log is None else kafkajit.read_records(log).num_rows for log in logs]
    frame = contents(spark, *logs).coalesce(1).selectExpr("kafka_records(content) AS records")
    assert [None if r.records is None else len(r.records) for r in frame.collect()] == counts


@pytest.mark.parametrize("name", kt.BREAKS)
def test_damage_raises_in_kafkas_words_and_try_gives_null(name: str, spark: SparkSession) -> None:
    frame = contents(spark, kt.broken(name, base_offset=42))
    with pytest.raises(PythonException) as raised:
        frame.selectExpr("kafka_records(content)").collect()
    message = str(raised.value)
    assert kt.BREAKS[name].message in message
    assert "at position 0" in message
    assert "Traceback" not in message
    assert frame.selectExpr("try_kafka_records(content)").first()[0] is None


def test_dropmalformed_leaves_bad_batches_out(spark: SparkSession) -> None:
    log = kt.broken("wrong crc") + kt.batch([kt.Record(value=b"v")], base_offset=7)
    query = "inline(kafka_records(content, mode => 'DROPMALFORMED'))"
    assert [row.offset for row in contents(spark, log).selectExpr(query).collect()] == [7]


@pytest.mark.parametrize(
    ("call", "stated"),
    [
        ("kafka_records(content, 'ofset')", "unknown column 'ofset'; there are: key, value,"),
        ("kafka_records(content, mode => 'PERMISSIVE')", r"kafka_corruption\(content\)"),
        ("kafka_records(content, mode => 'LENIENT')", "not 'LENIENT'"),
        ("kafka_records(content, array('key'))", "columns must be STRING, not list<"),
        ("kafka_records('text')", "content must be BINARY, as binaryFile loads it, not string"),
        ("kafka_log_path(content)", "path must be STRING, not binary"),
        ("kafka_partition(1, 12)", "key must be BINARY or STRING, not int32"),
        ("kafka_partition(content, '12')", "partitions must be INT, not string"),
        ("kafka_partition(content, -1)", "a topic has from 1 to 2147483647 partitions, not -1"),
    ],
)
def test_a_wrong_argument_says_what_is_possible(
    call: str, stated: str, spark: SparkSession
) -> None:
    with pytest.raises(PythonException, match=stated):
        contents(spark, b"").selectExpr(call).collect()


def test_row_bytes_are_no_more_than_spark_needs(spark: SparkSession) -> None:
    table = kafkajit.read_records(log_of("headers-0"))
    estimate = sum(map(record_arrays.row_bytes, table.to_batches()))
    frame = contents(spark, log_of("headers-0")).selectExpr("kafka_records(content) AS r")
    (row,) = frame._jdf.queryExecution().toRdd().toJavaRDD().collect()
    assert 0.8 * row.getSizeInBytes() < estimate <= row.getSizeInBytes()


def test_column_functions_need_no_registration(spark: SparkSession) -> None:
    other = spark.newSession()
    frame = other.createDataFrame([(bytearray(log_of("single-record-0")),)], "content BINARY")
    (row,) = frame.select(
        functions.kafka_records("content", "offset"),
        functions.kafka_valid_bytes(frame.content),
        functions.kafka_log_path(lit("/k/orders-3/00000000000000000042.log")),
    ).collect()
    assert row[0][0].offset == 0
    assert row[1] == len(log_of("single-record-0"))
    assert tuple(row[2]) == ("orders", 3, 42, ".log")


def test_a_key_has_the_partition_that_kafkas_producer_chooses(spark: SparkSession) -> None:
    head, *rows = [line.split("\t") for line in (DATA / "partitions.tsv").read_text().splitlines()]
    keys = [(bytearray.fromhex(row[0]), int(row[head.index("12")])) for row in rows]
    frame = spark.createDataFrame(keys, "key BINARY, expected INT")
    found = frame.select(functions.kafka_partition("key", 12).alias("found"), "expected")
    assert found.where("found = expected").count() == len(rows)


def test_every_function_returns_what_it_declares(spark: SparkSession) -> None:
    for name, function in FUNCTIONS.items():
        schema = spark.sql(f"SELECT {name}({arguments_of(name, 'NULL')}) AS it").schema
        assert arrow_schema(schema).field("it").type == function.returns


# By the type of an SQL function's first argument.
ARGUMENTS = {
    "BINARY": "X'00'",
    "STRING": "'/k/orders-3/00000000000000000042.log'",
    "ARRAY": "array(named_struct('key', 'k', 'timestamp', TIMESTAMP '2025-01-01 00:00:00'))",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_columns_is_the_sql_function_of_its_name(
    name: str, spark: SparkSession
) -> None:
    function = getattr(functions, name)
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
    ]
    texts = [text for field, text in header(plain(name)).items() if field not in FIXED_FIELDS]
    first = ARGUMENTS[re.match(r"\w+", texts[0])[0]]
    values = ["12" if "int" in str(p.annotation) else first for p in parameters]
    if "schema" in (p.name for p in parameters):
        values = [first, "'\"long\"'"]
    row = ", ".join(f"{v} AS {p.name}" for v, p in zip(values, parameters, strict=True))
    frame = spark.sql(f"SELECT {row}")
    by_sql = answer(frame.selectExpr(f"{name}({', '.join(values)}) AS it"))
    assert answer(frame.select(function(*[p.name for p in parameters]).alias("it"))) == by_sql


def answer(frame: DataFrame) -> object:
    """Its only value, or the message of its error."""
    try:
        return frame.first().it
    except PythonException as error:
        return str(error)


def test_side_functions_give_what_readers_give(spark: SparkSession) -> None:
    folders = DATA / "v2"
    for kind, suffix, call in (
        ("offset_index", "index", "kafka_offset_index(content, baseOffset)"),
        ("time_index", "timeindex", "kafka_time_index(content, baseOffset)"),
        ("transaction_index", "txnindex", "kafka_transaction_index(content)"),
        ("producer_snapshot", "snapshot", "kafka_producer_snapshot(content)"),
    ):
        frame = spark.read.format("binaryFile").load(f"{folders}/*/*.{suffix}")
        frame = frame.selectExpr("*", "kafka_log_path(path).baseOffset AS baseOffset")
        found = frame.selectExpr("path", f"{call} AS rows").toArrow().sort_by("path")
        # Spark leaves empty files out.
        paths = sorted(path for path in folders.glob(f"*/*.{suffix}") if path.stat().st_size)
        assert len(paths) > 3
        assert [path.removeprefix("file:") for path in found["path"].to_pylist()] == [
            *map(str, paths)
        ]
        module = kafkajit.index if kind.endswith("index") else kafkajit
        read = getattr(module, f"read_{kind}")
        assert found["rows"].to_pylist() == [read(path).to_pylist() for path in paths]


def test_side_functions_take_their_arguments_by_name(spark: SparkSession) -> None:
    query = """
        SELECT kafka_offset_lookup(
          content => X'0000000900001000', baseOffset => 100, targetOffset => 120
        ), kafka_time_lookup(
          content => X'0000018BCFE5680000000009', baseOffset => 100,
          timestamp => TIMESTAMP '2030-01-01 00:00:00'
        ).offset
    """
    assert list(spark.sql(query).first()) == [(109, 4096), 109]


def test_one_index_is_looked_up_for_the_rows_of_a_join(spark: SparkSession) -> None:
    index = "X'0000000900001000' || X'0000001500002000'"
    rows = spark.sql(
        f"SELECT id, kafka_offset_lookup({index}, 100, id) AS found FROM range(95, 130)"
    ).collect()
    assert len(rows) == 35
    for row in rows:
        expected = (100, 0) if row.id < 109 else (109, 4096) if row.id < 121 else (121, 8192)
        assert tuple(row.found) == expected


def test_side_functions_raise_in_kafkas_words_with_the_place(spark: SparkSession) -> None:
    with pytest.raises(PythonException) as raised:
        spark.sql(
            "SELECT kafka_offset_index(X'0000000900001000' || X'0000000900002000', 0)"
        ).first()
    message = str(raised.value)
    assert "CorruptIndexError: entries out of order: entry 1 has relativeOffset 9" in message
    assert "at position 8" in message
    assert "Traceback" not in message


def test_internal_topics_are_decoded(spark: SparkSession) -> None:
    log = DATA / "internal/__transaction_state-0"
    frame = spark.read.format("kafkaLog").load(str(log)).where("controlType IS NULL")
    decoded = frame.selectExpr("kafka_decode_transaction_state(key, value) AS record")
    (row,) = decoded.selectExpr("record.key").limit(1).collect()
    assert row.key.startswith('{"type":"0","data":{"transactionalId":"')


def test_an_older_spark_is_refused_by_its_version() -> None:
    printed = run_python(
        "import pyspark\n"
        "from pyspark.sql.pandas import functions\n"
        "del functions.arrow_udf\n"
        "pyspark.__version__ = '4.0.1'\n"
        "try:\n"
        "    from kafkajit.spark import register\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    assert printed.startswith("kafkajit needs Spark 4.1 or newer, and this is 4.0.1:")
