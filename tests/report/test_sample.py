"""Samples are whole batches, spread evenly; their figures are those of a loop over records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanning import by_folder, options_of, write_partition

import kafkajit
import kafkajit.testing as kt
from kafkajit.report.headers import TopicFigures
from kafkajit.report.sample import Part, RecordFigures, shown, spread
from kafkajit.scan.partitions import find_partitions
from kafkajit.schema import record_schema


def parts_of(location: Path, most_bytes: int = 2**62) -> list[Part]:
    topic = TopicFigures(None, 2**62)
    for partition in find_partitions(options_of(location)):
        list(topic.read(partition))
    owners = [owner for owner, one in enumerate(topic.partitions) for _ in one.marks]
    marks = [mark for each in topic.partitions for mark in each.marks]
    return spread(marks, most_bytes, owners=owners)


def figures_of(location: Path) -> RecordFigures:
    figures = RecordFigures()
    for part in parts_of(location):
        figures.read(part)
    return figures


@given(st.lists(st.integers(1, 20), min_size=1, max_size=5), st.integers(0, 300), st.integers(1, 9))
def test_a_sample_is_of_different_parts_in_their_order(
    counts: list[int], most_bytes: int, most_parts: int
) -> None:
    marks: Any = [(number, np.arange(count + 1) * 10) for number, count in enumerate(counts)]
    found = [(part.segment, part.start) for part in spread(marks, most_bytes, most_parts)]
    assert found == sorted(set(found))
    assert 1 <= len(found) <= min(max(1, most_bytes // 10), most_parts, sum(counts))


def test_all_bytes_are_all_parts() -> None:
    marks: Any = [(None, np.array([0, 10, 25])), (None, np.array([0, 7]))]
    assert [(part.start, part.end) for part in spread(marks, 32)] == [(0, 10), (10, 25), (0, 7)]


def test_of_nothing_there_is_no_sample() -> None:
    assert spread([], 100) == []


@by_folder
def test_figures_are_those_of_the_records(folder: Path) -> None:
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.log")):
        rows += kafkajit.read_records(
            path, columns=["key", "value", "headers", "controlType"]
        ).to_pylist()
    rows = [row for row in rows if row["controlType"] is None]
    figures = figures_of(folder)
    found = figures.document()
    if not rows:
        assert found is None
        return
    assert found is not None
    keys = [row["key"] for row in rows if row["key"] is not None]
    values = [row["value"] for row in rows if row["value"] is not None]
    assert found["records"] == len(rows)
    assert found["nullKeys"] == len(rows) - len(keys)
    assert found["tombstones"] == len(rows) - len(values)
    assert found["withHeaders"] == sum(bool(row["headers"]) for row in rows)
    assert found["distinctKeys"] == len(set(keys))
    compaction = figures.compaction(figures.records)
    assert (compaction is None) == (not keys)
    if compaction is not None:
        assert compaction["records"] == len(keys) - len(set(keys))
        assert compaction["recordsError"] == 0
        assert compaction["ofRecords"] == len(keys)
        share = pytest.approx(compaction["records"] / len(keys), abs=0.0001)
        assert (compaction["leastShare"], compaction["mostShare"]) == (share, share)
    for name, fields in (("keyBytes", keys), ("valueBytes", values)):
        sizes = found[name]
        if not fields:
            assert sizes is None
            continue
        assert sizes["max"] == max(map(len, fields))
        assert sizes["mean"] == pytest.approx(sum(map(len, fields)) / len(fields), abs=0.001)
    hottest = Counter(keys).most_common(20)
    assert [row["records"] for row in found["hottestKeys"]] == [count for _, count in hottest]
    assert {row["key"] for row in found["hottestKeys"]} <= set(map(shown, keys))


def test_damaged_batches_of_a_sample_are_left_out(tmp_path: Path) -> None:
    good = kt.batch([kt.Record(value=b"v")])
    bad = bytearray(kt.batch([kt.Record(value=b"w")], base_offset=1))
    bad[-1] ^= 1
    assert figures_of(write_partition(tmp_path, {0: good + bytes(bad)})).records == 1


def test_a_long_key_is_cut() -> None:
    assert shown(b"x" * 200) == "x" * 100 + "…"
    assert shown("\u202e".encode()) == r"\u202e"


def test_a_key_in_two_partitions_is_not_superseded(tmp_path: Path) -> None:
    for number in range(3):
        keys = [b"%d" % key for key in range(100)]
        log = kt.batch([kt.Record(key, b"v") for key in keys])
        write_partition(
            tmp_path,
            {0: log + kt.batch([kt.Record(b"0", b"v")], base_offset=100)},
            f"orders-{number}",
        )
    figures = figures_of(tmp_path)
    found = figures.document()
    assert found is not None
    assert found["distinctKeys"] == 100
    compaction = figures.compaction(figures.records)
    assert compaction is not None
    assert (compaction["records"], compaction["ofRecords"]) == (3, 303)


def test_markers_and_damage_are_no_records_that_compaction_saves(tmp_path: Path) -> None:
    record = kt.batch([kt.Record(b"k", b"v" * 10)])
    damaged = bytearray(kt.batch([kt.Record(b"k", b"v" * 1000)], base_offset=1))
    damaged[-3] ^= 1
    markers = [kt.control_batch(1, base_offset=at, producer_id=at) for at in range(2, 52)]
    last = kt.batch([kt.Record(b"k", b"v" * 10)], base_offset=52)
    log = b"".join([record, bytes(damaged), *markers, last])
    figures = figures_of(write_partition(tmp_path, {0: log}))
    compaction = figures.compaction(figures.records)
    assert compaction is not None
    assert (compaction["records"], compaction["ofRecords"]) == (1, 2)
    assert compaction["bytes"] == len(record)


@pytest.mark.parametrize("keys", [3, 100, 20_000])
@pytest.mark.parametrize("times", [1, 10])
def test_the_share_that_compaction_saves_of_a_topic_is_between_those_of_a_sample(
    keys: int, times: int
) -> None:
    """Each key comes a few times at once, and again."""
    chance = np.random.default_rng(keys)
    every = np.repeat(chance.integers(0, keys, 20_000 // times), times)
    figures = RecordFigures()
    for start in range(0, every.size, 2_000):  # a tenth of the records
        some = [b"%d" % key for key in every[start : start + 200].tolist()]
        rows = {"key": some, "value": some, "headers": [[]] * len(some)}
        schema = record_schema(["key", "value", "headers"])
        figures.add(pa.RecordBatch.from_pydict(rows, schema), 0)
    found = figures.compaction(every.size)
    assert found is not None
    share = 1 - np.unique(every).size / every.size
    assert found["leastShare"] <= share <= found["mostShare"]
    assert found["mostShare"] - found["leastShare"] > 0.001
