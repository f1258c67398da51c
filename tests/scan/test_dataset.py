"""Folders as a dataset: the rows of the logs, whoever asks for them and however they are chosen."""

from __future__ import annotations

import logging
import pickle
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from corpus import DATA, NO_JIT
from hypothesis import given
from hypothesis import strategies as st
from scanning import by_folder, copied, logs_of, read_table, records_by_segment, write_partition

import kafkajit
import kafkajit.testing as kt
from kafkajit.errors import CorruptRecordError
from kafkajit.scan.options import KINDS
from kafkajit.storage.source import SAMPLE_FOLDER

SEGMENTS = DATA / "v2" / "segments-0"
EPOCH = datetime.fromtimestamp(0, UTC)


@by_folder
def test_rows_are_those_of_the_segments_in_order_whatever_threads_read_them(folder: Path) -> None:
    records = records_by_segment(folder)
    for threads in (1, 3):
        log = kafkajit.dataset(folder, threads=threads, max_partition_bytes=300)
        assert log.schema == records.schema
        assert log.to_table().equals(records)
        assert log.count_rows() == records.num_rows
        assert log.head(5).equals(records.slice(0, 5))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_dataset(kind: str) -> None:
    where = DATA / "internal" if kind != "schemas" else SAMPLE_FOLDER / "typed"
    if kind == "remoteSegments":
        where = DATA / "tiered"
    try:
        expected = read_table(where, kind=kind)
    except FileNotFoundError:
        with pytest.raises(FileNotFoundError):
            kafkajit.dataset(where, kind=kind).to_table()
        return
    log = kafkajit.dataset(where, kind=kind)
    assert log.to_table().equals(expected)
    assert log.count_rows() == expected.num_rows
    assert sum(part.count_rows() for part in log.get_fragments()) == expected.num_rows


# Filters on these columns, by values that rows have and by others.
_VALUES: dict[str, list[Any]] = {
    "topic": ["orders", "payments", "shipments", "segments"],
    "partition": [0, 1, 7],
    "offset": [-1, 0, 3, 20, 25, 26, 2**63 - 1, -(2**63)],
    "timestamp": [
        datetime(2025, 11, 5, 0, 0, 3, tzinfo=UTC),
        datetime(2025, 11, 5, 0, 0, 3, 500, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
        EPOCH - timedelta(1),
    ],
    "key": [b"Ada", b"order-3", b""],
    "controlType": ["COMMIT", "ABORT"],
    "isTransactional": [True, False],
}
_HOLDS = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, str, Any]:
    column = draw(st.sampled_from(sorted(_VALUES)))
    values = st.sampled_from(_VALUES[column])
    if draw(st.booleans()):
        return column, draw(st.sampled_from(sorted(_HOLDS))), draw(values)
    several = draw(st.lists(values, min_size=1, max_size=3))
    return column, draw(st.sampled_from(["in", "not in"])), several


def holds(row: dict[str, Any], condition: tuple[str, str, Any]) -> bool:
    column, test, value = condition
    if test in ("in", "not in"):  # Arrow's: NULL is in no list
        return (row[column] in value) == (test == "in")
    return row[column] is not None and _HOLDS[test](row[column], value)


@given(st.lists(st.lists(conditions(), min_size=1, max_size=3), min_size=1, max_size=2))
def test_filters_leave_exactly_the_rows_that_meet_them(
    filters: list[list[tuple[str, str, Any]]],
) -> None:
    log = kafkajit.dataset(["sample:", str(SEGMENTS)], columns=[*_VALUES], threads=1)
    rows = log.to_table().to_pylist()
    met = [row for row in rows if any(all(holds(row, each) for each in group) for group in filters)]
    assert log.filter(filters).to_table().to_pylist() == met
    assert log.filter(filters).count_rows() == len(met)
    assert log.select(["key"]).filter(filters).to_table().to_pylist() == [
        {"key": row["key"]} for row in met
    ]


