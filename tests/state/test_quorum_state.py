from __future__ import annotations

import json
from typing import Any

import pytest
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st
from strategies import INT32, INT64

import kafkajit
from kafkajit.schema import QUORUM_STATE_COLUMNS, table_schema

PATH = DATA / "internal" / "__cluster_metadata-0" / "quorum-state"
ID = "pUM3BMsVQk2fe-klgEgLLA"
V0: dict[str, Any] = {
    "clusterId": "",
    "leaderId": 1,
    "leaderEpoch": 3,
    "votedId": -1,
    "appliedOffset": 0,
    "currentVoters": [{"voterId": 1}, {"voterId": 2}],
    "data_version": 0,
}
V1: dict[str, Any] = {
    "leaderId": -1,
    "leaderEpoch": 3,
    "votedId": 2,
    "votedDirectoryId": ID,
    "data_version": 1,
}


def row_of(content: bytes | dict[str, Any]) -> dict[str, Any]:
    if isinstance(content, dict):
        content = json.dumps(content).encode()
    table = kafkajit.read_quorum_state(content)
    assert table.schema == table_schema(QUORUM_STATE_COLUMNS)
    (row,) = table.to_pylist()
    return dict(row)


def expected_row(state: dict[str, Any]) -> dict[str, Any]:
    voters = state.get("currentVoters")
    row = {name: state.get(name) for name in QUORUM_STATE_COLUMNS}
    row["dataVersion"] = state["data_version"]
    row["currentVoters"] = None if voters is None else [voter["voterId"] for voter in voters]
    return row


def test_the_state_of_a_broker_is_read() -> None:
    assert row_of(PATH.read_bytes()) == expected_row(json.loads(PATH.read_text()))
    assert kafkajit.read_quorum_state(PATH)["leaderId"].to_pylist() == [1]


@given(INT32, INT32, INT32, INT64, st.none() | st.lists(INT32, max_size=4), st.text(max_size=5))
def test_every_state_of_version_0_is_read(
    leader: int, epoch: int, voted: int, applied: int, voters: list[int] | None, cluster: str
) -> None:
    state = V0 | {
        "clusterId": cluster,
        "leaderId": leader,
        "leaderEpoch": epoch,
        "votedId": voted,
        "appliedOffset": applied,
        "currentVoters": voters and [{"voterId": voter} for voter in voters],
    }
    assert row_of(state) == expected_row(state)


def test_what_version_1_does_not_have_is_null_and_what_it_has_all_the_same_is_not() -> None:
    assert row_of(V1) == expected_row(V1)
    assert row_of(V1)["clusterId"] is row_of(V1)["currentVoters"] is None
    more = V1 | {"clusterId": "c", "appliedOffset": 7, "currentVoters": [], "other": [1.5]}
    assert row_of(more) == expected_row(more)


def test_a_state_is_the_first_line_s_first_object() -> None:
    line = json.dumps(V1).encode()
    assert row_of(b" \t" + line + b"{more\n\xff") == expected_row(V1)
    assert row_of(json.dumps(V0 | {"clusterId": "\ud800"}).encode())["clusterId"] == "�"


@pytest.mark.parametrize("version", [V0, V1], ids=["v0", "v1"])
def test_a_field_that_lacks_is_an_error_that_names_it(version: dict[str, Any]) -> None:
    for name in version.keys() - {"data_version"}:
        state = {key: value for key, value in version.items() if key != name}
        with pytest.raises(kafkajit.CorruptCheckpointError) as caught:
            row_of(state)
        assert str(caught.value) == (
            f"QuorumStateData: unable to locate field '{name}', which is mandatory in version "
            f"{version['data_version']} at line 1"
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"data_version": 2},
            "data_version (2) is not within the min (0) and max (1) supported version",
        ),
        (
            {"data_version": -1},
            "data_version (-1) is not within the min (0) and max (1) supported version",
        ),
        (
            {"data_version": "0"},
            "data_version (STRING) is not within the min (0) and max (1) supported version",
        ),
        (
            {"data_version": True},
            "data_version (BOOLEAN) is not within the min (0) and max (1) supported version",
        ),
        ({"leaderId": 2**31}, "QuorumStateData: failed to parse number: leaderId is 2147483648"),
        ({"votedId": 1.0}, "QuorumStateData: failed to parse number: votedId is 1.0"),
        ({"votedId": None}, "QuorumStateData: failed to parse number: votedId is NULL"),
        ({"leaderEpoch": "1"}, "QuorumStateData: failed to parse number: leaderEpoch is STRING"),
        (
            {"appliedOffset": 2**63},
            "QuorumStateData: failed to parse number: appliedOffset is 9223372036854775808",
        ),
        ({"clusterId": None}, "QuorumStateData expected a string type, but clusterId is NULL"),
        (
            {"votedDirectoryId": 1},
            "QuorumStateData expected a string type, but votedDirectoryId is 1",
        ),
        ({"votedDirectoryId": "x"}, "QuorumStateData: votedDirectoryId is not a Uuid: x"),
        (
            {"currentVoters": {}},
            "QuorumStateData expected a JSON array, but currentVoters is OBJECT",
        ),
        (
            {"currentVoters": [1]},
            "Voter: unable to locate field 'voterId', which is mandatory in version 0",
        ),
        (
            {"currentVoters": [{"voterId": True}]},
            "QuorumStateData: failed to parse number: voterId is BOOLEAN",
        ),
    ],
)
def test_a_value_that_is_none_of_kafkas_is_an_error_that_says_what(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(kafkajit.CorruptCheckpointError) as caught:
        row_of(V0 | change)
    assert (caught.value.message, caught.value.line) == (message, 1)


def test_version_1_has_no_voters() -> None:
    with pytest.raises(kafkajit.CorruptCheckpointError, match=r"^Can't read version 1 of Voter"):
        row_of(V1 | {"currentVoters": [{"voterId": 1}]})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "File ended prematurely."),
        (b"\n", "The line is not JSON (Expecting value"),
        (b"{", "The line is not JSON (Expecting property name"),
        (b"[1]", "Deserialized node [1] is not an object node"),
        (b"{}", "Deserialized node does not have data_version field"),
        (b'{"data_version":NaN}', "The line is not JSON (NaN is not a number)"),
        (b'{"data_version":' + b"9" * 5000 + b"}", "The line is not JSON (Exceeds the limit"),
        (b"[" * 60_000, "The line is not JSON ("),  # from 3.14 on, Python reads that far
        (b'{"data_version":' + b"[" * 500 + b"]" * 500 + b"}", "data_version (ARRAY) is not"),
        (b'{"clusterId":"\xff"}', "not UTF-8"),
    ],
)
def test_what_is_no_object_is_an_error(content: bytes, message: str) -> None:
    with pytest.raises(kafkajit.CorruptCheckpointError) as caught:
        row_of(content)
    assert caught.value.message.startswith(message)


@given(st.sampled_from([V0, V1]), st.integers(0, 170), st.binary(max_size=3), st.integers(0, 9))
def test_whatever_the_bytes_a_state_is_read_or_refused(
    state: dict[str, Any], at: int, put: bytes, cut: int
) -> None:
    content = json.dumps(state).encode()
    content = content[:at] + put + content[at + cut :]
    try:
        row = row_of(content)
    except kafkajit.CorruptCheckpointError:
        return
    first = json.JSONDecoder().raw_decode(content.decode().splitlines()[0].strip(" \t"))[0]
    assert row == expected_row(first) | {
        "votedDirectoryId": row["votedDirectoryId"]  # its last bits may differ
    }
