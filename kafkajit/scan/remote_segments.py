"""The table of segments in tiered storage: what brokers have noted, and what is stored.

objects ─▶ segments ─▶ their manifests ─┐
                                        ├─▶ a row for each segment, with what disagrees
__remote_log_metadata ─▶ their states ──┘
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pyarrow as pa

from kafkajit.arrow.record_batches import table_in_microseconds
from kafkajit.errors import KafkaJitError
from kafkajit.format.tiered_names import LOG, MANIFEST, ObjectName, object_name
from kafkajit.log.remote_log_metadata import (
    COPY_FINISHED,
    COPY_STARTED,
    TOPIC,
    NotedSegment,
    SegmentId,
    noted_segments,
    with_states,
)
from kafkajit.places.location import SEGMENT_NAME
from kafkajit.places.locations import has_objects_at, stored_files
from kafkajit.places.manifest import Manifest
from kafkajit.places.tiered_files import (
    READERS,
    SegmentObjects,
    is_finished,
    look_beside,
    manifest_of,
    segments_among,
)
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.predicates import Predicate, meets, wanted_by
from kafkajit.schema import REMOTE_SEGMENT_COLUMNS, table_schema

# What events and manifests both have: the column, and its name in a message.
_IN_BOTH = {
    "startOffset": "start offset",
    "endOffset": "end offset",
    "maxTimestamp": "latest timestamp",
    "leaderEpochs": "leader epochs",
    "size": "size",
}

_ORDER = ("topic", "partition", "topicId", "startOffset", "segmentId")


class _Stored(NamedTuple):
    """A segment's objects, and its manifest or the reason why it has none."""

    name: ObjectName
    objects: SegmentObjects
    manifest: Manifest | None
    problem: str | None


def read_remote_segments(
    options: ScanOptions, predicates: Sequence[Predicate], schema: pa.Schema
) -> pa.RecordBatch:
    """A row for each segment in tiered storage at the paths, or noted in metadata there."""
    wanted = with_states(wanted_by(predicates))
    listed = {
        file.path: file
        for path in options.paths
        for file in stored_files(path, wanted, options.layout)
    }
    segments, others = segments_among(listed.values())
    look_beside(segments)
    logs = (file for file in others if SEGMENT_NAME.fullmatch(file.name))
    noted = noted_segments(logs, options.mode)
    stored: dict[SegmentId, list[_Stored]] = {}
    with ThreadPoolExecutor(READERS) as pool:
        # A copy of a bucket has the same segments.
        for found in pool.map(_stored, segments, segments.values()):
            stored.setdefault(_id(found.name), []).append(found)
    # Without any objects at the paths, none is missing.
    has_objects = bool(stored) or (wanted is not None and has_objects_at(options.paths))
    known = {id_[:2] for id_ in noted}
    rows = []
    for id_ in {*noted, *stored}:
        if options.topic_id not in (None, id_.topic_id):
            continue
        for found_or_none in stored.get(id_, [None]):
            row = _row(id_, found_or_none, noted.get(id_))
            if not meets({name: row[name] for name in ("topic", "partition")}, predicates):
                continue
            problems = _problems(found_or_none, noted.get(id_), has_objects, id_[:2] in known)
            rows.append({**row, "problem": "; ".join(problems) or None})
    rows.sort(key=lambda row: tuple(row[name] for name in _ORDER))
    table = pa.Table.from_pylist(rows, schema=table_schema(REMOTE_SEGMENT_COLUMNS))
    table = table_in_microseconds(table).select(schema.names).cast(schema).combine_chunks()
    return table.to_batches()[0] if rows else pa.RecordBatch.from_pylist([], schema=schema)


def _id(name: ObjectName) -> SegmentId:
    return SegmentId(name.topic_id, name.partition, name.segment_id)


