from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from corpus import DATA, log_of, rows_of, split
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from scanning import read_rows

import kafkajit
import kafkajit.testing as kt
from kafkajit.schema import (
    CORRUPTION_COLUMNS,
    FILE_COLUMNS,
    INDEX_FILE_COLUMNS,
    RECORD_COLUMNS,
    SEGMENT_BATCH_COLUMNS,
)
from kafkajit.state.sidecar_files import SIDECAR_FILES

pytestmark = pytest.mark.usefixtures("door")

V2 = DATA / "v2"
SEGMENTS = sorted(path for path in V2.glob("*/*.log"))

Load = Callable[..., DataFrame]


@pytest.fixture
def load(spark: SparkSession) -> Load:
    def load(path: object, *, schema: str | None = None, **options: object) -> DataFrame:
        reader = spark.read.format("kafkaLog").options(**options)
        return (reader.schema(schema) if schema else reader).load(str(path))

    return load


def expected(path: Path) -> list[tuple]:
    table = kafkajit.read_records(path, columns=["topic", "partition", "offset", "key", "value"])
    return [tuple(row.values()) for row in table.to_pylist()]


def damaged_folder(folder: Path) -> Path:
    """A partition of a sound segment, and of one whose second batch is damaged."""
    partition = folder / "orders-0"
    partition.mkdir()
    first, second, *rest = split(log_of("segments-0"))
    (partition / f"{0:020}.log").write_bytes(first + second)
    bad = bytearray(rest[1])
    bad[-1] ^= 1
    (partition / f"{99:020}.log").write_bytes(rest[0] + bytes(bad) + b"".join(rest[2:4]))
    return partition


def test_a_root_gives_every_record_of_every_segment_once(load: Load) -> None:
    frame = load(V2, schema="topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY")
    found = Counter(tuple(row) for row in frame.collect())
    assert found == Counter(row for path in SEGMENTS for row in expected(path))


@pytest.mark.parametrize("size", ["1", "1k", "1g"])
def test_splits_change_nothing(size: str, load: Load) -> None:
    path = V2 / "transactions-segments-0"
    frame = load(path, maxPartitionBytes=size)
    whole = [row for log in sorted(path.glob("*.log")) for row in rows_of(read(log))]
    key = lambda row: row["offset"]  # noqa: E731
    assert sorted(rows_of(frame.toArrow()), key=key) == sorted(whole, key=key)
    assert frame.rdd.getNumPartitions() > 1 or size == "1g"


def read(path: Path) -> pa.Table:
    """Our records as Spark gives them."""
    table = kafkajit.read_records(path)
    at = table.column_names.index("timestamp")
    return table.set_column(at, "timestamp", table["timestamp"].cast(pa.timestamp("us", "UTC")))


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("records", RECORD_COLUMNS),
        ("batches", SEGMENT_BATCH_COLUMNS),
        ("files", FILE_COLUMNS),
        ("corruption", CORRUPTION_COLUMNS),
        ("indexes", INDEX_FILE_COLUMNS),
        *((kind, file.folder_columns) for kind, file in SIDECAR_FILES.items()),
    ],
)
def test_a_kind_has_its_columns(kind: str, columns: dict, load: Load) -> None:
    assert load(kt.SAMPLE, kind=kind).columns == list(columns)


@pytest.mark.parametrize("kind", ["indexes", *SIDECAR_FILES])
def test_files_beside_logs_are_the_same_rows_in_spark(kind: str, load: Load) -> None:
    of_a_root = kind in ("checkpoints", "metaProperties")
    path = DATA / ("internal/log-dir" if of_a_root else "internal")
    frame = load(path, kind=kind, mode="PERMISSIVE")
    if not of_a_root:
        frame = frame.where("topic LIKE '\\_\\_c%' AND partition <= 1")
    rows = [
        row
        for row in read_rows(path, kind=kind, mode="PERMISSIVE")
        if of_a_root or (row["topic"].startswith("__c") and row["partition"] <= 1)
    ]
    assert rows
    key = lambda row: [repr(row[name]) for name in ("path", *row)]  # noqa: E731
    assert sorted(rows_of(frame.toArrow()), key=key) == sorted(rows, key=key)


