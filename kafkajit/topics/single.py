"""One record of an internal topic at a time: what is wrong with it, in Java's words and in ours.

Kernels stop at a record that they cannot decode; this module decodes it again to find out why. It
also prints remote log metadata as kafka-dump-log does: not as JSON, but as Java's toString.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafkajit.errors import InvalidRecordError
from kafkajit.topics.kinds import TopicKind
from kafkajit.topics.message import POSITION, learn, new_tables
from kafkajit.topics.message_errors import complaint, java_complaint
from kafkajit.topics.payloads import write_key, write_metadata, write_value
from kafkajit.topics.primitives import read_unsigned_varint
from kafkajit.topics.status import (
    BAD_FRAME,
    DONE,
    FULL,
    GARBAGE,
    MALFORMED,
    NEW_DOUBLE,
    NO_TYPE,
    NO_VERSION,
    UNKNOWN_TYPE,
    UNKNOWN_VERSION,
)

_SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES = (
    "DELETE_PARTITION_MARKED",
    "DELETE_PARTITION_STARTED",
    "DELETE_PARTITION_FINISHED",
)
_NO_VALUE = (
    'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
    '"org.apache.kafka.common.record.Record.value()" is null'
)


@dataclass
class Payload:
    """The result of decoding one key or value."""

    status: int
    text: str  # JSON if the status is DONE
    type_id: int
    version: int
    java_reason: str  # the message of Java's exception
    reason: str
    position: int  # in the payload: where it is malformed, or where garbage begins


class _Refused(Exception):
    """The message of Java's exception if it cannot construct an object from a message."""


def read_key(kind: TopicKind, key: bytes) -> Payload:
    """Decode a coordinator's key."""
    payload = _read(write_key, kind, key, (0, len(key)))
    payload.type_id = _int16(key)
    return payload


def read_value(kind: TopicKind, key: bytes, value: bytes) -> Payload:
    """Decode a coordinator's value, whose key must be readable."""
    extent = (_int16(key), 0, len(value))
    payload = _read(write_value, kind, value, extent, version=_int16(value))
    payload.type_id = _int16(key)
    return payload


def read_metadata(kind: TopicKind, value: bytes, *, any_version: bool) -> Payload:
    """Decode a metadata record."""
    content = np.frombuffer(value, dtype=np.uint8)
    numbers, p = [], 0
    for _ in range(3):
        number, p, _reason = read_unsigned_varint(content, p, content.size)
        numbers.append(((int(number) & 0xFFFF) ^ 0x8000) - 0x8000)
    _, type_id, version = numbers
    extent = (0, len(value), any_version)
    payload = _read(write_metadata, kind, value, extent, version=version)
    payload.type_id = type_id
    return payload


def _read(
    kernel: Any,
    kind: TopicKind,
    raw: bytes,
    extent: tuple[int, ...],
    *,
    version: int = 0,
) -> Payload:
    programs = kind.programs
    content = np.frombuffer(raw, dtype=np.uint8)
    tables = new_tables(programs, kind.types)
    out = np.empty(4096, dtype=np.uint8)
    while True:
        status, end = kernel(tables, content, *extent, out, 0)
        if status == FULL:
            out = np.empty(4 * out.size, dtype=np.uint8)
        elif status == NEW_DOUBLE:
            learn(tables)
        else:
            break
    malformed = status == MALFORMED
    return Payload(
        status=int(status),
        text=out[:end].tobytes().decode() if status == DONE else "",
        type_id=0,
        version=version,
        java_reason=java_complaint(programs, tables.scratch, version) if malformed else "",
        reason=complaint(programs, tables.scratch, version) if malformed else "",
        position=int(tables.scratch[POSITION]) if status in (MALFORMED, GARBAGE) else 0,
    )


