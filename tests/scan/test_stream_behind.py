"""How far a stream is behind: offsets, bytes of log and segments."""

from __future__ import annotations

from pathlib import Path

import pytest
from partitions import data, log_name
from streaming import Query, append, started


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two partitions: one with two segments of 20 and 5 records, one with 3 records."""
    append(tmp_path / "orders-0", data(0, 10) + data(10, 10))
    append(tmp_path / "orders-0", data(20, 5), base_offset=20)
    append(tmp_path / "orders-1", data(0, 3))
    return tmp_path


def totals(query: Query) -> tuple[int, int, int]:
    metrics = query.stream.metrics()
    names = ("totalOffsetsBehindLatest", "totalBytesBehindLatest", "totalSegmentsBehindLatest")
    offsets, size, segments = (int(metrics[name]) for name in names)
    return offsets, size, segments


def test_a_new_query_is_behind_by_everything(root: Path) -> None:
    size = sum(log.stat().st_size for log in root.glob("*/*.log"))
    assert totals(started(root)) == (28, size, 3)


def test_what_the_newest_micro_batch_reads_is_not_behind(root: Path) -> None:
    query = started(root)
    query.trigger(records=13)
    assert query.stream.metrics() == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "15",
        "avgOffsetsBehindLatest": "7.5",
        "totalOffsetsBehindLatest": "15",
        "totalBytesBehindLatest": str(len(data(10, 10)) + len(data(20, 5))),
        "totalSegmentsBehindLatest": "2",
    }
    query.trigger()
    assert totals(query) == (0, 0, 0)
    append(root / "orders-0", data(25, 2), base_offset=20)
    query.trigger(records=1)
    # The batch that is read in part counts whole.
    assert totals(query) == (1, len(data(25, 2)), 1)


def test_a_query_that_starts_again_knows_how_far_it_is_behind(root: Path) -> None:
    query = started(root)
    query.trigger(records=13)
    query.restart().trigger(records=5)
    assert totals(query) == (10, len(data(10, 10)) + len(data(20, 5)), 2)


def test_a_partition_that_has_come_since_is_behind_by_everything(root: Path) -> None:
    query = started(root)
    query.trigger()
    append(root / "orders-2", data(0, 4))
    query.plan()
    assert totals(query) == (4, len(data(0, 4)), 1)


def test_a_torn_tail_is_not_behind(root: Path) -> None:
    append(root / "orders-1", data(3, 3)[:50])
    query = started(root)
    query.trigger()
    assert totals(query) == (0, 0, 0)


def test_offsets_that_are_gone_are_not_behind(root: Path) -> None:
    query = started(root, failOnDataLoss=False)
    (root / "orders-0" / log_name(0)).unlink()
    query.trigger(records=1)
    offsets, size, segments = totals(query)
    assert (offsets, segments) == (8 - 1, 2)
    assert size == sum(log.stat().st_size for log in root.glob("*/*.log"))


def test_a_segment_that_is_deleted_meanwhile_counts_as_a_whole(root: Path) -> None:
    query = started(root)
    query.trigger(records=13)
    query = query.restart()
    query.trigger(records=1)
    query.stream._followed.now[next(iter(query.stream._followed.now))]._boundaries.clear()
    (root / "orders-0" / log_name(0)).unlink()
    assert totals(query)[0] == 14


def test_without_partitions_there_are_no_metrics(tmp_path: Path) -> None:
    assert started(tmp_path).stream.metrics() == {}