def test_a_bad_file_beside_a_log_fails_naming_it(load: Load, tmp_path: Path) -> None:
    bad = tmp_path / "leader-epoch-checkpoint"
    bad.write_bytes(b"1\n")
    with pytest.raises(PySparkException) as raised:
        load(tmp_path, kind="leaderEpochs").collect()
    assert "CorruptCheckpointError: Unrecognised version:1" in str(raised.value)
    assert str(bad) in str(raised.value)
    row = load(tmp_path, kind="leaderEpochs", mode="PERMISSIVE").first()
    assert (row.path, row.corruption.path, row.epoch) == (str(bad), str(bad), None)
    assert load(tmp_path, kind="leaderEpochs", mode="DROPMALFORMED").count() == 0


def test_batches_tell_records_and_checksums(load: Load) -> None:
    row = load(V2, kind="batches").selectExpr("sum(recordsCount)", "bool_and(isValid)").first()
    assert tuple(row) == (sum(len(expected(path)) for path in SEGMENTS), True)


def test_files_are_all_that_kafka_keeps(load: Load) -> None:
    frame = load(V2, kind="files").where("topic = 'transactions-segments'")
    assert sorted(row.path for row in frame.collect()) == sorted(
        str(path) for path in (V2 / "transactions-segments-0").iterdir()
    )


def test_filters_change_no_row(load: Load) -> None:
    condition = "offset BETWEEN 7 AND 30 AND topic LIKE 'seg%' AND partition < 1"
    found = load(V2).where(condition).select("topic", "offset").collect()
    assert sorted(tuple(row) for row in found) == sorted(
        (topic, offset)
        for path in SEGMENTS
        for topic, partition, offset, *_ in expected(path)
        if 7 <= offset <= 30 and topic.startswith("seg") and partition < 1
    )


@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        ("timestamp < TIMESTAMP '+20000-01-01 00:00:00'", True),
        ("timestamp > timestamp_micros(9223372036854775807)", False),
        ("timestamp > TIMESTAMP '-0001-01-01 00:00:00'", True),
        ("timestamp NOT IN (TIMESTAMP '+20000-01-01 00:00:00', TIMESTAMP '2001-01-01')", True),
    ],
)
def test_a_timestamp_may_be_beyond_the_years_of_python(
    condition: str, is_met: bool, load: Load
) -> None:
    assert load(kt.SAMPLE).where(condition).count() == (51 if is_met else 0)


def test_a_frame_used_again_has_all_its_rows(load: Load) -> None:
    """Spark 4.3 reads for the second query what the first one's conditions have left."""
    frame = load(V2 / "none-0")
    assert frame.where("offset < 1").count() == 1
    whole = frame.count()
    assert whole == len(expected(next((V2 / "none-0").glob("*.log"))))
    assert frame.where("offset < 1").union(frame.where("offset >= 1")).count() == whole


def test_what_the_planner_did_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    from kafkajit.scan.options import ScanOptions
    from kafkajit.scan.predicates import Predicate
    from kafkajit.scan.table import plan_table

    caplog.set_level(logging.INFO, logger="kafkajit")
    plan_table(ScanOptions(paths=(str(V2 / "segments-0"),)), [Predicate("offset", "<", 1)])
    assert "segments, 1 splits in 1 tasks" in caplog.text
    assert "bytes to read" in caplog.text
    assert "skipped" in caplog.text


def test_read_committed_leaves_out_what_consumers_do_not_see(load: Load) -> None:
    frame = load(kt.SAMPLE, isolationLevel="read_committed").where("topic = 'orders'")
    offsets = sorted(row.offset for row in frame.collect())
    assert offsets == [*range(22), 26]


def test_tables_and_views_are_made_in_sql(spark: SparkSession) -> None:
    options = f"OPTIONS (path '{kt.SAMPLE}', kind 'batches')"
    spark.sql(f"CREATE TEMPORARY VIEW view_of_batches USING kafkaLog {options}")
    spark.sql(f"CREATE TABLE table_of_batches USING kafkaLog {options}")
    try:
        for name in ("view_of_batches", "table_of_batches"):
            query = f"SELECT sum(recordsCount) FROM {name} WHERE topic = 'orders'"
            assert spark.sql(query).first()[0] == 27
    finally:
        spark.sql("DROP TABLE table_of_batches")
        spark.sql("DROP VIEW view_of_batches")


