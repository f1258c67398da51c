"""Sizes of files, the space that they take, and folders that are named twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanning import write_partition

import kafkajit.testing as kt
from kafkajit.report.info import info
from kafkajit.report.take import HEADERS, ReportOptions, take

MIB = 1 << 20


def folder_with_preallocated_files(where: Path) -> Path:
    log = kt.batch([kt.Record(b"k", b"v" * 5000)])
    folder = write_partition(where, {0: log})
    for name in (f"{0:020}.index", f"{0:020}.timeindex", f"{9:020}.log.deleted"):
        with (folder / name).open("wb") as file:
            file.write(b"\1" * 4096)
            file.truncate(10 * MIB)
    return folder


def test_holes_of_preallocated_files_take_no_space(tmp_path: Path) -> None:
    folder = folder_with_preallocated_files(tmp_path)
    totals = take(ReportOptions((str(tmp_path),), depth=HEADERS))["totals"]
    (log,) = folder.glob("*.log")
    assert totals["bytes"] == totals["bytesOnDisk"] == log.stat().st_size
    assert totals["otherBytes"] == 20 * MIB
    assert 8192 <= totals["otherBytesOnDisk"] < MIB
    found = info([str(tmp_path)])["totals"]
    assert (found["otherBytes"], found["otherBytesOnDisk"]) == (
        totals["otherBytes"],
        totals["otherBytesOnDisk"],
    )
    assert 4096 <= found["leftoverBytes"] < MIB


@pytest.mark.parametrize("second", ["itself", "a link", "a link to its partition", "its partition"])
def test_a_folder_that_is_named_twice_counts_once(
    tmp_path: Path, second: str, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "logs"
    folder = folder_with_preallocated_files(root)
    (root / "gone-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    link = tmp_path / "link"
    link.symlink_to(root)
    other = {
        "itself": f"{root}/",
        "a link": str(link),
        "a link to its partition": str(link / folder.name),
        "its partition": str(folder),
    }[second]
    once = take(ReportOptions((str(root),), depth=HEADERS, now=0))
    for paths in ((str(root), other), (other, str(root))):
        twice = take(ReportOptions(paths, depth=HEADERS, now=0))
        assert twice["totals"] == once["totals"]
        assert len(twice["waiting"]) == 1
        assert len(twice["trouble"]) == len(once["trouble"])
    warned = any("not counted again" in record.getMessage() for record in caplog.records)
    assert warned == second.startswith("a link")


def test_a_link_under_another_name_is_another_partition(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: kt.batch([kt.Record(b"k", b"v")])})
    (tmp_path / "orders-1").symlink_to(folder)
    assert take(ReportOptions((str(tmp_path),), depth=HEADERS))["totals"]["partitions"] == 2


def test_a_link_to_some_segments_hides_no_others(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    logs = {n: kt.batch([kt.Record(b"k", b"v")], base_offset=n) for n in range(3)}
    folder = write_partition(root, logs)
    link = tmp_path / "link"
    link.symlink_to(root)
    one = link / folder.name / f"{0:020}.log"
    for paths in ((one, root), (root, one), (one, folder / f"{1:020}.log", folder)):
        found = take(ReportOptions(tuple(map(str, paths)), depth=HEADERS))
        assert (found["totals"]["segments"], found["totals"]["records"]) == (3, 3)
        assert info([*map(str, paths)])["totals"]["segments"] == 3


def test_copies_of_a_partition_save_nothing_and_end_at_the_highest_offset(tmp_path: Path) -> None:
    logs = kt.batch([kt.Record(b"%d" % n, b"v") for n in range(10)])
    for name in ("a", "b"):
        write_partition(tmp_path / name, {0: logs})
    document = take(ReportOptions((str(tmp_path / "a"), str(tmp_path / "b"))))
    (topic,) = document["topics"]
    assert topic["savings"]["compaction"]["records"] == 0
