"""explode(kafka_records(content)) over binaryFile: a scan by columns, with the same answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus import DATA
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from spark_state import BRIDGE, BY_COLUMNS, plan_of, setting

import kafkajit.testing as kt
from kafkajit.spark.functions import kafka_records

FILES = f"binaryFile.`{kt.SAMPLE}/*/*.log`"
DAMAGED = f"binaryFile.`{DATA}/damaged/crc/*.log`"


@pytest.fixture
def switched_off(spark: SparkSession) -> Iterator[None]:
    with setting(spark, BRIDGE, "false"):
        yield


def is_scan(df: DataFrame) -> bool:
    plan = plan_of(df)
    assert (BY_COLUMNS in plan) != ("kafka_records" in plan)
    return BY_COLUMNS in plan


def answer(spark: SparkSession, query: str) -> list[str] | str:
    """The rows in some order, or an error."""
    try:
        return sorted(map(str, spark.sql(query).collect()))
    except PySparkException:
        return "an error"


def answers(spark: SparkSession, query: str) -> tuple[list[str] | str, list[str] | str]:
    """With the rule, and without it."""
    found = answer(spark, query)
    with setting(spark, BRIDGE, "false"):
        return found, answer(spark, query)


KNOWN = [
    "SELECT explode(kafka_records(content)) FROM {}",
    "SELECT explode(kafka_records(content)) AS r FROM {} LIMIT 1000",
    "SELECT r.key, r.offset + 1 FROM (SELECT explode(kafka_records(content)) r FROM {})",
    "SELECT sum(r.offset), count(r.key) FROM {} LATERAL VIEW explode(kafka_records(content)) AS r",
    "SELECT path, r.* FROM {}, LATERAL explode(kafka_records(content)) AS t(r)",
    "SELECT inline(kafka_records(content)) FROM {}",
    "SELECT posexplode(kafka_records(content)) FROM {}",
    "SELECT p, path, r.offset FROM {} LATERAL VIEW posexplode(kafka_records(content)) AS p, r"
    " WHERE r.offset % 2 = 1 AND r.offset > 11",
    "SELECT path, max(p) FROM {}, LATERAL posexplode(kafka_records(content, 'key')) AS t(p, r)"
    " WHERE r.key IS NOT NULL GROUP BY path",
    "SELECT path, length, modificationTime, offset FROM {}"
    ", LATERAL inline(kafka_records(content, 'offset, key', 'DROPMALFORMED'))",
    "SELECT r FROM {} LATERAL VIEW explode(kafka_records(content, mode => 'failfast')) AS r",
    "SELECT r.offset, r.value FROM {} LATERAL VIEW explode(kafka_records(content, 'offset')) AS r",
    "SELECT substr(path, -8), r.offset FROM (SELECT path, content AS c FROM {} WHERE length > 9)"
    " LATERAL VIEW explode(kafka_records(c)) AS r WHERE path LIKE '%orders%' AND r.offset < 7",
    "SELECT r.headers[0].key, count(*) FROM {} LATERAL VIEW explode(kafka_records(content)) AS r"
    " GROUP BY ALL",
    "SELECT a.r.offset FROM (SELECT explode(kafka_records(content)) r FROM {0}) a JOIN"
    " (SELECT explode(kafka_records(content)) r FROM {0}) b ON a.r.offset = b.r.offset + 20",
    "SELECT count(*) FROM {} LATERAL VIEW explode(kafka_records(content)) AS r"
    " WHERE r.offset > (SELECT avg(s.offset) FROM {} LATERAL VIEW"
    " explode(kafka_records(content)) AS s)",
]


@pytest.mark.parametrize("form", KNOWN)
def test_known_forms_are_scans(form: str, spark: SparkSession) -> None:
    query = form.format(FILES, FILES)
    assert is_scan(spark.sql(query))
    found, expected = answers(spark, query)
    assert found == expected
    assert expected != "an error"


LEFT_ALONE = [
    "SELECT explode_outer(kafka_records(content)) FROM {}",
    "SELECT posexplode_outer(kafka_records(content)) FROM {}",
    "SELECT kafka_records(content) FROM {}",
    "SELECT octet_length(content), r.offset FROM {}"
    " LATERAL VIEW explode(kafka_records(content)) AS r",
    "SELECT r.offset FROM (SELECT * FROM {} LIMIT 2) LATERAL VIEW"
    " explode(kafka_records(content)) AS r",
    "SELECT r.offset FROM {} LATERAL VIEW explode(filter(kafka_records(content), x -> true)) AS r",
    "SELECT r.offset FROM {} LATERAL VIEW explode(kafka_records(content || X'')) AS r",
    "SELECT r.offset FROM {} LATERAL VIEW explode(try_kafka_records(content)) AS r",
    "SELECT r.offset FROM {} LATERAL VIEW explode("
    " kafka_records(content, concat('off', substr(path, 1, 0), 'set'))) AS r"
    " WHERE rand() < 2 AND length(path) > rand()",
    "SELECT r.offset, input_file_name() FROM {} LATERAL VIEW explode(kafka_records(content)) AS r",
    "SELECT r.offset, n FROM {} LATERAL VIEW explode(kafka_records(content)) AS r"
    " LATERAL VIEW explode(array(length(content), 2)) AS n",
    "SELECT explode(kafka_records(content)) FROM VALUES (X''), (NULL) AS v(content)",
]


@pytest.mark.parametrize("form", LEFT_ALONE)
def test_forms_that_are_not_known_stay_as_they_are(form: str, spark: SparkSession) -> None:
    query = form.format(FILES)
    assert "kafkaLog" not in plan_of(spark.sql(query))
    found, expected = answers(spark, query)
    assert found == expected
    assert expected != "an error"


@pytest.mark.parametrize("leniency", ["ignoreMissingFiles", "ignoreCorruptFiles"])
def test_files_that_may_be_missing_are_left_to_spark(leniency: str, spark: SparkSession) -> None:
    with setting(spark, f"spark.sql.files.{leniency}", "true"):
        assert not is_scan(spark.sql(KNOWN[0].format(FILES)))
    read = spark.read.format("binaryFile").option(leniency, "true").load(f"{kt.SAMPLE}/*/*.log")
    assert not is_scan(read.select(F.explode(kafka_records("content"))))


def test_a_dataframe_is_a_scan_too(spark: SparkSession) -> None:
    read = spark.read.format("binaryFile").load(f"{kt.SAMPLE}/*/*.log")
    found = read.select("path", F.explode(kafka_records("content", "offset")).alias("r"))
    assert is_scan(found)
    assert found.where("path LIKE '%orders%'").count() == 27


def test_another_function_of_that_name_is_left_alone(spark: SparkSession) -> None:
    session = spark.newSession()
    session.udf.register("kafka_records", lambda _: [{"offset": 1}], "array<struct<offset:bigint>>")
    query = f"SELECT sum(r.offset) FROM {FILES} LATERAL VIEW explode(kafka_records(content)) AS r"
    spark.udf.register("other", lambda _: 1)
    assert session.sql(query).first()[0] == len(list(Path(kt.SAMPLE).glob("*/*.log")))


def test_only_the_used_fields_are_read(spark: SparkSession) -> None:
    found = spark.sql(KNOWN[2].format(FILES))
    (scan,) = (line for line in plan_of(found).splitlines() if "BatchScan" in line)
    columns = scan.partition("kafkaLog[")[2].partition("]")[0].split(", ")
    assert [column.partition("#")[0] for column in columns] == ["key", "offset"]


def test_conditions_on_records_and_files_reach_the_scan(spark: SparkSession) -> None:
    found = spark.sql(
        f"SELECT r.key FROM {FILES} LATERAL VIEW explode(kafka_records(content)) AS r"
        " WHERE r.offset > 20 AND path LIKE '%orders%'"
    )
    plan = plan_of(found)
    assert "offset > 20" in plan.partition("conditions: [")[2]
    assert "path LIKE '%orders%'" in plan.partition("conditions: [")[2]
    assert "reads: 1 file, " in plan


def test_a_file_is_read_whatever_its_name_is(spark: SparkSession, tmp_path: Path) -> None:
    names = ["plain", "a b.log", "[x]*?.bin", "é%20.log", "00000000000000000007.log", "8.log"]
    # In a folder of segments, 7 could not end in a torn batch if 9 follows.
    names.append("00000000000000000009.log")
    for place, name in enumerate(names):
        torn = kt.batch([kt.Record(b"k")], base_offset=place) + b"torn"
        (tmp_path / name).write_bytes(torn)
    read = spark.read.format("binaryFile").load(str(tmp_path))
    rows = read.select("path", "length", F.explode(kafka_records("content")).alias("r"))
    rows = rows.select("path", "length", "r.offset", "r.position")
    assert is_scan(rows)
    found = sorted(map(tuple, rows.collect()))
    with setting(spark, BRIDGE, "false"):
        assert found == sorted(map(tuple, rows.select("*").collect()))
    assert len(found) == len(names)


def test_damage_fails_or_is_left_out_as_before(spark: SparkSession) -> None:
    view = "SELECT r.offset FROM {} LATERAL VIEW explode(kafka_records(content, NULL, '{}')) AS r"
    with pytest.raises(PySparkException, match="crc"):
        spark.sql(view.format(DAMAGED, "FAILFAST")).collect()
    found, expected = answers(spark, view.format(DAMAGED, "DROPMALFORMED"))
    assert found == expected
    assert len(found) > 1


def test_a_file_larger_than_an_array_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """A sparse file of 3 GiB: zeros follow the only batch, as in a preallocated segment."""
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(kt.batch([kt.Record(b"k", b"v")]))
    with log.open("r+b") as file:
        file.truncate(3 << 30)
    query = KNOWN[2].format(f"binaryFile.`{log}`")
    assert [tuple(row) for row in spark.sql(query).collect()] == [(b"k", 1)]


def form_of(choose: random.Random) -> str:
    """A query of some form, known to the rule or not."""
    arguments = choose.choice(
        [
            *["content"] * 4,
            "content, 'offset,key'",
            "content, NULL, 'DROPMALFORMED'",
            "content, mode => 'FAILFAST'",
            "content, columns => 'offset, timestamp, headers'",
            "content, 'no-such-column'",
        ]
    )
    source = choose.choice(
        [
            *["{}"] * 3,
            "(SELECT * FROM {} WHERE length > 1500)",
            "(SELECT path, length, content FROM {} WHERE path LIKE '%payments%' OR length < 1000)",
            "(SELECT content, upper(path) AS path, length * 2 AS length FROM {})",
            "(SELECT * FROM {} WHERE content IS NOT NULL AND octet_length(content) > 100)",
            "(SELECT * FROM {} UNION ALL SELECT * FROM {})",
            "(SELECT DISTINCT path, length, content FROM {})",
        ]
    )
    call = f"kafka_records({arguments})"
    generator = choose.choice(["explode"] * 5 + ["inline", "posexplode", "explode_outer"])
    record = choose.choice(["r", "r.offset", "r.key, r.offset", "r.headers", "r.*", "1 AS one"])
    others = choose.choice(["", "", "path, ", "length, ", "path, length, ", "length(path) AS n, "])
    where = choose.choice(
        [
            *["", ""],
            " WHERE r.offset > 5",
            " WHERE r.key IS NOT NULL AND length > 1000",
            " WHERE size(r.headers) > 0 OR r.offset % 2 = 0",
            " WHERE path LIKE '%orders%'",
        ]
    )
    if generator == "inline":
        inner = f"SELECT {others}inline({call}) FROM {source}"
        return choose.choice([inner, f"SELECT count(*), sum(offset) FROM ({inner})"])
    names = "p, r" if generator == "posexplode" else "r"
    select = f"SELECT {others}{record} FROM"
    inner = choose.choice(
        [
            f"{select} {source} LATERAL VIEW {generator}({call}) AS {names}{where}",
            f"{select} {source}, LATERAL {generator}({call}) AS t({names}){where}",
            f"{select} (SELECT path, length, {generator}({call})"
            f" AS {'(p, r)' if names != 'r' else 'r'} FROM {source}){where}",
        ]
    )
    return choose.choice(
        [
            inner,
            inner,
            f"SELECT count(*) FROM ({inner})",
            f"SELECT * FROM ({inner}) ORDER BY ALL LIMIT 5",
            f"SELECT a.* FROM ({inner}) a LEFT SEMI JOIN (SELECT 1) ON true",
            f"WITH w AS ({inner}) SELECT * FROM w UNION ALL SELECT * FROM w",
        ]
    )


def test_random_queries_have_the_same_answers(spark: SparkSession) -> None:
    check_random_queries(spark, seed=0, count=8)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 104))
def test_hundreds_of_random_queries_have_the_same_answers(seed: int, spark: SparkSession) -> None:
    check_random_queries(spark, seed, 50)


def check_random_queries(spark: SparkSession, seed: int, count: int) -> None:
    choose = random.Random(seed)
    scans = 0
    for _ in range(count):
        query = form_of(choose).replace("{}", FILES)
        found, expected = answers(spark, query)
        assert found == expected, query
        if expected != "an error":
            scans += "kafkaLog by columns" in plan_of(spark.sql(query))
    assert scans
