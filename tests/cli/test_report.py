"""kafkajit report: one page, or the figures that it is drawn from."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from scanning import write_partition

import kafkajit.testing as kt
from kafkajit.cli import main

Report = Callable[..., tuple[str, str]]
LOG = kt.batch([kt.Record(key=b"k", value=b"v")] * 3)


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Report:
    def run(*arguments: object) -> tuple[str, str]:
        """The output and the lines on stderr, without those that name damage."""
        code = main(["report", *map(str, arguments)])
        captured = capsys.readouterr()
        lines = captured.err.splitlines(keepends=True)
        others = [line for line in lines if not line.startswith("kafkajit report: ")]
        assert code == int(len(others) < len(lines))
        return captured.out, "".join(others)

    return run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "kafka"
    write_partition(root, {0: LOG}, "orders-0")
    write_partition(root, {0: LOG + b"\xff" * 100}, "payments-0")
    return root


def test_figures_come_as_json(root: Path, report: Report) -> None:
    out, err = report("--format", "json", root)
    found = json.loads(out)
    assert (found["paths"], found["depth"]) == ([str(root)], "sample")
    assert found["totals"]["records"] == 6
    assert err == ""


def test_damage_is_named_and_the_code_is_1_once_the_report_is_written(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.json"
    assert main(["report", "--format", "json", "-o", str(output), str(root)]) == 1
    damage, summary = capsys.readouterr().err.splitlines()
    log = root / "payments-0" / f"{0:020}.log"
    assert damage.startswith(f"kafkajit report: {log}: CorruptRecordError: Found record size -1 ")
    assert damage.endswith(f" at position {len(LOG)}")
    assert summary.endswith("1 finding, 1 of damage")
    (found,) = json.loads(output.read_text())["trouble"]
    assert found["severity"] == "damage"
    log.write_bytes(LOG)
    assert main(["report", "--format", "json", "--force", "-o", str(output), str(root)]) == 0


@pytest.mark.parametrize(("option", "depth"), [("--deep", "all"), ("--quick", "headers")])
def test_the_depth_is_chosen(option: str, depth: str, root: Path, report: Report) -> None:
    assert json.loads(report("--format", "json", option, root)[0])["depth"] == depth


def test_a_topic_is_chosen(root: Path, report: Report) -> None:
    found = json.loads(report("--format", "json", "--topic", "orders", root)[0])
    assert [topic["topic"] for topic in found["topics"]] == ["orders"]


def test_a_file_is_written_and_summed_up_in_a_line(
    root: Path, report: Report, tmp_path: Path
) -> None:
    output = tmp_path / "report.json"
    out, err = report("--format", "json", "-o", output, root)
    assert out == ""
    assert (
        err
        == f"{output}: 2 topics, 2 partitions, {2 * len(LOG) + 100} bytes, 1 finding, 1 of damage\n"
    )
    assert json.loads(output.read_text())["version"] == 1
    assert list(tmp_path.glob(".*")) == []


def test_a_page_is_written_by_default(
    root: Path, report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, err = report(root)
    assert err.startswith("report.html: 2 topics, ")
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert main(["report", str(root)]) == 1
    assert (tmp_path / "report.html").read_text() == page
    report("--force", root)
    assert (tmp_path / "report.html").read_text() != page


def test_an_earlier_report_is_compared(root: Path, report: Report, tmp_path: Path) -> None:
    earlier, page = tmp_path / "monday.json", tmp_path / "page.html"
    report("--format", "json", "-o", earlier, "--topic", "orders", root)
    report("--compare", earlier, "-o", page, root)
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_a_place_without_room_for_a_file_is_named_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place, words in (
        (tmp_path, f"name a file in this folder: {tmp_path}"),
        (tmp_path / "no" / "r.html", f"there is no folder {tmp_path}/no: make it"),
    ):
        assert main(["report", "-o", str(place), str(tmp_path / "nothing")]) == 1
        assert words in capsys.readouterr().err


def test_a_pipe_or_a_device_is_written_to_and_not_replaced(
    root: Path, report: Report, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
        report("--format", "json", "--quick", "-o", pipe, root)
        assert json.loads(reader.read())["depth"] == "headers"
    assert pipe.is_fifo()


STRANGE = {
    "an object": "{}",
    "a list": "[]",
    "a number": "1",
    "no JSON": "no JSON",
    "deep": "[" * 100_000,
    "a version to come": '{"version": 2}',
    "no topics": '{"version": 1}',
    "topics of another kind": (
        '{"version": 1, "madeAt": 1, "topics": 3, "trouble": [], "totals": {}}'
    ),
    "a topic without a name": (
        '{"version": 1, "madeAt": 1, "topics": [{"name": {}}], "trouble": [], "totals": {}}'
    ),
    "trouble of another kind": (
        '{"version": 1, "madeAt": 1, "topics": [], "trouble": [{"kind": []}], "totals": {}}'
    ),
}


@pytest.mark.parametrize("content", STRANGE.values(), ids=STRANGE)
def test_a_file_that_is_no_report_is_refused(
    content: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = tmp_path / "monday.json"
    earlier.write_text(content)
    assert main(["report", "--compare", str(earlier), str(root)]) == 1
    assert f"{earlier} is not a report of this version" in capsys.readouterr().err


def test_json_is_not_compared(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--format", "json", "--compare", "x", str(root)]) == 1
    assert "--compare is for a page" in capsys.readouterr().err


def test_a_path_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["report"], ["report", "--spark"], ["report", "--spark", "local[2]"]):
        assert main(words) == 1
        assert capsys.readouterr().err.startswith("kafkajit report: no path is given: name folders")


@pytest.mark.parametrize("option", [["--conf", "spark.driver.memory=1g"], ["--verbose"]])
def test_options_of_spark_need_spark(
    option: list[str], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *option, str(root)]) == 1
    assert f"{option[0]} is for Spark: add --spark" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "spark", "paths"),
    [
        (["--spark", "/kafka"], "local[*]", ["/kafka"]),
        (["--spark", "/kafka", "/more"], "local[*]", ["/kafka", "/more"]),
        (["--spark", "local[2]", "/kafka"], "local[2]", ["/kafka"]),
        (["--spark", "spark://host:7077", "/kafka"], "spark://host:7077", ["/kafka"]),
        (["--spark", "s3://bucket/kafka"], "local[*]", ["s3://bucket/kafka"]),
        (["/kafka", "--spark"], "local[*]", ["/kafka"]),
        (["/kafka", "--spark", "sc://host"], "sc://host", ["/kafka"]),
        (["--spark", "--quick", "/kafka"], "local[*]", ["/kafka"]),
        (["/kafka", "--spark", "/more"], "local[*]", ["/kafka", "/more"]),
        (["/kafka"], None, ["/kafka"]),
    ],
)
def test_a_word_behind_spark_is_a_master_or_a_path(
    words: list[str], spark: str | None, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[argparse.Namespace] = []

    def taken(options: argparse.Namespace) -> dict[str, object]:
        seen.append(options)
        return {"trouble": []}

    monkeypatch.setattr("kafkajit.cli.report._taken", taken)
    assert main(["report", "--format", "json", *words]) == 0
    assert (seen[0].spark, sorted(seen[0].paths)) == (spark, paths)
