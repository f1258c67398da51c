from __future__ import annotations

import re
from pathlib import Path

import pytest
from corpus import DATA
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import kafkajit
import kafkajit.testing as kt
from kafkajit.schema import RECORD_COLUMNS

V2 = DATA / "v2"
PATHS = f"SELECT path FROM binaryFile.`{V2}/headers-*/*.log`"


def offsets(spark: SparkSession, call: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(f"SELECT offset FROM {call}").collect())


def in_headers() -> list[int]:
    logs = V2.glob("headers-*/*.log")
    return sorted(o for log in logs for o in kafkajit.read_records(log)["offset"].to_pylist())


def test_kafka_log_reads_the_segments_that_a_table_names(spark: SparkSession) -> None:
    assert offsets(spark, f"kafka_log(TABLE({PATHS}))") == in_headers()


def test_kafka_log_reads_contents(spark: SparkSession) -> None:
    table = PATHS.replace("path", "content", 1)
    assert offsets(spark, f"kafka_log(TABLE({table}))") == in_headers()


def test_a_path_beside_contents_gives_topic_and_partition(spark: SparkSession) -> None:
    table = PATHS.replace("path", "content, path", 1)
    rows = spark.sql(f"SELECT DISTINCT topic, partition FROM kafka_log(TABLE({table}))").collect()
    assert sorted(map(tuple, rows)) == [("headers", 0), ("headers-zstd", 0)]


def test_a_single_path_needs_no_table(spark: SparkSession) -> None:
    (log,) = V2.glob("headers-0/*.log")
    assert len(offsets(spark, f"kafka_log('{log}')")) == kafkajit.read_records(log).num_rows


def test_a_single_path_has_no_secret(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="kafka_log takes no path with a secret") as raised:
        offsets(spark, "kafka_log('s3://AKIA:SE9CRET@bucket/orders-0')")
    assert "SE9CRET" not in str(raised.value)


def test_null_paths_and_contents_have_no_rows(spark: SparkSession) -> None:
    assert offsets(spark, "kafka_log(TABLE(SELECT CAST(NULL AS STRING) AS path))") == []
    assert offsets(spark, "kafka_log(TABLE(SELECT CAST(NULL AS BINARY) AS content))") == []


def test_named_columns_are_decoded_and_the_others_are_null(spark: SparkSession) -> None:
    frame = spark.sql(f"SELECT * FROM kafka_log(TABLE({PATHS}), columns => 'value, offset')")
    assert frame.columns == [*RECORD_COLUMNS, "corruption"]
    row = frame.first()
    assert row.offset is not None
    assert row.key is None
    assert row.topic is None


def test_permissive_reports_damage_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "damaged.log"
    log.write_bytes(kt.broken("wrong crc") + kt.batch([kt.Record(value=b"v")], base_offset=7))
    call = f"kafka_log(TABLE(SELECT '{log}' AS path), mode => 'PERMISSIVE')"
    rows = spark.sql(f"SELECT offset, corruption FROM {call}").collect()
    assert [row.offset for row in rows] == [None, 7]
    assert rows[0].corruption.path == str(log)
    assert rows[0].corruption.position == 0


@pytest.mark.parametrize(
    ("call", "stated"),
    [
        ("TABLE(SELECT 'x' AS name)", "needs a column path or content, .*; it has name"),
        ("TABLE(SELECT 'a' AS path, 'b' AS PATH)", "has two columns path"),
        ("TABLE(SELECT 42 AS path)", "path must be STRING, not int32"),
        ("TABLE(SELECT 'x' AS content)", "content must be BINARY, as binaryFile loads it"),
        ("42", r"must be a table, a path \(STRING\) or a segment's bytes \(BINARY\), not int32"),
        ("X'', 5", "columns must be STRING, not int32"),
        ("X'', mode => 3", "mode must be STRING, not int32"),
        ("X'', colums => 'offset'", "was called wrongly: got an unexpected .* 'colums'"),
        ("", "was called wrongly: missing a required argument: 'segments'"),
        ("TABLE(SELECT '/no/such.log' AS path)", "there is nothing at /no/such.log"),
        ("TABLE(SELECT X'' AS content), columns => 'ofset'", "unknown column 'ofset'"),
        ("TABLE(SELECT X'' AS content), mode => 'LENIENT'", "unknown mode 'LENIENT'"),
    ],
)
def test_an_error_begins_with_what_is_wrong_with_the_arguments(
    call: str, stated: str, spark: SparkSession
) -> None:
    with pytest.raises(PySparkException, match=stated) as raised:
        spark.sql(f"SELECT * FROM kafka_log({call})").collect()
    first = str(raised.value).splitlines()[1]  # below Spark's own line
    assert re.match(r"(TypeError|ValueError|FileNotFoundError): ", first)
    assert "Traceback" not in str(raised.value)


def test_names_of_columns_are_not_case_sensitive(spark: SparkSession) -> None:
    assert offsets(spark, f"kafka_log(TABLE({PATHS.replace('path', 'path AS PATH', 1)}))") == (
        in_headers()
    )
    table = PATHS.replace("path", "content AS Content, path AS Path", 1)
    rows = spark.sql(f"SELECT DISTINCT topic FROM kafka_log(TABLE({table}))").collect()
    assert sorted(row.topic for row in rows) == ["headers", "headers-zstd"]
