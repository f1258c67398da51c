from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import reference
from corpus import SOUND_LOGS, log_id, log_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import INT32, NULLABLE

import kafkajit
from kafkajit import testing as kt
from kafkajit.records.columns import RECORD
from kafkajit.records.control_records import (
    check_marker,
    control_type,
    control_type_id,
    coordinator_epoch,
    read_control_records,
)
from kafkajit.storage.source import as_bytes

# ControlRecordType
TYPES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
    7: "UNKNOWN",
    77: "UNKNOWN",
    -1: "UNKNOWN",
    2**15 - 1: "UNKNOWN",
}


@pytest.mark.parametrize("type_id", TYPES)
@pytest.mark.parametrize("version", [0, 1, 2**15 - 1])
@pytest.mark.parametrize("more", [b"", b"\x01", b"later fields"])
def test_a_key_says_the_type_whatever_its_version_adds(
    type_id: int, version: int, more: bytes
) -> None:
    key = struct.pack(">hh", version, type_id) + more
    assert control_type(key) == TYPES[type_id]
    assert control_type_id(key) == type_id


@pytest.mark.parametrize("key", [None, b"", b"\x00", bytes(3)])
def test_a_key_of_fewer_than_four_bytes_is_an_error(key: bytes | None) -> None:
    with pytest.raises(
        kafkajit.InvalidRecordError,
        match=f"Must have at least 4 bytes, but found only {len(key or b'')}",
    ):
        control_type(key)


def test_a_negative_version_is_an_error() -> None:
    with pytest.raises(kafkajit.InvalidRecordError, match="found for control record: -1"):
        control_type(struct.pack(">hh", -1, 1))
    with pytest.raises(kafkajit.InvalidRecordError, match="for end transaction marker: -2"):
        coordinator_epoch(struct.pack(">hi", -2, 1))


@pytest.mark.parametrize("epoch", [0, 7, -1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("version", [0, 1, 5])
@pytest.mark.parametrize("more", [b"", b"later fields"])
def test_a_markers_value_says_the_coordinators_epoch(epoch: int, version: int, more: bytes) -> None:
    assert coordinator_epoch(struct.pack(">hi", version, epoch) + more) == epoch


@pytest.mark.parametrize("value", [None, b"", b"\x00", bytes(2), bytes(5)])
def test_a_markers_value_of_fewer_than_six_bytes_is_an_error(value: bytes | None) -> None:
    with pytest.raises(
        kafkajit.InvalidRecordError, match=f"has only {len(value or b'')} bytes, needs 6"
    ):
        coordinator_epoch(value)


@pytest.mark.parametrize("type_id", TYPES)
def test_only_commit_and_abort_have_a_coordinators_epoch(type_id: int) -> None:
    log = kt.control_batch(type_id, coordinator_epoch=9)
    table = kafkajit.read_records(log, columns=["controlType", "coordinatorEpoch"])
    epoch = 9 if type_id in (0, 1) else None
    assert table.to_pylist() == [{"controlType": TYPES[type_id], "coordinatorEpoch": epoch}]


def test_data_has_no_control_type() -> None:
    log = kt.batch([kt.Record(bytes(4), bytes(6))] * 2) + kt.control_batch(0, coordinator_epoch=3)
    log += kt.batch([kt.Record(b"not a control key")])
    table = kafkajit.read_records(log, columns=["controlType", "coordinatorEpoch"])
    assert table["controlType"].to_pylist() == [None, None, "ABORT", None]
    assert table["coordinatorEpoch"].to_pylist() == [None, None, 3, None]


@pytest.mark.parametrize(
    "path",
    [path for path in SOUND_LOGS if "transactions" in path.parent.name or "__" in str(path)],
    ids=log_id,
)
def test_a_brokers_markers_are_those_of_the_reference(path: Path) -> None:
    log = path.read_bytes()
    table = kafkajit.read_records(log, columns=["controlType", "coordinatorEpoch"])
    expected = reference.rows(log)
    assert table["controlType"].to_pylist() == [row["controlType"] for row in expected]
    assert table["coordinatorEpoch"].to_pylist() == [row["coordinatorEpoch"] for row in expected]


def test_the_corpus_has_markers_of_both_kinds() -> None:
    types = kafkajit.read_records(log_of("transactions-0"))["controlType"].to_pylist()
    assert {"COMMIT", "ABORT", None} == set(types)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (None, bytes(6), "Must have at least 4 bytes, but found only 0"),
        (struct.pack(">hh", -1, 1), bytes(6), "Invalid version found for control record: -1"),
        (struct.pack(">hh", 0, 1), bytes(5), "Transaction marker value has only 5 bytes, needs 6"),
    ],
)
def test_a_bad_marker_in_a_log_is_an_invalid_record(
    key: bytes | None, value: bytes, message: str
) -> None:
    log = kt.batch([kt.Record(key, value)], is_control=True)
    with pytest.raises(kafkajit.InvalidRecordError, match=message):
        kafkajit.read_records(log)
    assert kafkajit.read_records(log, columns=["offset", "value"]).num_rows == 1


CONTROL_KEYS = st.one_of(
    NULLABLE,
    st.builds(
        lambda version, type_id, more: struct.pack(">hh", version, type_id) + more,
        st.sampled_from([0, 1, -1, 2**15 - 1]),
        st.sampled_from([*TYPES, 255, 256, -(2**15)]),
        st.binary(max_size=3),
    ),
)
CONTROL_VALUES = st.one_of(
    NULLABLE,
    st.builds(
        lambda version, epoch, more: struct.pack(">hi", version, epoch) + more,
        st.sampled_from([0, 1, -1]),
        INT32,
        st.binary(max_size=3),
    ),
)


@given(st.lists(st.tuples(CONTROL_KEYS, CONTROL_VALUES), max_size=8))
def test_many_control_records_are_read_as_each_by_itself(
    records: list[tuple[bytes | None, bytes | None]],
) -> None:
    content = b"some bytes before"
    fields = np.zeros(len(records), dtype=RECORD)
    expected = []
    for row, (key, value) in enumerate(records):
        for name, part in (("key", key), ("value", value)):
            fields[name][row] = len(content)
            fields[f"{name}Size"][row] = -1 if part is None else len(part)
            content += part or b""
        try:
            check_marker(key, value)
            type_id = control_type_id(key)
            epoch = coordinator_epoch(value) if type_id in (0, 1) else -1
            expected.append((type_id, epoch, False))
        except kafkajit.InvalidRecordError:
            expected.append((None, None, True))
    found = read_control_records(as_bytes(content), fields)
    rows = list(zip(*(column.tolist() for column in found), strict=True))
    assert [row if not row[2] else (None, None, True) for row in rows] == expected
