"""The states of segments in tiered storage, as brokers have noted them in __remote_log_metadata.

Answers to RemoteLogMetadataCache. A broker notes that it begins to copy a segment, has copied it,
begins to delete it, and has deleted it; it reads only segments that it has copied.
"""

from __future__ import annotations

import json
import logging
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa

from kafkajit.format.log_path import parse_log_path
from kafkajit.format.tiered_names import object_name
from kafkajit.log.segment import segments_of
from kafkajit.places.wanted import Wanted
from kafkajit.reader import SegmentReader
from kafkajit.schema import record_schema
from kafkajit.storage.stored_file import StoredFile
from kafkajit.topics import TOPICS
from kafkajit.topics.structs import decode_payloads
from kafkajit.walk.damage import DROPMALFORMED, FAILFAST

logger = logging.getLogger("kafkajit")

_KIND = "remote_log_metadata"
TOPIC = TOPICS[_KIND]
_RECORD = record_schema(["offset", "value", "controlType"])
COPY_STARTED, COPY_FINISHED, DELETE_STARTED, DELETE_FINISHED = STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_NUMBERS = {state: number for number, state in enumerate(STATES)}
_FOLLOWING = {
    COPY_STARTED: {COPY_FINISHED, DELETE_STARTED},
    COPY_FINISHED: {DELETE_STARTED},
    DELETE_STARTED: {DELETE_FINISHED},
    DELETE_FINISHED: set(),
}
# The types of events.
_SEGMENT = "REMOTE_LOG_SEGMENT_METADATA_RECORD"
_UPDATE = "REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD"
_DELETION = "REMOTE_PARTITION_DELETE_METADATA_RECORD"


class SegmentId(NamedTuple):
    """The identity of a segment in tiered storage."""

    topic_id: str
    partition: int
    id: str


@dataclass(frozen=True)
class NotedSegment:
    """A segment after the events that name it."""

    topic: str
    start_offset: int
    end_offset: int
    max_timestamp: int
    epochs: tuple[tuple[int, int], ...]  # leader epochs, each with its first offset here
    size: int
    state: str
    broker_id: int  # of the last event, as all that follow
    event_timestamp: int
    custom_metadata: bytes | None = None


NotedSegments = Mapping[SegmentId, NotedSegment]


def is_remote_log_metadata(log: StoredFile) -> bool:
    """Whether a segment is one of the topic that notes segments."""
    return parse_log_path(log.path).topic == TOPIC


def with_states(wanted: Wanted | None) -> Wanted | None:
    """The wanted partitions, and those of the topic that notes their segments."""
    if wanted is None:
        return None
    return lambda place: wanted(place) or place.get("topic") == TOPIC


def noted_segments(logs: Iterable[StoredFile], mode: str = FAILFAST) -> NotedSegments:
    """The segments that these logs note, those of __remote_log_metadata among them.

    All events of a partition are in one log, in order. If there are several brokers' copies of it,
    the one that has gone furthest counts. With another mode than FAILFAST, damaged batches of these
    logs are left out.
    """
    folders: dict[str, list[StoredFile]] = {}
    for log in logs:
        if is_remote_log_metadata(log):
            folders.setdefault(log.folder, []).append(log)
    found: dict[SegmentId, NotedSegment] = {}
    for folder, inside in sorted(folders.items()):
        noted = _Noted()
        for segment in segments_of(inside, {}):
            for offset, event in _events(segment.log, mode):
                noted.read(folder, offset, event)
        for id_, one in noted.segments.items():
            if id_ not in found or _NUMBERS[one.state] > _NUMBERS[found[id_].state]:
                found[id_] = one
    return found


def without_unreadable(logs: list[StoredFile], mode: str = FAILFAST) -> list[StoredFile]:
    """The logs without tiered segments that a broker would not read, if their states are noted."""
    tiered = [log for log in logs if object_name(log.path) is not None]
    if not tiered or not any(map(is_remote_log_metadata, logs)):
        return logs
    noted = noted_segments(logs, mode)
    left_out = set()
    for log in tiered:
        segment = noted.get(segment_id(log.path))
        if segment is not None and segment.state != COPY_FINISHED:
            logger.warning("%s: not read, its state in %s is %s", log.path, TOPIC, segment.state)
            left_out.add(log.path)
    return [log for log in logs if log.path not in left_out]