@pytest.mark.parametrize(
    ("filters", "read"),
    [
        ([("topic", "==", "orders")], "1 of 1 segments"),
        ([("partition", "in", [1])], "2 of 2 segments"),
        ([("offset", ">=", 25)], "2 of 5 segments"),
        (~(pc.field("offset") < 25), "2 of 5 segments"),
        ([[("topic", "==", "payments"), ("offset", "<", 6)], [("offset", "==", 2)]], "3 of 5"),
        ([("timestamp", ">", datetime(2040, 1, 1, tzinfo=UTC))], "1 of 5 segments"),
        ([("key", "==", b"Ada")], "5 of 5 segments"),
    ],
)
def test_filters_spare_the_scan_what_no_row_of_theirs_is_in(
    filters: Any, read: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="kafkajit"):
        kafkajit.dataset("sample:").filter(filters).to_table()
    assert read in caplog.text


def test_damage_without_an_offset_stays_if_the_filter_wants_it(tmp_path: Path) -> None:
    (log,) = logs_of(copied(Path(kt.SAMPLE, "orders-0"), tmp_path))
    damaged = bytearray(log.read_bytes())
    damaged[400] ^= 1
    log.write_bytes(damaged)
    rows = kafkajit.dataset(tmp_path, mode="PERMISSIVE")
    assert rows.count_rows() == rows.select(["offset"]).to_table().num_rows == 24
    (gap,) = rows.filter(pc.field("offset").is_null()).to_table()["corruption"].to_pylist()
    assert (gap["position"], gap["length"]) == (340, 222)
    either = pc.field("offset").is_null() | (pc.field("offset") > 25)
    assert rows.filter(either).select(["offset"]).to_table()["offset"].to_pylist() == [None, 26]


large = pytest.mark.skipif(NO_JIT, reason="megabytes of records")


def _long_log(root: Path, batches: int = 300) -> Path:
    """A partition of 2,000-byte values in batches of 50, which is read in several chunks."""
    records = [kt.Record(b"k", bytes(2000))] * 50
    log = b"".join(kt.batch(records, base_offset=50 * number) for number in range(batches))
    return write_partition(root, [log])


@large
def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    folder = _long_log(tmp_path, batches=2400)  # 240 MB
    log = kafkajit.dataset(folder, columns=["value"], threads=2, max_partition_bytes="1g")
    kafkajit.dataset(folder, columns=["value"], threads=2).head(1)
    before = pa.total_allocated_bytes()
    rows = most = 0
    for batch in log.to_batches():
        rows += batch.num_rows
        held = pa.total_allocated_bytes() - before
        most = max(most, held)
        if rows == batch.num_rows:
            time.sleep(1)  # threads have the time to read ahead as far as they may
    assert rows == 120_000
    assert most < 120 << 20


@large
def test_an_error_in_the_middle_arrives_behind_the_rows_before_it(tmp_path: Path) -> None:
    folder = _long_log(tmp_path)
    (path,) = logs_of(folder)
    damaged = bytearray(path.read_bytes())
    damaged[-500] ^= 1
    path.write_bytes(damaged)
    for threads in (1, 2):
        log = kafkajit.dataset(folder, columns=["offset"], threads=threads)
        rows: list[int] = []
        batches = log.to_batches()
        taken = (rows.extend(batch["offset"].to_pylist()) for batch in batches)
        with pytest.raises(CorruptRecordError, match=str(path)):
            list(taken)
        assert rows == list(range(len(rows)))
        assert len(rows) > 1000
        with pytest.raises(CorruptRecordError):
            log.to_table()
        with pytest.raises(pa.ArrowException, match=path.name):
            pa.table(log)
        with pytest.raises(duckdb.Error, match=path.name):
            duckdb.sql('SELECT sum("offset") FROM log').fetchall()


@large
def test_a_stream_that_is_not_read_to_its_end_ends_its_threads(tmp_path: Path) -> None:
    folder = _long_log(tmp_path, batches=1000)
    batches = kafkajit.dataset(folder, threads=2, max_partition_bytes="50m").to_batches()
    next(batches)
    threads = [each for each in threading.enumerate() if each.name == "kafkajit reads ahead"]
    assert len(threads) == 2
    batches.close()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


