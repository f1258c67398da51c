from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus import DATA, NO_JIT
from exporting import COLUMNS, append, exported, records_in, table_of
from killing import killed_at

import kafkajit
import kafkajit.testing as kt
from kafkajit.scan.export.round_files import OpenFile

FORMATS = ("parquet", "arrow", "csv", "jsonl", "avro")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    append(tmp_path / "logs" / "orders-0", range(500))
    append(tmp_path / "logs" / "orders-1", range(3))
    return tmp_path / "logs"


# Without compilation the large values of v2 take minutes, and each other format ten seconds.
@pytest.mark.parametrize("folder", ["old"] if NO_JIT else ["v2", "old"])
@pytest.mark.parametrize("to", ["avro", "csv"] if NO_JIT else FORMATS)
def test_what_brokers_wrote_comes_back_by_import(to: str, folder: str, tmp_path: Path) -> None:
    root = DATA / folder
    wanted = records_in(root)
    kafkajit.export(
        root,
        tmp_path / "files",
        to=to,
        topics={name.rpartition("-")[0] for name in wanted},
        encoding="base64" if to in ("csv", "jsonl") else "text",
        file_size="64k",
    )
    config = {"max.message.bytes": 1 << 30}
    kafkajit.import_files(tmp_path / "files", tmp_path / "back", **config).apply()
    assert records_in(tmp_path / "back") == wanted


@pytest.mark.parametrize("to", FORMATS)
def test_folders_by_topic_partition_and_date_come_back(to: str, logs: Path, tmp_path: Path) -> None:
    files = tmp_path / "files"
    by = ("topic", "partition", "date")
    result = kafkajit.export(logs, files, to=to, partition_by=by, file_size="5k")
    dates = {path.parent.name for path in files.rglob(f"*.{to}")}
    assert dates == {"date=2025-12-31", "date=2026-01-01"}
    assert result.records == 503
    kafkajit.import_files(files, tmp_path / "back").apply()
    assert records_in(tmp_path / "back") == records_in(logs)


def test_a_single_file_has_all_partitions(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.parquet"
    kafkajit.export(logs, out)
    rows = pq.read_table(out)
    assert rows.num_rows == 503
    place = json.loads(pq.ParquetFile(out).metadata.metadata[b"kafkajit.offsets"])
    assert place == {"orders": {"0": [0, 500], "1": [0, 3]}}
    with pytest.raises(FileExistsError, match=r"all\.parquet exists: remove it"):
        kafkajit.export(logs, out)
    assert [path.name for path in tmp_path.glob("all*")] == ["all.parquet"]


def test_a_later_run_adds_only_new_records(logs: Path, tmp_path: Path) -> None:
    files = tmp_path / "files"
    kafkajit.export(logs, files, to="parquet")
    before = {path: path.read_bytes() for path in files.glob("*.parquet")}
    assert kafkajit.export(logs, files, to="parquet").files == []
    append(logs / "orders-0", range(500, 520))
    again = kafkajit.export(logs, files, to="parquet")
    assert again.files == ["orders-0-00000000000000000500.parquet"]
    assert all(path.read_bytes() == content for path, content in before.items())
    assert exported(files) == {"orders-0": list(range(520)), "orders-1": [0, 1, 2]}


def test_names_and_bytes_are_the_same_every_time(logs: Path, tmp_path: Path) -> None:
    for to in FORMATS:
        for name in ("a", "b"):
            kafkajit.export(logs, tmp_path / name / to, to=to, file_size="3k")
    a, b = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in files}
        for name in ("a", "b")
        for files in [[*(tmp_path / name).rglob("orders-0-*")]]
    )
    assert len(a) > 10
    assert a == b


def test_files_end_at_the_size_that_is_asked_for(logs: Path, tmp_path: Path) -> None:
    kafkajit.export(logs, tmp_path, to="csv", file_size="2k", columns=["offset", "value"])
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("orders-0*.csv"))]
    assert len(sizes) > 1
    assert all(2 << 10 <= size < 8 << 10 for size in sizes[:-1])


_EXPORT = """
import sys, kafkajit
import kafkajit.scan.export.exporter, kafkajit.reader
print("ready", flush=True)
kafkajit.export(sys.argv[1], sys.argv[2], to="parquet", partition_by="topic,date", file_size="4k")
"""


