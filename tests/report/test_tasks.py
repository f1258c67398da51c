"""Tasks can run anywhere: cut small and pickled, they give the report of one process."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus import DATA, NO_JIT
from hypothesis import given
from hypothesis import strategies as st
from report_documents import differences
from scanning import options_of, write_partition

import kafkajit.testing as kt
from kafkajit.report import headers, tasks
from kafkajit.report.savings import ENCODINGS
from kafkajit.report.take import ALL, HEADERS, SAMPLE, ReportOptions, take
from kafkajit.report.tasks import (
    HERE,
    OPENING,
    ReadHeaders,
    Runner,
    cut,
    encode_tasks,
    header_tasks,
)
from kafkajit.scan.partitions import find_partitions

LOG = kt.batch([kt.Record(key=b"k", value=b"v")])
NOW = 1_700_000_000_000
# The large values of v2 take long, and minutes without compilation.
LARGE = [] if NO_JIT else [pytest.param("v2", marks=pytest.mark.thorough)]
FOLDERS = [*LARGE, "old", "damaged", "internal", "tiered", "written"]


class Elsewhere:
    """Runs each task as another process would, with as small a share as can be."""

    def share(self, cost: int) -> int:
        del cost
        return 1

    def run(self, tasks: Iterable[Any]) -> Iterator[Any]:
        for task in [pickle.dumps(task) for task in tasks]:
            yield pickle.loads(pickle.dumps(pickle.loads(task).run()))


def figures(paths: tuple[str, ...], depth: str, runner: Runner) -> dict[str, Any]:
    """The document without measured times."""
    document = take(ReportOptions(paths, depth=depth, now=NOW), runner=runner)
    found: dict[str, Any] = json.loads(json.dumps(document))
    del found["seconds"]
    for topic in found["topics"]:
        for encoding in topic["savings"]["encodings"]:
            del encoding["encodeSeconds"], encoding["decodeSeconds"]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("depth", [HEADERS, ALL])
def test_small_tasks_give_the_same_report(
    folder: str, depth: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headers, "_MARK", 1000)
    paths = (str(DATA / folder),)
    found = differences(figures(paths, depth, Elsewhere()), figures(paths, depth, HERE))
    assert [*found] == []


@pytest.mark.parametrize("folder", [*LARGE, "old"])
def test_small_tasks_give_the_same_sample(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "_MARK", 100)
    monkeypatch.setattr("kafkajit.report.take._SAMPLE_BYTES", 3000)
    paths = (kt.SAMPLE, str(DATA / folder))
    found = figures(paths, SAMPLE, Elsewhere())
    assert [*differences(found, figures(paths, SAMPLE, HERE))] == []
    assert found["takenFrom"]["sample"]["records"] > 0


def tasks_of(folder: Path, share: int | None) -> list[ReadHeaders]:
    return list(header_tasks("orders", 0, find_partitions(options_of(folder)), share))


def shape(tasks: list[ReadHeaders]) -> list[tuple[bool, list[int]]]:
    """Whether each task continues the one before, and the number of segments in its runs."""
    return [(task.continues, [len(run) for run in task.runs]) for task in tasks]


def test_a_partition_is_cut_only_if_it_is_larger_than_a_share(tmp_path: Path) -> None:
    cost = len(LOG) + OPENING
    for number, segments in enumerate((1, 1, 5, 2)):
        log = {at: kt.batch([kt.Record()], base_offset=at) for at in range(segments)}
        write_partition(tmp_path, log, f"orders-{number}")
    assert shape(tasks_of(tmp_path, 100 * cost)) == [(False, [1, 1, 5, 2])]
    assert shape(tasks_of(tmp_path, 2 * cost)) == [
        (False, [1, 1]),
        (False, [2]),
        (True, [2]),
        (True, [1]),
        (False, [2]),
    ]
    # In one process nothing is cut, and progress counts partitions.
    assert shape(tasks_of(tmp_path, None)) == [(False, [each]) for each in (1, 1, 5, 2)]


@given(st.lists(st.integers(1, 20)), st.integers(1, 30))
def test_stretches_are_of_a_share_at_most(costs: list[int], share: int) -> None:
    found = list(cut(costs, share, int))
    assert [cost for stretch in found for cost in stretch] == costs
    assert all(stretch and (len(stretch) == 1 or sum(stretch) <= share) for stretch in found)
    assert list(cut(costs, None, int)) == [costs] * bool(costs)


def test_each_encoding_is_measured_once() -> None:
    (whole,) = encode_tasks("orders", [], is_cut=False)
    parts = encode_tasks("orders", [], is_cut=True)
    assert list(whole.encodings) == list(ENCODINGS)
    assert [one for task in parts for one in task.encodings] == list(ENCODINGS)
    assert len(parts) > 1


def test_a_cut_partition_has_the_offsets_of_a_whole_one(tmp_path: Path) -> None:
    log = {at: kt.batch([kt.Record()], base_offset=at) for at in range(3)}
    write_partition(tmp_path, {**log, 9: b""})
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    for runner in (HERE, Elsewhere()):
        (topic,) = figures((str(tmp_path),), HEADERS, runner)["topics"]
        (one,) = topic["eachPartition"]
        assert (one["startOffset"], one["endOffset"], one["segments"]) == (2, 9, 4)


def test_damage_that_only_records_show_is_found_elsewhere(tmp_path: Path) -> None:
    content = bytearray(LOG)
    content[-3] ^= 1
    write_partition(tmp_path, {0: bytes(content), 1: kt.batch([kt.Record()], base_offset=1)})
    found = figures((str(tmp_path),), ALL, Elsewhere())
    assert [one["kind"] for one in found["trouble"]] == ["corruption"]
    assert found == figures((str(tmp_path),), ALL, HERE)


def test_a_segment_that_has_gone_fails_a_task_elsewhere(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: LOG, 1: kt.batch([kt.Record()], base_offset=1)})
    (here,), elsewhere = tasks_of(tmp_path, None), tasks_of(tmp_path, 1)
    (folder / f"{0:020}.log").unlink()
    with pytest.raises(FileNotFoundError, match="No such file"):
        elsewhere[0].run()
    topic, _ = here.run()
    assert topic.records == 1


def test_plans_of_partitions_are_added_to_those_of_a_topic(tmp_path: Path) -> None:
    for number in range(3):
        log = {at: kt.batch([kt.Record(b"k", b"v")], base_offset=at) for at in range(4)}
        write_partition(tmp_path, log, f"orders-{number}")
    found = figures((str(tmp_path),), ALL, Elsewhere())
    (topic,) = found["topics"]
    plans = topic["savings"]["dryRuns"]
    assert (plans["partitions"], plans["compaction"]["partitions"]) == (3, 3)
    assert plans["compaction"]["records"] > 0
    assert found == figures((str(tmp_path),), ALL, HERE)


def test_parts_that_do_not_fit_into_memory_are_not_encoded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_MOST_PLAIN", 200_000)
    small = [kt.batch([kt.Record(b"k", b"v" * 9)], base_offset=at) for at in range(3)]
    large = kt.batch([kt.Record(b"k", bytes(1_000_000))], codec="zstd")
    for partition, log in enumerate((b"".join(small), large)):
        folder = tmp_path / f"orders-{partition}"
        folder.mkdir()
        (folder / f"{0:020}.log").write_bytes(log)
    (topic,) = take(ReportOptions((str(tmp_path),)))["topics"]
    assert topic["savings"]["sample"] == {"records": 3, "bytes": sum(map(len, small))}
    assert topic["savings"]["now"]["bytes"] == sum(map(len, small))
    assert topic["sample"]["records"] == 4
