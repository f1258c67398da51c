from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from exporting import append, records_in
from pyarrow.fs import LocalFileSystem

import kafkajit
from kafkajit.produce.inputs.input_files import input_files
from kafkajit.produce.inputs.opened import opened_file, opened_stream

LINE = '{"topic":"t","partition":0,"value":"v"}\n'


def folder_with(folder: Path, names: list[str]) -> Path:
    """A folder with a record in each of these files."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LINE)
    return folder


def found(place: Path, **options: str) -> tuple[list[str], list[str]]:
    """The names of the files to import, and of those that are named as skipped."""
    files = input_files(str(place), **options)
    return [file.name for file in files.files], [Path(path).name for path in files.skipped]


# A name in a folder: whether it is read, and whether it is named if it is not.
NAMES = [
    ("a.jsonl", True, False),
    ("sub/b.jsonl", True, False),
    ("topic=_x/_x-0-00000000000000000000.jsonl", True, False),
    (".x-0-00000000000000000007.jsonl", True, False),
    ("_x-0-00000000000000000007-damage.csv.gz", True, False),
    ("_x-0-00000000000000000007-d00012.csv.gz", True, False),
    ("_x.jsonl", False, True),
    (".x.jsonl", False, True),
    ("_temporary/0/part-0.jsonl", False, True),
    ("_README", False, True),
    ("a.jsonl.tmp", False, True),
    ("topic=a.tmp/x.jsonl", True, False),
    ("topic=_a/date=2025-11-05/x.jsonl", True, False),
    ("part-0.jsonl.inprogress", False, True),
    ("_kafkajit/_x-0@3", False, True),
    ("_kafkajit/_x-0-00000000000000000000.jsonl", False, True),
    ("_kafkajit/_x-0.json", False, False),
    ("_kafkajit/_x-0.json.tmp", False, False),
    ("_kafkajit/.lock", False, False),
    ("_SUCCESS", False, False),
    ("_metadata", False, False),
    ("_common_metadata", False, False),
    ("_committed_123", False, False),
    (".part-0.jsonl.crc", False, False),
    (".DS_Store", False, False),
]


@pytest.mark.whole
@pytest.mark.parametrize(("name", "is_read", "is_named"), NAMES)
def test_names_that_are_left_out_of_a_folder(
    name: str, is_read: bool, is_named: bool, tmp_path: Path
) -> None:
    files, skipped = found(folder_with(tmp_path, ["z.jsonl", name]))
    short = name.rpartition("/")[2]
    assert files == (
        [*sorted([short, "z.jsonl"], key=lambda n: n == "z.jsonl")] if is_read else ["z.jsonl"]
    )
    assert skipped == ([short] if is_named else [])


def test_an_empty_hidden_file_holds_no_records(tmp_path: Path) -> None:
    folder_with(tmp_path, ["a.jsonl"])
    (tmp_path / "_other").touch()
    assert found(tmp_path) == (["a.jsonl"], [])


def test_a_star_does_not_match_hidden_names(tmp_path: Path) -> None:
    folder_with(
        tmp_path, ["a.jsonl", "_b.jsonl", "_kafkajit/t-0.json", "_kafkajit/t-0@1", "_t/c.jsonl"]
    )
    assert found(tmp_path / "*") == (["a.jsonl"], ["_b.jsonl", "t-0@1", "c.jsonl"])
    assert found(tmp_path / "_*.jsonl") == (["_b.jsonl"], [])


def test_a_hidden_file_is_read_if_it_is_named_unless_it_is_a_journals(tmp_path: Path) -> None:
    folder_with(tmp_path, ["_b.jsonl", "_kafkajit/t-0@1"])
    assert found(tmp_path / "_b.jsonl") == (["_b.jsonl"], [])
    for place in (tmp_path / "_kafkajit", tmp_path / "_kafkajit" / "t-0@1"):
        with pytest.raises(FileNotFoundError, match=r"no files in .*_kafkajit.*: .*t-0@1 are left"):
            input_files(str(place), "jsonl")


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("_delta_log/00000000000000000000.json", "Delta"),
        ("part/.hoodie/hoodie.properties", "Hudi"),
        ("metadata/v1.metadata.json", "Iceberg"),
    ],
)
def test_a_table_with_a_log_of_its_own_is_refused(name: str, table: str, tmp_path: Path) -> None:
    folder_with(tmp_path, ["a.jsonl", name])
    with pytest.raises(ValueError, match=f"has a table of {table}, whose log decides which of its"):
        input_files(str(tmp_path))


def test_a_name_without_a_format_is_an_error(tmp_path: Path) -> None:
    folder_with(tmp_path, ["a.jsonl", "README.md"])
    with pytest.raises(ValueError, match=r"README\.md is not known by its name: pass --from"):
        input_files(str(tmp_path))
    assert found(tmp_path, format_="jsonl") == (["README.md", "a.jsonl"], [])


@pytest.mark.skipif(os.name == "nt", reason="has no FIFOs")
def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    folder_with(tmp_path, ["a.jsonl"])
    os.mkfifo(tmp_path / "b.jsonl")
    (tmp_path / "c.jsonl").symlink_to(tmp_path / "nothing")
    assert found(tmp_path) == (["a.jsonl"], ["b.jsonl", "c.jsonl"])
    with pytest.raises((ValueError, OSError), match=r"b\.jsonl"):
        input_files(str(tmp_path / "b.jsonl"))


@pytest.mark.skipif(os.name == "nt", reason="has no FIFOs")
def test_a_fifo_that_takes_a_files_place_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(LINE)
    with opened_stream(LocalFileSystem(), str(tmp_path / "a.jsonl")) as file:
        assert file.read() == LINE.encode()
    (tmp_path / "a.jsonl").unlink()
    os.mkfifo(tmp_path / "a.jsonl")
    for opened in (opened_stream, opened_file):
        with pytest.raises(OSError, match=r"a\.jsonl is a FIFO"):
            opened(LocalFileSystem(), str(tmp_path / "a.jsonl"))


def test_links_do_not_repeat_files(tmp_path: Path) -> None:
    folder_with(tmp_path / "in", ["a.jsonl", "sub/b.jsonl"])
    folder_with(tmp_path / "out", ["c.jsonl"])
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "again").symlink_to(tmp_path / "in" / "sub")
    (tmp_path / "in" / "link.jsonl").symlink_to("a.jsonl")
    (tmp_path / "in" / "other").symlink_to(tmp_path / "out")
    assert found(tmp_path / "in") == (["a.jsonl", "c.jsonl", "b.jsonl"], [])
    with pytest.raises(ValueError, match=r"a\.jsonl and .*a\.jsonl are one file"):
        kafkajit.import_files([tmp_path / "in", tmp_path / "in" / "a.jsonl"], tmp_path / "logs")


def test_a_link_that_gives_files_another_place_is_named(tmp_path: Path) -> None:
    """It is not read, as its records would come twice; and not passed over in silence."""
    folder_with(tmp_path, ["topic=x/partition=0/a.jsonl"])
    (tmp_path / "topic=y").symlink_to("topic=x")
    (tmp_path / "latest").symlink_to("topic=x")
    (tmp_path / "topic=z").mkdir()
    (tmp_path / "topic=z" / "b.jsonl").symlink_to("../topic=x/partition=0/a.jsonl")
    (tmp_path / "topic=x" / "partition=0" / "c=d.jsonl").symlink_to("a.jsonl")
    (tmp_path / "topic=x" / "partition=0" / "all").symlink_to(tmp_path)
    (tmp_path / "run=7").mkdir()
    folder_with(tmp_path, ["run=7/c.jsonl"])
    (tmp_path / "run=latest").symlink_to("run=7")
    assert found(tmp_path) == (["c.jsonl", "a.jsonl"], ["topic=y", "b.jsonl"])


def test_a_path_with_two_topics_is_refused(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "partition=3", ["topic=x/topic=y/partition=0/a.jsonl"])
    named: dict[str, Any] = {"topic": "z", "partitions": 1}
    with pytest.raises(
        ValueError, match=r"a\.jsonl is in topic=x and in y: rename a folder, or ig"
    ):
        kafkajit.import_files(folder, tmp_path / "logs")
    kafkajit.import_files(folder, tmp_path / "logs", ignore_columns="topic", **named)
    kafkajit.import_files(folder / "topic=x" / "topic=y", tmp_path / "logs")


@pytest.mark.parametrize("is_planned", [False, True])
@pytest.mark.parametrize("change", ["written", "replaced"])
def test_a_file_that_changes_is_an_error(change: str, is_planned: bool, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"value":"a"}\n')
    plan = kafkajit.import_files(file, tmp_path / "logs", topic="t", partitions=1)
    if is_planned:
        assert [part.records for part in plan.partitions] == [1]
    if change == "replaced":
        file.rename(tmp_path / "b.jsonl")
    file.write_text('{"value":"a"}\n{"value":"b"}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl has changed since it was listed"):
        plan.apply()
    assert not (tmp_path / "logs" / "t-0").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="names there are UTF-8")
def test_a_name_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    folder_with(tmp_path, ["a.jsonl"])
    os.rename(tmp_path / "a.jsonl", os.fsencode(tmp_path) + b"/b\xff.jsonl")  # noqa: PTH104
    folder_with(tmp_path, ["a.jsonl"])
    assert found(tmp_path) == (["a.jsonl"], ["b\\xff.jsonl"])


def test_topics_that_begin_with_an_underscore_come_back(tmp_path: Path) -> None:
    topics = ["_events", "__consumer_offsets"]
    for topic in topics:
        append(tmp_path / "logs" / f"{topic}-0", range(50))
    for to in ("parquet", "csv"):
        for by in ((), ("topic", "partition"), ("date",)):
            files = tmp_path / f"{to}-{len(by)}"
            kafkajit.export(tmp_path / "logs", files, to=to, topics=topics, partition_by=by)
            plan = kafkajit.import_files(files, tmp_path / f"back-{to}-{len(by)}")
            plan.apply()
            assert records_in(tmp_path / f"back-{to}-{len(by)}") == records_in(tmp_path / "logs")
            assert not plan.left_out


def test_the_files_of_an_interrupted_export_are_named(tmp_path: Path) -> None:
    append(tmp_path / "logs" / "orders-0", range(50))
    kafkajit.export(tmp_path / "logs", tmp_path / "files", to="parquet")
    (file,) = (tmp_path / "files").glob("*.parquet")
    append(tmp_path / "logs" / "orders-0", range(50, 60))
    kafkajit.export(tmp_path / "logs", tmp_path / "files", to="parquet")
    (late,) = set((tmp_path / "files").glob("*.parquet")) - {file}
    # As if the machine had stopped before the last file got its name.
    late.rename(tmp_path / "files" / "_kafkajit" / "orders-0@1")
    plan = kafkajit.import_files(tmp_path / "files", tmp_path / "back")
    assert [part.records for part in plan.partitions] == [50]
    assert plan.left_out.files == [str(tmp_path / "files" / "_kafkajit" / "orders-0@1")]


def test_columns_in_a_path_are_those_of_the_file_or_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "topic=t" / "partition=3" / "year=2026"
    folder_with(folder, ["a.csv"])
    (folder / "a.csv").write_text("value\nv\n")
    plan = kafkajit.import_files(tmp_path / "topic=t", tmp_path / "logs")
    assert str(plan.partitions[0]) == "t-3: 1 record, offset 0"
    assert plan.left_out.columns == {"year"}
    (folder / "a.csv").write_text("topic,value\nt,v\nx,v\n")
    with pytest.raises(
        ValueError, match=r"a\.csv, line 3: column 'topic': x is not that of the fol"
    ):
        kafkajit.import_files(tmp_path / "topic=t", tmp_path / "logs").apply()
    (tmp_path / "partition=x").mkdir()
    (tmp_path / "partition=x" / "b.csv").write_text("topic,value\nt,v\n")
    with pytest.raises(
        ValueError, match=r"b\.csv: the folder partition=x does not have the number"
    ):
        kafkajit.import_files(tmp_path / "partition=x", tmp_path / "logs").apply()


def test_a_file_and_a_link_to_it_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("key,value\na,b\n")
    (tmp_path / "link.csv").symlink_to("a.csv")
    with pytest.raises(ValueError, match=r"a\.csv and .*link\.csv are one file: its records would"):
        kafkajit.import_files(f"{tmp_path}/*.csv", tmp_path / "logs", topic="t", partitions=1)


@pytest.mark.parametrize("columns", [["timestamp", "value"], ["timestamp", "offset", "value"]])
def test_parts_by_date_need_their_offsets(columns: list[str], tmp_path: Path) -> None:
    append(tmp_path / "logs" / "t-0", range(200))
    out, back = tmp_path / "out", tmp_path / "back"
    kafkajit.export(tmp_path / "logs", out, to="parquet", columns=columns, partition_by="date")
    named: dict[str, Any] = {"topic": "t", "partitions": 1}
    if "offset" in columns:
        kafkajit.import_files(out, back, **named).apply()
        return
    with pytest.raises(ValueError, match="only the column offset tells their order"):
        kafkajit.import_files(out, back, **named)
    kafkajit.import_files(out, back, ignore_columns="date", **named).apply()


def test_two_exports_with_the_same_names_are_not_parts_of_one(tmp_path: Path) -> None:
    for name, date in (("a", "2026-01-01"), ("b", "2026-01-02")):
        folder_with(tmp_path / name, [f"date={date}/t-0-{0:020}.jsonl"])
    plan = kafkajit.import_files(tmp_path, tmp_path / "back", topic="t", partitions=1)
    assert [part.records for part in plan.partitions] == [2]


def test_a_date_in_a_path_is_named_if_there_is_no_timestamp(tmp_path: Path) -> None:
    append(tmp_path / "logs" / "t-0", range(20))
    for columns in (["offset", "value"], ["offset", "value", "timestamp"]):
        out = tmp_path / str(len(columns))
        kafkajit.export(tmp_path / "logs", out, to="jsonl", columns=columns, partition_by="date")
        plan = kafkajit.import_files(out, tmp_path / "back", topic="t", partitions=1)
        assert plan.left_out.columns == ({"date"} if len(columns) == 2 else set())
