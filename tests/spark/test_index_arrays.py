from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from evaluating import evaluated

import kafkajit
import kafkajit.testing as kt
from kafkajit.spark import index_arrays

OFFSETS = bytes.fromhex("00000009000010000000001500002000")  # 9 → 4096, 21 → 8192
TIMES = bytes.fromhex("00000000000000640000000900000000000000c800000015")  # 100 → 9, 200 → 21
MANY = np.random.default_rng(7)
UTC = datetime.UTC


@pytest.mark.parametrize("prefix", ["", "try_"])
@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_entries_count_from_the_base_offset(prefix: str, type_: pa.DataType) -> None:
    rows = evaluated(
        f"{prefix}kafka_offset_index", [OFFSETS, None, b""], pa.array([100, 1, 2], type_)
    )
    assert rows == [
        [{"offset": 109, "position": 4096}, {"offset": 121, "position": 8192}],
        None,
        [],
    ]


def test_a_base_offset_that_is_null_is_null() -> None:
    assert evaluated("kafka_offset_index", [OFFSETS], pa.array([None], pa.int64())) == [None]
    assert evaluated("kafka_time_index", [TIMES], pa.nulls(1)) == [None]


def test_timestamps_are_sparks() -> None:
    (entries,) = evaluated("kafka_time_index", [TIMES], [100])
    assert [entry["timestamp"].timestamp() for entry in entries] == [0.1, 0.2]
    (producers,) = evaluated("kafka_producer_snapshot", [kt.producer_snapshot([kt.Producer(9)])])
    assert producers[0]["timestamp"].timestamp() == 1_700_000_000


def slow_offset_lookup(base: int, target: int) -> dict[str, int]:
    found = {"offset": base, "position": 0}
    for at in range(0, len(OFFSETS), 8):
        offset = base + int.from_bytes(OFFSETS[at : at + 4])
        if offset <= target:
            found = {"offset": offset, "position": int.from_bytes(OFFSETS[at + 4 : at + 8])}
    return found


@pytest.mark.parametrize("prefix", ["", "try_"])
def test_an_offset_is_found_by_kafkas_floor_rule(prefix: str) -> None:
    targets = [*range(90, 130), 2**63 - 1, -(2**63), 100 + 2**31, 100 + 2**32 + 9]
    for base in (0, 100, 2**62):
        rows = evaluated(
            f"{prefix}kafka_offset_lookup",
            [OFFSETS] * len(targets),
            [base] * len(targets),
            pa.array(targets, pa.int64()),
        )
        assert rows == [slow_offset_lookup(base, target) for target in targets]


def test_a_timestamp_is_found_by_kafkas_floor_rule() -> None:
    targets = [-5, 99, 100, 101, 199, 200, 2**62]
    found = evaluated("kafka_time_lookup", [TIMES] * 7, [100] * 7, targets)
    at = [round(row["timestamp"].timestamp() * 1000) for row in found]
    assert at == [-1, -1, 100, 100, 100, 200, 200]
    assert [row["offset"] for row in found] == [100, 100, 109, 109, 109, 121, 121]


def test_a_timestamp_of_sparks_is_looked_up_by_its_millisecond() -> None:
    micros = pa.array([99_999, 100_000, 100_999, None], pa.timestamp("us", tz="Europe/Berlin"))
    found = evaluated("kafka_time_lookup", [TIMES] * 4, [100] * 4, micros)
    assert [row and row["offset"] for row in found] == [100, 109, 109, None]


def test_rows_with_the_same_index_are_looked_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    class Opened(index_arrays.OffsetIndex):
        def __init__(self, *arguments: Any) -> None:
            opened.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(index_arrays, "OffsetIndex", Opened)
    targets = MANY.integers(90, 130, 3000)
    contents = [OFFSETS] * 1000 + [None] * 500 + [OFFSETS[:8]] * 500 + [OFFSETS] * 1000
    bases = [100] * 2500 + [0] * 500
    rows = evaluated("kafka_offset_lookup", contents, bases, targets)
    assert len(opened) == 4
    for row, content, base, target in zip(rows, contents, bases, targets.tolist(), strict=True):
        if content == OFFSETS:
            assert row == slow_offset_lookup(base, target)
        elif content is None:
            assert row is None
        else:
            assert row["offset"] == (109 if target >= 109 else 100)


def test_null_targets_among_others_are_null() -> None:
    targets = pa.array([120, None, 50], pa.int64())
    found = evaluated("kafka_offset_lookup", [OFFSETS] * 3, [100] * 3, targets)
    assert [row and row["offset"] for row in found] == [109, None, 100]
    assert evaluated("kafka_offset_lookup", [OFFSETS], [100], pa.nulls(1)) == [None]


@pytest.mark.parametrize("name", ["kafka_offset_lookup", "kafka_time_lookup"])
def test_a_lookup_in_a_damaged_index_raises_and_try_gives_null(name: str) -> None:
    contents = [b"\xff" * 24, b""]
    with pytest.raises(kafkajit.CorruptIndexError, match="out of order"):
        evaluated(name, contents, [0, 5], [1, 1])
    broken, empty = evaluated(f"try_{name}", contents, [0, 5], [1, 1])
    assert broken is None
    assert empty["offset"] == 5


def test_what_does_not_fit_its_log_is_told() -> None:
    log = kt.batch([kt.Record(value=b"v")] * 3, base_offset=7, base_timestamp=100)
    good, bad = (bytes.fromhex(entry) for entry in ("0000000200000000", "0000000200000040"))
    rows = evaluated("kafka_verify_index", [log, log, None, log], [good, bad, bad, None], [7] * 4)
    assert rows[0] == []
    assert [row["problem"] for row in rows[1]] == ["no batch begins at its position"]
    assert rows[2:] == [None, None]
    times = bytes.fromhex("000000000000006500000002")
    (found,) = evaluated("kafka_verify_time_index", [log], [times], [7])
    assert found[0]["problem"] == "its batch's largest timestamp is another"
    assert found[0]["timestamp"] == datetime.datetime.fromtimestamp(0.101, UTC)
    assert found[0]["logTimestamp"] == datetime.datetime.fromtimestamp(0.1, UTC)
