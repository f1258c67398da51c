"""A quick look has the offsets, the newest record and the codecs that reading all would find."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanning import by_folder, write_partition

import kafkajit
import kafkajit.testing as kt
from kafkajit.log import segment_end
from kafkajit.report.info import info


@by_folder
@pytest.mark.parametrize("small", [0, 1 << 30], ids=["by index", "whole"])
def test_the_ends_are_those_of_the_log(
    folder: Path, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_end, "_SMALL", small)
    found = info([str(folder)])
    (topic,) = found["topics"]
    (partition,) = topic["eachPartition"]
    log = kafkajit.Log(folder)
    assert partition["startOffset"] == log.segments[0].base_offset
    assert partition["endOffset"] == log.end_offset
    assert partition["segments"] == len(log.segments)
    assert partition["bytes"] == topic["bytes"] == found["totals"]["bytes"]
    assert partition["problem"] is None


def test_a_log_may_start_in_an_empty_last_segment(tmp_path: Path) -> None:
    log = kt.batch([kt.Record(value=b"v")] * 3)
    write_partition(tmp_path, {0: log, 100: b""})
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 90\n")
    (topic,) = info([str(tmp_path)])["topics"]
    (partition,) = topic["eachPartition"]
    assert (partition["startOffset"], partition["endOffset"]) == (90, 100)


def test_an_empty_last_segment_leaves_the_end_to_the_one_before(tmp_path: Path) -> None:
    log = kt.batch([kt.Record(value=b"v")] * 3, codec="zstd", max_timestamp=1_700_000_000_007)
    (topic,) = info([str(write_partition(tmp_path, {0: log, 3: b""}))])["topics"]
    (partition,) = topic["eachPartition"]
    assert (partition["endOffset"], partition["codecs"]) == (3, ["zstd"])
    assert partition["lastTimestamp"] == 1_700_000_000_007


@pytest.mark.parametrize("tail", [b"", b"\xff" * 100])
def test_the_newest_record_is_not_a_marker(tmp_path: Path, tail: bytes) -> None:
    log = kt.batch([kt.Record(value=b"v")], base_timestamp=0, producer_id=7, is_transactional=True)
    log += kt.control_batch(1, base_offset=1, producer_id=7, base_timestamp=9_000)
    (topic,) = info([str(write_partition(tmp_path, {0: log + tail}))])["topics"]
    assert topic["lastTimestamp"] == topic["eachPartition"][0]["lastTimestamp"] == 0


def test_a_damaged_end_is_a_problem_and_no_error(tmp_path: Path) -> None:
    log = kt.batch([kt.Record(value=b"v")]) + b"\xff" * 100
    (topic,) = info([str(write_partition(tmp_path, {0: log}))])["topics"]
    (partition,) = topic["eachPartition"]
    assert partition["endOffset"] == 1
    assert "position 69" in partition["problem"]


def test_partitions_are_added_up_by_topic(tmp_path: Path) -> None:
    log = kt.batch([kt.Record(value=b"v")] * 2)
    for folder in ("orders-0", "orders-1", "payments-0"):
        write_partition(tmp_path, {0: log}, folder)
    found = info([str(tmp_path)])
    assert [
        (topic["topic"], topic["partitions"], topic["offsets"], topic["bytes"])
        for topic in found["topics"]
    ] == [("orders", 2, 4, 2 * len(log)), ("payments", 1, 2, len(log))]
    assert found["totals"]["partitions"] == 3


def test_offsets_are_counted_from_the_log_s_start(tmp_path: Path) -> None:
    log = kt.batch([kt.Record(value=b"v")], base_offset=7)
    (topic,) = info([str(write_partition(tmp_path, {5: log}))])["topics"]
    assert (topic["offsets"], topic["endOffsets"]) == (3, 8)


@pytest.mark.parametrize("behind", [b"", kt.batch([kt.Record()], base_offset=2)])
def test_an_end_that_a_segment_cannot_have_is_a_problem(tmp_path: Path, behind: bytes) -> None:
    wrong = (1 << 37 | 1).to_bytes(8, "big") + kt.batch([kt.Record()])[8:]
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(kt.batch([kt.Record()]) + wrong + behind)
    (partition,) = info([str(tmp_path)])["topics"][0]["eachPartition"]
    assert partition["endOffset"] == (3 if behind else 1)
    assert partition["problem"] is not None
