from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from exporting import records_in

from kafkajit.cli import main


def test_what_export_wrote_is_imported_with_apply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, logs = str(tmp_path / "files"), str(tmp_path / "logs")
    by = ["--partition-by", "topic,partition"]
    assert main(["export", "sample:orders-0", "-o", files, "--to", "avro", *by, "--quiet"]) == 0
    assert main(["import", files, logs]) == 2
    assert capsys.readouterr().out == (
        "orders-0: 25 records, offsets 0 to 26\n"
        f"Nothing was changed. To do it: kafkajit import --apply {files} {logs}\n"
    )
    assert not (tmp_path / "logs").exists()
    small = ["--config", "segment.bytes=1000", "--batch-size", "300"]
    assert main(["import", "--apply", *small, files, logs]) == 0
    assert len(records_in(tmp_path / "logs")["orders-0"]) == 25
    assert len(list((tmp_path / "logs" / "orders-0").glob("*.log"))) > 1
    capsys.readouterr()
    assert main(["import", "--apply", files, logs]) == 1
    assert "has a log of orders-0" in capsys.readouterr().err


def test_json_has_every_partition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text("key,value,topic,partition\na,1,x,0\nb,2,x,1\nc,3,x,1\n")
    words = ["import", "--format", "json", str(tmp_path / "rows.csv"), str(tmp_path / "logs")]
    assert main(words) == 2
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "command": "import",
        "applied": False,
        "partitions": [
            {
                "topic": "x",
                "partition": number,
                "records": 1 + number,
                "firstOffset": 0,
                "lastOffset": number,
                "openTransactions": [],
            }
            for number in (0, 1)
        ],
        "errors": [],
        "leftOut": {"columns": [], "files": [], "damagedRows": {}, "controlRows": {}},
    }
    assert main(["import", "--apply", "--quiet", *words[3:]]) == 0
    assert capsys.readouterr().out == "2 partitions, 3 records imported\n"


def test_columns_are_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text("id,payload,ts,more\n7,hello,1767225600000,x\n")
    words = ["--topic", "orders", "--partitions", "1", "--key-column", "id", "--timestamp-column"]
    words += ["ts", "--value-column", "payload", str(tmp_path / "rows.csv"), str(tmp_path / "logs")]
    assert main(["import", "--apply", "--quiet", *words]) == 2
    assert "columns that are not imported: more" in capsys.readouterr().err
    (row,) = records_in(tmp_path / "logs")["orders-0"]
    assert (row["key"], row["value"], row["timestamp"]) == (b"7", b"hello", 1_767_225_600_000)


def test_the_exit_code_is_0_only_if_all_was_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.csv").write_text("topic,partition,value\nx,0,v\n")
    words = [str(files), str(tmp_path / "logs")]
    assert main(["import", *words]) == 2
    assert main(["import", "--apply", *words]) == 0
    assert capsys.readouterr().err == ""
    (files / "_more.csv").write_text("topic,partition,value\nx,1,v\n")
    (files / "a.csv").write_text("topic,partition,value,meta_a,meta_b\nx,0,v,1,2\n")
    assert main(["import", "--apply", str(files), str(tmp_path / "b")]) == 2
    shown = capsys.readouterr()
    assert shown.out == "x-0: 1 record, offset 0\n"
    assert shown.err == (
        "kafkajit import: columns that are not imported: meta_a, meta_b\n"
        f"kafkajit import: files that are not imported: {files / '_more.csv'}\n"
    )
    (files / "_more.csv").unlink()
    words = ["import", "--apply", "--ignore-column", "meta_*", str(files), str(tmp_path / "c")]
    assert main(words) == 0
    assert capsys.readouterr().err == ""


def test_json_has_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("topic,partition,value,corruption,z\nx,0,v,,1\n,,,{},\n")
    words = ["import", "--apply", "--format", "json", str(tmp_path / "a.csv"), str(tmp_path / "b")]
    assert main(words) == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out)["leftOut"] == {
        "columns": ["z"],
        "files": [],
        "damagedRows": {str(tmp_path / "a.csv"): 1},
        "controlRows": {},
    }
    assert "1 row of damage" in shown.err


def test_an_error_is_one_line_with_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_text('{"value":1}\n{"value":}\n')
    words = ["--topic", "x", "--partitions", "1", str(tmp_path / "a.jsonl"), str(tmp_path / "b")]
    assert main(["import", "--apply", *words]) == 1
    assert capsys.readouterr().err == (
        f"kafkajit import: {tmp_path / 'a.jsonl'}, line 2: expected a value, found }}, byte 9\n"
    )
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("config", ["path=/x", "topic=x", "partitions=7", "batch.size=9", "s"])
def test_a_config_is_one_of_kafkas_topics(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.csv").write_text("key,value\na,1\n")
    words = ["import", "--apply", "--topic", "t", "--partitions", "1", "--config", config]
    with pytest.raises(SystemExit) if "=" not in config else nullcontext():
        assert main([*words, str(tmp_path / "rows.csv"), str(tmp_path / "logs")]) == 1
        assert f"topics have no config '{config.partition('=')[0]}'" in capsys.readouterr().err
    assert not (tmp_path / "logs").exists()
