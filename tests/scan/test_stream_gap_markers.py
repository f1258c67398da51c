"""Streams over a copy in which a segment with a marker, or with the first records, comes late."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from partitions import data, log_name, marker, transactional
from streaming import append, finish, started

import kafkajit.testing as kt
from kafkajit.errors import OffsetOutOfRangeError

BOTH = pytest.mark.parametrize("fails", ["true", "false"])
ABORT, COMMIT = 0, 1


def two_transactions(first: int, second: int) -> dict[int, bytes]:
    """Records of one producer whose first transaction ends in the second segment."""
    return {
        0: transactional(0, 1) + transactional(2, 1, 2) + data(4, 1),
        5: marker(5, 1, first) + transactional(6, 1, 4) + transactional(8, 1, 6),
        10: marker(10, 1, second) + data(11, 4),
    }


@BOTH
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((COMMIT, ABORT), [*range(5), *range(11, 15)]),
        ((ABORT, COMMIT), [4, *range(6, 10), *range(11, 15)]),
    ],
)
def test_a_marker_behind_missing_offsets_does_not_decide_about_what_is_before_them(
    tmp_path: Path, fails: str, *, restarts: bool, ends: tuple[int, int], expected: list[int]
) -> None:
    folder, segments = tmp_path / "logs" / "orders-0", two_transactions(*ends)
    append(folder, segments[0])
    append(folder, segments[10], 10)
    query = started(folder.parent, isolationLevel="read_committed", failOnDataLoss=fails)
    assert query.offsets() == []
    append(folder, segments[5], 5)
    if restarts:
        query.restart()
    assert [*query.offsets(), *query.offsets()] == expected


@BOTH
def test_transactions_of_a_late_segment_are_judged(tmp_path: Path, fails: str) -> None:
    folder = tmp_path / "logs" / "orders-0"
    append(folder, data(0, 5))
    append(folder, marker(9, 1, ABORT) + data(10, 3), 9)
    query = started(folder.parent, isolationLevel="read_committed", failOnDataLoss=fails)
    assert query.offsets() == list(range(5))
    append(folder, transactional(5, 1) + transactional(7, 1, 2), 5)
    assert [*query.offsets(), *query.offsets()] == [10, 11, 12]


@BOTH
def test_the_rest_of_a_segment_that_a_copier_was_writing_is_judged(
    tmp_path: Path, fails: str
) -> None:
    folder, segments = tmp_path / "logs" / "orders-0", two_transactions(COMMIT, ABORT)
    whole = segments[0] + segments[5]
    append(folder, whole[:-10])
    append(folder, segments[10], 10)
    os.utime(folder, (1, 1))  # which a file that grows does not change
    query = started(folder.parent, isolationLevel="read_committed", failOnDataLoss=fails)
    early = query.offsets()
    append(folder, whole[-10:])
    assert [*early, *query.offsets(), *query.offsets()] == [*range(5), *range(11, 15)]


@BOTH
def test_missing_offsets_may_have_the_timestamp_at_which_a_query_starts(
    tmp_path: Path, fails: str
) -> None:
    folder = tmp_path / "logs" / "orders-0"
    for base in (0, 10):
        append(folder, data(base, 5), base)
    starting = 1_700_000_000_000 + 1000 * 7
    query = started(folder.parent, startingTimestamp=starting, failOnDataLoss=fails)
    if fails == "true":
        with pytest.raises(OffsetOutOfRangeError, match="offsets 5 to 9 are missing"):
            query.offsets()
        query.restart()
    else:
        assert query.offsets() == []
    append(folder, data(5, 5), 5)
    assert query.offsets() == list(range(5, 15))


def test_older_records_behind_missing_offsets_tell_that_these_are_older(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "orders-0"
    append(folder, data(0, 5))
    append(folder, data(10, 2) + data(12, 3), 10)
    query = started(folder.parent, startingTimestamp=1_700_000_000_000 + 1000 * 12)
    assert query.offsets() == [12, 13, 14]


@BOTH
def test_a_read_segment_that_another_log_s_takes_the_place_of_is_noticed(
    tmp_path: Path, fails: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "logs" / "orders-0"
    append(folder, data(0, 3) + data(3, 2))
    append(folder, data(5, 5), 5)
    query = started(folder.parent, failOnDataLoss=fails, maxOffsetsPerTrigger=5)
    assert query.offsets() == list(range(5))
    # A copier replaces the files of a folder one by one, in the order of their names.
    other = kt.batch([kt.Record(b"k", b"other")] * 2, base_offset=3)
    replaced = folder / "new"
    replaced.write_bytes(data(0, 3) + other)
    replaced.rename(folder / log_name(0))
    finish(folder)
    if fails == "true":
        with pytest.raises(OffsetOutOfRangeError, match="is not the one that was read"):
            query.offsets()
    else:
        query.offsets()
        assert "is not the one that was read" in caplog.text
