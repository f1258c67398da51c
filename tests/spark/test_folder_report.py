"""A report that Spark takes has the figures of the one that this process takes."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import pytest
from corpus import DATA, REPOSITORY
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from report_documents import differences
from scanning import write_partition

import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.report.take import ALL, HEADERS, SAMPLE, ReportOptions, take
from kafkajit.spark import folder_report, report

FOLDERS = ["v2", "old", "damaged", "internal", "tiered", "written"]


def figures(document: dict[str, Any]) -> dict[str, Any]:
    """A document without measured times."""
    found: dict[str, Any] = json.loads(json.dumps(document))
    assert found.pop("seconds") > 0
    for topic in found["topics"]:
        for encoding in topic["savings"]["encodings"]:
            assert encoding.pop("encodeSeconds") >= 0
            assert encoding.pop("decodeSeconds") >= 0
    return found


def check(spark: SparkSession, *paths: str, depth: str) -> None:
    """Compare the two, figure by figure."""
    there = figures(report(spark, *paths, depth=depth))
    # At the same time: compaction writes when a tombstone expires, into batches that it compresses.
    here = figures(take(ReportOptions(paths, depth=depth, now=there["madeAt"])))
    assert [*differences(there, here)] == []


@pytest.fixture
def _small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions of several segments are cut, and topics are merged of several pieces."""
    monkeypatch.setattr(folder_report, "_LEAST_SHARE", 1)
    monkeypatch.setattr(folder_report, "_MOST_SHARE", 12 << 20)


@pytest.mark.parametrize("depth", [HEADERS, SAMPLE, ALL])
def test_the_sample_has_the_same_report(spark: SparkSession, depth: str) -> None:
    check(spark, kt.SAMPLE, depth=depth)


@pytest.mark.usefixtures("_small_tasks")
@pytest.mark.parametrize("folder", FOLDERS)
def test_any_folder_has_the_same_report(spark: SparkSession, folder: str) -> None:
    check(spark, str(DATA / folder), depth=HEADERS)


@pytest.mark.usefixtures("_small_tasks")
@pytest.mark.parametrize("folder", ["old", pytest.param("v2", marks=pytest.mark.thorough)])
def test_records_of_several_folders_have_the_same_report(spark: SparkSession, folder: str) -> None:
    check(spark, str(DATA / "internal"), str(DATA / folder), kt.SAMPLE, depth=ALL)


def test_the_page_s_example_gives_what_it_says(spark: SparkSession) -> None:
    del spark  # the example uses the session that is there
    text = (REPOSITORY / "docs" / "report.md").read_text()
    test = doctest.DocTestParser().get_doctest(text, {}, "report.md", "report.md", 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_topic_is_chosen(spark: SparkSession) -> None:
    found = report(spark, kt.SAMPLE, topics=["orders"], depth=HEADERS)
    assert [topic["topic"] for topic in found["topics"]] == ["orders"]


def test_a_folder_without_a_byte_has_a_report(spark: SparkSession, tmp_path: Path) -> None:
    write_partition(tmp_path, {5: b""})
    check(spark, str(tmp_path), depth=SAMPLE)


def test_a_broken_task_names_the_file_and_the_problem(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_partition(tmp_path, {0: kt.batch([kt.Record()])})
    log = folder / f"{0:020}.log"
    run = folder_report.SparkRunner.run

    def without_the_log(self: Any, tasks: Any) -> Any:
        planned = list(tasks)
        log.unlink()  # as retention does, behind the listing
        return run(self, planned)

    monkeypatch.setattr(folder_report.SparkRunner, "run", without_the_log)
    with pytest.raises(PythonException, match=f"No such file or directory: .*{log}") as raised:
        report(spark, str(tmp_path), depth=HEADERS)
    assert "Traceback" not in str(raised.value)


class _Failing:
    """A task with an error that has no path."""

    cost = 1
    path = "/kafka/orders-0/00000000000000000000.log"

    def run(self) -> None:
        raise OSError("the disk is gone")


def test_an_error_without_a_path_gets_one() -> None:
    with pytest.raises(RuntimeError, match=f"{_Failing.path}: OSError: the disk is gone"):
        folder_report._piece_of(_Failing())


def test_a_depth_and_a_path_are_needed(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="the depth is one of headers, sample, all, not 'deep'"):
        report(spark, kt.SAMPLE, depth="deep")
    with pytest.raises(ValueError, match="no path is given"):
        report(spark)


def test_the_command_has_the_same_figures(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    del spark  # the command uses the session that is there
    words = ["report", "--format", "json", "--quick", "sample:damaged"]
    documents = []
    for more in ([], ["--spark"], ["--spark", "local[2]"]):
        assert main([*words, *more]) == 1  # it has segments that overlap
        documents.append(figures(json.loads(capsys.readouterr().out)))
        assert documents[-1].pop("madeAt") > 0
    assert [*differences(documents[1], documents[0])] == []
    assert [*differences(documents[2], documents[0])] == []


def test_the_command_s_errors_are_one_line(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del spark
    assert main(["report", "--spark", str(tmp_path / "missing")]) == 1
    assert capsys.readouterr().err == f"kafkajit report: there is nothing at {tmp_path}/missing\n"
