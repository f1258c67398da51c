"""Hundreds of random statements over logs, and over the same rows in Parquet, give the same rows.

A view is named once and scanned twice, named twice, used by one statement after the other with
other conditions: whatever Spark makes of a statement, no scan loses rows to the conditions of
another.
"""

from __future__ import annotations

import datetime
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from spark_state import BRIDGE, BY_COLUMNS, plan_of, setting

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli.sql.query import Engine
from kafkajit.cli.sql.views import KAFKA_LOG, Logs

pytestmark = pytest.mark.thorough

STATEMENTS = int(os.environ.get("KAFKAJIT_STATEMENTS", "200"))
IN_A_SESSION = STATEMENTS // 4  # of these in a session of one's own, a quarter with each setting
AT_ONCE = 10  # statements as one query
COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value"]
START = datetime.datetime(2025, 11, 5, tzinfo=datetime.UTC)
# Small plans run quicker without code generation, and as one job.
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}


class Author:
    """Writes statements about a table `records` with COLUMNS; the same ones for a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._write = [
            self.plain, self.plain, self.aggregate, self.grouped, self.top, self.window,
            self.derived, self.union, self.difference, self.self_join, self.cte, self.cte_twice,
            self.lateral, self.lateral, self.lateral_records, self.left_lateral,
            self.scalar_subquery, self.correlated, self.correlated, self.exists, self.member,
        ]  # fmt: skip

    def statement(self) -> str:
        return self._random.choice(self._write)()

    def number(self, below: int = 34) -> int:
        return self._random.randrange(below)

    def condition(self, alias: str = "records") -> str:
        """One or two conditions on columns of records.

        Columns have the table's name before them: `records WHERE offset IN (1)` can be read as
        `records AS where OFFSET in(1)`.
        """
        first = self._comparison(alias)
        match self.number(6):
            case 0:
                return f"({first} OR {self._comparison(alias)})"
            case 1 | 2:
                return f"{first} AND {self._comparison(alias)}"
            case 3:
                return f"NOT ({first})"
        return first

    def _comparison(self, alias: str) -> str:
        at, test = f"{alias}.", self._random.choice(["=", "<", "<=", ">", ">="])
        low = self.number()
        return self._random.choice(
            [
                f"{at}offset {test} {low}",
                f"{at}offset BETWEEN {low} AND {low + self.number(12)}",
                f"{at}offset IN ({low}, {self.number()}, {self.number()})",
                f"{at}topic = '{self._topic()}'",
                f"{at}topic IN ('{self._topic()}', 'nobody')",
                f"{at}topic LIKE '{self._topic()[:3]}%'",
                f"{at}partition {test} {self.number(2)}",
                f"{at}timestamp {test} TIMESTAMP '2025-11-05 00:00:{low:02}'",
                f"{at}timestamp {self._random.choice('<>')} TIMESTAMP '+20000-01-01 00:00:00'",
                f"{at}key = X'6B3{self.number(5)}'",
                f"{at}value IS {self._random.choice(['', 'NOT '])}NULL",
                f"length({at}value) {test} {self.number(8)}",
            ]
        )

    def _topic(self) -> str:
        return self._random.choice(["orders", "payments"])

    def _where(self, alias: str = "records") -> str:
        return f"WHERE {self.condition(alias)}" if self.number(5) else ""

    def plain(self) -> str:
        return f"SELECT topic, partition, offset, value FROM records {self._where()}"

    def aggregate(self) -> str:
        aggregates = (
            "count(*), min(offset), max(timestamp), count(DISTINCT key, topic), sum(offset)"
        )
        return f"SELECT {aggregates} FROM records {self._where()}"

    def grouped(self) -> str:
        by = self._random.choice(
            ["topic, partition", "key", "ROLLUP (topic, partition)", "offset % 3"]
        )
        having = f"HAVING max(offset) > {self.number()}" if self.number(2) else ""
        return f"SELECT count(*), max(offset) FROM records {self._where()} GROUP BY {by} {having}"

    def top(self) -> str:
        order = "ORDER BY offset DESC, topic, partition"
        return (
            f"SELECT topic, offset FROM records {self._where()} {order} LIMIT {self.number(9)}"
            f" OFFSET {self.number(3)}"
        )

    def window(self) -> str:
        number = "row_number() OVER (PARTITION BY topic, partition ORDER BY offset) AS n"
        return (
            f"SELECT * FROM (SELECT topic, offset, {number} FROM records {self._where()})"
            f" WHERE n < {self.number(9)} AND offset > {self.number()}"
        )

    def derived(self) -> str:
        return (
            f"SELECT r.offset + 1, r.topic FROM (SELECT DISTINCT topic, offset FROM records"
            f" {self._where()}) r {self._where_of_few('r')}"
        )

    def _where_of_few(self, alias: str) -> str:
        return f"WHERE {alias}.offset > {self.number()} OR {alias}.topic = '{self._topic()}'"

    def union(self) -> str:
        word = self._random.choice(["UNION ALL", "UNION"])
        return (
            f"SELECT topic, offset FROM records {self._where()} {word}"
            f" SELECT topic, offset FROM records {self._where()}"
        )

    def difference(self) -> str:
        word = self._random.choice(["EXCEPT", "EXCEPT ALL", "INTERSECT"])
        return (
            f"SELECT topic, offset, key FROM records {self._where()} {word}"
            f" SELECT topic, offset, key FROM records {self._where()}"
        )

    def self_join(self) -> str:
        kind = self._random.choice(["", "LEFT", "FULL OUTER", "LEFT SEMI", "LEFT ANTI"])
        left = f"(SELECT topic, partition, offset FROM records {self._where()}) a"
        right = f"(SELECT topic, partition, offset FROM records {self._where()}) b"
        on = f"a.topic = b.topic AND a.offset = b.offset + {self.number(3)}"
        return f"SELECT * FROM {left} {kind} JOIN {right} ON {on}"

    def cte(self) -> str:
        return f"WITH r AS (SELECT * FROM records {self._where()}) SELECT topic, offset FROM r"

    def cte_twice(self) -> str:
        return (
            f"WITH r AS (SELECT topic, offset FROM records {self._where()}) SELECT * FROM r"
            f" {self._where_of_few('r')} UNION ALL SELECT * FROM r WHERE r.offset < {self.number()}"
        )

    def lateral(self) -> str:
        inner = "SELECT id x FROM range(40) WHERE id < r.offset ORDER BY id DESC LIMIT 1"
        return (
            f"SELECT r.topic, r.offset, s.x FROM records r, LATERAL ({inner}) s {self._where('r')}"
        )

    def left_lateral(self) -> str:
        inner = f"SELECT max(id) x FROM range(40) WHERE id < r.offset - {self.number(9)}"
        return (
            f"SELECT r.topic, r.offset, s.x FROM records r LEFT JOIN LATERAL ({inner}) s"
            f" {self._where('r')}"
        )

    def lateral_records(self) -> str:
        where = f"q.offset < r.offset AND {self.condition('q')}"
        lateral = f"LATERAL (SELECT count(*) n FROM records q WHERE {where}) s"
        return f"SELECT r.topic, r.offset, s.n FROM records r, {lateral} {self._where('r')}"

    def scalar_subquery(self) -> str:
        inner = f"SELECT {self._random.choice(['max', 'min', 'avg'])}(offset) FROM records"
        return (
            f"SELECT topic, offset FROM records WHERE offset >= ({inner} {self._where()})"
            f" AND {self.condition()}"
        )

    def correlated(self) -> str:
        test = self._random.choice(["=", "<", "<="])
        inner = f"SELECT count(*) FROM range(40) WHERE id {test} r.offset"
        return f"SELECT r.topic, r.offset, ({inner}) FROM records r {self._where('r')}"

    def exists(self) -> str:
        inner = f"SELECT 1 FROM records q WHERE q.offset > r.offset AND {self.condition('q')}"
        word = self._random.choice(["EXISTS", "NOT EXISTS"])
        return (
            f"SELECT r.topic, r.offset FROM records r WHERE {word} ({inner})"
            f" AND {self.condition('r')}"
        )

    def member(self) -> str:
        word = self._random.choice(["IN", "NOT IN"])
        inner = f"SELECT offset + {self.number(3)} FROM records {self._where()}"
        return f"SELECT topic, offset FROM records r WHERE r.offset {word} ({inner})"


AUTHOR = Author(16)
ROW = "string(struct(*)) AS row"
TEXTS = [AUTHOR.statement() for _ in range(STATEMENTS)]


Answers = dict[int, Counter[str]]  # the rows of each statement, by its number


def answers(spark: SparkSession, numbers: range) -> Answers:
    """What the statements give over the view `records`, several of them as one query."""
    found: Answers = {n: Counter() for n in numbers}
    for first in range(0, len(numbers), AT_ONCE):
        some = numbers[first : first + AT_ONCE]
        parts = [f"SELECT {n} AS n, {ROW} FROM ({TEXTS[n]})" for n in some]
        for n, row in spark.sql(" UNION ALL ".join(parts)).collect():
            found[n][row] += 1
    return found


@pytest.fixture(scope="module", autouse=True)
def _quick(spark: SparkSession) -> Iterator[None]:
    before = {name: str(spark.conf.get(name)) for name in QUICK}
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three partitions of 33 records in three segments, each segment of two batches."""
    root = tmp_path_factory.mktemp("logs")
    for place, name in enumerate(("orders-0", "orders-1", "payments-0")):
        (root / name).mkdir()
        for base in (0, 12, 24):
            halves = [range(base, base + 6), range(base + 6, min(base + 12, 33))]
            batches = [
                kt.batch([record(place, n) for n in half], base_offset=half[0]) for half in halves
            ]
            (root / name / f"{base:020}.log").write_bytes(b"".join(batches))
    return root