@large
def test_head_reads_no_more_than_it_needs(tmp_path: Path) -> None:
    folder = _long_log(tmp_path)
    (path,) = logs_of(folder)
    damaged = bytearray(path.read_bytes())
    damaged[-500] ^= 1
    path.write_bytes(damaged)
    log = kafkajit.dataset(folder, columns=["offset"])
    assert log.head(3)["offset"].to_pylist() == [0, 1, 2]
    assert log.head(0).num_rows == 0


def test_fragments_are_the_whole_in_order_also_in_other_processes() -> None:
    log = kafkajit.dataset("sample:", max_partition_bytes=1, filters=[("offset", ">", 5)])
    parts = pickle.loads(pickle.dumps(list(log.get_fragments())))
    assert len(parts) > 1
    assert pa.concat_tables(part.to_table() for part in parts).equals(log.to_table())
    assert pickle.loads(pickle.dumps(log)).to_table().equals(log.to_table())


def test_options_have_their_names_in_python() -> None:
    log = kafkajit.dataset(
        Path(kt.SAMPLE),
        starting_offsets={"orders": {0: 20}},
        ending_timestamp=datetime(2025, 11, 5, 0, 0, 25, tzinfo=UTC),
        max_partition_bytes=None,
        check_crcs=False,
        isolation_level="read_committed",
        columns=["topic", "offset"],
    )
    expected = read_table(
        kt.SAMPLE,
        startingOffsets='{"orders": {"0": 20}}',
        endingTimestamp="2025-11-05T00:00:25Z",
        isolationLevel="read_committed",
        columns=["topic", "offset"],
    )
    assert log.to_table().equals(expected)
    orders = [row["offset"] for row in expected.to_pylist() if row["topic"] == "orders"]
    assert orders == [20, 21]  # a transaction begins behind these


