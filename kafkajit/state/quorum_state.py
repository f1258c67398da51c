"""quorum-state: what a node of the KRaft quorum knows about its election (QuorumStateData).

Reads the bytes into one row. The first line is a JSON object of version 0 or 1
(FileQuorumStateStore). Fields that a version does not have are NULL, unless the file has them.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from kafkajit.errors import CorruptCheckpointError
from kafkajit.schema import QUORUM_STATE_COLUMNS, table_schema
from kafkajit.state.text_lines import lines, shown
from kafkajit.state.uuid import parse_uuid
from kafkajit.storage.source import Bytes, whole

_MIN_VERSION, _MAX_VERSION = 0, 1
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)

# The versions in which each field is mandatory.
_MANDATORY = {
    "clusterId": range(1),
    "leaderId": range(2),
    "leaderEpoch": range(2),
    "votedId": range(2),
    "votedDirectoryId": range(1, 2),
    "appliedOffset": range(1),
    "currentVoters": range(1),
}


class _RefusedError(ValueError):
    """Kafka's reason to refuse an object."""


def read_quorum_state(source: Any) -> pa.Table:
    r"""Read a quorum-state file, in `kafkajit.schema.QUORUM_STATE_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.

    >>> content = b'''{"leaderId":1,"leaderEpoch":3,"votedId":-1,
    ... "votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'''.replace(b"\n", b"")
    >>> table = read_quorum_state(content)
    >>> table.select(["dataVersion", "leaderId", "leaderEpoch", "clusterId"]).to_pylist()
    [{'dataVersion': 1, 'leaderId': 1, 'leaderEpoch': 3, 'clusterId': None}]
    """
    return parse_quorum_state(*whole(source))


def parse_quorum_state(content: Bytes, path: str | None = None) -> pa.Table:
    """As `read_quorum_state`, from bytes and the path that they came from."""
    line = next(lines(content, path), None)
    if line is None:
        raise CorruptCheckpointError("File ended prematurely.", path=path)
    try:
        row = _row(_json_object(line))
    except _RefusedError as error:
        raise CorruptCheckpointError(str(error), path=path, line=1) from error
    return pa.Table.from_pylist([row], table_schema(QUORUM_STATE_COLUMNS))


def _json_object(line: str) -> dict[str, Any]:
    """The object that the line begins with; like Jackson's, this parser reads one value."""
    text = line.strip(" \t")
    try:
        node, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _RefusedError(f"The line is not JSON ({reason}): {shown(text)}") from error
    if not isinstance(node, dict):
        raise _RefusedError(f"Deserialized node {shown(text)} is not an object node")
    return node


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _row(node: dict[str, Any]) -> dict[str, Any]:
    if "data_version" not in node:
        raise _RefusedError("Deserialized node does not have data_version field")
    version: Any = node["data_version"]
    if not _is_int(version, range(_MIN_VERSION, _MAX_VERSION + 1)):
        raise _RefusedError(
            f"data_version ({_described(version)}) is not within the min ({_MIN_VERSION}) "
            f"and max ({_MAX_VERSION}) supported version"
        )
    row: dict[str, Any] = {"dataVersion": version}
    for name, versions in _MANDATORY.items():
        if name in node:
            row[name] = _VALUE_OF[name](name, node[name], version)
        elif version in versions:
            raise _RefusedError(
                f"QuorumStateData: unable to locate field '{name}', "
                f"which is mandatory in version {version}"
            )
        else:
            row[name] = None
    return row


def _is_int(value: Any, among: range) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in among


def _int32(name: str, value: Any, _version: int) -> int:
    return _number(name, value, _INT32)


def _int64(name: str, value: Any, _version: int) -> int:
    return _number(name, value, _INT64)


def _number(name: str, value: Any, among: range) -> int:
    if not _is_int(value, among):
        raise _RefusedError(
            f"QuorumStateData: failed to parse number: {name} is {_described(value)}"
        )
    number: int = value
    return number


def _text(name: str, value: Any, _version: int) -> str:
    if not isinstance(value, str):
        raise _RefusedError(
            f"QuorumStateData expected a string type, but {name} is {_described(value)}"
        )
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _uuid(name: str, value: Any, version: int) -> str:
    text = _text(name, value, version)
    uuid = parse_uuid(text)
    if uuid is None:
        raise _RefusedError(f"QuorumStateData: {name} is not a Uuid: {shown(text)}")
    return uuid


def _voters(name: str, value: Any, version: int) -> list[int] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise _RefusedError(
            f"QuorumStateData expected a JSON array, but {name} is {_described(value)}"
        )
    if value and version > 0:
        raise _RefusedError(f"Can't read version {version} of Voter")
    voters = []
    for voter in value:
        if not isinstance(voter, dict) or "voterId" not in voter:
            raise _RefusedError(
                f"Voter: unable to locate field 'voterId', which is mandatory in version {version}"
            )
        voters.append(_number("voterId", voter["voterId"], _INT32))
    return voters


def _described(value: Any) -> str:
    """A number, or the name of another type: a nested value may be as deep as Python allows."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return shown(str(value))
    return _NODE_TYPES[type(value)]


# Jackson's JsonNodeType.
_NODE_TYPES = {
    dict: "OBJECT",
    list: "ARRAY",
    str: "STRING",
    bool: "BOOLEAN",
    type(None): "NULL",
}

_VALUE_OF = {
    "clusterId": _text,
    "leaderId": _int32,
    "leaderEpoch": _int32,
    "votedId": _int32,
    "votedDirectoryId": _uuid,
    "appliedOffset": _int64,
    "currentVoters": _voters,
}
