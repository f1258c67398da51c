"""Files that other programs write come in as what these programs have."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import reference
from corpus import batch_records

import kafkajit

pytestmark = pytest.mark.whole
ROWS: list[dict[str, Any]] = [
    {"id": 1, "payload": "one", "ts": 1_767_225_600_123},
    {"id": 2**53 - 1, "payload": 'two,"\n', "ts": -1},
    {"id": -3, "payload": "é😀\t", "ts": 0},
    {"id": 4, "payload": "", "ts": 9_223_372_036_854},
]
WANTED = [(str(row["id"]).encode(), row["payload"].encode(), row["ts"]) for row in ROWS]
OPTIONS = {"key_column": "id", "value_column": "payload", "timestamp_column": "ts"}
Found = list[tuple[bytes | None, bytes | None, int]]


def records_of(folder: Path) -> Found:
    """The records of a partition's log by the slow twin, in order."""
    found: Found = []
    for log in sorted(folder.glob("*.log")):
        batches, end = reference.read_batches(log.read_bytes())
        assert end == log.stat().st_size
        for batch in batches:
            found += [
                (record.key, record.value, record.timestamp) for record in batch_records(batch)
            ]
    return found


def imported(place: Path, folder: Path, **options: Any) -> Found:
    """The records of an import."""
    plan = kafkajit.import_files(place, folder / "logs", topic="t", partitions=1, **options)
    plan.apply()
    assert not plan.left_out
    return records_of(folder / "logs" / "t-0")


def frame() -> pd.DataFrame:
    table = pd.DataFrame(ROWS)
    table["ts"] = pd.to_datetime(table["ts"], unit="ms", utc=True).astype("datetime64[ms, UTC]")
    return table


def polars() -> pl.DataFrame:
    times = pl.from_epoch("ts", time_unit="ms").dt.replace_time_zone("UTC")
    return pl.DataFrame(ROWS).with_columns(times)


def by_duckdb(options: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        rows = pa.Table.from_pylist(ROWS)
        with duckdb.connect() as connection:
            connection.register("rows", rows)
            connection.execute(f"COPY (SELECT id, payload, ts FROM rows) TO '{path}' ({options})")

    return write


def by_fastavro(codec: str) -> Callable[[Path], None]:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "payload", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ]
    rows = [row | {"ts": row["ts"] * 1000} for row in ROWS]

    def write(path: Path) -> None:
        with path.open("wb") as file:
            schema = {"type": "record", "name": "R", "fields": fields}
            fastavro.writer(file, schema, rows, codec=codec, sync_interval=1)

    return write


