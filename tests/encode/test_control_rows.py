from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

import kafkajit
from kafkajit import InvalidRecordError, encode_batches
from kafkajit import testing as kt
from kafkajit.encode.control_rows import check_markers, control_types, with_markers
from kafkajit.encode.rows import byte_strings_of
from kafkajit.records.control_records import CONTROL_TYPES

BYTES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.binary())]


def key_of(type_id: int, version: int = 0) -> bytes:
    return struct.pack(">hh", version, type_id)


def value_of(coordinator_epoch: int) -> bytes:
    return struct.pack(">hi", 0, coordinator_epoch)


def record_batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


def completed(records: pa.RecordBatch, control_type: str | None = None, **epoch: Any) -> Any:
    """The keys and values that are written, after the checks."""
    types = control_types(records, control_type)
    assert types is not None
    whole = with_markers(records, types, epoch.get("coordinator_epoch"))
    check_markers(
        types,
        byte_strings_of(whole.column("key"), "key"),
        byte_strings_of(whole.column("value"), "v"),
    )
    return list(zip(whole["key"].to_pylist(), whole["value"].to_pylist(), strict=True))


def test_a_commit_or_abort_without_a_key_is_given_key_and_value() -> None:
    records = record_batch(
        controlType=["COMMIT", None, "ABORT", "COMMIT"],
        coordinatorEpoch=[7, None, 2**31 - 1, None],
    )
    commit, data, abort, other = completed(records)
    assert commit == (key_of(1), value_of(7))
    assert data == (None, None)
    assert abort == (key_of(0), value_of(2**31 - 1))
    assert other == (key_of(1), value_of(0))


@pytest.mark.parametrize("kind", BYTES, ids=str)
def test_data_between_markers_stays_as_it_is(kind: pa.DataType) -> None:
    keys, values = [b"k", None, key_of(1, 5)], [b"v", None, value_of(3) + b"more"]
    records = record_batch(
        key=pa.array(keys, kind),
        value=pa.array(values, kind),
        controlType=pa.array([None, "ABORT", "COMMIT"]).dictionary_encode(),
        offset=[1, 2, 3],
    )
    assert completed(records) == [(b"k", b"v"), (key_of(0), value_of(0)), (keys[2], values[2])]


def test_an_option_for_all_records_overrides_columns() -> None:
    records = record_batch(controlType=["ABORT", None], coordinatorEpoch=[1, 2])
    both = completed(records, "COMMIT", coordinator_epoch=9)
    assert both == [(key_of(1), value_of(9))] * 2


def test_where_nothing_is_a_marker_nothing_is_looked_at() -> None:
    assert control_types(record_batch(key=[b"a"]), None) is None
    assert control_types(record_batch(controlType=pa.nulls(2, pa.string())), None) is None
    assert control_types(record_batch(controlType=pa.nulls(2)), None) is None


def test_where_all_markers_have_their_keys_the_records_are_taken_as_they_are() -> None:
    records = record_batch(key=[key_of(0)], value=[value_of(0)], controlType=["ABORT"])
    assert with_markers(records, control_types(records, None), None) is records


@pytest.mark.parametrize("type_id", CONTROL_TYPES)
def test_every_type_of_control_record_is_written_with_its_key(type_id: int) -> None:
    name = CONTROL_TYPES[type_id]
    log = encode_batches(
        record_batch(key=[key_of(type_id)], value=[value_of(4)], controlType=[name])
    )
    (row,) = kafkajit.read_records(log).to_pylist()
    assert row["controlType"] == name
    assert row["key"] == key_of(type_id)
    assert row["isTransactional"] == (name in ("COMMIT", "ABORT"))


def test_a_control_record_of_a_type_to_come_is_written_with_its_key() -> None:
    log = encode_batches(record_batch(key=[key_of(77)], value=[None], controlType=["UNKNOWN"]))
    assert kafkajit.read_records(log)["controlType"].to_pylist() == ["UNKNOWN"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"controlType": [None, "LEADER_CHANGE"]}, "a LEADER_CHANGE needs the key and value that"),
        (
            {"controlType": [None, "COMMIT"], "value": [None, b"v"]},
            "a COMMIT needs the key and value that",
        ),
        ({"controlType": [None, "commit"]}, "controlType is 'commit'; there are: ABORT, COMMIT, L"),
        (
            {"controlType": [None, "COMMIT"], "coordinatorEpoch": [1, 2**31]},
            "coordinatorEpoch does not fit an int32: 2147483648",
        ),
        *(
            (
                {"controlType": [None, name], "key": [None, key], "value": [None, value]},
                f"controlType is {name}, and key and value are not those of one: leave both null",
            )
            for name, key, value in (
                ("COMMIT", b"key", value_of(0)),
                ("COMMIT", b"", value_of(0)),
                ("COMMIT", key_of(0), value_of(0)),
                ("LEADER_CHANGE", key_of(1), value_of(0)),
                ("ABORT", key_of(0, -1), value_of(0)),
                ("ABORT", key_of(0), None),
                ("ABORT", key_of(0), value_of(0)[:5]),
            )
        ),
    ],
)
def test_what_no_reader_would_take_for_that_marker_is_an_error(
    columns: dict[str, list[Any]], message: str
) -> None:
    with pytest.raises(InvalidRecordError, match=f"^row 1: {message}"):
        encode_batches(record_batch(**columns))


def test_a_control_type_that_is_not_text_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="controlType is a column of int64; it must be str"):
        encode_batches(record_batch(controlType=[1]))


def test_markers_are_those_of_a_broker() -> None:
    records = record_batch(
        controlType=["COMMIT", "ABORT"],
        coordinatorEpoch=[5, 6],
        producerId=[1, 1],
        producerEpoch=pa.array([0, 0], pa.int16()),
        timestamp=[1_700_000_000_000] * 2,
    )
    expected = kt.control_batch(1, coordinator_epoch=5) + kt.control_batch(
        0, coordinator_epoch=6, base_offset=1
    )
    assert encode_batches(records).to_pybytes() == expected
