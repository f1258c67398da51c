"""The folder of an export: which files it renames, removes and refuses, whatever lies there."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from exporting import append, exported, records_in

import kafkajit
from kafkajit.errors import LockedError
from kafkajit.scan.export.journal import FileNames, NotAJournalError, damage_only

FIRST = f"orders-0-{0:020}.parquet"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    append(tmp_path / "logs" / "orders-0", range(50))
    append(tmp_path / "logs" / "orders-1", range(3))
    return tmp_path / "logs"


@pytest.fixture
def files(logs: Path, tmp_path: Path) -> Path:
    """An export of the logs."""
    kafkajit.export(logs, tmp_path / "files", to="parquet")
    return tmp_path / "files"


def entry_of(files: Path) -> Path:
    """The only entry of a partition's journal."""
    (entry,) = (files / "_kafkajit" / "orders-0").iterdir()
    return entry


def journal_of(files: Path) -> Any:
    return json.loads(entry_of(files).read_text())


def set_journal(place: Path, **fields: Any) -> None:
    entry_of(place).write_text(json.dumps(journal_of(place) | fields))


def test_files_that_were_committed_and_not_renamed_get_their_names(files: Path, logs: Path) -> None:
    ((written, final, _),) = journal_of(files)["files"]
    (files / final).rename(files / written)
    assert kafkajit.export(logs, files, to="parquet").files == []
    assert exported(files)["orders-0"] == list(range(50))


def test_files_that_were_linked_and_not_yet_unlinked_are_one_file(files: Path, logs: Path) -> None:
    ((written, final, _),) = journal_of(files)["files"]
    os.link(files / final, files / written)
    assert kafkajit.export(logs, files, to="parquet").files == []
    assert exported(files)["orders-0"] == list(range(50))
    assert not (files / written).exists()


def test_files_that_were_begun_are_removed_and_no_others(files: Path, logs: Path) -> None:
    begun, other = (f"_kafkajit/orders-0@{digits}" for digits in ("0123456789abcdef", "7"))
    for name in (begun, other, "_kafkajit/orders-0.json.tmp", f"sub/{FIRST}"):
        (files / name).parent.mkdir(exist_ok=True)
        (files / name).write_bytes(b"half of a file")
    set_journal(files, begun=[begun])
    assert kafkajit.export(logs, files, to="parquet").files == []
    assert not (files / begun).exists()
    assert (files / other).exists()
    assert (files / f"sub/{FIRST}").exists()
    assert (files / "_kafkajit/orders-0.json.tmp").exists()


HOSTILE = {
    "a final name outside": {"files": [["_kafkajit/orders-0@a1", "../victim/a", 1]]},
    "a written name outside": {"files": [["../victim/a", FIRST, 1]]},
    "an absolute name": {"files": [["_kafkajit/orders-0@a1", "/etc/cron.d/a", 1]]},
    "another partition's file": {"files": [["_kafkajit/orders-0@a1", f"orders-1-{0:020}.csv", 1]]},
    "a folder of other names": {"files": [["_kafkajit/orders-0@a1", f"a/{FIRST}", 1]]},
    "a parent as a folder": {"files": [["_kafkajit/orders-0@a1", f"topic=/../{FIRST}", 1]]},
    "a begun name outside": {"begun": ["../victim/a"]},
    "another's begun name": {"begun": ["_kafkajit/orders-1@a1"]},
    "a begun journal": {"begun": ["_kafkajit/orders-1.json"]},
    "numbers as names": {"files": [[1, 2, 3]]},
    "a text as an offset": {"next": "7"},
    "a version to come": {"version": 99},
    "a parent of another type": {"parent": []},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_journal_with_other_names_than_its_own_is_not_followed(
    what: str, files: Path, logs: Path, tmp_path: Path
) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "a").write_text("another's")
    (files / "_kafkajit" / "orders-0@a1").write_text("planted")
    set_journal(files, **HOSTILE[what])
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=r"orders-0/\d+-\w+\.json is not the journal of"):
        kafkajit.export(logs, files, to="parquet")
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before
    assert (tmp_path / "victim" / "a").read_text() == "another's"


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", "[" * 100_000, "null", '{"version": 1}'],
    ids=["empty", "a list", "an object", "deep", "null", "a part"],
)
def test_a_journal_of_something_else_is_not_followed(content: str, files: Path, logs: Path) -> None:
    entry_of(files).write_text(content)
    with pytest.raises(ValueError, match=r"is not the journal of this export \(.*another folder"):
        kafkajit.export(logs, files, to="parquet")


