"""kafkajit info: what a folder of logs holds, on one screen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import data
import pytest
from scanning import write_partition
from terminal import Terminal, command, environment

import kafkajit.testing as kt
from kafkajit.cli import main

Info = Callable[..., list[str]]
LOG = kt.batch([kt.Record(key=b"k", value=b"v")] * 3, codec="zstd")


@pytest.fixture
def info(capsys: pytest.CaptureFixture[str]) -> Info:
    def run(*arguments: object) -> list[str]:
        assert main(["info", *map(str, arguments)]) == 0
        return capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "kafka"
    write_partition(root, {0: LOG}, "orders-0")
    write_partition(root, {0: LOG, 3: b""}, "orders-1")
    write_partition(root, {0: LOG * 1}, "a.topic.with.a.long.name.as.teams.like.to.have.them-0")
    (root / "meta.properties").write_bytes(b"version=1\nnode.id=4\ncluster.id=c\n")
    (root / "orders-1" / "leader-epoch-checkpoint").write_bytes(b"0\n0\n")
    return root


def test_topics_are_listed_by_size(root: Path, info: Info) -> None:
    assert info(root) == [
        f"{root}: 3 partitions, 291 bytes, broker 4 of cluster c",
        "2 topics, 3 partitions, 4 segments, 291 bytes, and 37 bytes beside them",
        "",
        "topic                                                parts       size  offsets"
        "     newest record  codecs",
        "orders                                                   2  194 bytes        6"
        "  2023-11-14 22:13  zstd",
        "a.topic.with.a.long.name.as.teams.like.to.have.them      1   97 bytes        3"
        "  2023-11-14 22:13  zstd",
    ]


def test_one_topic_is_listed_by_partition(root: Path, info: Info) -> None:
    assert info(root, "--topic", "orders")[2:] == [
        "",
        "topic orders",
        "partition  segs      size  start  end     newest record  codecs",
        "        0     1  97 bytes      0    3  2023-11-14 22:13  zstd",
        "        1     2  97 bytes      0    3  2023-11-14 22:13  zstd",
    ]


def test_a_segment_has_its_facts(root: Path, info: Info) -> None:
    path = root / "orders-0" / f"{0:020}.log"
    (root / "orders-0" / f"{0:020}.index").write_bytes(kt.offset_index([(2, 99)]))
    assert info(path) == [
        f"{path}: 97 bytes",
        "batches    1, of 97 bytes (median) to 97 bytes",
        "records    3, in a batch 3 (median) to 3",
        "offsets    0 to 2, 0 missing",
        "timestamps 2023-11-14 22:13:20 to 2023-11-14 22:13:20, CreateTime (1)",
        "formats    v2 (1)",
        "codecs     zstd (1 batch, 97 bytes)",
        "producers  0; 0 batches of transactions, 0 markers",
        "indexes    .index 8 bytes",
        "warning    entry 0: its position is past the log's end",
    ]


def test_damage_is_named_on_stderr_beside_the_figures(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root / "orders-0" / f"{0:020}.log"
    path.write_bytes(LOG + b"\xff" * 100)
    for place, named in ((root, path.parent), (path, path)):
        assert main(["info", str(place)]) == 1
        out, err = capsys.readouterr()
        assert err.startswith(f"kafkajit info: {named}: CorruptRecordError: ")
        assert err.endswith(" at position 97\n")
        assert err.count("\n") == 1
        assert "CorruptRecordError" not in out
        assert main(["info", "--format", "json", str(place)]) == 1
        out, err = capsys.readouterr()
        assert "CorruptRecordError" in out
        assert err.count("\n") == 1


def test_partitions_that_wait_are_listed(root: Path, info: Info) -> None:
    id_ = "0123456789abcdef0123456789abcdef"
    for kind in ("delete", "future", "stray"):
        write_partition(root, {0: LOG}, f"orders-7.{id_}-{kind}")
    lines = info(root)
    assert lines[2:6] == [
        "3 leftovers of deletions, moves and compactions: 291 bytes",
        f"{root}/orders-7.{id_}-delete: 97 bytes, a deleted partition whose folder is still there",
        f"{root}/orders-7.{id_}-future: 97 bytes, a move between log folders that has not finished",
        f"{root}/orders-7.{id_}-stray: 97 bytes, a partition that its broker no longer has",
    ]
    (line,) = info("--format", "json", root)
    assert json.loads(line)["waiting"][2] == {
        "path": f"{root}/orders-7.{id_}-stray",
        "topic": "orders",
        "partition": 7,
        "bytes": 97,
        "kind": "stray",
        "meaning": "a partition that its broker no longer has",
    }


def test_leftovers_are_told(root: Path, info: Info) -> None:
    (root / "orders-0" / f"{0:020}.log.deleted").write_bytes(b"123")
    assert info(root)[2] == "1 leftover of deletions, moves and compactions: 3 bytes"


def test_json_has_every_partition(root: Path, info: Info) -> None:
    (line,) = info(root, "--format", "json")
    topics = {topic["topic"]: topic for topic in json.loads(line)["topics"]}
    assert [one["endOffset"] for one in topics["orders"]["eachPartition"]] == [3, 3]
    (line,) = info(root / "orders-0" / f"{0:020}.log", "--format", "json")
    assert json.loads(line)["records"] == 3


def test_lines_fit_a_terminal(root: Path) -> None:
    segment = str(root / "orders-0" / f"{0:020}.log")
    for place in (str(root), segment, "sample:orders-0"):
        with Terminal(command("info", place), environment()) as terminal:
            code, shown = terminal.wait()
        assert code == 0
        _, *lines = shown.replace("\r", "").splitlines()  # the first one has the path
        assert max(map(len, lines)) <= 80, shown


def test_headings_are_bold_on_a_terminal(root: Path) -> None:
    with Terminal(command("info", str(root)), environment(NO_COLOR="")) as terminal:
        code, shown = terminal.wait()
    assert code == 0
    (heading,) = [line for line in shown.splitlines() if "newest record" in line]
    assert heading.startswith("\x1b[1mtopic ")
    assert heading.rstrip("\r").endswith("codecs\x1b[0m")


def test_tiered_segments_are_shown_too(info: Info) -> None:
    assert any("orders" in line for line in info(data.objects() / "local-storage" / "remote"))


def test_a_path_without_logs_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", str(tmp_path)]) == 1
    assert "no segments" in capsys.readouterr().err


def test_segments_that_overlap_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--format", "json", "sample:damaged"]) == 1
    captured = capsys.readouterr()
    one, other = json.loads(captured.out)["topics"][0]["eachPartition"]
    (overlap,) = other["overlaps"]
    assert one["overlaps"] == []
    assert overlap["path"].endswith("refunds-1/00000000000000000004.log")
    assert overlap["problem"] == (
        "it is read from offset 6 on, because a broker serves segments before it up to there"
    )
    assert captured.err == f"kafkajit info: {overlap['path']}: {overlap['problem']}\n"