def _stored(stem: str, objects: SegmentObjects) -> _Stored:
    name = object_name(stem + LOG)
    assert name is not None
    if not is_finished(objects):
        return _Stored(name, objects, None, "its copy is not finished")
    if MANIFEST not in objects:
        return _Stored(name, objects, None, None)
    try:
        return _Stored(name, objects, manifest_of(objects[LOG], objects[MANIFEST]), None)
    except KafkaJitError as error:
        return _Stored(name, objects, None, str(error))


def _row(id_: SegmentId, stored: _Stored | None, noted: NotedSegment | None) -> dict[str, Any]:
    """The columns of a segment; those of the events count if a manifest disagrees."""
    row: dict[str, Any] = dict.fromkeys(REMOTE_SEGMENT_COLUMNS)
    row |= {"partition": id_.partition, "topicId": id_.topic_id, "segmentId": id_.id}
    if stored is not None:
        row |= {"topic": stored.name.topic, "startOffset": stored.name.base_offset}
        log = stored.objects.get(LOG)
        if log is not None:
            row |= {"path": log.path, "objectSize": log.size}
        if log is not None and MANIFEST not in stored.objects:
            row["size"] = log.size
        if stored.manifest is not None:
            row |= _given(_in_manifest(stored.manifest))
            key = stored.manifest.data_key
            row |= {
                "topic": stored.manifest.topic or stored.name.topic,
                "isCompressed": stored.manifest.is_compressed,
                "keyId": None if key is None else key.key_id,
            }
    if noted is not None:
        row |= _in_event(noted) | {
            "topic": noted.topic,
            "state": noted.state,
            "eventTimestamp": noted.event_timestamp,
            "brokerId": noted.broker_id,
            "customMetadata": noted.custom_metadata,
        }
    return row


def _in_manifest(manifest: Manifest) -> dict[str, Any]:
    return {
        "startOffset": manifest.start_offset,
        "endOffset": manifest.end_offset,
        "maxTimestamp": manifest.max_timestamp,
        "leaderEpochs": _epochs(manifest.epochs) if manifest.epochs else None,
        "size": manifest.chunks.size,
    }


def _in_event(noted: NotedSegment) -> dict[str, Any]:
    return {
        "startOffset": noted.start_offset,
        "endOffset": noted.end_offset,
        "maxTimestamp": noted.max_timestamp,
        "leaderEpochs": _epochs(noted.epochs),
        "size": noted.size,
    }


def _epochs(epochs: tuple[tuple[int, int], ...]) -> list[dict[str, int]]:
    return [{"epoch": epoch, "startOffset": offset} for epoch, offset in epochs]


def _given(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value is not None}


def _problems(
    stored: _Stored | None, noted: NotedSegment | None, has_objects: bool, is_noted: bool
) -> Iterator[str]:
    """Describe how events, manifest and objects disagree.

    Without events of the partition none is missing.
    """
    if stored is None:
        if has_objects and noted is not None and noted.state == COPY_FINISHED:
            yield "its objects are missing"
        return
    if stored.problem is not None:
        yield stored.problem
    if noted is None:
        if is_noted:
            yield f"{TOPIC} does not have it"
        return
    if noted.state == COPY_STARTED and stored.problem is None:
        yield "its copy is finished, which is not noted"
    elif noted.state not in (COPY_STARTED, COPY_FINISHED):
        yield "it is deleted, but its objects are there"
    there = _in_event(noted)
    here: dict[str, Any] = {"startOffset": stored.name.base_offset}
    if stored.manifest is not None:
        here |= _given(_in_manifest(stored.manifest))
    elif MANIFEST not in stored.objects and LOG in stored.objects:
        here["size"] = stored.objects[LOG].size
    for column, words in _IN_BOTH.items():
        if column in here and here[column] != there[column]:
            stored_, noted_ = _shown(here[column]), _shown(there[column])
            yield f"its {words}: {stored_} in storage, {noted_} in {TOPIC}"


def _shown(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    return ", ".join(f"{one['epoch']} from {one['startOffset']} on" for one in value)
