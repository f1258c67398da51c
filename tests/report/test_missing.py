"""A missing segment is trouble in info and in a report, and no false alarm."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from corpus import DATA
from partitions import data, log_name, make_partition

import kafkajit.testing as kt
from kafkajit.cli import main

SEGMENTS = {0: [data(0), data(2)], 4: [data(4), data(6)], 8: [data(8), data(10)]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_partition(tmp_path / "kafka" / "orders-0", SEGMENTS)


def lost(folder: Path, base_offset: int) -> Path:
    for path in folder.glob(f"{log_name(base_offset, '')}*"):
        path.unlink()
    return folder


def info(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    code = main(["info", "--format", "json", str(path)])
    (topic,) = json.loads(capsys.readouterr().out)["topics"]
    return code, [one for partition in topic["eachPartition"] for one in partition["missing"]]


def report(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    code = main(["report", "--quick", "--format", "json", "-o", "-", str(path)])
    troubles = json.loads(capsys.readouterr().out)["trouble"]
    return code, [one for one in troubles if one["kind"] == "missing"]


def test_a_whole_log_is_no_trouble(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert info(folder, capsys) == (0, [])
    assert report(folder, capsys) == (0, [])


@pytest.mark.parametrize(("base_offset", "first", "last"), [(0, 0, 3), (4, 4, 7), (8, 8, 11)])
def test_each_segment_is_missed(
    folder: Path, base_offset: int, first: int, last: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.parent / "replication-offset-checkpoint").write_text("0\n1\norders 0 12\n")
    lost(folder, base_offset)
    for path in (folder, folder.parent):
        code, (missing,) = info(path, capsys)
        assert code == 1
        assert (missing["firstMissingOffset"], missing["lastMissingOffset"]) == (first, last)
        code, (trouble,) = report(path, capsys)
        assert code == 1
        assert (trouble["firstMissingOffset"], trouble["lastMissingOffset"]) == (first, last)
        assert trouble["severity"] == "damage"
        assert trouble["problem"] == missing["problem"]
    assert main(["info", str(folder)]) == 1
    assert missing["problem"] in capsys.readouterr().err


def test_a_compacted_log_has_a_note(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost(folder, 4)
    (folder.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 8\n")
    code, (missing,) = info(folder, capsys)
    assert (code, missing["isTrouble"]) == (0, False)
    code, (trouble,) = report(folder, capsys)
    assert (code, trouble["severity"]) == (0, "note")


def test_holes_far_inside_of_a_segment_are_found_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = [kt.batch([kt.Record()], base_offset=offset) for offset in range(600)]
    folder = make_partition(tmp_path / "kafka" / "orders-0", {0: many, 900: [data(900)]})
    assert info(folder, capsys)[0] == 1
    many = [batch for place, batch in enumerate(many) if place != 500]
    folder = make_partition(tmp_path / "compacted" / "orders-0", {0: many, 900: [data(900)]})
    assert info(folder, capsys)[0] == report(folder, capsys)[0] == 0


def test_the_configs_of_a_controller_tell_that_a_topic_is_compacted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost(folder, 4)
    shutil.copytree(
        DATA / "internal" / "__cluster_metadata-0", folder.parent / "__cluster_metadata-0"
    )
    for topic, expected in (("headers", 1), ("emptied", 0)):
        folder = folder.rename(folder.parent / f"{topic}-0")
        assert info(folder, capsys)[0] == report(folder, capsys)[0] == expected