def test_values_with_a_schema_are_typed() -> None:
    log = kafkajit.dataset("sample:typed/shipments-0", schemas="auto")
    assert pa.types.is_struct(log.schema.field("value").type)
    expected = kafkajit.read_records(
        "sample:typed/shipments-0/00000000000000000000.log", schemas="auto", columns=["rawValue"]
    )
    assert log.to_table()["rawValue"].to_pylist() == expected["rawValue"].to_pylist()
    tombstones = expected["rawValue"].null_count
    assert log.filter(pc.field("value").is_null()).count_rows() == tombstones > 0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"isolation_levle": "x"}, r"unknown option 'isolation_levle': did you mean 'isolation_"),
        ({"startingTimestamp": 5}, r"unknown option 'startingTimestamp': did you mean 'starting_t"),
        ({"starting_timestamp": "soon"}, r"option starting_timestamp: 'soon' is neither ISO 8601"),
        ({"columns": ["ofset"]}, r"unknown column 'ofset'; there are: key, value"),
        ({"filters": [("ofset", ">", 1)]}, r"unknown column 'ofset'; there are: key, value"),
        ({"filters": [("offset", "~", 1)]}, r"filters: \"~\" is not a valid operator"),
        ({"filters": [("offset", ">", "x")]}, r"filters: .*; pass a list such as \[\('topic'"),
        ({"filters": []}, r"filters: .*; pass a list such as"),
        ({"filters": pc.field("x") > 1}, r"filters: .*FieldRef.Name\(x\).*; pass a list"),
        ({"threads": 0}, r"threads must be at least 1, not 0"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_read(
    asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        kafkajit.dataset("/nowhere", **asked)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("paths", ["", [], [""], [b"/logs"]])
def test_paths_are_needed(paths: Any) -> None:
    with pytest.raises(ValueError, match="paths: pass a segment file"):
        kafkajit.dataset(paths)


def test_no_method_of_pyarrows_own_dataset_is_left() -> None:
    """One that is not defined anew would see a dataset without rows."""
    theirs = {name for name in dir(ds.Dataset) if not name.startswith("_")}
    assert theirs <= set(vars(kafkajit.Dataset))
    log = kafkajit.dataset("sample:")
    for refused in ("join", "join_asof", "replace_schema", "sort_by", "take"):
        with pytest.raises(NotImplementedError, match=f"has no {refused}: call to_tab"):
            getattr(log, refused)("offset")
    with pytest.raises(NotImplementedError, match="no partition_expression"):
        _ = log.partition_expression
    with pytest.raises(ValueError, match="pass names of columns"):
        log.scanner(columns={"offset": pc.field("offset")})


def test_it_shows_what_it_would_read_and_no_secret() -> None:
    log = kafkajit.dataset("s3://key:secret@bucket/logs?region=eu-west-1", kind="batches")
    shown = repr(log.select(["path"]).filter([("baseOffset", "<", 5)]))
    assert shown == (
        "<kafkajit.dataset('s3://bucket/logs', kind='batches', columns=['path'], "
        "filters=(baseOffset < 5))>"
    )
    html = log.select(["path"]).filter([("baseOffset", "<", 5)])._repr_html_()
    assert ">path</td>" in html
    assert ">string</td>" in html
    assert "(baseOffset &lt; 5)" in html


# Engines


def test_duckdb_reads_it_by_its_name_again_and_again(caplog: pytest.LogCaptureFixture) -> None:
    log = kafkajit.dataset("sample:")  # noqa: F841  # DuckDB sees it
    counted = 'SELECT topic, count(*), max("offset") FROM log GROUP BY ALL ORDER BY ALL'
    for _ in range(2):
        assert duckdb.sql(counted).fetchall() == [("orders", 27, 26), ("payments", 24, 26)]
    assert duckdb.sql("SELECT count(*) FROM log").fetchall() == [(51,)]
    twice = 'SELECT count(*) FROM log a JOIN log b ON a.topic = b.topic AND a."offset" > 99'
    assert duckdb.sql(twice).fetchall() == [(0,)]
    with caplog.at_level(logging.INFO, logger="kafkajit"):
        caplog.clear()
        narrow = """SELECT "offset", key FROM log WHERE topic = 'payments' AND "offset" >= 25
            AND timestamp >= TIMESTAMPTZ '2025-11-01'"""
        assert duckdb.sql(narrow).fetchall() == [(25, b"Ada"), (26, b"\0\0\0\0")]
    assert "1 of 4 segments" in caplog.text


def test_polars_scans_it_lazily(caplog: pytest.LogCaptureFixture) -> None:
    log = kafkajit.dataset("sample:")
    frame = pl.scan_pyarrow_dataset(log)
    with caplog.at_level(logging.INFO, logger="kafkajit"):
        late = frame.filter(pl.col("topic") == "payments", pl.col("offset") >= 25)
        assert late.select("offset").collect()["offset"].to_list() == [25, 26]
    assert "1 of 4 segments" in caplog.text
    assert frame.select(pl.len()).collect().item() == 51
    assert frame.head(3).collect().height == 3
    assert pl.DataFrame(log.select(["offset"])).height == 51


def test_datafusion_scans_it(caplog: pytest.LogCaptureFixture) -> None:
    context = datafusion.SessionContext()
    log = kafkajit.dataset("sample:")
    context.register_dataset("log", log)
    assert context.sql("SELECT count(*) AS n FROM log").to_pylist() == [{"n": 51}]
    with caplog.at_level(logging.INFO, logger="kafkajit"):
        narrow = """SELECT "offset" FROM log WHERE topic = 'payments' AND "offset" >= 25"""
        found = context.sql(narrow).to_pylist()
    assert sorted(row["offset"] for row in found) == [25, 26]
    assert "1 of 4 segments" in caplog.text
    assert context.from_arrow(log).count() == 51


def test_pandas_and_arrow_read_it_as_a_stream(tmp_path: Path) -> None:
    log = kafkajit.dataset("sample:", columns=["topic", "offset"])
    frame = log.to_reader().read_pandas()
    assert frame.groupby("topic").size().to_dict() == {"orders": 27, "payments": 24}
    for _ in range(2):
        assert pa.table(log).equals(log.to_table())
    ds.write_dataset(log.to_reader(), tmp_path, format="parquet")
    assert ds.dataset(tmp_path).to_table().equals(log.to_table())
