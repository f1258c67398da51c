from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import data
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus import rows_of

import kafkajit
import kafkajit.testing as kt
from asv_bench.benchmarks.tiered_objects import TOPIC_ID, write_segment
from kafkajit.cli import main

OTHER_ID = "pUM3BMsVQk2fe-klgEgLLA"


def test_a_line_for_each_partition_and_none_for_old_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", "sample:", "--topic", "orders", "-o", str(tmp_path / "out"), "--to", "csv"]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("orders-0: 25 records, offsets 0 to 26, 1 file, ")
    assert main(words) == 0
    assert capsys.readouterr().out == "orders-0: no new records from offset 27 on\n"


def test_damage_is_reported_on_stderr_and_by_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", "sample:damaged/refunds-0", "-o", str(tmp_path / "out"), "--to", "csv"]
    assert main(words) == 1
    assert "Record is corrupt" in capsys.readouterr().err
    assert main([*words, "--mode", "dropmalformed"]) == 2
    shown = capsys.readouterr()
    assert "5 records" in shown.out
    assert shown.err.startswith("kafkajit export: ")


@pytest.mark.parametrize("to", ["jsonl", "csv", "arrow"])
def test_stdout_gets_the_records_alone(to: str) -> None:
    command = [sys.executable, "-m", "kafkajit.cli", "export", "sample:orders-0", "-o", "-"]
    run = subprocess.run([*command, "--to", to], capture_output=True, check=True)
    wanted = kafkajit.read_records("sample:orders-0/00000000000000000000.log")
    keys = [row["key"].decode() for row in rows_of(wanted) if row["controlType"] is None]
    if to == "arrow":
        found = [
            key.decode() for key in pa.ipc.open_stream(run.stdout).read_all()["key"].to_pylist()
        ]
    elif to == "jsonl":
        found = [json.loads(line)["key"] for line in run.stdout.splitlines()]
    else:
        found = [line.split(",")[5].strip('"') for line in run.stdout.decode().splitlines()[1:]]
    assert found == keys
    assert run.stderr == b""


def exported(*words: object) -> pa.Table:
    """The rows of a Parquet file that the command writes."""
    *places, out = words
    assert main(["export", *map(str, places), "-o", str(out)]) == 0
    return pq.read_table(out)


def test_an_encrypted_bucket_is_exported_with_its_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = data.objects() / "aiven-mixed"
    bucket = folder / "remote" / "tier"
    keys = [
        f"--private-key={path.name.partition('.')[0]}={path}"
        for path in (data.objects() / "keys").rglob("*.private.pem")
    ]
    both = exported(bucket, folder / "logs" / "orders-0", *keys, tmp_path / "both.parquet")
    assert both.equals(exported(folder / "logs" / "orders-0", tmp_path / "local.parquet"))
    assert main(["export", str(bucket), "-o", str(tmp_path / "none.parquet")]) == 1
    assert "--private-key first=FILE" in capsys.readouterr().err
    assert not (tmp_path / "none.parquet").exists()


def test_the_id_chooses_one_of_two_topics_of_one_name(tmp_path: Path) -> None:
    for id_, value in ((TOPIC_ID, b"new"), (OTHER_ID, b"old")):
        log = kt.batch([kt.Record(value=value)])
        write_segment(tmp_path / "tier" / f"orders-{id_}" / "0", 0, log, end_offset=0)
    for id_, value in ((TOPIC_ID, b"new"), (OTHER_ID, b"old")):
        found = exported(tmp_path / "tier", f"--topic-id={id_}", tmp_path / f"{id_}.parquet")
        assert found["value"].to_pylist() == [value]


def test_a_framing_is_as_for_kafkalog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample:typed/shipments-0", "--schemas", "auto"]
    named = exported(*words, "--framing", "confluent", tmp_path / "named.parquet")
    assert named.equals(exported(*words, tmp_path / "auto.parquet"))
    assert named["value"][0]["carrier"].as_py()
    out = str(tmp_path / "bare.parquet")
    assert main(["export", *words, "--framing", "bare", "-o", out]) == 1
    assert "Error deserializing VALUE for partition shipments-0" in capsys.readouterr().err
    assert main(["export", *words, "--framing", "other", "-o", out]) == 1
    assert "option framing: unknown value 'other'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "out"], "the format of {0}/out is not known: pass --to"),
        (["-o", "-", "--to", "parquet"], "the format on stdout is one of csv, jsonl, arrow"),
        (["-o", "a.csv", "--partition-by", "date"], "--partition-by needs a folder"),
        (["-o", "a.csv", "--starting-offset", "1"], "--starting-offset is for one partition"),
        (["-o", "a.avro", "--encoding", "base64"], "base64 is only for csv and jsonl"),
        (["-o", "a.csv", "--columns", "ofset"], "unknown column 'ofset'"),
        (["-o", "a.csv", "--codec", "lz4"], "unknown codec of csv 'lz4'"),
        (["-o", "a.csv", "--topic", "nothing"], "there are no segments of nothing at"),
    ],
)
def test_wrong_options_are_one_line(
    words: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", "sample:orders-0", *words]) == 1
    assert message.format(tmp_path) in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