def test_several_paths_are_one_table(spark: SparkSession) -> None:
    paths = [str(V2 / name) for name in ("none-0", "gzip-0")]
    frame = spark.read.format("kafkaLog").load(paths)
    assert {row.topic for row in frame.select("topic").distinct().collect()} == {"none", "gzip"}


def test_a_narrower_schema_may_be_in_any_order_and_not_null(load: Load) -> None:
    frame = load(kt.SAMPLE, schema="value BINARY, offset BIGINT NOT NULL")
    assert frame.columns == ["value", "offset"]
    assert frame.count() > 0


def test_a_schema_may_have_a_part_of_a_struct(load: Load, tmp_path: Path) -> None:
    keys = load(kt.SAMPLE, schema="headers ARRAY<STRUCT<key: STRING>>, offset BIGINT")
    whole = load(kt.SAMPLE).selectExpr("transform(headers, h -> struct(h.key)) headers", "offset")
    assert sorted(map(str, keys.collect())) == sorted(map(str, whole.collect()))
    partition = damaged_folder(tmp_path)
    damage = load(partition, mode="PERMISSIVE", schema="corruption STRUCT<reason: STRING>")
    found = load(partition, mode="PERMISSIVE").selectExpr("corruption.reason")
    assert sorted(map(str, damage.selectExpr("corruption.reason").collect())) == sorted(
        map(str, found.collect())
    )


def test_keys_and_values_as_strings_are_what_a_cast_makes_of_them(
    load: Load, tmp_path: Path
) -> None:
    (tmp_path / "odd-0").mkdir()
    contents = [b"text", b"", None, "zürich".encode(), b"\xff\xc3(\x00", bytes(range(256)) * 40]
    records = [kt.Record(key=each, value=each, timestamp=0) for each in contents]
    log = kt.batch(records) + kt.batch(records[:2], base_offset=len(records))
    (tmp_path / "odd-0" / f"{0:020}.log").write_bytes(log)
    text = load(tmp_path, schema="value STRING, offset BIGINT, key STRING")
    assert dict(text.dtypes) == {"value": "string", "offset": "bigint", "key": "string"}
    as_bytes = ["CAST(key AS BINARY)", "CAST(value AS BINARY)", "offset"]
    rows = text.selectExpr(*as_bytes).orderBy("offset").collect()
    assert [tuple(row) for row in rows] == [
        (each, each, at) for at, each in enumerate(contents + contents[:2])
    ]
    assert [row.offset for row in text.where("value = 'text'").collect()] == [0, 6]
    assert text.where("key IS NULL").count() == 1


def test_strings_and_damage_fit_together(load: Load, tmp_path: Path) -> None:
    partition = damaged_folder(tmp_path)
    corruption = "STRUCT<path: STRING, position: BIGINT, length: BIGINT, reason: STRING>"
    frame = load(partition, mode="PERMISSIVE", schema=f"value STRING, corruption {corruption}")
    assert [row.value for row in frame.where("corruption IS NOT NULL").collect()] == [None]
    assert frame.count() == load(partition, mode="PERMISSIVE").count()


# Bad input: each reaches the user as one error, our message on top.


@pytest.mark.parametrize(
    ("options", "schema", "stated"),
    [
        ({"kidn": "batches"}, None, "unknown option 'kidn': did you mean 'kind'?"),
        ({"kind": "batch"}, None, "option kind: unknown value 'batch' (did you mean 'batches'?)"),
        ({"mode": "LENIENT"}, None, "option mode: unknown value 'LENIENT'"),
        (
            {"maxDecompressedBytes": "-1"},
            None,
            "option maxDecompressedBytes: expected a number",
        ),
        (
            {"startingOffsets": "7"},
            None,
            "option startingOffsets: expected earliest or JSON such as",
        ),
        ({}, "ofset BIGINT", "has no column 'ofset', did you mean 'offset'? There are: key,"),
        ({}, "headers ARRAY<STRUCT<kex: STRING>>", "column headers of kind records is array<"),
        ({}, "offset INT", "column offset of kind records is bigint, not int"),
        ({}, "offset STRING", "column offset of kind records is bigint, not string"),
    ],
)
def test_a_wrong_option_or_schema_is_told(
    options: dict, schema: str | None, stated: str, load: Load
) -> None:
    with pytest.raises(AnalysisException) as raised:
        load(kt.SAMPLE, schema=schema, **options).collect()
    assert stated in str(raised.value)
    assert "Traceback" not in str(raised.value)