def test_a_journal_that_is_a_link_or_a_fifo_is_not_read(files: Path, logs: Path) -> None:
    path = entry_of(files)
    path.rename(files / "elsewhere")
    path.symlink_to(files / "elsewhere")
    with pytest.raises(OSError, match="because it is a link"):
        kafkajit.export(logs, files, to="parquet")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="because it is not a file"):
        kafkajit.export(logs, files, to="parquet")


def test_nothing_is_written_through_a_link(logs: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("another's")
    (tmp_path / "a" / "_kafkajit").mkdir(parents=True)
    (tmp_path / "a" / "_kafkajit" / ".lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        kafkajit.export(logs, tmp_path / "a", to="parquet")
    (tmp_path / "b" / "_kafkajit").mkdir(parents=True)
    for name in ("orders-0.json.tmp", "orders-0@1"):
        (tmp_path / "b" / "_kafkajit" / name).symlink_to(victim)
    (tmp_path / "b" / "orders-1.csv.tmp").symlink_to(victim)
    kafkajit.export(logs, tmp_path / "b", to="parquet")
    kafkajit.export(logs, tmp_path / "b" / "orders-1.csv", partitions=["orders-1"])
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "_kafkajit").symlink_to(tmp_path / "b")
    with pytest.raises(NotADirectoryError, match="_kafkajit is a link"):
        kafkajit.export(logs, tmp_path / "c", to="parquet")
    assert victim.read_text() == "another's"


def test_a_file_that_no_journal_lists_is_an_error_and_stays(logs: Path, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / FIRST).write_text("another's")
    with pytest.raises(FileExistsError, match=r"parquet exists, but no export's journal lists it"):
        kafkajit.export(logs, files, to="parquet")
    assert (files / FIRST).read_text() == "another's"
    assert [path.name for path in (files / "_kafkajit").iterdir() if "@" in path.name] == []


def test_two_exports_at_once_wait_or_write_files_of_their_own(files: Path, logs: Path) -> None:
    from kafkajit.scan.export.output_folders import output_folder

    folder = output_folder(str(files))
    with pytest.raises(LockedError, match="another export is writing to"):
        kafkajit.export(logs, files, to="parquet")
    folder.close()
    kafkajit.export(logs, files, to="parquet")


def test_two_exports_to_one_file_at_once_leave_the_first(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafkajit.scan.export import exporter

    out = tmp_path / "all.jsonl"
    (tmp_path / "all.jsonl.tmp").write_text("another's")
    rows = exporter._export_rows

    def other_first(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(exporter, "_export_rows", rows)
        kafkajit.export(logs, out, partitions=["orders-1"])
        return rows(*arguments, **named)

    monkeypatch.setattr(exporter, "_export_rows", other_first)
    with pytest.raises(FileExistsError, match=r"all\.jsonl exists: remove it"):
        kafkajit.export(logs, out)
    assert [json.loads(line)["partition"] for line in out.read_text().splitlines()] == [1, 1, 1]
    assert (tmp_path / "all.jsonl.tmp").read_text() == "another's"


def test_the_longest_topic_is_exported_and_its_files_come_back(tmp_path: Path) -> None:
    topics = ["x" * 249, "x" * 248 + "y", "z" * 210]
    for topic in topics:
        append(tmp_path / "logs" / f"{topic}-0", range(20))
    by = ("topic", "partition", "date")
    kafkajit.export(
        tmp_path / "logs", tmp_path / "files", to="jsonl", partition_by=by, codec="zstd"
    )
    assert (
        kafkajit.export(
            tmp_path / "logs", tmp_path / "files", to="jsonl", partition_by=by, codec="zstd"
        ).files
        == []
    )
    names = {path.name for path in (tmp_path / "files").rglob("*.zst")}
    assert max(map(len, names)) <= 255
    kafkajit.import_files(tmp_path / "files", tmp_path / "back").apply()
    assert records_in(tmp_path / "back") == records_in(tmp_path / "logs")


# options of the first and the second run, and the words for what differs
DIFFERENT = {
    "columns": ({}, {"columns": ["offset"]}, r"columns \['topic'"),
    "message": (
        {"value_schema": "a", "value_message": "A"},
        {"value_schema": "a", "value_message": "B"},
        "valueMessage 'A'.*; now .*valueMessage 'B'",
    ),
    "topic id": (
        {},
        {"topic_id": "Q2FtZW1iZXJ0LW9yZGVycw"},
        "topicId not given; now topicId 'Q2Ft",
    ),
    "start": (
        {"starting_offsets": {"orders": {"0": 1}}},
        {},
        r"startingOffsets \{'orders': \{'0': 1\}\}; now startingOffsets not given",
    ),
    "isolation": ({}, {"isolation_level": "read_committed"}, "now isolationLevel 'read_committed'"),
    "framing": (
        {"schemas": "auto"},
        {"schemas": "auto", "framing": "confluent"},
        "framing 'auto'; now framing 'confluent'",
    ),
    "damage": ({}, {"mode": "PERMISSIVE"}, "mode not given; now mode 'PERMISSIVE'"),
    "partitions of files": ({}, {"partition_by": "date"}, r"partitionBy \['date'\]"),
}
PROTO = 'syntax = "proto3"; message A { int32 x = 1; } message B { int32 y = 1; }'


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_run_with_other_options_is_refused_and_both_are_named(
    what: str, logs: Path, tmp_path: Path
) -> None:
    first, second, words = (
        {name: PROTO if value == "a" else value for name, value in part.items()}
        if isinstance(part, dict)
        else part
        for part in DIFFERENT[what]
    )
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    if "topic_id" in second:
        for folder in logs.iterdir():
            text = "version: 0\ntopic_id: Q2FtZW1iZXJ0LW9yZGVycw\n"
            (folder / "partition.metadata").write_text(text)
    common = {"to": "jsonl", "encoding": "base64", "mode": "DROPMALFORMED"}
    kafkajit.export(logs, tmp_path / "files", **{**common, **first})
    with pytest.raises(ValueError, match=f"has an export of orders-0 with other options .*{words}"):
        kafkajit.export(logs, tmp_path / "files", **{**common, **second})


def test_a_journal_of_an_earlier_version_is_continued(files: Path, logs: Path) -> None:
    journal = journal_of(files)
    known = ("format", "columns", "partitionBy", "encoding", "isolationLevel", "startingOffsets")
    known += ("startingTimestamp", "keySchema", "valueSchema", "schemas")
    options = {name: journal["options"][name] for name in known} | {"hasCorruption": False}
    first = {
        "version": 1,
        "options": options,
        "next": journal["next"],
        "gaps": [],
        # A bucket renames nothing; then it was copied to this folder.
        "files": [[final, final] for _, final, _ in journal["files"]],
    }
    shutil.rmtree(files / "_kafkajit" / "orders-0")
    (files / "_kafkajit" / "orders-0.json").write_text(json.dumps(first))
    append(logs / "orders-0", range(50, 60))
    kafkajit.export(logs, files, to="parquet")
    assert exported(files)["orders-0"] == list(range(60))
    assert journal_of(files)["version"] == 2


def test_an_option_that_a_journal_does_not_have_is_its_default(files: Path, logs: Path) -> None:
    journal = journal_of(files)
    del journal["options"]["framing"]
    set_journal(files, options=journal["options"])
    assert kafkajit.export(logs, files, to="parquet").files == []
    with pytest.raises(ValueError, match=r"framing 'auto'.*; now framing 'bare'"):
        kafkajit.export(logs, files, to="parquet", schemas="auto", framing="bare")


def test_what_may_differ_does(files: Path, logs: Path) -> None:
    append(logs / "orders-0", range(50, 60))
    kafkajit.export(
        logs / "orders-0",
        files,
        to="parquet",
        codec="gzip",
        level=9,
        file_size="1m",
        ending_offsets={"orders": {"0": 55}},
        check_crcs=False,
    )
    assert exported(files)["orders-0"] == list(range(55))
    (name,) = (path for path in files.iterdir() if path.name.endswith(f"{50:020}.parquet"))
    assert pq.ParquetFile(name).metadata.row_group(0).column(0).compression == "GZIP"


@pytest.mark.parametrize(
    "topic", ["x", "x" * 249, "a.b_c-d", "ü" * 120], ids=["short", "long", "odd", "two bytes each"]
)
def test_names_of_files_are_recognized_as_their_own(topic: str) -> None:
    names = FileNames(topic, 7, suffix=".csv.gz")
    final = names.final("topic=x/date=2026-01-01/", damage_only(5, 99_999))
    assert names.has_final(final)
    assert names.has_written(names.written("0a"))
    assert len(final.rpartition("/")[2].encode()) <= 255
    other = FileNames(topic, 8, suffix=".csv.gz")
    assert not other.has_final(final)
    assert not other.has_written(names.written("0a"))
    with pytest.raises(NotAJournalError):
        names.entry_in(b"\xff", "")
