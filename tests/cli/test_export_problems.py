"""kafkajit export of folders of which a part cannot be read, or is left out."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from scanning import write_partition

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main

LOG = kt.batch([kt.Record(key=b"k", value=b"v")] * 3)
DAMAGED = LOG[:-1] + b"\xff" + kt.batch([kt.Record(value=b"v")], base_offset=3)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "kafka"
    for name in ("orders-0", "orders-1", "payments-0"):
        write_partition(root, {0: LOG}, name)
    return root


def exported(root: Path, out: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The lines on stderr, without their beginning."""
    code = main(["export", str(root), "-o", str(out), "--to", "parquet", *words])
    lines = capsys.readouterr().err.splitlines()
    assert code == 1
    return [line.removeprefix("kafkajit export: ") for line in lines]


def records_in(out: Path) -> dict[str, int]:
    return {
        path.name.rpartition("-")[0]: pq.read_metadata(path).num_rows for path in out.glob("*.p*")
    }


def test_a_damaged_partition_does_not_stop_the_others(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = root / "orders-1" / f"{0:020}.log"
    log.write_bytes(DAMAGED)
    out = tmp_path / "out"
    (line,) = exported(root, out, capsys)
    assert str(log) in line
    assert line.endswith(": export with mode DROPMALFORMED to leave damage out")
    assert records_in(out) == {"orders-0": 3, "payments-0": 3}
    with pytest.raises(kafkajit.CorruptRecordError):
        kafkajit.export(str(root), tmp_path / "other", to="parquet")
    log.write_bytes(LOG)
    assert main(["export", str(root), "-o", str(out), "--to", "parquet"]) == 0
    assert records_in(out) == {"orders-0": 3, "orders-1": 3, "payments-0": 3}


def test_a_single_file_is_written_whole_or_not_at_all(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "orders-1" / f"{0:020}.log").write_bytes(DAMAGED)
    (line,) = exported(root, tmp_path / "all.parquet", capsys)
    assert "orders-1" in line
    assert not (tmp_path / "all.parquet").exists()


def test_what_cannot_be_listed_is_named_and_the_others_are_exported(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "gone-0").symlink_to(root / "nowhere")
    write_partition(root, {0: b""}, "fifos-0")
    os.mkfifo(root / "fifos-0" / f"{5:020}.log")
    empty = tmp_path / "empty"
    empty.mkdir()
    out = tmp_path / "out"
    lines = exported(root, out, capsys, str(empty))
    assert [
        next(word for word in ("gone-0", "fifos-0", "empty") if word in one) for one in lines
    ] == [
        "gone-0",
        "fifos-0",
        "empty",
    ]
    assert set(records_in(out)) == {"orders-0", "orders-1", "payments-0"}
    with pytest.raises(OSError, match="is a FIFO, not a file"):
        kafkajit.export(root, tmp_path / "other", to="parquet")
    with pytest.raises(FileNotFoundError, match=f"no segments .* at {empty}: "):
        kafkajit.export([root / "orders-0", empty], tmp_path / "other", to="parquet")
    assert not (tmp_path / "other").exists()


def test_internal_topics_are_named_once_and_are_no_problem(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("__x-0", "__consumer_offsets-1"):
        write_partition(root, {0: LOG}, name)
    assert main(["export", str(root), "-o", str(tmp_path / "out"), "--to", "parquet"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "kafkajit export: left out, because internal topics are exported only if --topic names "
        "them: __consumer_offsets, __x",
    ]
    for words in (["--topic", "__x", str(root)], [str(root / "__x-0")]):
        out = tmp_path / f"out-{len(words)}-{words[-1][-2:]}"
        assert main(["export", *words, "-o", str(out), "--to", "parquet"]) == 0
        assert capsys.readouterr().err == ""


def test_both_names_are_exported(root: Path, tmp_path: Path) -> None:
    result = kafkajit.export(
        root, tmp_path / "out", to="csv", topics="payments", partitions=["orders-1"]
    )
    assert [str(one).partition(":")[0] for one in result.partitions] == ["orders-1", "payments-0"]


@pytest.mark.parametrize("names", [{"topics": "paymets"}, {"partitions": ["orders-2"]}])
def test_a_name_without_segments_is_refused_before_anything_is_written(
    names: dict[str, str | list[str]], root: Path, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError, match=r"there are no segments of .*: (did|orders has)"):
        kafkajit.export(root, tmp_path / "out", to="csv", **names)
    with pytest.raises(FileNotFoundError, match="which startingOffsets or endingOffsets names"):
        kafkajit.export(root, tmp_path / "out", to="csv", ending_offsets={"ordres": {"0": 1}})
    assert not (tmp_path / "out").exists()