def segment_id(path: str) -> SegmentId:
    """The identity of the segment that an object belongs to."""
    name = object_name(path)
    assert name is not None
    return SegmentId(name.topic_id, name.partition, name.segment_id)


def _events(log: StoredFile, mode: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The events of a log with their offsets; None for one that cannot be decoded."""
    reader = SegmentReader(log.open(), mode=mode if mode == FAILFAST else DROPMALFORMED)
    for rows in reader.records(_RECORD):
        rows = rows.filter(rows["controlType"].is_null())
        texts = decode_payloads(_KIND, None, pa.chunked_array([rows["value"]]), lenient=True)
        # A record without a value is a tombstone.
        for offset, has_value, text in zip(
            rows["offset"].to_pylist(),
            rows["value"].is_valid().to_pylist(),
            texts.field("value").to_pylist(),
            strict=True,
        ):
            if has_value:
                yield offset, None if text is None else json.loads(text)


class _Noted:
    """The states of segments as the events make them, one after the other."""

    def __init__(self) -> None:
        self.segments: dict[SegmentId, NotedSegment] = {}

    def read(self, folder: str, offset: int, event: dict[str, Any] | None) -> None:
        kind = None if event is None else event["type"]
        problem: str | None
        if event is None or kind not in (_SEGMENT, _UPDATE, _DELETION):
            problem = "it is not an event of a segment"
        elif not isinstance(event["data"], dict):
            problem = f"its version {event['version']} is not known"
        elif kind == _DELETION:
            self._delete(event["data"])
            problem = None
        else:
            problem = self._note(kind, event["data"])
        if problem is not None:
            logger.warning("%s: the event at offset %d is left out: %s", folder, offset, problem)

    def _note(self, kind: str, data: dict[str, Any]) -> str | None:
        """Apply an event of one segment; the reason if a broker would not."""
        place = data["remoteLogSegmentId"]["topicIdPartition"]
        id_ = SegmentId(place["id"], place["partition"], data["remoteLogSegmentId"]["id"])
        number = data["remoteLogSegmentState"]
        if not 0 <= number < len(STATES):
            return f"it has the state {number}"
        state = STATES[number]
        if kind == _SEGMENT:
            if state != COPY_STARTED:
                return f"it introduces a segment in the state {state}"
            self.segments[id_] = _noted(place["name"], data, state)
            return None
        before = self.segments.get(id_)
        if before is None:
            return f"it is of segment {id_.id}, which has not been introduced"
        if state != before.state and state not in _FOLLOWING[before.state]:
            return f"segment {id_.id} goes from {before.state} to {state}"
        custom = data["customMetadata"]
        self.segments[id_] = replace(
            before,
            state=state,
            broker_id=data["brokerId"],
            event_timestamp=data["eventTimestampMs"],
            custom_metadata=before.custom_metadata if custom is None else b64decode(custom),
        )
        return None

    def _delete(self, data: dict[str, Any]) -> None:
        """Apply the deletion of a partition: a broker reads none of its segments any more."""
        place = data["topicIdPartition"]
        finished = data["remotePartitionDeleteState"] == 2
        for id_, segment in self.segments.items():
            if id_[:2] == (place["id"], place["partition"]):
                self.segments[id_] = replace(
                    segment,
                    state=DELETE_FINISHED if finished else DELETE_STARTED,
                    broker_id=data["brokerId"],
                    event_timestamp=data["eventTimestampMs"],
                )


def _noted(topic: str, data: dict[str, Any], state: str) -> NotedSegment:
    custom = data["customMetadata"]
    return NotedSegment(
        topic,
        data["startOffset"],
        data["endOffset"],
        data["maxTimestampMs"],
        tuple((one["leaderEpoch"], one["offset"]) for one in data["segmentLeaderEpochs"]),
        data["segmentSizeInBytes"],
        state,
        data["brokerId"],
        data["eventTimestampMs"],
        None if custom is None else b64decode(custom),
    )
