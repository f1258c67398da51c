"""The functions of what lies beside a log, as functions of arrays: no Spark is started."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kafkajit
import kafkajit.testing as kt
from kafkajit.spark import side_arrays
from kafkajit.spark.catalogue import FUNCTIONS, LOOKUP_FUNCTIONS
from kafkajit.spark.evaluate import function_of_arrays

OFFSETS = bytes.fromhex("00000009000010000000001500002000")  # 9 → 4096, 21 → 8192
TIMES = bytes.fromhex("00000000000000640000000900000000000000c800000015")  # 100 → 9, 200 → 21
MANY = np.random.default_rng(7)
UTC = datetime.UTC


def evaluated(name: str, *arguments: Any) -> list[Any]:
    arrays = [
        argument if isinstance(argument, pa.Array) else pa.array(argument) for argument in arguments
    ]
    result = function_of_arrays(name)(*arrays)
    result.validate(full=True)
    assert result.type == FUNCTIONS[name]
    return result.to_pylist()


def test_every_function_of_the_catalogue_is_evaluated_by_one_of_its_name() -> None:
    for name in FUNCTIONS:
        assert function_of_arrays(name).__name__ == name


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


def test_files_that_say_one_thing_are_a_struct() -> None:
    good = b"version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA"
    other = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    rows = evaluated("kafka_partition_metadata", [good, None, other])
    assert rows == [
        {"version": 0, "topicId": "pUM3BMsVQk2fe-klgEgLLA"},
        None,
        {"version": 0, "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"},
    ]
    assert evaluated("try_kafka_partition_metadata", [b"", good, None])[0::2] == [None, None]
    assert evaluated("kafka_partition_metadata", pa.array([], pa.binary())) == []


@pytest.mark.parametrize(
    ("name", "damaged", "error"),
    [
        ("kafka_offset_index", b"\xff" * 8, kafkajit.CorruptIndexError),
        ("kafka_time_index", b"\xff" * 12, kafkajit.CorruptIndexError),
        ("kafka_transaction_index", b"x", kafkajit.CorruptIndexError),
        ("kafka_producer_snapshot", b"", kafkajit.CorruptSnapshotError),
        ("kafka_leader_epochs", b"1\n", kafkajit.CorruptCheckpointError),
        ("kafka_checkpoint", b"1\n", kafkajit.CorruptCheckpointError),
        ("kafka_partition_metadata", b"", kafkajit.CorruptCheckpointError),
        ("kafka_meta_properties", b"a=\\u1", kafkajit.CorruptCheckpointError),
        ("kafka_quorum_state", b"{}", kafkajit.CorruptCheckpointError),
    ],
)
def test_damage_raises_and_try_gives_null(
    name: str, damaged: bytes, error: type[kafkajit.KafkaJitError]
) -> None:
    others = [[0]] if name in ("kafka_offset_index", "kafka_time_index") else []
    with pytest.raises(error):
        evaluated(name, [damaged], *others)
    assert evaluated(f"try_{name}", [damaged], *others) == [None]


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

    class Opened(side_arrays.OffsetIndex):
        def __init__(self, *arguments: Any) -> None:
            opened.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(side_arrays, "OffsetIndex", Opened)
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


@pytest.mark.parametrize("name", LOOKUP_FUNCTIONS)
def test_a_lookup_in_a_damaged_index_raises_and_try_gives_null(name: str) -> None:
    contents = [b"\xff" * 24, b""]
    with pytest.raises(kafkajit.CorruptIndexError, match="out of order"):
        evaluated(name, contents, [0, 5], [1, 1])
    broken, empty = evaluated(f"try_{name}", contents, [0, 5], [1, 1])
    assert broken is None
    assert empty["offset"] == 5


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("kafka_leader_epochs", (["text"],), "content must be BINARY, as binaryFile loads it"),
        ("kafka_offset_index", ([b""], ["1"]), "baseOffset must be BIGINT, not string"),
        ("kafka_offset_index", ([b""], [1.5]), "baseOffset must be BIGINT, not double"),
        ("kafka_offset_lookup", ([b""], [1], ["x"]), "targetOffset must be BIGINT, not string"),
        (
            "kafka_time_lookup",
            ([b""], [1], ["2025-01-01"]),
            "timestamp must be TIMESTAMP or BIGINT milliseconds, not string",
        ),
        (
            "kafka_time_lookup",
            ([b""], [1], pa.array([0], pa.timestamp("us"))),
            "timestamp must be TIMESTAMP or BIGINT milliseconds, not timestamp",
        ),
        ("kafka_verify_index", (["x"], [b""], [0]), "log must be BINARY"),
        ("kafka_verify_index", ([b""], ["x"], [0]), "index must be BINARY"),
        ("kafka_verify_time_index", ([b""], ["x"], [0]), "timeIndex must be BINARY"),
        ("kafka_decode_offsets", (["x"], [b""]), "key must be BINARY, as the record has it"),
        ("kafka_decode_offsets", ([b""], ["x"]), "value must be BINARY, as the record has it"),
    ],
)
def test_an_argument_of_another_type_is_a_type_error(
    name: str, arguments: tuple[Any, ...], told: str
) -> None:
    names = (name, f"try_{name}") if f"try_{name}" in FUNCTIONS else (name,)
    for called in names:
        with pytest.raises(TypeError, match=told):
            evaluated(called, *arguments)


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


KEY = b"\0\1" + b"\0\5group" + b"\0\6orders" + bytes(4)
VALUE = b"\0\3" + bytes(7) + b"\x2a" + bytes(14)


def test_records_of_internal_topics_are_json() -> None:
    keys = pa.array([KEY, None, KEY], pa.binary())
    values = pa.array([VALUE, None, None], pa.binary())
    row, nothing, tombstone = evaluated("kafka_decode_offsets", keys, values)
    assert row["key"] == '{"type":"1","data":{"group":"group","topic":"orders","partition":0}}'
    assert row["value"].startswith('{"version":"3","data":{"offset":42,')
    assert nothing is None
    assert tombstone == {"key": row["key"], "value": None}


def test_a_record_that_cannot_be_decoded_raises_and_try_gives_null() -> None:
    with pytest.raises(kafkajit.InvalidRecordError):
        evaluated("kafka_decode_offsets", [b"\0", KEY], [VALUE, VALUE])
    bad, good = evaluated("try_kafka_decode_offsets", [b"\0", KEY], [VALUE, VALUE])
    assert bad is None
    assert good["value"] is not None


def test_a_bare_null_has_no_type() -> None:
    assert evaluated("kafka_decode_offsets", pa.nulls(2), pa.nulls(2)) == [None, None]
    assert evaluated("kafka_decode_cluster_metadata", pa.nulls(1), pa.nulls(1)) == [None]
    assert evaluated("kafka_meta_properties", pa.nulls(1)) == [None]
    assert evaluated("kafka_verify_index", pa.nulls(1), pa.nulls(1), pa.nulls(1)) == [None]