def test_a_run_that_is_killed_goes_on_without_losing_or_repeating_a_record(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    logs, files = tmp_path / "logs", tmp_path / "files"
    append(logs / "orders-0", range(4000))
    chance = random.Random(7)
    is_thorough = request.config.getoption("--thorough")
    kills, seen = 0, 0
    command = [sys.executable, "-c", _EXPORT, str(logs), str(files)]
    for _ in range(40 if is_thorough else 6):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            run.stdout.readline()
            time.sleep(chance.uniform(0.05, 0.4))
            run.send_signal(signal.SIGKILL)
            kills += run.wait() == -signal.SIGKILL
        found = sorted(exported(files).get("orders-0", []))
        assert found == sorted(set(found))
        assert len(found) >= seen
        seen = len(found)
        if is_thorough and seen == 4000:
            shutil.rmtree(files)
            seen = 0
    assert kills
    kafkajit.export(logs, files, to="parquet", partition_by="topic,date", file_size="4k")
    assert sorted(exported(files)["orders-0"]) == list(range(4000))
    assert not [path for path in (files / "_kafkajit").iterdir() if "@" in path.name]


@pytest.mark.skipif(NO_JIT, reason="the same files are changed")
def test_a_run_that_is_killed_anywhere_twice_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    logs, files = tmp_path / "logs", tmp_path / "files"
    append(logs / "orders-0", range(500))
    flush = OpenFile.flush

    def flushed(*arguments: Any) -> None:
        flush(*arguments)
        sys.audit("flushed")  # half of the file is written

    monkeypatch.setattr(OpenFile, "flush", flushed)
    monkeypatch.setattr("os.fsync", lambda _: None)

    def run() -> None:
        kafkajit.export(logs, files, to="parquet", partition_by="topic,date", file_size="4k")

    run()
    names = {path.relative_to(files) for path in files.rglob("*.parquet")}
    assert len(names) > 3
    is_thorough = request.config.getoption("--thorough")
    for first, second in product(range(1000), range(20) if is_thorough else [3]):
        shutil.rmtree(files)
        if not killed_at(first, run, also="flushed"):
            break
        found = exported(files).get("orders-0", [])
        killed_at(second, run, also="flushed")
        again = exported(files).get("orders-0", [])
        assert set(found) <= set(again)
        assert len(again) == len(set(again))
        run()
        assert sorted(exported(files)["orders-0"]) == list(range(500))
        assert {path.relative_to(files) for path in files.rglob("*.parquet")} == names
    assert first > 20


def broken(logs: Path) -> Path:
    """A log whose third batch is damaged."""
    folder = logs / "broken-0"
    folder.mkdir(parents=True)
    batches = [kt.batch([kt.Record(value=b"v")] * 2, base_offset=n) for n in (0, 2, 6)]
    content = [*batches[:2], kt.broken("wrong crc", base_offset=4), batches[2]]
    (folder / f"{0:020}.log").write_bytes(b"".join(content))
    return folder


SECOND = 2 * len(kt.batch([kt.Record(value=b"v")] * 2))  # the end of the second batch


def test_failfast_stops_at_damage_and_lenient_modes_report_it(tmp_path: Path) -> None:
    log = broken(tmp_path / "logs")
    with pytest.raises(
        kafkajit.CorruptRecordError, match=r"\.log: export with mode DROPMALFORMED to leave damage"
    ):
        kafkajit.export(log, tmp_path / "files", to="parquet")
    dropped = kafkajit.export(log, tmp_path / "files", to="parquet", mode="DROPMALFORMED")
    assert exported(tmp_path / "files") == {"broken-0": [0, 1, 2, 3, 6, 7]}
    assert [gap["position"] for gap in dropped.gaps] == [SECOND]
    told = kafkajit.export(log, tmp_path / "told", to="parquet", mode="PERMISSIVE")
    reasons = table_of(tmp_path / "told")["corruption"].drop_null().to_pylist()
    assert reasons == told.gaps == dropped.gaps
    assert told.records == 6


def test_damage_between_two_runs_is_reported_once(tmp_path: Path) -> None:
    log = broken(tmp_path / "logs") / f"{0:020}.log"
    whole = log.read_bytes()
    log.write_bytes(whole[:SECOND])
    first = kafkajit.export(log.parent, tmp_path / "f", to="parquet", mode="DROPMALFORMED")
    assert (first.records, first.gaps) == (4, [])
    log.write_bytes(whole)
    second = kafkajit.export(log.parent, tmp_path / "f", to="parquet", mode="DROPMALFORMED")
    assert (second.records, len(second.gaps)) == (2, 1)
    third = kafkajit.export(log.parent, tmp_path / "f", to="parquet", mode="DROPMALFORMED")
    assert (third.records, third.gaps) == (0, [])


def test_segments_that_overlap_are_exported_as_a_consumer_gets_them(tmp_path: Path) -> None:
    for mode in ("failfast", "dropmalformed", "permissive"):
        out = tmp_path / mode
        result = kafkajit.export("sample:damaged/refunds-1", out, to="parquet", mode=mode)
        assert table_of(out)["offset"].to_pylist() == list(range(8))
        assert result.gaps == []
    with pytest.raises(ValueError, match="an export has each offset once"):
        kafkajit.export("sample:damaged/refunds-1", tmp_path / "b", to="csv", overlaps="all")


def test_limits_and_columns(logs: Path, tmp_path: Path) -> None:
    result = kafkajit.export(
        logs,
        tmp_path / "files",
        to="parquet",
        partitions=["orders-0"],
        columns="offset,key",
        starting_offsets={"orders": {"0": 100}},
        ending_offsets={"orders": {"0": 103}},
    )
    assert result.files == ["orders-0-00000000000000000100.parquet"]
    rows = table_of(tmp_path / "files").to_pylist()
    assert rows == [
        {"offset": n, "key": None if n % 10 == 0 else b"k%d" % n} for n in (100, 101, 102)
    ]


def test_typed_values_are_structs(tmp_path: Path) -> None:
    kafkajit.export("sample:typed", tmp_path / "p", to="parquet", schemas="auto")
    rows = table_of(tmp_path / "p")
    assert pa.types.is_struct(rows.schema.field("value").type)
    kafkajit.export("sample:typed", tmp_path / "a.avro", schemas="auto")
    with (tmp_path / "a.avro").open("rb") as file:
        in_avro = list(fastavro.reader(file))
    assert [row["value"] for row in in_avro] == rows["value"].to_pylist()
    kafkajit.export("sample:typed", tmp_path / "a.jsonl", schemas="auto")
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [line["value"] and line["value"]["carrier"] for line in lines] == [
        value and value["carrier"] for value in rows["value"].to_pylist()
    ]


def test_bytes_that_are_not_text_are_refused_with_their_place(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "bytes-3"
    folder.mkdir(parents=True)
    log = kt.batch([kt.Record(value=b"a"), kt.Record(value=b"\xff")], base_offset=7)
    (folder / f"{7:020}.log").write_bytes(log)
    with pytest.raises(
        kafkajit.KafkaJitError,
        match="value is not UTF-8 text at topic bytes, partition 3, offset 8: pass --encoding",
    ):
        kafkajit.export(folder, tmp_path / "a.csv")
    assert not list(tmp_path.glob("a*"))


def test_a_partition_that_is_found_twice_is_refused(logs: Path, tmp_path: Path) -> None:
    shutil.copytree(logs, tmp_path / "copy")
    with pytest.raises(ValueError, match="orders-0 exists twice"):
        kafkajit.export([logs, tmp_path / "copy"], tmp_path / "files", to="csv")


# A broker with such a folder in its log.dirs does not start.
@pytest.mark.parametrize("out", ["", "out", "2026/out", "orders-0", "../link"])
def test_no_folder_is_made_in_a_brokers(out: str, logs: Path, tmp_path: Path) -> None:
    (logs / "meta.properties").touch()
    (tmp_path / "link").symlink_to(logs / "new")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=f"cannot export to .*: {logs} is a broker's folder"):
        kafkajit.export(logs, logs / out, to="csv")
    assert sorted(tmp_path.rglob("*")) == before
    kafkajit.export(logs, logs / "orders.csv")  # a file does no harm
    kafkajit.export(logs, tmp_path / "out", to="csv")


def test_markers_are_exported_if_their_column_is(tmp_path: Path) -> None:
    kafkajit.export("sample:orders-0", tmp_path / "some", to="parquet")
    kafkajit.export("sample:orders-0", tmp_path / "all", to="parquet", columns="all")
    some, all_ = table_of(tmp_path / "some"), table_of(tmp_path / "all")
    markers = all_["controlType"].drop_null().to_pylist()
    assert markers
    assert all_.num_rows == some.num_rows + len(markers)


def test_parquet_files_have_their_origin_and_statistics(logs: Path, tmp_path: Path) -> None:
    kafkajit.export(logs, tmp_path, to="parquet", partitions=["orders-0"], columns=COLUMNS)
    file = pq.ParquetFile(next(tmp_path.glob("*.parquet")))
    metadata = file.metadata.metadata
    assert metadata[b"kafkajit.topic"] == b"orders"
    assert json.loads(metadata[b"kafkajit.offsets"]) == {"orders": {"0": [0, 500]}}
    offset = file.schema_arrow.get_field_index("offset")
    column = file.metadata.row_group(0).column(offset)
    assert (column.statistics.min, column.statistics.max) == (0, 499)
    assert file.schema_arrow.field("topic").type == pa.string()


@pytest.mark.parametrize("to", ["jsonl", "parquet", "avro", "csv"])
def test_values_that_do_not_fit_their_schema_never_come_back_as_null(
    to: str, tmp_path: Path
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    values = [b'{"a":1}', b"not json"]
    content = kt.batch([kt.Record(b"k", value) for value in values])
    (folder / f"{0:020}.log").write_bytes(content)
    schema = '{"type":"object","properties":{"a":{"type":"integer"}}}'
    out = tmp_path / "out"
    kafkajit.export(folder, out, to=to, mode="PERMISSIVE", value_schema=schema)
    plan = kafkajit.import_files(out, tmp_path / "back")
    with pytest.raises(ValueError, match="could not decode it: export rawValue, too"):
        plan.apply()
    assert not (tmp_path / "back").exists()


def test_parquet_has_the_checksums_of_its_pages(tmp_path: Path) -> None:
    """A bit that flips later is an error for readers that compare them, as `import` does."""
    value = b"kafka" * 1000
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(kt.batch([kt.Record(value=value)]))
    kafkajit.export(tmp_path / "orders-0", tmp_path / "o.parquet", codec="none")
    content = (tmp_path / "o.parquet").read_bytes()
    (tmp_path / "o.parquet").write_bytes(content.replace(b"kafka", b"Kafka", 1))
    with pytest.raises(ValueError, match="CRC checksum verification failed"):
        kafkajit.import_files(tmp_path / "o.parquet", tmp_path / "back").apply()