def test_a_missing_path_is_told(load: Load, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match=f"there is nothing at {tmp_path}/no"):
        load(tmp_path / "no").collect()


def test_a_folder_without_segments_is_told(load: Load, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(AnalysisException, match="no segments"):
        load(tmp_path).collect()


def test_damage_names_the_file_and_the_place(load: Load, tmp_path: Path) -> None:
    partition = damaged_folder(tmp_path)
    with pytest.raises(PySparkException) as raised:
        load(partition).collect()
    message = str(raised.value)
    assert "CorruptRecordError: Record is corrupt (stored crc = " in message
    assert f"in {partition}/{99:020}.log" in message
    assert "Traceback" not in message


def test_permissive_loses_the_bad_batch_and_nothing_else(load: Load, tmp_path: Path) -> None:
    partition = damaged_folder(tmp_path)
    (partition / f"{500:020}.log").write_bytes(b"")
    (partition / f"{600:020}.log").write_bytes(bytes(4096))
    (partition / "notes.txt").write_text("not Kafka's")
    batches = split(log_of("segments-0"))[:6]
    counts = [kafkajit.read_records(batch).num_rows for batch in batches]
    lost = counts.pop(3)
    frame = load(partition, mode="PERMISSIVE")
    rows = frame.collect()
    gaps = [row for row in rows if row.corruption is not None]
    assert len(rows) - len(gaps) == sum(counts)
    assert lost > 0
    (gap,) = gaps
    assert gap.topic == "orders"
    assert gap.offset is None
    assert gap.corruption.path == f"{partition}/{99:020}.log"
    assert gap.corruption.position == len(batches[2])
    assert gap.corruption.length == len(batches[3])
    assert load(partition, mode="DROPMALFORMED").count() == sum(counts)


def test_corruption_lists_what_permissive_reports(load: Load, tmp_path: Path) -> None:
    partition = damaged_folder(tmp_path)
    (row,) = load(partition, kind="corruption").collect()
    assert (row.topic, row.partition, row.path) == ("orders", 0, f"{partition}/{99:020}.log")
    assert row.reason.startswith("CorruptRecordError: Record is corrupt")


def test_a_timestamp_that_spark_cannot_hold_is_null(load: Load, tmp_path: Path) -> None:
    (tmp_path / "odd-0").mkdir()
    records = [kt.Record(value=b"v", timestamp=when) for when in (0, 2**63 - 1, -1)]
    (tmp_path / "odd-0" / f"{0:020}.log").write_bytes(kt.batch(records))
    rows = load(tmp_path).selectExpr("offset", "unix_micros(timestamp)").collect()
    assert [tuple(row) for row in rows] == [(0, 0), (1, None), (2, -1000)]


def test_a_changed_file_is_told(load: Load, tmp_path: Path) -> None:
    """Splits of a file that shrank between planning and reading name the file."""
    shutil.copytree(V2 / "none-0", tmp_path / "none-0")
    frame = load(tmp_path / "none-0", maxPartitionBytes="1")
    frame.rdd.getNumPartitions()
    (log,) = (tmp_path / "none-0").glob("*.log")
    log.unlink()
    with pytest.raises(PySparkException, match=log.name):
        frame.collect()


def test_older_formats_are_rows_like_any(spark: SparkSession, tmp_path: Path) -> None:
    records = [kt.Record(key=b"k", value=b"v")] * 2
    log = (
        kt.message_set(records, magic=0, codec="snappy")
        + kt.message_set(records, base_offset=2)
        + kt.batch(records, base_offset=4)
    )
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(log)
    source = spark.read.format("kafkaLog").load(str(folder))
    column = spark.read.format("binaryFile").load(f"{folder}/*.log")
    for rows in (source, column.selectExpr("inline(kafka_records(content))")):
        found = rows.selectExpr("offset", "magic", "CAST(value AS STRING)").orderBy("offset")
        assert [tuple(row) for row in found.collect()] == [
            (offset, offset // 2, "v") for offset in range(6)
        ]