def printed(
    kind: TopicKind, offset: int, key: bytes | None, value: bytes | None
) -> tuple[str | None, str | None]:
    r"""The texts that kafka-dump-log prints as a record's key and payload; None if it prints none.

    >>> from kafkajit.topics.kinds import topic_kind
    >>> printed(topic_kind("offsets"), 7, b"\0\x63", b"")
    ('Unknown record type 99 at offset 7, skipping.', None)
    """
    if kind.name == "remote_log_metadata":
        return None, _remote_payload(kind, offset, value)
    if not kind.has_keys:
        payload = "Error while reading frame version"
        if value is not None:
            read = read_metadata(kind, value, any_version=True)
            if read.status == DONE:
                return None, read.text
            unknown = "org.apache.kafka.common.errors.UnsupportedVersionException: "
            payload = _metadata_complaint(read, value, unknown)
        return None, f"Error at {offset}, skipping. {payload}"
    return _coordinator_texts(kind, offset, key, value)


def printed_misfit(kind: TopicKind, offset: int, reason: str) -> tuple[str | None, str | None]:
    """The same if Java cannot take the key or the value out of the message; `reason` is its error.

    >>> from kafkajit.topics.kinds import topic_kind
    >>> printed_misfit(topic_kind("cluster_metadata"), 7, "null")
    (None, 'Error at 7, skipping. null')
    """
    at = f"{offset}" if kind.name == "cluster_metadata" else f"offset {offset}"
    text = f"Error at {at}, skipping. {reason}"
    return (text, None) if kind.has_keys else (None, text)


def _coordinator_texts(
    kind: TopicKind, offset: int, key: bytes | None, value: bytes | None
) -> tuple[str, str | None]:
    if key is None:
        raise InvalidRecordError(
            f"Failed to decode message at offset {offset} using the specified decoder "
            "(message had a missing key)"
        )
    payload, side = read_key(kind, key), "key"
    key_text = payload.text
    number = payload.type_id
    if payload.status == UNKNOWN_TYPE:
        return f"Unknown record type {number} at offset {offset}, skipping.", None
    if payload.status == DONE:
        if value is None:
            return key_text, "<DELETE>"
        payload, side = read_value(kind, key, value), "value"
        number = payload.version
    reason = {
        NO_TYPE: "Could not read version from key's buffer.",
        NO_VERSION: "Could not read version from value's buffer.",
        UNKNOWN_VERSION: f"Found an unknown record version {payload.version} "
        f"for {payload.type_id} type",
        MALFORMED: f"Could not read record with version {number} from {side}'s buffer "
        f"due to: {payload.java_reason}.",
    }
    if payload.status == DONE:
        return key_text, payload.text
    return f"Error at offset {offset}, skipping. {reason[payload.status]}", None


def _metadata_complaint(read: Payload, value: bytes, unknown: str) -> str:
    if read.status == BAD_FRAME:
        return frame_complaint(value)
    if read.status == UNKNOWN_TYPE:
        return f"{unknown}Unknown metadata id {read.type_id}"
    if read.status == GARBAGE:
        left = len(value) - read.position
        return f"Found {left} byte(s) of garbage after {read.type_id}"
    return f"Failed to deserialize record with type {read.type_id}"


def frame_complaint(value: bytes) -> str:
    """Describe what is wrong with the numbers before a metadata record."""
    content, p = np.frombuffer(value, dtype=np.uint8), 0
    for entity in ("frame version", "type", "version"):
        number, p, reason = read_unsigned_varint(content, p, content.size)
        if reason >= 0:
            return f"Error while reading {entity}"
        if number > 0x7FFF:
            return f"Value for {entity} was too large."
        frame = ((int(number) & 0xFFFF) ^ 0x8000) - 0x8000
        if entity == "frame version" and frame == 0:
            return (
                "Could not deserialize metadata record with frame version 0. Note that upgrades "
                "from the preview release of KRaft in 2.8 to newer versions are not supported."
            )
        if entity == "frame version" and frame != 1:
            return (
                f"Could not deserialize metadata record due to unknown frame version {frame}"
                "(only frame version 1 is supported)"
            )
    raise AssertionError("the frame is not malformed")


def _remote_payload(kind: TopicKind, offset: int, value: bytes | None) -> str:
    if value is None:
        return f"Error at offset {offset}, skipping. {_NO_VALUE}"
    read = read_metadata(kind, value, any_version=True)
    if read.status != DONE:
        unknown = "org.apache.kafka.common.errors.UnsupportedVersionException: "
        reason = _metadata_complaint(read, value, unknown)
        return f"Error at offset {offset}, skipping. {reason}"
    record = json.loads(read.text)
    try:
        return _REMOTE_TEXTS[read.type_id](record["data"])
    except _Refused as refused:
        return f"Error at offset {offset}, skipping. {refused}"