# A file's name, and the program that writes it: the import has these records.
WRITERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "pandas: to_parquet": ("a.parquet", lambda path: frame().to_parquet(path, index=False)),
    "pandas: to_feather": ("a.feather", lambda path: frame().to_feather(path)),
    "pandas: to_csv": ("a.csv", lambda path: frame().to_csv(path, index=False)),
    "pandas: to_csv for Excel": (
        "a.csv",
        lambda path: frame().to_csv(path, index=False, encoding="utf-8-sig", lineterminator="\r\n"),
    ),
    "pandas: to_csv, gzip": ("a.csv.gz", lambda path: frame().to_csv(path, index=False)),
    "pandas: to_json": (
        "a.json",
        lambda path: frame().to_json(path, orient="records", lines=True, date_format="iso"),
    ),
    "pandas: to_json, milliseconds": (
        "a.jsonl",
        lambda path: frame().to_json(path, orient="records", lines=True, date_unit="ms"),
    ),
    "Polars: write_parquet": ("a.parquet", lambda path: polars().write_parquet(path)),
    "Polars: write_ipc": ("a.arrow", lambda path: polars().write_ipc(path)),
    "Polars: write_ipc, zstd": (
        "a.arrow",
        lambda path: polars().write_ipc(path, compression="zstd"),
    ),
    "Polars: write_ipc_stream": ("a.arrows", lambda path: polars().write_ipc_stream(path)),
    "Polars: write_avro": ("a.avro", lambda path: pl.DataFrame(ROWS).write_avro(path)),
    "Polars: write_csv": ("a.csv", lambda path: polars().write_csv(path)),
    "Polars: write_ndjson": (
        "a.ndjson",
        lambda path: pl.DataFrame(ROWS).write_ndjson(path),
    ),
    "DuckDB: Parquet": ("a.parquet", by_duckdb("FORMAT parquet")),
    "DuckDB: Parquet, zstd, v2": (
        "a.parquet",
        by_duckdb("FORMAT parquet, CODEC 'zstd', PARQUET_VERSION v2"),
    ),
    "DuckDB: CSV": ("a.csv", by_duckdb("FORMAT csv, HEADER")),
    "DuckDB: JSON": ("a.json", by_duckdb("FORMAT json")),
    "DuckDB: JSON, gzip": ("a.json.gz", by_duckdb("FORMAT json, COMPRESSION gzip")),
    "fastavro: null": ("a.avro", by_fastavro("null")),
    "fastavro: deflate": ("a.avro", by_fastavro("deflate")),
    "fastavro: bzip2": ("a.avro", by_fastavro("bzip2")),
    "fastavro: xz": ("a.avro", by_fastavro("xz")),
    "json: ASCII": (
        "a.jsonl",
        lambda path: path.write_text("\r\n".join(map(json.dumps, ROWS))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", WRITERS)
def test_a_program_writes_and_the_import_has_its_records(program: str, tmp_path: Path) -> None:
    name, write = WRITERS[program]
    write(tmp_path / name)
    wanted = WANTED
    if program.startswith("pandas: to_csv"):  # which writes no quotes for an empty text
        wanted = [(key, value or None, time) for key, value, time in WANTED]
    assert imported(tmp_path / name, tmp_path, **OPTIONS) == wanted


def test_a_folder_as_spark_writes_it(tmp_path: Path) -> None:
    for part, rows in enumerate((ROWS[:1], ROWS[1:3], [], ROWS[3:])):
        folder = tmp_path / "out" / f"day={part // 2}"
        folder.mkdir(parents=True, exist_ok=True)
        schema = pa.schema([("id", pa.int64()), ("payload", pa.string()), ("ts", pa.int64())])
        table = pa.Table.from_pylist(rows, schema)
        times = table["ts"].cast(pa.timestamp("ms")).cast(pa.timestamp("us", "UTC"))
        name = f"part-{part:05}-0b1c.c000.snappy.parquet"
        pq.write_table(table.set_column(2, "ts", times), folder / name, compression="snappy")
        (folder / f".{name}.crc").write_bytes(b"crc\0")
    (tmp_path / "out" / "_SUCCESS").touch()
    (tmp_path / "out" / "._SUCCESS.crc").write_bytes(b"crc\0")
    options = OPTIONS | {"ignore_columns": "day"}
    plan = kafkajit.import_files(
        tmp_path / "out", tmp_path / "logs", topic="t", partitions=1, **options
    )
    plan.apply()
    assert records_of(tmp_path / "logs" / "t-0") == WANTED
    assert plan.left_out.files == []


def test_polars_categories_lists_and_binary(tmp_path: Path) -> None:
    columns = {
        "key": pl.Series([b"\x00\xff", None], dtype=pl.Binary),
        "value": pl.Series(["a", "b"], dtype=pl.Categorical),
        "timestamp": pl.Series([1, None], dtype=pl.Datetime("ns")),
        "headers": [[{"key": "h", "value": b"\xff"}], None],
    }
    pl.DataFrame(columns).write_ipc(tmp_path / "a.arrow")
    pl.DataFrame(columns).write_parquet(tmp_path / "b.parquet")
    for name in ("a.arrow", "b.parquet"):
        (first, second) = imported(tmp_path / name, tmp_path / name[0])
        assert first == (b"\x00\xff", b"a", 0)
        assert second[:2] == (None, b"b")


def test_structs_of_every_program_are_the_same_json(tmp_path: Path) -> None:
    rows = [{"value": {"n": 2**60, "s": 'é"', "l": [1.0, None], "t": True}}]
    pl.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame(rows).write_ipc(tmp_path / "b.arrow")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "c.parquet")
    (tmp_path / "d.jsonl").write_text(
        json.dumps(rows[0], ensure_ascii=False, separators=(",", ":"))
    )
    for name in ("a.parquet", "b.arrow", "c.parquet", "d.jsonl"):
        ((_, value, _),) = imported(tmp_path / name, tmp_path / name[0])
        assert value == '{"n":1152921504606846976,"s":"é\\"","l":[1.0,null],"t":true}'.encode()


@pytest.mark.parametrize("name", ["offset", "key"])
@pytest.mark.parametrize("write", ["to_parquet", "arrow"])
def test_a_range_as_an_index_of_pandas_is_refused(name: str, write: str, tmp_path: Path) -> None:
    rows = {"topic": ["t"] * 3, "partition": [0] * 3, "value": list("abc")}
    frame = pd.DataFrame(rows, index=pd.RangeIndex(5, 8, name=name))
    path = tmp_path / ("a.parquet" if write == "to_parquet" else "a.arrow")
    if write == "to_parquet":
        frame.to_parquet(path)
    else:
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(ValueError, match=f"the index '{name}' is a range.*reset_index"):
        kafkajit.import_files(path, tmp_path / "logs").apply()
    frame.reset_index().to_parquet(path.with_suffix(".parquet"))
    kafkajit.import_files(path.with_suffix(".parquet"), tmp_path / "logs2").apply()
    frame.index.name = "row"
    frame.to_parquet(path.with_suffix(".parquet"))
    plan = kafkajit.import_files(path.with_suffix(".parquet"), tmp_path / "logs3")
    plan.apply()
    assert plan.left_out.columns == {"row"}


def test_pandas_integers_that_became_doubles(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"topic": "t", "partition": [0.0, 0.0], "offset": [5.0, 7.0], "value": "v"}
    )
    table.to_parquet(tmp_path / "a.parquet", index=False)
    table.to_csv(tmp_path / "b.csv", index=False)
    table.to_json(tmp_path / "c.jsonl", orient="records", lines=True)
    for name in ("a.parquet", "b.csv", "c.jsonl"):
        plan = kafkajit.import_files(tmp_path / name, tmp_path / "logs")
        assert str(plan) == "t-0: 2 records, offsets 5 to 7"
    table["offset"] = [5.0, math.nan]
    table.to_parquet(tmp_path / "a.parquet", index=False)
    with pytest.raises(ValueError, match=r"a\.parquet, row 2: column 'offset': every record needs"):
        str(kafkajit.import_files(tmp_path / "a.parquet", tmp_path / "logs"))


def test_an_index_of_pandas_is_named(tmp_path: Path) -> None:
    pd.DataFrame({"value": ["v"]}, index=[7]).to_csv(tmp_path / "a.csv")
    plan = kafkajit.import_files(tmp_path / "a.csv", tmp_path / "logs", topic="t", partitions=1)
    assert str(plan).splitlines()[1] == "columns that are not imported: ''"


def test_records_of_a_json_array_have_a_remedy(tmp_path: Path) -> None:
    for name, options in (("a.json", {}), ("b.json", {"indent": 2})):
        frame().to_json(tmp_path / name, orient="records", **options)
        with pytest.raises(ValueError, match=rf"{name}, line 1: .*jq -c"):
            imported(tmp_path / name, tmp_path, **OPTIONS)
