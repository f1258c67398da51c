"""What `kafkajit sql` makes of statements, in the session of these tests."""

from __future__ import annotations

import io
import json
import re
import shutil
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus import DATA
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from spark_state import plan_of

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli.sql import row_stream
from kafkajit.cli.sql.formats import to_csv, to_json
from kafkajit.cli.sql.query import Engine
from kafkajit.cli.sql.row_stream import stream_rows
from kafkajit.cli.sql.shell import Failed, Shell
from kafkajit.cli.sql.statements import Statement
from kafkajit.cli.sql.table import as_table
from kafkajit.cli.sql.views import KINDS as VIEW_KINDS
from kafkajit.cli.sql.views import VIEWS, Logs
from kafkajit.scan.options import KINDS, ScanOptions
from kafkajit.scan.table import schema_of
from kafkajit.schema import in_microseconds

HEADERS = DATA / "v2" / "headers-0"
DAMAGED = DATA / "damaged" / "crc"


def engine_for(spark: SparkSession, *paths: Path | str, **options: str) -> Engine:
    engine = Engine(Logs([str(path) for path in paths], options), lambda: spark)
    engine.start()
    return engine


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log.dirs root: 27 records of orders-0 in two segments, with an index that is empty."""
    root = tmp_path_factory.mktemp("logs")
    folder = root / "orders-0"
    folder.mkdir()
    for base, count in ((0, 20), (20, 7)):
        records = [kt.Record(b"k%d" % n, b"v", [("h", b"x")]) for n in range(count)]
        (folder / f"{base:020}.log").write_bytes(kt.batch(records, base_offset=base, codec="zstd"))
        (folder / f"{base:020}.index").write_bytes(b"")
    return root


@pytest.fixture
def engine(spark: SparkSession, logs: Path) -> Engine:
    return engine_for(spark, logs)


def rows(engine: Engine, sql: str, count: int = 1000) -> pa.Table:
    return engine.run(sql).few(count)[0].table


def written(engine: Engine, sql: str, format_: str = "csv") -> bytes:
    out = io.BytesIO()
    engine.run(sql).write(format_, out, lambda _: None)
    return out.getvalue()


def error_of(engine: Engine, sql: str) -> list[str]:
    """The lines that a person sees."""
    with pytest.raises(Failed) as failed:
        Shell(engine, io.BytesIO(), "table", 40).run(Statement(sql, 1))
    return str(failed.value).splitlines()


def test_the_views_are_the_tables_of_the_data_source() -> None:
    assert sorted(VIEW_KINDS.values()) == sorted(KINDS)
    for view, kind in VIEW_KINDS.items():
        for mode in ("FAILFAST", "PERMISSIVE"):
            columns = Logs(["/"], {"mode": mode}).columns_of(view)
            schema = pa.schema([(name, column.type) for name, column in columns.items()])
            assert in_microseconds(schema) == schema_of(ScanOptions(("/",), kind=kind, mode=mode))


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_rows_with_the_columns_that_it_says(spark: SparkSession, view: str) -> None:
    engine = engine_for(spark, DATA / "internal", DATA / "internal" / "log-dir")
    result = engine.run(f"SELECT * FROM {view}")
    assert result.names == list(VIEWS[view])
    said = in_microseconds(pa.schema([(name, it.type) for name, it in VIEWS[view].items()]))
    assert [from_arrow_type(type_).simpleString() for type_ in result.schema.types] == [
        from_arrow_type(type_).simpleString() for type_ in said.types
    ]
    # Nothing is damaged there.
    assert (result.few(1000)[0].table.num_rows == 0) == (view == "corruption")


def test_a_view_of_files_beside_logs_needs_no_log(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"0\n2\n0 0\n2 5\n")
    engine = engine_for(spark, tmp_path, pathGlobFilter="*.log.deleted")
    assert rows(engine, "SELECT epoch FROM leader_epochs")["epoch"].to_pylist() == [0, 2]
    assert rows(engine, "SELECT * FROM binaryFile").num_rows == 0
    assert rows(engine, "SELECT * FROM transactions").num_rows == 0
    assert Logs([str(tmp_path)], {}).find_segments() == []


def test_commits_are_what_was_written_for_a_group(spark: SparkSession) -> None:
    engine = engine_for(spark, DATA / "internal")
    table = rows(engine, "SELECT * FROM consumer_offsets ORDER BY recordPartition, recordOffset")
    stated = []
    for partition in range(3):
        log = DATA / f"internal/__consumer_offsets-{partition}/{0:020}.log"
        records = kafkajit.read_records(log).to_pylist()
        for record in (row for row in records if row["controlType"] is None):
            kind = int.from_bytes(record["key"][:2])
            if kind <= 1:
                stated.append((partition, record, *offset_commit(record["key"], record["value"])))
    assert len(stated) == table.num_rows
    for row, (partition, record, key, offset) in zip(table.to_pylist(), stated, strict=True):
        assert (row["groupId"], row["topic"], row["partition"]) == key
        assert row["committedOffset"] == offset
        assert row["isDeleted"] == (record["value"] is None)
        assert row["isTransactional"] == record["isTransactional"]
        assert (row["recordPartition"], row["recordOffset"]) == (partition, record["offset"])
        assert row["recordTimestamp"] == record["timestamp"]
    assert any(row["isDeleted"] for row in table.to_pylist())


def offset_commit(key: bytes, value: bytes | None) -> tuple[tuple[str, str, int], int | None]:
    """An OffsetCommitKey, and the offset of its value."""
    parts, at = [], 2
    for _ in range(2):
        size = int.from_bytes(key[at : at + 2])
        parts.append(key[at + 2 : at + 2 + size].decode())
        at += 2 + size
    partition = int.from_bytes(key[at:], signed=True)
    offset = None if value is None else int.from_bytes(value[2:10], signed=True)
    return (parts[0], parts[1], partition), offset


def test_transactions_go_through_the_states_of_kafka(spark: SparkSession) -> None:
    engine = engine_for(spark, DATA / "internal")
    table = rows(engine, "SELECT * FROM transactions ORDER BY recordPartition, recordOffset")
    followed_by: dict[str, set[str]] = {}
    last: dict[str, str] = {}
    for row in table.to_pylist():
        if row["transactionalId"] in last:
            followed_by.setdefault(last[row["transactionalId"]], set()).add(row["state"])
        last[row["transactionalId"]] = row["state"]
        is_open = row["state"] in ("Ongoing", "PrepareCommit", "PrepareAbort")
        assert bool(row["partitions"]) == is_open
        assert (row["start"] is None) == (row["state"] == "Empty")
        assert row["lastUpdate"] <= row["recordTimestamp"]
    assert followed_by["PrepareCommit"] == {"CompleteCommit"}
    assert followed_by["PrepareAbort"] == {"CompleteAbort"}
    part = next(row for row in table.to_pylist() if row["partitions"])
    assert part["partitions"] == [{"topic": "transactions", "partitions": [0]}]


def test_other_topics_are_not_read_for_commits(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copytree(DATA / "internal/__consumer_offsets-1", tmp_path / "__consumer_offsets-1")
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(kt.broken("wrong crc"))
    engine = engine_for(spark, tmp_path)
    twice = "SELECT a.groupId FROM consumer_offsets a JOIN consumer_offsets b USING (recordOffset)"
    assert rows(engine, twice).num_rows > 0
    assert rows(engine, "SELECT state FROM transactions").num_rows == 0


def test_a_commit_that_cannot_be_decoded_is_left_out_where_damage_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    log = kt.batch([kt.Record(b"\0\1\0\5gro", b"\0\3"), kt.Record(b"\0\2\0\1g", None)])
    (folder / f"{0:020}.log").write_bytes(log)
    for mode in ("DROPMALFORMED", "PERMISSIVE"):
        engine = engine_for(spark, tmp_path, mode=mode)
        assert rows(engine, "SELECT * FROM consumer_offsets").num_rows == 0
    stated = error_of(engine_for(spark, tmp_path), "SELECT * FROM consumer_offsets")
    assert "is not one of __consumer_offsets" in stated[0]


def test_the_query_of_the_readme_works_as_written(engine: Engine) -> None:
    table = rows(engine, "SELECT explode(kafka_records(content)) FROM binaryFile")
    assert table.num_rows == 27
    assert table["col"][0].as_py()["offset"] == 0


@pytest.mark.parametrize("path", ["", "orders-0", "orders-*", "*/*.log"])
def test_a_path_is_a_root_a_partition_a_segment_or_a_glob(
    spark: SparkSession, logs: Path, path: str
) -> None:
    engine = engine_for(spark, f"{logs}/{path}")
    for sql in (
        "SELECT count(*) FROM records",
        "SELECT sum(size(kafka_records(content))) FROM binaryFile",
    ):
        assert rows(engine, sql)[0].to_pylist() == [27]
        one = engine_for(spark, logs / "orders-0/00000000000000000020.log")
        assert rows(one, sql)[0].to_pylist() == [7]


def test_several_paths_are_read_together(spark: SparkSession, logs: Path) -> None:
    engine = engine_for(spark, logs, HEADERS)
    for sql in (
        "SELECT DISTINCT topic FROM records",
        "SELECT DISTINCT kafka_log_path(path).topic FROM binaryFile",
    ):
        assert set(rows(engine, sql)[0].to_pylist()) == {"orders", "headers"}


def test_a_path_with_odd_letters_is_no_glob(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a {b} [c] ü%20 \\d" / "orders-0"
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(kt.batch([kt.Record(value=b"v")]))
    engine = engine_for(spark, folder)
    assert rows(engine, "SELECT path FROM files")[0].to_pylist() == [f"{folder}/{'0' * 20}.log"]
    assert rows(engine, "SELECT path FROM binaryFile")[0].to_pylist() == [
        f"{folder}/{'0' * 20}.log"
    ]
    assert rows(engine, "SELECT count(*) FROM records")[0].to_pylist() == [1]


def test_binary_file_has_the_segments_that_are_there_now(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = kt.batch([kt.Record(value=b"v")])
    (tmp_path / f"{0:020}.log").write_bytes(log)
    (tmp_path / f"{0:020}.index").write_bytes(b"")
    engine = engine_for(spark, tmp_path)
    assert rows(engine, "SELECT count(*) FROM binaryFile")[0].to_pylist() == [1]
    (tmp_path / f"{1:020}.log").write_bytes(log)
    assert rows(engine, "SELECT count(*) FROM binaryFile")[0].to_pylist() == [2]


def test_options_reach_the_data_source(spark: SparkSession) -> None:
    assert rows(engine_for(spark, DAMAGED, mode="DROPMALFORMED"), "SELECT count(*) FROM records")[
        0
    ].to_pylist() == [9]
    table = rows(
        engine_for(spark, DAMAGED, mode="permissive"),
        "SELECT corruption FROM records WHERE corruption IS NOT NULL",
    )
    assert table.num_rows == 1


class TestTopics:
    """Each topic is a view of its name."""

    @pytest.fixture
    def root(self, spark: SparkSession, tmp_path: Path) -> Path:
        spark.catalog.dropTempView("orders")  # another engine's, in the same session
        names = ["orders-0", "my.topic-0", "__odd-1-3", "Records-0", "Twice-0", "twice-0"]
        for count, name in enumerate(names, 1):
            folder = tmp_path / name
            folder.mkdir()
            (folder / f"{0:020}.log").write_bytes(kt.batch([kt.Record(b"k")] * count))
        return tmp_path

    def test_it_has_the_records_of_the_topic(self, spark: SparkSession, root: Path) -> None:
        engine = engine_for(spark, root)
        for name, count in {"orders": 1, "ORDERS": 1, "`my.topic`": 2, "`__odd-1`": 3}.items():
            found = rows(engine, f"SELECT topic, count(*) AS n FROM {name} GROUP BY 1")
            topic = "orders" if count == 1 else name.strip("`")
            assert found.to_pylist() == [{"topic": topic, "n": count}]

    def test_views_of_all_topics_and_topics_told_apart_by_case_alone_have_none(
        self, spark: SparkSession, root: Path
    ) -> None:
        engine = engine_for(spark, root)
        assert engine.views()[len(VIEWS) :] == ["__odd-1", "my.topic", "orders"]
        assert rows(engine, "SELECT count(DISTINCT topic) AS n FROM records")["n"][0].as_py() == 6

    def test_a_table_of_ones_own_goes_first(self, spark: SparkSession, root: Path) -> None:
        engine = engine_for(spark, root)
        rows(engine, "SELECT * FROM orders")
        engine.run("CREATE TEMP VIEW Orders AS SELECT 42 AS n")
        assert rows(engine, "SELECT n FROM orders")["n"][0].as_py() == 42

    def test_show_tables_lists_new_topics(self, spark: SparkSession, root: Path) -> None:
        engine = engine_for(spark, root)
        rows(engine, "SELECT count(*) FROM orders")
        (root / "later-0").mkdir()
        (root / "later-0" / f"{0:020}.log").write_bytes(kt.batch([kt.Record(b"k")]))
        assert "later" in rows(engine, "SHOW TABLES")["tableName"].to_pylist()

    def test_a_count_comes_from_headers(self, spark: SparkSession, root: Path) -> None:
        plan = rows(engine_for(spark, root), "EXPLAIN SELECT count(*) FROM orders")
        assert "aggregates: [" in plan["plan"][0].as_py()


class TestColumns:
    """A statement reads the columns that it names, and nobody notices."""

    def columns(self, engine: Engine, statement: str) -> list[str]:
        plan = plan_of(engine.run(statement)._df)
        (scan,) = (line for line in plan.splitlines() if "BatchScan" in line)
        return re.findall(r"(\w+)#", scan)

    def test_a_query_gets_no_more_than_it_names(self, engine: Engine) -> None:
        named = "SELECT sum(offset) FROM records WHERE length(topic) = 6"
        assert self.columns(engine, named) == ["topic", "offset"]
        assert rows(engine, "SELECT count(*) FROM records")[0].to_pylist() == [27]
        assert self.columns(engine, "SELECT count(*) FROM records") == ["aggregate0"]
        assert self.columns(engine, "SELECT sum(crc) FROM batches") == ["crc"]

    def test_a_star_gets_all(self, engine: Engine) -> None:
        rows(engine, "SELECT offset FROM records")
        assert rows(engine, "SELECT * FROM records").num_columns == len(VIEWS["records"])

    def test_what_is_defined_over_a_view_has_all_columns_later(self, engine: Engine) -> None:
        rows(engine, "SELECT offset FROM records")
        engine.run("CREATE OR REPLACE TEMP VIEW mine AS SELECT * FROM records")
        assert rows(engine, "SELECT count(*) FROM records").num_rows == 1
        assert rows(engine, "SELECT key, magic FROM mine").num_rows == 27
        engine.run("DROP VIEW mine")

    def test_an_error_names_columns_that_were_left_out(self, engine: Engine) -> None:
        assert error_of(engine, "SELECT offset, vale FROM records")[0] == (
            "there is no column vale, did you mean value?"
        )

    def test_counts_are_those_of_all_columns_where_damage_has_rows(
        self, spark: SparkSession
    ) -> None:
        engine = engine_for(spark, DAMAGED, mode="PERMISSIVE")
        few = rows(engine, "SELECT count(*) FROM records")[0].to_pylist()
        assert few == [rows(engine, "SELECT * FROM records").num_rows] == [10]


class TestFew:
    """A few rows, for a screen."""

    def test_there_may_be_more(self, engine: Engine) -> None:
        found, has_more = engine.run("SELECT * FROM range(10)").few(10)
        assert (found.table.num_rows, has_more) == (10, False)
        found, has_more = engine.run("SELECT * FROM range(11)").few(10)
        assert (found.table.num_rows, has_more) == (10, True)

    def test_rows_keep_their_order(self, engine: Engine) -> None:
        table = rows(engine, "SELECT id FROM range(0, 10000, 1, 7) ORDER BY id DESC", 5)
        assert table[0].to_pylist() == [9999, 9998, 9997, 9996, 9995]

    def test_a_limit_reads_no_more_tasks_than_it_needs(self, engine: Engine) -> None:
        # A task beyond the first would fail.
        sql = "SELECT assert_true(id < 100), id FROM range(0, 1000, 1, 10)"
        assert rows(engine, sql, 40).num_rows == 40

    def test_long_values_are_cut_where_no_screen_shows_them(self, engine: Engine) -> None:
        result = engine.run("SELECT repeat('x', 9999) t, sequence(1, 9999) a, X'00ff' b, NULL n")
        (found, _) = result.few(1, cut_at=100)
        (row,) = found.table.to_pylist()
        assert (len(row["t"]), len(row["a"]), row["b"]) == (100, 100, b"\x00\xff")
        assert found.types == ["string", "array", "binary", "void"]

    def test_names_may_be_there_twice_and_be_odd(self, engine: Engine) -> None:
        result = engine.run("SELECT 1 AS a, 2 AS A, 3 AS `od``d.na me`, 4 AS ``")
        (found, _) = result.few(10, cut_at=100)
        assert found.table.column_names == ["a", "A", "od`d.na me", ""]
        assert [column.to_pylist() for column in found.table.columns] == [[1], [2], [3], [4]]

    def test_types_that_arrow_does_not_have_are_text(self, engine: Engine) -> None:
        sql = "SELECT INTERVAL 14 MONTH, parse_json('{\"a\": 1}'), make_interval(1, 2), 1 AS n"
        assert [column[0].as_py() for column in rows(engine, sql).columns] == [
            "INTERVAL '14' MONTH", '{"a":1}', "1 years 2 months", 1,
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("micros", "text"),
        [
            ("9223372036854775807", "+294247-01-10T04:00:54.775807Z"),
            ("-9223372036854775807 - 1", "-290308-12-21T19:59:05.224192Z"),
            ("-100000000000000000", "-1199-02-15T14:13:20.000Z"),
        ],
    )
    def test_a_timestamp_is_exact_in_any_year(self, engine: Engine, micros: str, text: str) -> None:
        jvm: Any = engine.spark.sparkContext._jvm
        another = engine.spark.newSession()
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(another._jsparkSession)
        lines, _ = as_table(engine.run(f"SELECT timestamp_micros({micros}) AS t").few(1)[0])
        assert lines[4] == f"│ {text} │"

    def test_a_command_gives_what_it_says(self, engine: Engine) -> None:
        assert "records" in rows(engine, "SHOW VIEWS")["viewName"].to_pylist()
        assert rows(engine, "DESCRIBE records")["col_name"].to_pylist() == list(VIEWS["records"])
        assert engine.run("CREATE OR REPLACE TEMP VIEW x AS SELECT 1").names == []


class TestStreams:
    """Rows of any number, for programs."""

    def test_all_rows_come_in_order(self, engine: Engine) -> None:
        sql = "SELECT id FROM range(0, 100000, 1, 23)"
        assert written(engine, sql) == b"id\n" + b"".join(b"%d\n" % n for n in range(100_000))
        ordered = f"{sql} ORDER BY id DESC"
        assert written(engine, ordered) == b"id\n" + b"".join(
            b"%d\n" % n for n in range(99_999, -1, -1)
        )

    def test_no_rows_leave_the_head(self, engine: Engine) -> None:
        assert written(engine, "SELECT id FROM range(0, 9, 1, 3) WHERE id > 9") == b"id\n"
        assert written(engine, "SELECT id FROM range(0, 9, 1, 3) WHERE id > 9", "json") == b""
        table = pq.read_table(io.BytesIO(written(engine, "SELECT * FROM corruption", "parquet")))
        assert table.num_rows == 0
        assert table.column_names == list(VIEWS["corruption"])

    def test_few_rows_and_many_are_written_alike(self, engine: Engine) -> None:
        for format_ in ("csv", "json", "arrow", "parquet"):
            many = written(engine, "SELECT * FROM records", format_)
            few = written(engine, "SELECT * FROM records LIMIT 1000", format_)
            if format_ in ("csv", "json"):
                assert many == few
            elif format_ == "arrow":
                assert pa.ipc.open_file(many).read_all() == pa.ipc.open_file(few).read_all()
            else:
                assert pq.read_table(io.BytesIO(many)) == pq.read_table(io.BytesIO(few))

    def test_types_survive(self, engine: Engine) -> None:
        table = pq.read_table(io.BytesIO(written(engine, "SELECT * FROM records", "parquet")))
        assert table.column_names == list(VIEWS["records"])
        assert table.schema.field("key").type == pa.binary()
        assert table.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")

    def test_json_lines_are_rows(self, engine: Engine) -> None:
        lines = written(engine, "SELECT * FROM records", "json").splitlines()
        assert [json.loads(line)["offset"] for line in lines] == list(range(27))

    def test_what_fails_in_a_task_is_raised(self, engine: Engine) -> None:
        with pytest.raises(Exception, match="boom"):
            written(engine, "SELECT id, raise_error('boom') FROM range(0, 100, 1, 4)")

    def test_a_task_that_is_ahead_waits(
        self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(row_stream, "_AHEAD", 1000)
        monkeypatch.setattr(row_stream, "_OF_TURN", 1000)
        df = spark.range(0, 200_000, 1, 5)
        pieces = stream_rows(df, to_csv, lambda _: None)
        assert b"".join(pieces) == b"".join(b"%d\n" % n for n in range(200_000))

    def test_whoever_has_enough_ends_the_tasks(self, spark: SparkSession) -> None:
        df = spark.range(0, 10**12, 1, 4)
        pieces = stream_rows(df, partial(to_json, names=["id"]), lambda _: None)
        assert next(pieces).startswith(b'{"id":0}\n')
        pieces.close()  # type: ignore[attr-defined]
        tracker = spark.sparkContext.statusTracker()
        for _ in range(100):
            if not tracker.getActiveJobsIds():
                return
            time.sleep(0.1)
        pytest.fail("its tasks still run")


class TestErrors:
    """One line, and where."""

    def test_a_syntax_error(self, engine: Engine) -> None:
        assert error_of(engine, "SELECT *\nFROM records\nWHERE offset >") == [
            "Syntax error at or near end of input",
            "  WHERE offset >",
            "                ^",
        ]

    def test_a_name(self, engine: Engine) -> None:
        assert error_of(engine, "SELECT ofset FROM records")[0].startswith(
            "there is no column ofset, did"
        )
        assert (
            error_of(engine, "SELECT * FROM recrds")[0]
            == "there is no table or view recrds, did you mean records?"
        )
        assert error_of(engine, "SELECT kafka_record(content) FROM binaryFile") == [
            "there is no function kafka_record, did you mean kafka_records?",
            "  SELECT kafka_record(content) FROM binaryFile",
            "         ^^^^^^^^^^^^",
        ]

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT max(offset) FROM records",
            "SELECT explode(kafka_records(content)) FROM binaryFile",
        ],
    )
    def test_damage_is_told_in_our_words(self, spark: SparkSession, sql: str) -> None:
        (line,) = error_of(engine_for(spark, DAMAGED), sql)
        assert line.startswith(
            "CorruptRecordError: Record is corrupt (stored crc = 220475180, computed"
        )
        assert "at position 211, base offset 5" in line

    def test_an_error_of_the_values(self, engine: Engine) -> None:
        message, _, carets = error_of(engine, "SELECT CAST(topic AS INT) FROM records")
        assert message.startswith("The value 'orders' of the type \"STRING\" cannot be cast")
        assert "ansi" not in message
        assert carets == "         ^^^^^^^^^^^^^^^^^^"

    def test_a_file_that_is_gone(self, spark: SparkSession, tmp_path: Path) -> None:
        log = tmp_path / f"{0:020}.log"
        log.write_bytes(kt.batch([kt.Record(value=b"v")]))
        engine = engine_for(spark, tmp_path)
        log.unlink()
        (line,) = error_of(engine, "SELECT count(*) FROM records")
        assert line.startswith("no segments (20 digits and .log) at ")

    def test_without_a_path_there_are_no_views(self, spark: SparkSession) -> None:
        engine = Engine(None, lambda: spark)
        engine.start()
        spark.catalog.dropTempView("records")
        assert rows(engine, "SELECT kafka_valid_bytes(X'')")[0].to_pylist() == [0]
        assert error_of(engine, "SELECT * FROM records")[0] == (
            "there is no table or view records; name the logs with --path"
        )


def test_a_session_that_does_not_start_says_why() -> None:
    def fail() -> SparkSession:
        raise RuntimeError("there is no Java: install Java 17")

    engine = Engine(None, fail)
    stated = threading.Event()
    engine.start(stated.set)
    with pytest.raises(RuntimeError, match="there is no Java: install Java 17"):
        Shell(engine, io.BytesIO(), "table", 40).run(Statement("SELECT 1", 1))
    assert stated.wait(10)


def test_cancelling_ends_a_query(engine: Engine) -> None:
    raised: list[BaseException] = []

    def work() -> None:
        try:
            rows(engine, "SELECT count(*) FROM range(100000000000000)")
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(200):
        time.sleep(0.1)
        engine.cancel()
        if not thread.is_alive():
            break
    assert "cancelled" in str(raised[0])


@pytest.fixture(autouse=True)
def _no_views_are_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "spark" in request.fixturenames:
        spark = request.getfixturevalue("spark")
        for view in VIEWS:
            spark.catalog.dropTempView(view)