def _segment(data: dict[str, Any]) -> str:
    """RemoteLogSegmentMetadata.toString, or the message of its constructor's exception."""
    _check_offsets(data)
    epochs = _epochs(data)
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(data)}, "
        f"startOffset={data['startOffset']}, endOffset={data['endOffset']}, "
        f"brokerId={data['brokerId']}, maxTimestampMs={data['maxTimestampMs']}, "
        f"eventTimestampMs={data['eventTimestampMs']}, segmentLeaderEpochs={epochs}, "
        f"segmentSizeInBytes={data['segmentSizeInBytes']}, customMetadata={_custom(data)}, "
        f"state={_segment_state(data)}, txnIdxEmpty={_empty(data)}}}"
    )


def _check_offsets(data: dict[str, Any]) -> None:
    start, end = data["startOffset"], data["endOffset"]
    if start < 0:
        raise _Refused(
            f"Unexpected start offset = {start}. "
            "StartOffset for a remote segment cannot be negative"
        )
    if end < start:
        raise _Refused(
            f"Unexpected end offset = {end}. "
            f"EndOffset for a remote segment cannot be less than startOffset = {start}"
        )


def _update(data: dict[str, Any]) -> str:
    return (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(data)}, "
        f"customMetadata={_custom(data)}, state={_segment_state(data)}, "
        f"eventTimestampMs={data['eventTimestampMs']}, brokerId={data['brokerId']}}}"
    )


def _delete(data: dict[str, Any]) -> str:
    state = data["remotePartitionDeleteState"]
    if not 0 <= state < len(_PARTITION_STATES):
        raise _Refused("null")
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition={_partition(data)}, "
        f"state={_PARTITION_STATES[state]}, eventTimestampMs={data['eventTimestampMs']}, "
        f"brokerId={data['brokerId']}}}"
    )


def _snapshot(data: dict[str, Any]) -> str:
    state = _segment_state(data)
    return (
        f"RemoteLogSegmentMetadataSnapshot{{segmentId={data['segmentId']}, "
        f"startOffset={data['startOffset']}, endOffset={data['endOffset']}, "
        f"maxTimestampMs={data['maxTimestampMs']}, segmentLeaderEpochs={_epochs(data)}, "
        f"segmentSizeInBytes={data['segmentSizeInBytes']}, customMetadata={_custom(data)}, "
        f"state={state}, txnIdxEmpty={_empty(data)}}}"
    )


_REMOTE_TEXTS = (_segment, _update, _delete, _snapshot)


def _segment_id(data: dict[str, Any]) -> str:
    id_ = data["remoteLogSegmentId"]
    return f"RemoteLogSegmentId{{topicIdPartition={_partition(id_)}, id={id_['id']}}}"


def _partition(data: dict[str, Any]) -> str:
    partition = data["topicIdPartition"]
    return f"{partition['id']}:{partition['name']}-{partition['partition']}"


def _epochs(data: dict[str, Any]) -> str:
    """Java's sorted map, which keeps the last entry of an epoch."""
    epochs = {entry["leaderEpoch"]: entry["offset"] for entry in data["segmentLeaderEpochs"]}
    if not epochs:
        raise _Refused("segmentLeaderEpochs can not be null or empty")
    return "{" + ", ".join(f"{epoch}={epochs[epoch]}" for epoch in sorted(epochs)) + "}"


def _custom(data: dict[str, Any]) -> str:
    custom = data["customMetadata"]
    if custom is None:
        return "Optional.empty"
    return f"Optional[CustomMetadata{{{len(custom) // 4 * 3 - custom.count('=')} bytes}}]"


def _segment_state(data: dict[str, Any]) -> str:
    state = data["remoteLogSegmentState"]
    if not 0 <= state < len(_SEGMENT_STATES):
        raise _Refused("state can not be null")
    return _SEGMENT_STATES[state]


def _empty(data: dict[str, Any]) -> str:
    return "true" if data.get("txnIndexEmpty") else "false"


def _int16(raw: bytes) -> int:
    return int.from_bytes(raw[:2], signed=True) if len(raw) >= 2 else 0