def record(place: int, n: int) -> kt.Record:
    when = START + datetime.timedelta(seconds=n + place)
    value = None if n % 7 == place else b"v" * (n % 9)
    return kt.Record(b"k%d" % (n % 5), value, timestamp=int(when.timestamp() * 1000))


@pytest.fixture(scope="module")
def expected(spark: SparkSession, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What the statements give for the same rows in Parquet."""
    logs = [kafkajit.read_records(path) for path in sorted(root.glob("*/*.log"))]
    table = pa.concat_tables(logs).select(COLUMNS)
    assert table.num_rows == 99
    path = tmp_path_factory.mktemp("parquet") / "records.parquet"
    pq.write_table(table, path)
    spark.read.parquet(str(path)).createOrReplaceTempView("records")
    return answers(spark, range(STATEMENTS))


def test_a_condition_of_one_scan_is_no_condition_of_another(
    spark: SparkSession, root: Path, expected: Answers
) -> None:
    engine = Engine(Logs([str(root)], {}), lambda: spark)
    engine.start()
    pushed = 0
    for n, text in enumerate(TEXTS):
        df = engine.run(text)._df
        assert Counter(row for (row,) in df.selectExpr(ROW).collect()) == expected[n], text
        plan = plan_of(df)
        assert plan.count("BatchScan kafkaLog") == plan.count(BY_COLUMNS)
        pushed += "conditions: [" in plan and "conditions: []" not in plan
    assert pushed > STATEMENTS / 3


@pytest.mark.parametrize(("first", "enabled"), [(0, "true"), (IN_A_SESSION, "false")])
def test_a_view_of_ones_own_gives_all_its_rows_to_each_of_its_scans(
    first: int, enabled: str, spark: SparkSession, root: Path, expected: Answers
) -> None:
    with setting(spark, BRIDGE, enabled):
        spark.read.format(KAFKA_LOG).load(str(root)).createOrReplaceTempView("records")
        found = answers(spark, range(first, first + IN_A_SESSION))
    for n, rows in found.items():
        assert rows == expected[n], TEXTS[n]
